/// Messages for the people who run a program. Silent until a sink is set; never holds value bytes or credentials.
public enum Log {
    /// How much is told: messages of the level and of those before it.
    public enum Level: Int32, Sendable, Comparable {
        case off = 0, error = 1, warning = 2, info = 3, debug = 4
        public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }
    private static let lock = Lock()
    nonisolated(unsafe) private static var sink: (@Sendable (Level, String) -> Void)?
    nonisolated(unsafe) private static var level = Level.off

    /// Replaces the sink. The sink may be called from any thread and must not call `setSink`.
    public static func setSink(level newLevel: Level, _ newSink: (@Sendable (Level, String) -> Void)?) {
        lock.withLock { sink = newSink; level = newSink == nil ? .off : newLevel }
    }
    static func write(_ at: Level, _ message: @autoclosure () -> String) {
        let current = lock.withLock { at <= level ? sink : nil }
        if let current { current(at, message()) }
    }
}
