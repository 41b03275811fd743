/// The CloudKit record that represents a file, or contains it.
struct CloudKitRecord {
    /// The types of records.
    enum Kind: String {
        case version = "LLVS_Version", pack = "LLVS_Pack", manifest = "LLVS_SnapshotManifest", chunk = "LLVS_SnapshotChunk"
        /// The types requested in listings; the others are found by name.
        static let listed: [Kind] = [.version, .pack]
    }
    /// The part of the record that is the file.
    enum Part {
        case pack, version, changes
        /// Parts of a snapshot by another implementation.
        case manifest, chunk
    }

    let name: String
    let part: Part
    var kind: Kind {
        switch part {
        case .pack: .pack
        case .version, .changes: .version
        case .manifest: .manifest
        case .chunk: .chunk
        }
    }

    /// Directories of packs and of this implementation's snapshots, with the letters that represent them in names.
    static let directories: [(letter: UInt8, directory: String)] = [
        (UInt8(ascii: "r"), "pack1"), (UInt8(ascii: "k"), "pack1/keys"), (UInt8(ascii: "l"), "pack1/log"),
        (UInt8(ascii: "b"), "pack1/base"), (UInt8(ascii: "v"), "pack1/blob"), (UInt8(ascii: "s"), "snapshots/\(SnapshotLimits.format)"),
    ]
    private static let rootPrefix = "root-"

    /// The record of the file with that path. Nil if no record can represent it.
    init?(_ path: String, in place: CloudKitPlace) {
        let (directory, last) = RemoteName.split(path)
        if directory == "versions" || directory == "changes" {
            guard CloudKitRecord.isName(last) else { return nil }
            (name, part) = (last, directory == "versions" ? .version : .changes)
            return
        }
        if directory == "snapshots" {
            if last == "manifest.json" {
                (name, part) = ("\(place.store)_snapshot_manifest", .manifest)
                return
            }
            guard let dash = last.utf8.firstIndex(of: UInt8(ascii: "-")), let index = Int(last[last.utf8.index(after: dash)...]),
                index >= 0, last == SnapshotLimits.chunkName(index)
            else { return nil }
            (name, part) = ("\(place.store)_snapshot_chunk_\(index)", .chunk)
            return
        }
        guard let letter = CloudKitRecord.directories.first(where: { $0.directory == directory })?.letter, RemoteName.isComponent(last)
        else { return nil }
        var rest = last
        if letter == UInt8(ascii: "r") {
            guard last.utf8.starts(with: CloudKitRecord.rootPrefix.utf8) else { return nil }
            rest = String(decoding: last.utf8.dropFirst(CloudKitRecord.rootPrefix.utf8.count), as: UTF8.self)
        }
        let whole = "\(place.store)_\(UnicodeScalar(letter))_\(rest)"
        guard CloudKitRecord.isName(whole) else { return nil }
        (name, part) = (whole, .pack)
    }

    /// Returns the directory and name of the pack that a record represents; nil for records of other stores.
    static func pack(_ name: String, store: String) -> (directory: String, name: String)? {
        let bytes = Array(name.utf8), prefix = Array("\(store)_".utf8)
        guard bytes.starts(with: prefix), bytes.count > prefix.count + 2, bytes[prefix.count + 1] == UInt8(ascii: "_"),
            let directory = directories.first(where: { $0.letter == bytes[prefix.count] })
        else { return nil }
        let rest = String(decoding: bytes[(prefix.count + 2)...], as: UTF8.self)
        return (directory.directory, directory.letter == UInt8(ascii: "r") ? rootPrefix + rest : rest)
    }

    static func kind(ofDirectory directory: String) -> Kind { directory == "versions" || directory == "changes" ? .version : .pack }

