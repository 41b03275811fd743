/// The keys of an encrypted remote, in `pack1/keys/` of a place that holds named files.
final class RemoteKeyDirectory: KeyDirectory {
    private let files: any RemoteFiles
    private let check: () throws -> Void
    private static let directory = "pack1/keys"
    /// Far more than a place comes to have, of which only the newest are read.
    static let namesLimit = 10_000
    /// The names that a listing had, once; nil: it is listed each time.
    private let listed: [String]?

    init(_ files: any RemoteFiles, _ check: @escaping () throws -> Void, listed: [String]? = nil) {
        self.files = files; self.check = check; self.listed = listed
    }

    var description: String { files.description }

    func keyFiles() throws -> [String] {
        if let listed { return listed }
        let entries = try files.list(RemoteKeyDirectory.directory, withTimes: false, check) ?? []
        var names: [String] = []
        for (i, entry) in entries.enumerated() {
            if i % 1_024 == 0 { try check() }
            if !entry.isDirectory, KeyFileName(entry.name) != nil { names.append(entry.name) }
        }
        guard names.count <= RemoteKeyDirectory.namesLimit else {
            throw StoreError(
                .tooLarge,
                "There are \(names.count) files of keys in \(description), and at most \(RemoteKeyDirectory.namesLimit) are looked at: "
                    + "somebody put them there. Remove from pack1/keys/ what no device made.")
        }
        return names.sorted()
    }

    func holdsData() throws -> Bool {
        for kind in [PackKind.root, .log, .base, .blob] {
            let directory = kind == .root ? "pack1" : String(kind.prefix.dropLast())
            let entries = try files.list(directory, withTimes: false, check) ?? []
            if entries.contains(where: { PackName((kind == .root ? "pack1/" : kind.prefix) + $0.name)?.kind == kind }) { return true }
        }
        // Two files for each version, in clear: nothing encrypted lies beside them.
        return try (files.list("versions", withTimes: false, check) ?? []).contains { VersionID(validating: $0.name) != nil }
    }

    func read(_ name: String, limit: Int) throws -> [UInt8]? {
        let read = RemoteRead(name: "\(RemoteKeyDirectory.directory)/\(name)", limit: limit + 1)
        switch try files.read([read], check).first ?? .missing {
        case .missing: return nil
        case .bytes(let bytes, _): return Array(bytes.prefix(limit + 1))
        case .large(let reader): return try reader.whole("A file of keys in \(description)", atMost: limit + 1)
        case .unreadable(let error):
            guard error.code == .tooLarge else { throw error }
            return [UInt8](repeating: 0, count: limit + 1)
        }
    }

    func create(_ name: String, _ bytes: [UInt8]) throws {
        let upload = RemoteUpload(name: "\(RemoteKeyDirectory.directory)/\(name)", data: OutgoingFile(bytes), replaces: false)
        // When the file exists already, the caller finds that out by reading it back.
        if case .refused(let error)? = try files.publish([upload], check).first { throw error }
    }

    func delete(_ name: String) throws { try files.delete(["\(RemoteKeyDirectory.directory)/\(name)"], check) }

    // MARK: Places that are to be in clear

    /// - Throws: `.keyMissing` when a place has keys: nothing is written to it in clear.
    static func refuseKeys(_ files: any RemoteFiles, _ check: @escaping () throws -> Void) throws {
        guard try RemoteKeyDirectory(files, check).keyFiles().isEmpty else { throw isEncrypted(files.description) }
    }
    static func isEncrypted(_ place: String) -> StoreError {
        StoreError(
            .keyMissing,
            "\(place) is encrypted, and no keys were given for it. Nothing was read, and nothing is written there in clear. Open the "
                + "exchange with the passphrase, or with an identity that has the keys.")
    }
}
