import LLVSCore
import LLVSTestHelpers
import Testing

@Suite("Waiting for others can be given up") struct GateTests {
    let directory = TemporaryDirectory()

    /// A waiting thread may have to end before the call does, for example a syncer that is stopped from the call's progress callback.
    @Test func waitingForACallIsCancelled() throws {
        let gate = Gate("coordinator"), token = CancelToken(), lock = Lock()
        var codes: [StoreError.Code?] = []
        let ended = try gate.run("Exchanging") {
            Parallel.finishes {
                let errors = Parallel.run(threads: 2, times: 1) { thread, _ in
                    if thread == 0 { token.cancel() }
                    if thread == 1 { try gate.run("Exchanging", OperationControl(token: token)) {} }
                }
                lock.withLock { codes = errors.map { ($0 as? StoreError)?.code } }
            }
        }
        #expect(ended && lock.withLock { codes } == [.cancelled])
        // Within its own call a second call is refused at once. Afterwards the gate is free.
        _ = try gate.run("Exchanging") {
            #expect(throws: StoreError.self) { try gate.run("Exchanging", OperationControl(token: CancelToken())) {} }
        }
        try gate.run("Exchanging", OperationControl(token: CancelToken())) {}
    }

    @Test func aWaitWithoutEndIsWokenUp() throws {
        let lock = Lock(), changed = Condition()
        var isThere = false, turns = 0
        let ended = Parallel.finishes {
            _ = Parallel.run(threads: 2, times: 1) { thread, _ in
                if thread == 0 {
                    // The other thread waits from its first turn on. If it did not, it would take many more turns during this loop.
                    _ = Parallel.becomes { lock.withLock { turns > 0 } }
                    for _ in 0..<2_000 {
                        lock.withLock {}
                        sched_yield()
                    }
                    lock.withLock {
                        isThere = true; changed.broadcast()
                    }
                } else {
                    lock.withLock { while !isThere { turns += 1; _ = changed.wait(lock, until: .infinity) } }
                }
            }
        }
        #expect(ended && lock.withLock { turns } < 100)
    }

    /// Closes the store from the progress callback of a verification, alone and while another thread waits.
    @Test(arguments: ["store", "store.sqlite"]) func aStoreIsClosedFromWithinAVerification(name: String) throws {
        var options = Store.Options()
        if name.hasSuffix("sqlite") { options.storage = .sqlite }
        let store = try Store(path: directory.path + "/" + name, options: options)
        for n in 0..<20 {
            _ = try store.makeVersion(basedOn: store.mostRecentHead()?.id, changes: [.insert(try ValueID("n"), data: [UInt8(n)])])
        }
        let lock = Lock()
        nonisolated(unsafe) var calls = 0
        let ended = Parallel.finishes {
            _ = try? store.verifyRecords(
                OperationControl(progress: { progress in
                    // Act in the middle, while the storage is being read.
                    guard progress.stage == .verifying, progress.completed > 0 else { return true }
                    lock.withLock { calls += 1 }
                    try store.close()
                    return true
                }))
        }
        #expect(ended && lock.withLock { calls } > 0)
        let again = try Store(path: directory.path + "/" + name, options: options)
        #expect(try again.verifyRecords(OperationControl()).damages.isEmpty)
        try again.close()
    }
}
