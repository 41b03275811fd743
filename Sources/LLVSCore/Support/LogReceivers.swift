/// Several receivers of messages, each for its level and the levels before it.
extension Log {
    private struct Receiver {
        let id: UInt64
        let level: Level
        let receive: @Sendable (Level, String) -> Void
    }
    private static let receiversLock = Lock(.receivers)
    nonisolated(unsafe) private static var receivers: [Receiver] = []
    nonisolated(unsafe) private static var nextReceiver: UInt64 = 0

    /// Adds a receiver for messages of a level until it is removed. The conditions of `setSink` apply; this replaces its sink.
    /// - Returns: the id for `remove`.
    package static func add(_ level: Level, _ receive: @escaping @Sendable (Level, String) -> Void) -> UInt64 {
        receiversLock.withLock {
            nextReceiver &+= 1
            receivers.append(Receiver(id: nextReceiver, level: level, receive: receive))
            refresh()
            return nextReceiver
        }
    }

    /// Removes a receiver. It may still get a message that is being delivered.
    package static func remove(_ id: UInt64) {
        receiversLock.withLock {
            receivers.removeAll { $0.id == id }
            refresh()
        }
    }

    /// Precondition: the lock is held.
    private static func refresh() {
        let all = receivers
        guard let loudest = all.map(\.level).max() else { return setSink(level: .off, nil) }
        setSink(level: loudest) { level, message in
            for receiver in all where level <= receiver.level { receiver.receive(level, message) }
        }
    }
}