    /// ASCII, up to 255 bytes, no underscore in front.
    static func isName(_ name: String) -> Bool {
        let bytes = name.utf8
        return (1...255).contains(bytes.count) && bytes.first != UInt8(ascii: "_") && bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    // MARK: Fields

    static func field(_ name: String, _ type: String, _ value: CloudJSON) -> (String, CloudJSON) {
        (name, .object([("value", value), ("type", .text(type))]))
    }

    /// The fields that hold the file.
    var keys: [String] {
        switch part {
        case .pack: ["data", "asset"]
        case .version: ["version"]
        case .changes: ["valueChanges", "valueChangesAsset"]
        case .manifest: ["snapshotManifest"]
        case .chunk: ["snapshotChunkData"]
        }
    }

    enum Contents {
        case none, unusable
        case bytes([UInt8])
        case asset(url: String)
    }

    /// Returns the contents of the file from the fields of a record.
    func contents(_ fields: CloudAnswer) throws -> Contents {
        for key in keys {
            guard let value = fields[key]?["value"] else { continue }
            if value.isObject { return value["downloadURL"]?.string.map { .asset(url: $0) } ?? .unusable }
            guard let text = value.string, let bytes = Array(text.utf8).withUnsafeBytes({ Base64.decode($0) }) else { return .unusable }
            guard part == .version else { return .bytes(bytes) }
            return CloudKitRecord.file(ofList: bytes).map { .bytes($0) } ?? .unusable
        }
        return part == .version || part == .manifest ? .none : .unusable
    }

    // MARK: Versions

    /// Returns `{"version": <Version>}` for `[<Version>]`; nil for anything but an array of one element.
    static func file(ofList list: [UInt8]) -> [UInt8]? {
        guard let answer = try? CloudAnswer(list), answer.elements.count == 1, answer.elements[0].isObject else { return nil }
        guard let first = list.firstIndex(of: UInt8(ascii: "[")), let last = list.lastIndex(of: UInt8(ascii: "]")), first < last else {
            return nil
        }
        return Array(#"{"version":"#.utf8) + list[(first + 1)..<last] + [UInt8(ascii: "}")]
    }

    /// Returns `[<Version>]` for a version file; nil for anything else.
    static func list(ofFile file: [UInt8]) -> [UInt8]? {
        guard let answer = try? CloudAnswer(file), let version = answer.members.first(where: { $0.name == "version" })?.json
        else { return nil }
        return [UInt8(ascii: "[")] + version + [UInt8(ascii: "]")]
    }
}

/// The files of one store in the records of a zone.
struct CloudKitListing {
    let store: String
    /// By directory: names, with sizes if known.
    private var packs: [String: [String: Int?]] = [:]
    private var versions: Set<String> = []

    init(store: String) { self.store = store }

    /// Processes a record that exists or was deleted.
    mutating func take(_ record: CloudAnswer) throws {
        guard let name = record["recordName"]?.string else { return }
        let isDeleted = record["deleted"]?.bool == true
        if isDeleted { versions.remove(name) }
        let fields = record["fields"]
        if !isDeleted, record["recordType"]?.string == CloudKitRecord.Kind.version.rawValue {
            guard fields?["storeIdentifier"]?["value"]?.string == store else { return }
            try Memory.expect(256, "A listing")
            versions.insert(name)
            return
        }
        guard isDeleted || record["recordType"]?.string == CloudKitRecord.Kind.pack.rawValue,
            let file = CloudKitRecord.pack(name, store: store)
        else { return }
        guard !isDeleted else { packs[file.directory]?[file.name] = nil; return }
        try Memory.expect(256, "A listing")
        packs[file.directory, default: [:]].updateValue(fields?["size"]?["value"]?.count, forKey: file.name)
    }

    /// Returns the entries of a directory; nil if it does not exist.
    func entries(_ directory: String) -> [RemoteEntry]? {
        if directory == "versions" || directory == "changes" {
            return versions.isEmpty ? nil : versions.map { RemoteEntry(name: $0, isDirectory: false, size: nil, age: nil) }
        }
        var entries = (packs[directory] ?? [:]).map { RemoteEntry(name: $0.key, isDirectory: false, size: $0.value, age: nil) }
        for (_, other) in CloudKitRecord.directories where packs[other]?.isEmpty == false {
            let (parent, name) = RemoteName.split(other)
            if parent == directory { entries.append(RemoteEntry(name: name, isDirectory: true, size: nil, age: nil)) }
        }
        return entries.isEmpty ? nil : entries
    }
}
