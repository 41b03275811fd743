import Glibc
import LLVS

/// A directory in memory that belongs to this process. Each request empties it.
enum Folder {
    /// A file system in memory; any other directory works as well.
    private static let base: String = {
        let place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        // Processes that failed leave their directories behind.
        for name in names(in: place) where name.hasPrefix("llvs-fuzz-") {
            if let process = pid_t(name.dropFirst("llvs-fuzz-".count)), kill(process, 0) != 0, errno == ESRCH { remove("\(place)/\(name)") }
        }
        atexit { Folder.remove(Folder.path) }
        return "\(place)/llvs-fuzz-\(getpid())"
    }()
    static var path: String { base }

    static func empty() -> String {
        remove(path)
        mkdir(path, 0o755)
        return path
    }

    static func write(_ name: String, _ bytes: [UInt8]) {
        guard let file = fopen(path + "/" + name, "wb") else { return }
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
    }

    static func read(_ name: String) -> [UInt8] {
        guard let file = fopen(path + "/" + name, "rb") else { return [] }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        return Array(bytes.prefix(count))
    }

    static func names(_ folder: String) -> [String] { names(in: path + "/" + folder) }

    private static func names(in folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = Glibc.readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    static func remove(_ path: String) {
        if unlink(path) == 0 || errno == ENOENT { return }
        guard let directory = opendir(path) else { return }
        // Names as raw bytes, since they need not be UTF-8.
        var children: [[CChar]] = []
        while let entry = Glibc.readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1)) }
            }
            if name != [46, 0], name != [46, 46, 0] { children.append(name) }
        }
        for child in children where unlinkat(dirfd(directory), child, 0) != 0 {
            remove(path + "/" + String(decoding: child.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        closedir(directory)
        rmdir(path)
    }
}
