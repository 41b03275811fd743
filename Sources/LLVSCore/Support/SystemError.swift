/// The `errno` of a failed system call.
package struct Errno: Error, Equatable, CustomStringConvertible {
    package let code: Int32
    package init(_ code: Int32) { self.code = code }
    /// The calling thread's `errno`. Read it right after the call.
    package static var current: Errno { Errno(errno) }
    /// A part of the path does not exist.
    package static let missing = Errno(ENOENT)

    /// The host closed a descriptor of the library. Its number may be of a file of the host by now.
    static let lost = Errno(EBADF)

    /// The system's text, such as "No space left on device (errno 28)".
    package var description: String {
        // The POSIX form, which all supported C libraries have under this name.
        var text = [CChar](repeating: 0, count: 128)
        guard strerror_r(code, &text, text.count - 1) == 0 else { return "errno \(code)" }
        return text.withUnsafeBytes { "\(String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)) (errno \(code))" }
    }
}

extension StoreError {
    /// The owner of the file that a system call was about. The message depends on it: what may have happened, and what helps.
    package enum FileOwner { case store, exchange }

    /// Returns the error for a failed system call.
    /// - Parameter doing: what was being done to `path`: "writing to the segment".
    package static func posix(_ error: Errno, doing: String, path: String, of owner: FileOwner = .store) -> StoreError {
        let code: Code
        let advice: String
        switch error.code {
        case ENOENT:
            code = .notFound; advice = "Check that the path is right and that its volume is mounted."
        case ENOTDIR:
            code = .notADirectory; advice = "A file is where a directory should be: move it away, or give another path."
        case EACCES, EPERM:
            code = .permission; advice = "Check the owner and the permissions of the file and of the directories above it."
        case EROFS:
            code = .readOnly
            advice =
                owner == .store
                ? "The medium is read-only: open the store read-only, or copy it to a writable place."
                : "The file system is mounted read-only: mount it for writing, or give another folder."
        case ENOSPC, EDQUOT, EFBIG:
            code = .noSpace;
            advice = "Make room (or raise the quota or the limit on file sizes) and try again; nothing stored before is affected."
        case EMFILE, ENFILE:
            code = .tooManyFiles; advice = "The process or the system has too many open files: close some, or raise the limit (ulimit -n)."
        case ENOMEM:
            code = .outOfMemory; advice = "The system is short of memory: free some, and try again."
        case EBUSY, ETXTBSY, EAGAIN:
            code = .busy; advice = "Something else is using it; try again."
        case EISDIR:
            code = owner == .store ? .notAStore : .foreignFile
            advice = "A directory is where a file should be: move it away, or give another path."
        case ENAMETOOLONG:
            code = .invalidArgument; advice = "Give a shorter path."
        case ELOOP:
            code = .invalidArgument;
            advice =
                "A symbolic link is in its place, which is not followed, or links lead in a circle. Replace the link by what it leads to."
        case EBADF:
            code = .io
            advice =
                "The program closed a file of the library, and may have given its number to a file of its own. Nothing was written there. "
                + "Close the store and open it again, and find out what in the program closes descriptors that it did not open."
        default:
            code = .io; advice = "Check the medium, and try again."
        }
        return StoreError(code, "\(doing) \(path) failed: \(error). \(advice)", path: path, systemCode: error.code)
    }
}

/// Runs system calls, and converts their errors to the error for `doing` it to `path`.
@inline(__always)
package func posix<R>(_ doing: @autoclosure () -> String, _ path: @autoclosure () -> String, _ body: () throws(Errno) -> R)
    throws(StoreError) -> R
{
    do { return try body() } catch { throw StoreError.posix(error, doing: doing(), path: path()) }
}
