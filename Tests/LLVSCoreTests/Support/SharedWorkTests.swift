import LLVSCore
import LLVSTestHelpers
import Testing

@Suite struct SharedWorkTests {
    private struct Failed: Error, Equatable { let piece: Int }

    /// Returns the numbers below `count`, one at each call.
    private func numbers(_ count: Int, bytes: Int = 1) -> () -> (Int, bytes: Int)? {
        var next = 0
        return {
            guard next < count else { return nil }
            defer { next += 1 }
            return (next, bytes: bytes)
        }
    }

    @Test(arguments: [1, 2, 4], [0, 1, 2, 500]) func resultsComeInOrderOnTheThreadThatCalled(threads: Int, count: Int) throws {
        let caller = pthread_self(), others = Guarded(0)
        var taken: [Int] = []
        try SharedWork.run(threads: threads, .none, next: numbers(count)) { number, _ in
            if pthread_equal(pthread_self(), caller) == 0 {
                others.withLock { $0 += 1 }
            } else if threads > 1, count > 2 {
                // With this many pieces, other threads do some of them.
                _ = Parallel.becomes { others.withLock { $0 } > 0 }
            }
            return 2 * number
        } take: {
            #expect(pthread_equal(pthread_self(), caller) != 0)
            taken.append($0)
        }
        #expect(taken == (0..<count).map { 2 * $0 })
        if threads == 1 || count < 2 { #expect(others.withLock { $0 } == 0) }
        if threads > 1, count > 2 { #expect(others.withLock { $0 } > 0) }
    }

    @Test(arguments: [1, 3]) func theFirstFailureCounts(threads: Int) throws {
        for failing in [[0], [7], [40, 12, 30]] {
            var taken: [Int] = []
            let failure = #expect(throws: Failed.self) {
                try SharedWork.run(threads: threads, .none, next: self.numbers(50)) { number, _ in
                    if failing.contains(number) { throw Failed(piece: number) }
                    // The second of two pieces is often done first.
                    if number % 2 == 0 { usleep(300) }
                    return number
                } take: {
                    taken.append($0)
                }
            }
            #expect(failure == Failed(piece: failing.min() ?? -1))
            #expect(taken == Array(0..<(failing.min() ?? 0)))
        }
    }

    @Test func whatNextOrTakeThrowsEndsIt() throws {
        let running = Guarded(0)
        @Sendable func make(_ number: Int, _ control: PacedControl) throws -> Int {
            running.withLock { $0 += 1 }
            defer { running.withLock { $0 -= 1 } }
            usleep(200)
            return number
        }
        var asked = 0
        #expect(throws: Failed(piece: 20)) {
            try SharedWork.run(
                threads: 4, .none,
                next: {
                    asked += 1
                    if asked > 20 { throw Failed(piece: 20) }
                    return (asked, bytes: 1)
                }, make: make, take: { _ in })
        }
        // No work continues after the call.
        #expect(running.withLock { $0 } == 0)
        #expect(throws: Failed(piece: 9)) {
            try SharedWork.run(threads: 4, .none, next: self.numbers(50), make: make) { if $0 == 9 { throw Failed(piece: 9) } }
        }
        #expect(running.withLock { $0 } == 0)
    }

    /// Steps of other threads count for the progress, and a cancellation reaches them.
    @Test func progressAndCancelling() throws {
        let told = Guarded<[UInt64]>([])
        let control = OperationControl(progress: { state in
            told.withLock { $0.append(state.completed) }
            return true
        }).paced(.reading, doing: "Testing")
        try SharedWork.run(threads: 4, control, next: numbers(100)) { _, control in
            for _ in 0..<10 { try control.step() }
            usleep(100)
        } take: { _ in
        }
        try control.look()
        #expect(control.completed == 1_000 && told.withLock { $0 } == told.withLock { $0.sorted() })

        let token = CancelToken(), ended = Guarded(0)
        let error = #expect(throws: StoreError.self) {
            try SharedWork.run(
                threads: 4, OperationControl(token: token).paced(.reading, doing: "Testing"), next: self.numbers(8)
            ) { number, control in
                defer { ended.withLock { $0 += 1 } }
                if number == 3 { token.cancel() }
                while true {
                    try control.look()
                    usleep(100)
                }
            } take: { (_: Void) in
            }
        }
        #expect(error?.code == .cancelled && ended.withLock { $0 } >= 1)
    }

    /// Large pieces are processed one after another, not many at once.
    @Test func fewPiecesAreInMemory() throws {
        var given = 0, taken = 0, most = 0
        let next = numbers(40, bytes: 64 << 20)
        try SharedWork.run(
            threads: 4, .none,
            next: {
                let piece = next()
                if piece != nil { given += 1 }
                most = max(most, given - taken)
                return piece
            }, make: { number, _ in number }, take: { _ in taken += 1 })
        #expect(taken == 40 && most == 1)
    }
}
