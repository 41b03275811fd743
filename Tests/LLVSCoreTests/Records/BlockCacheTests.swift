import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// The lock that readers share without writing to shared memory, and the blocks that are read under it.
@Suite struct BlockCacheTests {
    // MARK: The lock

    @Test func writersAreAloneAndReadersSeeWholeStates() {
        let lock = ReadWriteLock()
        nonisolated(unsafe) var a = 0, b = 0
        nonisolated(unsafe) var torn = 0
        let counting = Lock()
        let errors = Parallel.run(threads: 8, times: 2_000) { thread, turn in
            if thread < 2 || turn % 50 == 0 {
                lock.withWrite {
                    a += 1; b += 1
                }
            } else if lock.withRead({ a != b }) {
                counting.withLock { torn += 1 }
            }
        }
        #expect(errors.isEmpty && torn == 0)
        #expect(a == 2 * 2_000 + 6 * 40 && b == a)
    }

    @Test func aWriterWaitsForCurrentReadersAndPrecedesLaterOnes() {
        // A lock that admits the second reader before the writer would do so in most of many rounds.
        for round in 0..<50 {
            let lock = ReadWriteLock(), log = Guarded<[String]>([])
            func note(_ text: String) { log.withLock { $0.append(text) } }
            func has(_ text: String) -> Bool { log.withLock { $0.contains(text) } }
            let errors = Parallel.run(threads: 3, times: 1) { thread, _ in
                switch thread {
                case 0:
                    lock.withRead {
                        note("first reader")
                        _ = Parallel.becomes { has("second comes") }
                        for _ in 0..<100 { sched_yield() }
                        note("first leaves")
                    }
                case 1:
                    _ = Parallel.becomes { has("first reader") }
                    lock.withWrite { note("writer") }
                default:
                    _ = Parallel.becomes { lock.isWanted }
                    note("second comes")
                    lock.withRead { note("second reader") }
                }
            }
            #expect(errors.isEmpty)
            #expect(log.withLock { $0 } == ["first reader", "second comes", "first leaves", "writer", "second reader"], "round \(round)")
        }
    }

    // MARK: The blocks

    static func bytes(_ number: UInt64, _ count: Int = 4_096) -> [UInt8] { StorageConformance.bytes(seed: number, count: count) }
    static func key(_ number: UInt64) -> BlockKey { BlockKey(segment: UInt32(number % 3), part: 0, position: number) }

    struct Blocks {
        let lock = ReadWriteLock()
        let cache: BlockCache
        init(budget: Int, blockSize: Int = 4_096) { cache = BlockCache(budget: budget, blockSize: blockSize, readers: lock) }
        func read(_ key: BlockKey) -> [UInt8]? { lock.withRead { cache.block(key).map { Array($0) } } }
        func admit(_ key: BlockKey, _ bytes: [UInt8], room: Int? = nil) {
            bytes.withUnsafeBytes { cache.admit(key, $0, room: room ?? bytes.count) }
        }
    }

