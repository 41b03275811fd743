#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The extent of random tests: a fixed sample in the usual run, all seeds if the environment variable `LLVS_DEEP` is set, and a single seed
/// if `LLVS_SEED` names it.
package enum Sample {
    /// Whether `LLVS_DEEP` is set.
    package static let isDeep = word("LLVS_DEEP").map { $0 != "0" } ?? false
    /// The seed in `LLVS_SEED`.
    package static let seed = word("LLVS_SEED").flatMap { UInt64($0) }

    /// Returns the seeds that a test runs with: the first `usual` or `deep` ones from `first` on, and those that it always runs with. If
    /// `LLVS_SEED` names a seed, returns only that one.
    package static func seeds(from first: UInt64 = 0, usual: Int, deep: Int, always: [UInt64] = []) -> [UInt64] {
        if let seed { return [seed] }
        return (0..<UInt64(sample(usual: usual, deep: deep))).map { first + $0 } + always
    }

    /// Returns text for the message of a failure: the seed, and the command that runs the test with it.
    package static func hint(_ seed: UInt64, _ test: String = #function) -> String {
        let name = test.prefix { $0 != "(" }
        return "seed \(seed), alone: \(isDeep ? "LLVS_DEEP=1 " : "")LLVS_SEED=\(seed) swift test --filter \(name)"
    }

    private static func word(_ name: String) -> String? { getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 } }
}

/// Returns `usual`, or `deep` if the environment variable `LLVS_DEEP` is set.
package func sample<T>(usual: T, deep: T) -> T { Sample.isDeep ? deep : usual }
