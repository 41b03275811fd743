import CLLVSShims

/// Messages for the operators of a program. Nothing is written until a sink is set. Messages never contain value bytes or credentials,
/// and each is one line whatever ids and paths it contains.
///
/// - `error`, `warning`: something is wrong with a store or a folder.
/// - `info`: a store was opened, could not be, or was closed; an exchange, a compaction, a salvage; what was repaired.
/// - `debug`: each merge, with its common ancestors and counts; the steps of exchanges; compactions with nothing to do.
public enum Log {
    /// How much is logged: messages of this level and of the levels before it.
    public enum Level: Int32, Sendable, Comparable {
        /// Nothing.
        case off = 0
        /// Errors that keep a store or a folder from working.
        case error = 1
        /// Errors after which the work continued.
        case warning = 2
        /// Occasional actions of a store: opening, closing, exchanges, compactions.
        case info = 3
        /// Each merge, and the steps of exchanges.
        case debug = 4
        public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }
    private static let lock = Lock(.leaf)
    nonisolated(unsafe) private static var sink: (@Sendable (Level, String) -> Void)?
    nonisolated(unsafe) private static var level = Level.off
    /// The level of the sink, in memory that the check for a listener reads.
    nonisolated(unsafe) private static let loudest: UnsafeMutablePointer<UInt32> = {
        let word = UnsafeMutablePointer<UInt32>.allocate(capacity: 1)
        word.initialize(to: 0)
        return word
    }()

    /// Returns whether messages of this level have a listener. Reads one word.
    static func isOn(_ at: Level) -> Bool { at.rawValue <= Int32(truncatingIfNeeded: llvs_shim_load_relaxed(loudest)) }
    /// Returns the time at which an action began, for a message with its duration; nil if there is no listener.
    package static func begin(_ at: Level) -> Double? { isOn(at) ? Clock.steady() : nil }
    /// Returns ", in 12.3 ms" since `begin`.
    package static func duration(since began: Double?) -> String {
        guard let began else { return "" }
        let tenths = Int(((Clock.steady() - began) * 10_000).rounded())
        return ", in \(tenths / 10).\(tenths % 10) ms"
    }

    /// Replaces the sink. It may be called from any thread, with no lock of a store held, and must not call `setSink`.
    public static func setSink(level newLevel: Level, _ newSink: (@Sendable (Level, String) -> Void)?) {
        lock.withLock {
            sink = newSink
            level = newSink == nil ? .off : newLevel
            llvs_shim_store_relaxed(loudest, UInt32(truncatingIfNeeded: level.rawValue))
        }
    }
    package static func write(_ at: Level, _ message: @autoclosure () -> String) {
        guard isOn(at), let current = lock.withLock({ at <= level ? sink : nil }) else { return }
        guard let key = heldKey, let held = pthread_getspecific(key) else { return current(at, PrintableText.escaping(message())) }
        held.assumingMemoryBound(to: Held.self).pointee.messages.append((at, message()))
    }

    private struct Held { var messages: [(Level, String)] = [] }
    private static let heldKey: pthread_key_t? = {
        var key = pthread_key_t()
        return pthread_key_create(&key, nil) == 0 ? key : nil
    }()

    /// Holds back this thread's messages until `body` has returned: `body` takes locks, and the sink may call the store that holds them.
    static func holding<R>(_ body: () throws -> R) rethrows -> R {
        guard let key = heldKey, pthread_getspecific(key) == nil else { return try body() }
        var held = Held()
        defer { if !held.messages.isEmpty { for (level, message) in held.messages { write(level, message) } } }
        return try withUnsafeMutablePointer(to: &held) { held in
            pthread_setspecific(key, held)
            defer { pthread_setspecific(key, nil) }
            return try HostCalls.run(hold, body)
        }
    }

    /// Discards the held messages if their frame never returns.
    private final class Hold: HostCallMark, @unchecked Sendable {
        // Sendable: it holds nothing.
        func hostLeft() { if let key = Log.heldKey { pthread_setspecific(key, nil) } }
    }
    private static let hold = Hold()
}