    @Test func blocksAreThereUntilTheyAreForgotten() {
        let blocks = Blocks(budget: 1 << 20)
        for i in 0..<50 as Range<UInt64> { blocks.admit(Self.key(i), Self.bytes(i)) }
        for i in 0..<50 as Range<UInt64> { #expect(blocks.read(Self.key(i)) == Self.bytes(i)) }
        #expect(blocks.read(BlockKey(segment: 0, part: 0, position: 50)) == nil)
        #expect(blocks.read(BlockKey(segment: 9, part: 0, position: 3)) == nil)
        #expect(blocks.read(BlockKey(segment: 0, part: 1, position: 3)) == nil)
        blocks.cache.drop(Self.key(7))
        #expect(blocks.read(Self.key(7)) == [])
        blocks.admit(Self.key(7), Self.bytes(70))
        #expect(blocks.read(Self.key(7)) == Self.bytes(70))
    }

    @Test func aBlockAtAnEndThatGrowsGrowsInPlace() {
        let blocks = Blocks(budget: 1 << 20)
        let all = Self.bytes(1)
        blocks.admit(Self.key(1), Array(all[..<100]), room: 4_096)
        let memory = blocks.cache.memoryInUse
        #expect(blocks.read(Self.key(1)) == Array(all[..<100]))
        for count in [101, 100, 50, 3_000, 4_096] {
            blocks.admit(Self.key(1), Array(all[..<count]), room: 4_096)
            #expect(blocks.read(Self.key(1)) == Array(all[..<max(101, count == 50 ? 101 : count)]))
        }
        #expect(blocks.cache.memoryInUse == memory)
    }

    @Test(arguments: [0, 100, 300 << 10, 1 << 20, 5 << 20]) func theBudgetIsKept(budget: Int) {
        for (blockSize, size) in [(4_096, 4_096), (65_536, 65_536), (65_536, 300)] {
            let blocks = Blocks(budget: budget, blockSize: blockSize)
            #expect(blocks.cache.memoryLimit <= max(budget, 2 << 10))
            for i in 0..<UInt64(3 * (budget + 10_000) / size) {
                blocks.admit(Self.key(i), [UInt8](repeating: UInt8(truncatingIfNeeded: i), count: size))
                if i % 97 == 0 { #expect(blocks.cache.memoryInUse <= blocks.cache.memoryLimit) }
            }
            #expect(blocks.cache.memoryInUse <= blocks.cache.memoryLimit)
            #expect(budget < 300 << 10 || blocks.cache.memoryInUse > 0)
        }
    }

    @Test func whatIsReadStaysAndWhatIsMissedOnceStaysOut() {
        let blocks = Blocks(budget: 1 << 20)
        #expect(blocks.cache.shouldAdmit(Self.key(0)))
        blocks.admit(Self.key(0), Self.bytes(0))
        var i: UInt64 = 1
        while blocks.read(Self.key(0)) != nil, i < 2_000 { blocks.admit(Self.key(i), Self.bytes(i)); i += 1 }
        // The block was read all the time, so it outlived all others.
        #expect(i == 2_000 && blocks.read(Self.key(1)) == nil)
        #expect(!blocks.cache.shouldAdmit(Self.key(5_000)) && blocks.cache.shouldAdmit(Self.key(5_000)))
        while blocks.read(Self.key(1_999)) != nil, i < 6_000 {
            for _ in 0..<300 { blocks.admit(Self.key(i), Self.bytes(i)); i += 1 }
            guard i < 5_000 else { break }
        }
        #expect(blocks.read(Self.key(i - 1)) == Self.bytes(i - 1))
    }

    @Test func aMapOfTheSameReadsFromManyThreads() {
        let blocks = Blocks(budget: 700 << 10)
        let errors = Parallel.run(threads: 6, times: 2_000) { thread, turn in
            var random = SeededRandom(seed: UInt64(thread * 100_000 + turn))
            let number = random.next() % 400
            let found = blocks.lock.withRead { () -> Bool? in
                guard let block = blocks.cache.block(Self.key(number)) else { return nil }
                return Self.bytes(number, 2_000 + Int(number)).withUnsafeBytes {
                    Bytes.equal(block, UnsafeRawBufferPointer(rebasing: $0.prefix(block.count)))
                }
            }
            if found == false { throw StoreError(.damaged, "block \(number) has other bytes") }
            guard found == nil || turn % 8 == 0 else { return }
            let all = Self.bytes(number, 2_000 + Int(number))
            if turn % 1_000 == 0 { blocks.cache.drop(Self.key(number)) }
            blocks.admit(Self.key(number), turn % 3 == 0 ? Array(all[..<1_000]) : all, room: all.count)
        }
        #expect(errors.isEmpty, "\(errors)")
        #expect(blocks.cache.memoryInUse <= blocks.cache.memoryLimit)
    }
}
