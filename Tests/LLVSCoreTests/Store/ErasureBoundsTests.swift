import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// A store holds 65,536 orders to erase, and 64 MiB of them. Beyond, nothing is ordered and nothing changes.
@Suite struct ErasureBoundsTests {
    private func refused(_ lines: [ErasureNote.Line]) throws {
        let folder = TemporaryFolder(), id = try ValueID("a")
        let path = folder.path + "/store"
        var note = ErasureNote([])
        note.lines = lines
        let bytes = note.bytes
        let store = try Store(path: path, options: Store.Options())
        let made = try store.makeVersion(basedOn: nil, changes: [.insert(id, data: Array("secret".utf8))])
        try store.storage.changeOrders { _ in bytes }
        var query = ErasureQuery()
        query.ids = [id]
        #expect(try store.erase(query: query, isDryRun: true).values == 1)
        #expect { try store.erase(query) } throws: { ($0 as? StoreError)?.code == .tooLarge }
        #expect(try store.headIDs() == [made.id] && store.value(id, at: made.id)?.data == Array("secret".utf8))
        try store.close()
        let again = try Store(path: path, options: Store.Options())
        #expect(try again.storage.orders() == [bytes] && again.headIDs() == [made.id])
        try again.close()
    }

    private func line(_ number: Int, _ json: [UInt8] = []) -> ErasureNote.Line {
        let name = Base32.encode(Array(withUnsafeBytes(of: (number, number)) { Array($0) }))
        return ErasureNote.Line(order: name, version: VersionID(high: 1, low: 2), isFollowed: true, json: json)
    }

    @Test func noMoreThan65536Orders() throws { try refused((0..<ErasureNote.most).map { line($0) }) }
    @Test func noMoreThan64MiB() throws { try refused((0..<65).map { line($0, [UInt8](repeating: 120, count: 1 << 20)) }) }
}

extension Store {
    fileprivate func erase(query: ErasureQuery, isDryRun: Bool) throws -> ErasureReport {
        var query = query
        query.isDryRun = isDryRun
        return try erase(query)
    }
}
