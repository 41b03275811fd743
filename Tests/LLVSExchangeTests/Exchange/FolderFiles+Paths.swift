@testable import LLVSExchange

/// Functions by paths, for tests.
extension FolderFiles {
    static func names(in path: String) throws -> [String] { try names(in: Folder(path)) }
    static func read(_ path: String) throws -> [UInt8]? { try read(DirectoryEntry(path)) }
    static func writeNew(_ path: String, _ data: OutgoingFile) throws { try writeNew(DirectoryEntry(path), data) }
    static func remove(_ path: String) throws { try remove(DirectoryEntry(path)) }
}
