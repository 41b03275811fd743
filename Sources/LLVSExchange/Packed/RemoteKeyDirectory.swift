/// The key files of an encrypted remote, in `pack1/keys/` of a place that holds named files.
package final class RemoteKeyDirectory: KeyDirectory {
    private let files: any RemoteFiles
    private let check: () throws -> Void
    private static let directory = "pack1/keys"
    /// Far more than a place ever has.
    static let namesLimit = 10_000
    /// The names of a listing made once; nil: each call lists.
    private let listed: [String]?
    private let notes: KeyFileNotes

    /// - Parameter notes: decide which names are returned if there are more than `namesLimit`.
    init(
        _ files: any RemoteFiles, _ check: @escaping () throws -> Void, _ notes: KeyFileNotes = KeyFileNotes(), listed: [String]? = nil
    ) {
        self.files = files; self.check = check; self.notes = notes; self.listed = listed
    }

    package var description: String { files.description }

    package func keyFiles() throws -> [String] {
        if let listed { return listed }
        let entries = try files.list(RemoteKeyDirectory.directory, withTimes: false, check) ?? []
        var names: [KeyFileName] = []
        for (i, entry) in entries.enumerated() {
            if i % 1_024 == 0 { try check() }
            if !entry.isDirectory, let name = KeyFileName(entry.name) { names.append(name) }
        }
        return notes.limited(names, to: RemoteKeyDirectory.namesLimit).map(\.description).sorted()
    }

    package func newestFirst(_ names: [KeyFileName]) throws -> [KeyFileName] {
        var ages: [String: Int64] = [:]
        for entry in try files.list(RemoteKeyDirectory.directory, withTimes: true, check) ?? [] { ages[entry.name] = entry.age }
        let aged = names.map { (name: $0, text: $0.description, age: ages[$0.description] ?? .max) }
        return aged.sorted { ($0.age, $0.text) < ($1.age, $1.text) }.map(\.name)
    }

    package func holdsData() throws -> Bool {
        for kind in [PackKind.root, .log, .base, .blob] {
            let directory = kind == .root ? "pack1" : String(kind.prefix.dropLast())
            let entries = try files.list(directory, withTimes: false, check) ?? []
            if entries.contains(where: { PackName((kind == .root ? "pack1/" : kind.prefix) + $0.name)?.kind == kind }) { return true }
        }
        // Two unencrypted files per version: no encrypted place has them.
        return try (files.list("versions", withTimes: false, check) ?? []).contains { VersionID(validating: $0.name) != nil }
    }

    package func read(_ name: String, limit: Int) throws -> [UInt8]? {
        let read = RemoteRead(name: "\(RemoteKeyDirectory.directory)/\(name)", limit: limit + 1)
        switch try files.read([read], check).first ?? .missing {
        case .missing: return nil
        case .bytes(let bytes, _): return Array(bytes.prefix(limit + 1))
        case .large(let reader): return try reader.whole("A file of keys in \(description)", atMost: limit + 1)
        case .unreadable(let error):
            guard error.code == .tooLarge else { throw KeyFiles.Withheld(error: error) }
            return [UInt8](repeating: 0, count: limit + 1)
        }
    }

    package func create(_ name: String, _ bytes: [UInt8]) throws {
        let upload = RemoteUpload(name: "\(RemoteKeyDirectory.directory)/\(name)", data: OutgoingFile(bytes), replaces: false)
        // If the file exists already, the caller finds out by reading it back.
        if case .refused(let error)? = try files.publish([upload], check).first { throw error }
    }

    package func delete(_ name: String) throws { try files.delete(["\(RemoteKeyDirectory.directory)/\(name)"], check) }

    // MARK: Unencrypted places

    /// - Throws: `.keyMissing` if a place has keys or encrypted files: nothing is written to it unencrypted.
    package static func refuseKeys(_ files: any RemoteFiles, _ check: @escaping () throws -> Void) throws {
        guard let entries = try files.list("pack1", withTimes: false, check), !entries.isEmpty else { return }
        let keys = RemoteKeyDirectory(files, check)
        guard try keys.keyFiles().isEmpty, try !keys.holdsEncrypted() else { throw isEncrypted(files.description) }
    }

    /// Returns whether roots or packs are files of age: then the place is encrypted, though its keys may be gone.
    /// - Throws: the error of a file that is unreadable now, if no other one decides: it may be encrypted.
    func holdsEncrypted() throws -> Bool {
        var withheld: StoreError?
        for kind in [PackKind.root, .log, .base] {
            let directory = kind == .root ? "pack1/" : kind.prefix
            let entries = try files.list(String(directory.dropLast()), withTimes: false, check) ?? []
            let names = entries.filter { PackName(directory + $0.name)?.kind == kind }.map { directory + $0.name }.sorted()
            let reads = names.prefix(RemoteKeyDirectory.looked).map {
                RemoteRead(name: $0, range: 0..<AgeHeader.magic.count, limit: PackFormat.fileLimit(kind))
            }
            guard !reads.isEmpty else { continue }
            for contents in try files.read(reads, check) {
                if case .bytes(let bytes, _) = contents, bytes.starts(with: AgeHeader.magic) { return true }
                if case .unreadable(let error) = contents, error.code != .tooLarge { withheld = withheld ?? error }
            }
        }
        if let withheld { throw withheld }
        return false
    }
    /// How many files of each kind are checked. All are alike, unless another program adds foreign ones.
    private static let looked = 4
    static func keysAreGone(_ place: String) -> StoreError {
        StoreError(
            .keyMissing,
            "\(place) is encrypted, and its keys are not there: pack1/keys/ is missing, or empty. Nothing was sent. If a program "
                + "syncs the folder, wait until it has brought them; otherwise restore pack1/keys/ from a copy. A passphrase or an "
                + "identity alone opens nothing.")
    }
    static func isEncrypted(_ place: String) -> StoreError {
        StoreError(
            .keyMissing,
            "\(place) is encrypted, and no keys were given for it. Nothing was read, and nothing is written there in clear. Open the "
                + "exchange with the passphrase, or with an identity that has the keys.")
    }
}
