import CLLVSShims

/// Work in pieces, which the thread that called shares with threads of the library. What each piece gives is taken on the thread that
/// called, in the order of the pieces, and so is what it throws: all is as if there were one thread.
///
/// The thread that called does pieces as well, so that no other is needed; others begin when a second piece waits, and end before `run`
/// does. Pieces call nothing of the host's: it expects its callbacks on its own thread.
final class SharedWork<Piece, Made>: HostCallMark, @unchecked Sendable {
    // Sendable: `lock` guards what changes; a piece, and what it gives, is used by one thread at a time.
    private enum Slot {
        case waiting(Piece)
        case taken
        /// And how many steps another thread did for it.
        case made(Result<Made, any Error>, steps: Int)
    }
    private enum Next {
        case own(Int, Piece)
        case made(Result<Made, any Error>, steps: Int)
        /// Another thread is at it.
        case others
        case none
    }

    private let lock = Lock(.leaf)
    private let changed = Condition()
    /// From the piece on whose result is to be taken next, and the bytes that each holds.
    private var slots: [(slot: Slot, bytes: Int)] = []
    private var taken = 0
    private var helpers = 0, mostHelpers: Int
    private var isOver = false
    private let process = getpid()
    private let token = CancelToken()
    private let make: @Sendable (Piece, PacedControl) throws -> Made

    /// Bytes of pieces that are in memory, beyond which there is no further one.
    private static var mostBytes: Int { 8 << 20 }
    /// How long another thread is waited for before the control is looked at.
    private static var turn: Double { 0.02 }

    /// - Parameters:
    ///   - threads: how many at most, the calling one included.
    ///   - control: of the call. It is told of the steps that `make` tells the control it is given.
    ///   - next: the next piece, and about how many bytes it holds; nil: that was all. On the calling thread.
    ///   - make: does a piece, on any thread.
    ///   - take: takes what it gave, on the calling thread.
    /// - Throws: what these throw.
    static func run(
        threads: Int, _ control: PacedControl, next: () throws -> (Piece, bytes: Int)?,
        make: @escaping @Sendable (Piece, PacedControl) throws -> Made, take: (Made) throws -> Void
    ) throws {
        let work = SharedWork(max(0, threads - 1), make)
        defer { work.end() }
        // A callback that leaves for good leaves the other threads to themselves.
        try HostCalls.run(work) { try work.run(control, next, take) }
    }

    private init(_ helpers: Int, _ make: @escaping @Sendable (Piece, PacedControl) throws -> Made) {
        mostHelpers = helpers
        self.make = make
    }

    override func hostLeft() { stop() }

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
                // In a child that a callback forked meanwhile the lock may be held for ever.
                if getpid() != process {
                    _ = try made.get()
                    throw StoreError(
                        .forked,
                        "A callback forked: this is another process now, in which the work cannot go on. Open the store anew in it.")
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
            // Then there is one thread less.
            lock.withLock {
                helpers -= 1
                mostHelpers = helpers
            }
        }
    }

    /// What the calling thread is to do.
    private func claim() throws -> Next {
        try lock.withLock {
            guard let first = slots.first else { return .none }
            if case .made(let made, let steps) = first.slot {
                slots.removeFirst()
                taken += 1
                return .made(made, steps: steps)
            }
            if let (number, piece) = takeWaiting() { return .own(number, piece) }
            // In a child that a callback forked there are no other threads.
            guard getpid() == process else {
                throw StoreError(
                    .forked, "The process was forked in the middle of a call, which cannot go on in the child. Call again there.")
            }
            _ = changed.wait(lock, until: Clock.steady() + SharedWork.turn)
            return .others
        }
    }

    /// The first piece that nobody is at. Under the lock.
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

    /// Stops the other threads, and waits until they are over.
    private func end() {
        // In a child that a callback forked there are none, and the lock may be held for ever.
        if getpid() != process { return }
        stop()
        lock.withLock { while helpers > 0 { changed.wait(lock) } }
    }
}

/// Threads that share the work of one call.
enum SharedThreads {
    /// As many as there are processors, and 4 at most.
    static let most = max(1, min(4, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))))
}
