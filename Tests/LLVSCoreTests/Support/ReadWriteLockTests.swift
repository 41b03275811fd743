import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Writers wait for readers, and objects that readers use without counting references live until they have left.
@Suite struct ReadWriteLockTests {
    /// The events in order.
    private final class Log: @unchecked Sendable {
        private let lock = Lock()
        private var words: [String] = []
        func add(_ word: String) { lock.withLock { words.append(word) } }
        func has(_ word: String) -> Bool { lock.withLock { words.contains(word) } }
        var all: [String] { lock.withLock { words } }
    }

    @Test(arguments: [false, true]) func writersWaitForReaders(byWaitingOnly: Bool) throws {
        expectEnd {
            let lock = ReadWriteLock(), log = Log()
            let errors = Parallel.run(threads: 3, times: 1) { thread, _ in
                if thread < 2 {
                    lock.withRead {
                        log.add("reads \(thread)")
                        // By then a writer that did not wait would have written, or be about to.
                        while !lock.isWanted && !log.has("wrote") { usleep(100) }
                        for _ in 0..<100 { sched_yield() }
                        log.add("leaves")
                    }
                } else {
                    while !log.has("reads 0") || !log.has("reads 1") { usleep(100) }
                    if byWaitingOnly { lock.waitForReaders() } else { lock.withWrite {} }
                    log.add("wrote")
                }
            }
            #expect(errors.isEmpty && log.all.suffix(3) == ["leaves", "leaves", "wrote"])
        }
    }

    @Test func aMapThatIsReadIsNotReleased() throws {
        expectEnd {
            let lock = ReadWriteLock(), cache = MapCache(MemoryAccount(maps: 1 << 20), readers: lock), log = Log()
            let key: [UInt8] = [1, 2, 3]
            nonisolated(unsafe) weak var node: MapNode?
            try key.withUnsafeBytes { key in
                let map = try #require(
                    try? MapNode.applying([MapChange(key: key, entry: MapEntry(version: 0, size: 0, bodyOffset: 0))][...], to: nil))
                node = map
                cache.store(7, map, changes: 1, on: MapCache.Slot())
            }
            #expect(node != nil)
            let errors = Parallel.run(threads: 2, times: 1) { thread, _ in
                if thread == 0 {
                    try lock.withRead {
                        guard cache.root(of: 7).found else { throw StoreError(.internal, "It is not there.") }
                        log.add("reads")
                        while cache.slot(7) != nil { usleep(100) }
                        // The thread that releases the node waits for this reader. If it did not, the node would be gone by then.
                        while !lock.isWanted && node != nil { usleep(100) }
                        if node == nil { throw StoreError(.internal, "It was released while it was read.") }
                    }
                } else {
                    while !log.has("reads") { usleep(100) }
                    cache.drop(7)
                    if node != nil { throw StoreError(.internal, "It was never released.") }
                }
            }
            #expect(errors.isEmpty, "\(errors.first.map { "\($0)" } ?? "")")
        }
    }
}
