import LLVSCore
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The files of this repository that tests read.
package enum Repository {
    /// The path of its root.
    package static let path: String = {
        let parts = "\(#filePath)".split(separator: "/", omittingEmptySubsequences: false)
        return parts.dropLast(3).joined(separator: "/")
    }()
    /// The path of the vectors, which tests in several languages read.
    package static let vectors = path + "/Tests/Vectors"
}

package func withTemporaryDirectory(_ body: (String) throws -> Void) throws {
    let directory = TemporaryDirectory()
    try withExtendedLifetime(directory) { try body(directory.path) }
}

package func readFile(_ path: String) throws -> [UInt8] {
    let file = try System.open(path, in: AT_FDCWD, O_RDONLY)
    defer { System.close(file) }
    let size = Int(try System.status(file).size)
    return try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
        count = try System.pread(file, UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[0..<size]), at: 0)
    }
}

package func writeFile(_ path: String, _ bytes: [UInt8]) throws {
    let file = try System.open(path, in: AT_FDCWD, O_WRONLY | O_CREAT | O_TRUNC)
    defer { System.close(file) }
    let written = try bytes.withUnsafeBytes { try System.pwrite(file, $0, at: 0) }
    #expect(written == bytes.count)
}

/// Returns the names in a directory, in any order.
package func fileNames(in path: String) throws -> [String] {
    guard let directory = opendir(path) else { throw Errno(errno) }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: $0.pointee)) { String(cString: $0) }
        }
        if name != "." && name != ".." { names.append(name) }
    }
    return names
}

/// Copies the files in a directory and in those below it to another one, which is created if it is missing.
package func copyFiles(_ from: String, _ to: String, replacing: Bool = true) throws {
    try? System.mkdir(to)
    for name in try fileNames(in: from) {
        let (old, new) = (from + "/" + name, to + "/" + name)
        if try System.status(old).isDirectory {
            try copyFiles(old, new, replacing: replacing)
        } else if replacing || (try? System.status(new)) == nil {
            try writeFile(new, readFile(old))
        }
    }
}

/// Flips a bit where the bytes first occur in the files of the directory.
package func flip(_ bytes: some Collection<UInt8>, in directory: String, at offset: Int = 20) throws {
    for name in try fileNames(in: directory).sorted() {
        let path = directory + "/" + name
        guard try System.status(path).isRegularFile else { try? flip(bytes, in: path, at: offset); continue }
        var all = try readFile(path)
        let wanted = Array(bytes.prefix(16))
        let start = all.withUnsafeBytes { all -> Int? in
            guard let base = all.baseAddress else { return nil }
            var at = 0
            while let hit = memchr(base + at, Int32(wanted[0]), max(0, all.count - wanted.count - at)) {
                at = UnsafeRawPointer(hit) - base
                if memcmp(hit, wanted, wanted.count) == 0 { return at }
                at += 1
            }
            return nil
        }
        guard let start else { continue }
        all[start + offset] ^= 1
        try writeFile(path, all)
    }
}
