import LLVS
import LLVSTestSupport

/// Damage to an exchange folder on a file system.
enum RealFolder {
    /// - Returns: what was done, and whether files are lost, so that a store may refuse the folder as another store's.
    static func damage(_ path: String, _ random: inout SeededRandom) -> (what: String, loses: Bool)? {
        let names = ["versions", "changes"].flatMap { folder in FileNames.list("\(path)/\(folder)").map { "\(folder)/\($0)" } }
        guard let name = names.randomElement(using: &random) else { return nil }
        if Int.random(in: 0..<12, using: &random) == 0 {
            for name in names { unlink("\(path)/\(name)") }
            return ("all \(names.count) files are lost", true)
        }
        let file = "\(path)/\(name)"
        guard let bytes = FileNames.read(file) else { return nil }
        switch Int.random(in: 0..<4, using: &random) {
        case 0: unlink(file); return ("\(name) is lost", true)
        case 1: truncate(file, 0); return ("\(name) is emptied", false)
        default:
            let size = SimulatedFolder.cut(bytes, &random)
            truncate(file, off_t(size))
            return ("\(name) is cut to \(size) of \(bytes.count) bytes", false)
        }
    }
}

enum FileNames {
    /// The names in a folder, sorted.
    static func list(_ path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: $0.pointee)) { String(cString: $0) }
                })
        }
        return names.filter { $0 != "." && $0 != ".." }.sorted()
    }
    static func read(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = [], buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
    }
}
