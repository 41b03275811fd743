#if SwiftLog
import LLVS
import Logging

extension LLVS.Log {
    /// Sends the messages of the library to a logger of swift-log, instead of standard error.
    ///
    ///     Log.forward(to: Logger(label: "llvs"))
    ///
    /// - Parameters:
    ///   - logger: receives each message, on the thread that wrote it.
    ///   - level: the least level of messages.
    public static func forward(to logger: Logger, level: Level = .warning) {
        setSink(level: level) { level, message in logger.log(level: level.forSwiftLog, "\(message)") }
    }
}

extension LLVS.Log.Level {
    fileprivate var forSwiftLog: Logger.Level {
        switch self {
        case .debug: .debug
        case .info: .info
        case .warning: .warning
        case .off, .error: .error
        }
    }
}
#endif
