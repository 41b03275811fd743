import CLLVSShims

/// Divides work in pieces between the calling thread and threads of the library. The results of the pieces, and their errors, are
/// processed on the calling thread in the order of the pieces: the effect is the same as with one thread.
///
/// The calling thread works on pieces, too, so no other thread is required. Others begin when a second piece waits, and end before `run`
/// returns. Pieces must not call the host, which expects its callbacks on its own thread.
package final class SharedWork<Piece, Made>: HostCallMark, @unchecked Sendable {
    // Sendable: `lock` guards the mutable state. A piece, and its result, is used by one thread at a time.
    private enum Slot {
        case waiting(Piece)
        case taken
        /// The result, and how many steps another thread did for it.
        case made(Result<Made, any Error>, steps: Int)
    }
    private enum Next {
        /// The caller works on this piece; the index is that of the piece.
        case own(Int, Piece)
        case made(Result<Made, any Error>, steps: Int)
        /// Another thread works on it.
        case others
        /// No piece is left.
        case none
    }

    private let lock = Lock(.leaf)
    private let changed = Condition()
    /// The pieces from the one whose result is processed next, with the bytes of each.
    private var slots: [(slot: Slot, bytes: Int)] = []
    private var taken = 0
    private var helpers = 0, mostHelpers: Int
    private var isOver = false
    private let process = getpid()
    private let token = CancelToken()
    private let make: @Sendable (Piece, PacedControl) throws -> Made

    /// The most bytes of pieces in memory. Beyond that, no further piece is created.
    private static var mostBytes: Int { 8 << 20 }
    /// How long to wait for another thread before checking the control.
    private static var turn: Double { 0.02 }

    /// - Parameters:
    ///   - threads: the most threads, including the calling one.
    ///   - control: the control of the call. It gets the steps that `make` reports to its own control.
    ///   - next: returns the next piece, and approximately how many bytes it holds; nil after the last. Called on the calling thread.
    ///   - make: processes a piece, on any thread.
    ///   - take: receives the result, on the calling thread.
    /// - Throws: the errors of these.
    package static func run(
        threads: Int, _ control: PacedControl, next: () throws -> (Piece, bytes: Int)?,
        make: @escaping @Sendable (Piece, PacedControl) throws -> Made, take: (Made) throws -> Void
    ) throws {
        let work = SharedWork(max(0, threads - 1), make)
        defer { work.end() }
        // If a callback never returns, the other threads end by themselves.
        try HostCalls.run(work) { try work.run(control, next, take) }
    }

    private init(_ helpers: Int, _ make: @escaping @Sendable (Piece, PacedControl) throws -> Made) {
        mostHelpers = helpers
        self.make = make
    }

    package func hostLeft() { stop() }

    private func run(_ control: PacedControl, _ next: () throws -> (Piece, bytes: Int)?, _ take: (Made) throws -> Void) throws {
        var hasMore = true
        while true {
            while hasMore, hasRoom {
                if let (piece, bytes) = try next() { add(piece, bytes) } else { hasMore = false }
            }
            switch try claim() {
            case .none: return
            case .others: try control.look()
            case .own(let number, let piece):
                let made = Result { try make(piece, control) }
                // In a child that a callback forked meanwhile, the lock may be held forever.
                if getpid() != process {
                    _ = try made.get()
                    throw StoreError(
                        .forked,
                        "A callback forked: this is another process now, in which the work cannot continue. Open the store again in it.")
                }
                put(number, made, steps: 0)
            case .made(let made, let steps):
                if steps > 0 {
                    try control.step(steps)
                    try control.look()
                }
                try take(made.get())
            }
        }
    }

    private var hasRoom: Bool {
        lock.withLock {
            slots.isEmpty
                || slots.count < 2 * (mostHelpers + 1) && mostHelpers > 0
                    && slots.reduce(0) { $0 + $1.bytes } < SharedWork.mostBytes
        }
    }

    private func add(_ piece: Piece, _ bytes: Int) {
        let startsOne = lock.withLock {
            slots.append((.waiting(piece), bytes))
            guard slots.count > 1 else { return false }
            changed.broadcast()
            guard helpers < mostHelpers else { return false }
            helpers += 1
            return true
        }
        guard startsOne else { return }
        do {
            try OwnThread.start("A thread that shares work") { [self] in
                help()
                lock.withLock {
                    helpers -= 1
                    changed.broadcast()
                }
            }
        } catch {
            // There is one thread fewer.
            lock.withLock {
                helpers -= 1
                mostHelpers = helpers
            }
        }
    }

    /// Returns what the calling thread must do next.
    private func claim() throws -> Next {
        try lock.withLock {
            guard let first = slots.first else { return .none }
            if case .made(let made, let steps) = first.slot {
                slots.removeFirst()
                taken += 1
                return .made(made, steps: steps)
            }
            if let (number, piece) = takeWaiting() { return .own(number, piece) }
            // In a child that a callback forked, there are no other threads.
            guard getpid() == process else {
                throw StoreError(
                    .forked, "The process was forked in the middle of a call, which cannot continue in the child. Call again there.")
            }
            _ = changed.wait(lock, until: Clock.steady() + SharedWork.turn)
            return .others
        }
    }

    /// Takes the first piece that no thread works on. Precondition: the lock is held.
    private func takeWaiting() -> (Int, Piece)? {
        for i in slots.indices {
            guard case .waiting(let piece) = slots[i].slot else { continue }
            slots[i].slot = .taken
            return (taken + i, piece)
        }
        return nil
    }

    private func put(_ number: Int, _ made: Result<Made, any Error>, steps: Int) {
        lock.withLock {
            guard !isOver, slots.indices.contains(number - taken) else { return }
            slots[number - taken].slot = .made(made, steps: steps)
            changed.broadcast()
        }
    }

    // MARK: Other threads

    private func help() {
        let control = OperationControl(token: token).paced(.reading, doing: "A part of a call")
        while let (number, piece) = nextForOthers() {
            let before = control.completed
            put(number, Result { try make(piece, control) }, steps: control.completed - before)
        }
    }

    private func nextForOthers() -> (Int, Piece)? {
        lock.withLock {
            while !isOver {
                if let waiting = takeWaiting() { return waiting }
                changed.wait(lock)
            }
            return nil
        }
    }

    private func stop() {
        let left = lock.withLock {
            isOver = true
            changed.broadcast()
            defer { slots = [] }
            return slots
        }
        withExtendedLifetime(left) { token.cancel() }
    }

    /// Stops the other threads, and waits until they have ended.
    private func end() {
        // In a child that a callback forked, there are none, and the lock may be held forever.
        if getpid() != process { return }
        stop()
        lock.withLock { while helpers > 0 { changed.wait(lock) } }
    }
}

/// The number of threads that share the work of one call.
package enum SharedThreads {
    /// The number of processors, at most 4.
    package static let most = max(1, min(4, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))))
}
