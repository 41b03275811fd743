#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A new directory that is removed with its contents when this object is released.
package final class TemporaryDirectory: @unchecked Sendable {
    // Sendable: nothing of it changes.
    package let path: String

    package init() {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array((base + "/llvs-test-XXXXXX").utf8CString)
        path = template.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress, mkdtemp(start) != nil else { return base + "/llvs-test-failed" }
            return String(cString: start)
        }
    }

    deinit { TemporaryDirectory.remove(path) }

    /// Removes a file, or a directory and its contents.
    package static func remove(_ path: String) {
        if let directory = opendir(path) {
            var names: [String] = []
            while let entry = readdir(directory) {
                names.append(
                    withUnsafePointer(to: &entry.pointee.d_name) {
                        $0.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: $0.pointee)) { String(cString: $0) }
                    })
            }
            closedir(directory)
            for name in names where name != "." && name != ".." { remove(path + "/" + name) }
            rmdir(path)
        } else {
            unlink(path)
        }
    }
}
