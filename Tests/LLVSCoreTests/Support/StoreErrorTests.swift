import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

@Suite struct StoreErrorTests {
    /// The codes of the header by their numbers, for example `NOT_FOUND`.
    private func codesOfHeader() throws -> [Int32: String] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..")
        let header = try String(contentsOf: root.appendingPathComponent("include/llvs/common.h"), encoding: .utf8)
        let codes = header.matches(of: /LLVS_ERROR_([A-Z0-9_]+) = (-\d+)/)
        return Dictionary(codes.compactMap { found in Int32(found.2).map { ($0, String(found.1)) } }) { first, _ in first }
    }

    @Test func aCodePrintsItsName() throws {
        let codes = try codesOfHeader()
        #expect(codes.count > 50)
        for (number, name) in codes {
            let printed = "\(StoreError.Code(rawValue: number))"
            #expect(printed.uppercased() == name.replacing("_", with: ""), "\(number)")
        }
        #expect("\(StoreError.notFound)" == "notFound" && "\(StoreError.Code(rawValue: -999))" == "code -999")
    }

    @Test func errorsAreCaughtByTheirCode() throws {
        func caught(_ error: any Error) -> String {
            do {
                throw error
            } catch StoreError.notFound {
                return "not found"
            } catch StoreError.busy, StoreError.closed {
                return "busy or closed"
            } catch {
                return "another"
            }
        }
        #expect(caught(StoreError(.notFound, "There is no store.")) == "not found")
        #expect(caught(StoreError(.closed, "It is closed.")) == "busy or closed")
        #expect(caught(StoreError(.io, "The disk failed.")) == "another")
        #expect(caught(CancellationError()) == "another")
    }
}
