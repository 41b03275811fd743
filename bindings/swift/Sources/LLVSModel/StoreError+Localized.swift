import LLVS

#if canImport(FoundationEssentials)
import FoundationEssentials

/// `localizedDescription` is the sentence of the error.
extension LLVS.StoreError: FoundationEssentials.LocalizedError {
    /// What failed on which object, and what the user can do: `StoreError.message`.
    public var errorDescription: String? { message }
}
#else
import Foundation

/// `localizedDescription` is the sentence of the error.
extension LLVS.StoreError: Foundation.LocalizedError {
    /// What failed on which object, and what the user can do: `StoreError.message`.
    public var errorDescription: String? { message }
}
#endif
