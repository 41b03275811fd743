import Foundation

@testable import LLVSExchange

/// Files with keys in memory, with the faults that a place may have.
final class MemoryKeyDirectory: KeyDirectory {
    var files: [String: [UInt8]] = [:]
    var hasData = false
    var log: [String] = []
    /// Called before each file is created.
    var beforeCreating: (() throws -> Void)?
    /// The number of bytes that a new file loses at its end.
    var lost = 0
    /// The newest file, if the place reports times.
    var newest: String?
    /// Names that listings show although the files do not exist.
    var ghosts: [String] = []
    var description: String { "the place in memory" }

    func keyFiles() throws -> [String] { log.append("list"); return (files.keys + ghosts).sorted() }
    func newestFirst(_ names: [KeyFileName]) throws -> [KeyFileName] {
        names.filter { $0.description == newest } + names.filter { $0.description != newest }
    }
    func holdsData() throws -> Bool { hasData }
    func read(_ name: String, limit: Int) throws -> [UInt8]? { files[name].map { Array($0.prefix(limit + 1)) } }
    func create(_ name: String, _ bytes: [UInt8]) throws {
        try beforeCreating?()
        log.append("create \(name)")
        files[name] = Array(bytes.dropLast(lost))
    }
    func delete(_ name: String) throws { log.append("delete \(name)"); files[name] = nil }

    var rings: [String] { files.keys.filter { $0.hasPrefix("ring-") }.sorted() }
    var passphrases: [String] { files.keys.filter { $0.hasPrefix("pass-") }.sorted() }
}

/// Files with keys in a folder.
final class FolderKeyDirectory: KeyDirectory {
    let folder: String
    init(_ folder: String) { self.folder = folder }
    var description: String { folder }
    func keyFiles() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder) }
    func holdsData() throws -> Bool { false }
    func read(_ name: String, limit: Int) throws -> [UInt8]? {
        FileManager.default.contents(atPath: folder + "/" + name).map { Array($0.prefix(limit + 1)) }
    }
    func create(_ name: String, _ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: folder + "/" + name)) }
    func delete(_ name: String) throws { try? FileManager.default.removeItem(atPath: folder + "/" + name) }
}

extension StoreKeys {
    /// Opens the keys as a device without notes about their files.
    static func open(
        _ place: KeyDirectory, stores: [PackID], _ unlocking: Unlocking, pin: Pin? = nil, _ crypto: Crypto
    ) throws -> StoreKeys {
        var notes = KeyFileNotes()
        return try open(place, stores: stores, unlocking, pin: pin, &notes, crypto)
    }
    /// Changes the passphrase as such a device.
    static func changePassphrase(
        from old: Secret, to new: Secret, in place: KeyDirectory, _ clock: KeyClock, _ crypto: Crypto
    ) throws {
        var notes = KeyFileNotes()
        try changePassphrase(from: old, to: new, in: place, clock, &notes, crypto)
    }
    func replacingPassphrase(by new: Secret, in place: KeyDirectory, _ clock: KeyClock, _ crypto: Crypto) throws -> StoreKeys {
        var notes = KeyFileNotes()
        return try replacingPassphrase(by: new, in: place, clock, &notes, crypto)
    }
}
