import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Single files at a server that are shorter than what was sent: truncated uploads that the server acknowledged.
@Suite struct ShortFilesTests {
    private let place = MemoryPlace()
    private let device: PackedDevice

    init() throws { device = try PackedDevice(place) }

    /// Exchanges as a later process of the device, with the state that earlier ones saved. Returns what was sent, and the requests.
    private func send(_ state: inout [UInt8], at time: Double) throws -> (sent: Set<VersionID>, asked: [String]) {
        let files = MemoryFiles(place), transport = RemoteTransport(files)
        transport.clock = { time }
        transport.restorationState = state
        let exchange = Exchange(store: device.store, transport: transport)
        #expect(try exchange.retrieve().problems.isEmpty)
        let sent = try exchange.send()
        #expect(sent.problems.isEmpty)
        state = transport.restorationState
        return (Set(sent.versions), files.asked)
    }

    @Test(arguments: ["versions", "changes"], [1, 40, 100_000])
    func aDeviceThatHasTheVersionSendsItAgain(folder: String, lost: Int) throws {
        var state: [UInt8] = []
        for name in ["a", "b"] { _ = try device.save(name, [UInt8](repeating: 7, count: 2_000)) }
        let all = device.ids
        let first = try send(&state, at: 1_000)
        #expect(first.sent == all)
        let whole = place.files
        let cut = all.filter { place.files["\(folder)/\($0)"] != nil }
        for id in cut { place.files["\(folder)/\(id)"] = Array(whole["\(folder)/\(id)", default: []].dropLast(lost)) }
        // Version files are listed each time. Changes files are listed ten minutes after some were sent.
        let soon = try send(&state, at: 1_300)
        #expect(soon.sent == (folder == "versions" ? cut : []))
        let later = try send(&state, at: 1_700)
        #expect(later.sent == (folder == "versions" ? [] : cut))
        #expect(place.files == whole)
        // Nothing remains to be read or sent.
        let quiet = try send(&state, at: 2_400)
        #expect(quiet.sent.isEmpty && quiet.asked.filter { !$0.hasPrefix("list ") }.isEmpty)
        let last = try send(&state, at: 2_500)
        #expect(last.asked.filter { $0 == "list changes" }.isEmpty)
        // A day later they are listed again.
        let nextDay = try send(&state, at: 2_500 + 90_000)
        #expect(nextDay.asked.contains("list changes"))
    }

    /// Another implementation omits the digest. Its files are not read because of that.
    @Test func filesOfAnotherImplementationAreNotRead() throws {
        var state: [UInt8] = []
        let id = try device.save("a", [UInt8](repeating: 7, count: 2_000))
        _ = try send(&state, at: 1_000)
        let version = try #require(try device.store.version(id))
        place.files["versions/\(id)"] = InterchangeEncoder.version(version)
        let next = try send(&state, at: 1_300)
        #expect(next.sent.isEmpty && !next.asked.contains { $0.hasPrefix("read ") })
    }
}
