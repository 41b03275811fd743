import Testing

@testable import LLVSCore

/// In debug builds the order of locks is checked when they are taken.
@Suite struct LockOrderTests {
    @Test func locksThatAreTakenInOrderAreLetGoOfInAnyOrder() {
        let commit = Lock(.commit), blocks = Lock(.blocks), history = ReadWriteLock(.history), leaf = Lock(.leaf), other = Lock(.leaf)
        commit.lock()
        blocks.lock()
        history.withRead { leaf.withLock {} }
        commit.unlock()
        history.withWrite { other.withLock {} }
        blocks.unlock()
        commit.withLock { history.withRead {} }
    }

    @Test func whatTheHostTakesIsInAnOrderOfItsOwn() {
        let storage = Lock(.writing), commit = Lock(.commit)
        storage.withLockWhileCalling { commit.withLock {} }
        commit.withLock { storage.withLock {} }
    }

    @Test func locksOutsideOfTheOrderAreNotChecked() {
        let one = Lock(), other = Lock(), leaf = Lock(.leaf)
        leaf.withLock { one.withLock { other.withLock {} } }
    }

    #if DEBUG
    @Test func aBrokenOrderStopsTheProcess() async {
        await #expect(processExitsWith: .failure) {
            let history = ReadWriteLock(.history), maps = Lock(.maps)
            maps.withLock { history.withRead {} }
        }
    }

    @Test func twoLocksOfOneRankStopIt() async {
        await #expect(processExitsWith: .failure) {
            let one = Lock(.leaf), other = Lock(.leaf)
            one.withLock { other.withLock {} }
        }
    }

    @Test func aReaderThatReadsAgainStopsIt() async {
        await #expect(processExitsWith: .failure) {
            let history = ReadWriteLock(.history)
            history.withRead { history.withRead {} }
        }
    }

    @Test func aPreconditionOnALockStopsAThreadWithoutIt() async {
        ReadWriteLock(.history).withRead {}
        await #expect(processExitsWith: .failure) { ReadWriteLock(.history).assertHeld("The history") }
    }

    @Test func aBrokenOrderIsFoundAsWellBehindCodeOfTheHost() async {
        await #expect(processExitsWith: .failure) {
            let writing = Lock(.writing), leaf = Lock(.leaf), history = ReadWriteLock(.history)
            writing.withLockWhileCalling { leaf.withLock { history.withRead {} } }
        }
    }
    #endif
}
