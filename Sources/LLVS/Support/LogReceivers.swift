/// Several who want to hear messages, each those of its level and of the levels before it.
extension Log {
    private struct Receiver {
        let id: UInt64
        let level: Level
        let receive: @Sendable (Level, String) -> Void
    }
    private static let receiversLock = Lock(.receivers)
    nonisolated(unsafe) private static var receivers: [Receiver] = []
    nonisolated(unsafe) private static var nextReceiver: UInt64 = 0

    /// Hands over each message of the level until the receiver is removed, under the conditions of `setSink`, whose sink it replaces.
    /// - Returns: what `remove` wants to know.
    package static func add(_ level: Level, _ receive: @escaping @Sendable (Level, String) -> Void) -> UInt64 {
        receiversLock.withLock {
            nextReceiver &+= 1
            receivers.append(Receiver(id: nextReceiver, level: level, receive: receive))
            refresh()
            return nextReceiver
        }
    }

    /// A message that is being handed over may still come.
    package static func remove(_ id: UInt64) {
        receiversLock.withLock {
            receivers.removeAll { $0.id == id }
            refresh()
        }
    }

    /// With the lock held.
    private static func refresh() {
        let all = receivers
        guard let loudest = all.map(\.level).max() else { return setSink(level: .off, nil) }
        setSink(level: loudest) { level, message in
            for receiver in all where level <= receiver.level { receiver.receive(level, message) }
        }
    }
}
