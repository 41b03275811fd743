import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A new directory, which is removed with its contents when the object is released.
package final class TemporaryFolder: Sendable {
    package let path: String
    /// The test that uses the folder.
    private let test = Test.current?.name ?? "?"
    package init() {
        var template = Array("/tmp/llvs-test-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { fatalError("No folder can be made in /tmp: \(errno)") }
        path = String(cString: made)
    }
    deinit {
        // Other implementations must be able to read the remaining files of an exchange folder (scripts/lib/strict.sh).
        if let strict = getenv("LLVS_STRICT") {
            var child: pid_t = 0
            var arguments: [UnsafeMutablePointer<CChar>?] = [strict, strdup(path), strdup(test), nil]
            if posix_spawn(&child, strict, nil, nil, &arguments, environ) == 0 { waitpid(child, nil, 0) }
            free(arguments[1])
            free(arguments[2])
        }
        TemporaryFolder.remove(path)
    }

    private static func remove(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            chmod(path, 0o700)
            for name in (try? fileNames(in: path)) ?? [] { remove(path + "/" + name) }
            rmdir(path)
        } else {
            unlink(path)
        }
    }
    package func write(_ name: String, _ text: String) throws { try write(name, Array(text.utf8)) }
    package func write(_ name: String, _ bytes: [UInt8]) throws {
        unlink("\(path)/\(name)")
        try writeFile("\(path)/\(name)", bytes)
    }
    package func read(_ name: String) -> [UInt8]? {
        try? readFile("\(path)/\(name)")
    }
    package func names(_ folder: String) throws -> [String] { try fileNames(in: "\(path)/\(folder)").sorted() }
}
