import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Single files at a place over a network. Files that cannot be used are retried in turn, and new files do not wait for them.
@Suite("Single files: retries") struct FarRetryTests {
    private let place = MemoryPlace()
    private func exchange() throws -> (exchange: Exchange, files: MemoryFiles) {
        let files = MemoryFiles(place)
        return (try Exchange(store: memoryStore(), transport: RemoteTransport(files)), files)
    }
    private func put(_ id: String, on predecessor: String?, changes: String = "[{\"insert\":{\"id\":\"k\",\"data\":\"eA==\"}}]") {
        let before = predecessor.map { ",\"predecessors\":{\"idOfFirst\":\"\($0)\"}" } ?? ""
        let version = "{\"version\":{\"identifier\":\"\(id)\",\"timestamp\":1.0,\"valueDataSize\":1,\"metadata\":[]\(before)}}"
        place.put("changes/\(id)", Array(changes.utf8))
        place.put("versions/\(id)", Array(version.utf8))
    }
    private func versionsRead(_ files: MemoryFiles) -> [String] {
        defer { files.asked = [] }
        return files.asked.filter { $0.hasPrefix("read versions/") }
    }

    @Test func versionsThatWait() throws {
        let count = 100, (exchange, files) = try exchange()
        for n in 0..<count { put("waits\(n)", on: n % 2 == 0 ? "nowhere" : "waits\(n - 1)") }
        #expect(try exchange.retrieve().problems.count == count)
        #expect(versionsRead(files).count == count)
        var tried: Set<String> = []
        for n in 0..<5 {
            put("new\(n)", on: nil)
            let found = try exchange.retrieve(), read = versionsRead(files)
            #expect(found.versions.map(\.description) == ["new\(n)"] && found.problems.count == count)
            #expect(read.count <= 1 + 2 * ExchangeLimits.retryCount, "\(read.count)")
            tried.formUnion(read)
        }
        #expect(tried.count == count + 5)
        // When the missing version arrives, all versions that waited for it are received at once.
        put("nowhere", on: nil)
        let found = try exchange.retrieve()
        #expect(found.versions.count == count + 1 && found.problems.isEmpty)
    }

    @Test func versionsThatAreBroken() throws {
        let count = 100, (exchange, files) = try exchange()
        for n in 0..<count { put("broken\(n)", on: nil, changes: "[{]") }
        #expect(try exchange.retrieve().problems.count == count)
        _ = versionsRead(files)
        for n in 0..<3 {
            put("new\(n)", on: nil)
            let found = try exchange.retrieve(), read = versionsRead(files)
            #expect(found.versions.map(\.description) == ["new\(n)"])
            #expect(read.count == 1 + ExchangeLimits.retryCount, "\(read.count)")
        }
        for n in 0..<count { put("broken\(n)", on: nil) }
        for _ in 0..<4 { _ = try exchange.retrieve() }
        #expect(try exchange.store.heads().count == count + 3)
    }

    /// Each call is cancelled after some requests, as on a phone that lets a program run for some seconds.
    @Test(arguments: [200, 400]) func littleTime(count: Int) throws {
        let (exchange, files) = try exchange()
        for n in 0..<count { put("v\(n)", on: n % 3 == 0 ? nil : "v\(n - 1)") }
        var calls = 0
        while try exchange.store.statistics().versions < count, calls < 40 {
            let token = CancelToken(), most = files.asked.count + 100
            files.before = { if files.asked.count >= most { token.cancel() } }
            _ = try? exchange.retrieve(control: OperationControl(token: token))
            calls += 1
        }
        #expect(try exchange.store.statistics().versions == count)
        // Two files for each version, a listing or two for each call, and the requests that were interrupted.
        #expect(files.asked.count <= 2 * count + 40 * calls, "\(files.asked.count) requests, \(calls) calls")
    }
}
