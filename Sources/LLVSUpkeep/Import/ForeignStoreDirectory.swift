/// A store directory of the other implementation, for reading.
///
///     versions/<first 2 characters of the id>/<rest>.json          a Version
///     values/<id, split likewise>/<first of the version id>/<rest>.json    bytes of a value
///     maps/__llvs_values/<key, split>/<first of the version id>/<rest>.json  a node of the index
///
/// In ids and keys `/` is written `LLVSSLASH` and `:` `LLVSCOLON`. Names of 2 characters or fewer are not split. Characters are Swift's
/// (grapheme clusters), as in the program that wrote them. Each version has a root node, under the key `__llvs_root`, that names its leaf
/// nodes. Equal names denote the same node, so comparing two versions reads only the nodes that differ.
///
/// Values and nodes may lie in databases instead, `values/zone.sqlite` and `maps/__llvs_values/zone.sqlite`, under unchanged ids and keys.
/// On Apple systems data of more than 64 bytes is stored as `LLZF` and the data compressed by LZFSE, which the host's decoder reads.
struct ForeignStoreDirectory {
    private let files: any ForeignFiles
    private let decode: ForeignDecoder?
    private let values: ForeignDatabase?
    private let maps: ForeignDatabase?
    /// Checked while names, nodes and rows are read.
    let control: PacedControl
    var path: String { files.path }

    /// - Throws: `.notAStore`; `.unsupported` if the store is one SQLite database.
    init(_ files: any ForeignFiles, decode: ForeignDecoder?, _ control: PacedControl = .none) throws {
        self.files = files; self.decode = decode; self.control = control
        func database(_ file: String) throws -> ForeignDatabase? {
            try files.database(file, control).map { try ForeignDatabase($0, control) }
        }
        values = try database("values/zone.sqlite")
        maps = try database("maps/__llvs_values/zone.sqlite")
        for folder in ["versions", "maps"] where try !files.hasFolder(folder, control) {
            throw StoreError(
                .notAStore, "\(files.path) is not a store that can be imported: it has no folder \"\(folder)\". Check the path.",
                path: files.path)
        }
    }

    // MARK: Files

    /// Nil if it is missing.
    func versionFile(_ id: VersionID) throws -> [UInt8]? {
        try read("versions/\(ForeignFileNames.split(id.description, 2)).json", atMost: SnapshotLimits.versionFileSize)
    }

    /// Returns the ids of all version files; names that are no ids are returned unchanged.
    func versionNames() throws -> [String] {
        try files.names(in: "versions", control).map { name in
            try control.step(0)
            return ForeignStoreDirectory.withoutExtension(String(decoding: name.utf8.filter { $0 != UInt8(ascii: "/") }, as: UTF8.self))
        }
    }

    func value(_ reference: Value.Reference) throws -> [UInt8] {
        let version = ForeignFileNames.split(reference.version.description + ".json", 1)
        let id = reference.id.description
        if let bytes = try row(values, id, reference.version) { return bytes }
        for name in [ForeignFileNames.split(ForeignFileNames.escaped(id), 2), ForeignFileNames.escapedAfterSplitting(id)] {
            if let bytes = try read("values/\(name)/\(version)", atMost: Limits.valueSize) { return bytes }
        }
        throw StoreError(
            .missingChanges,
            "The bytes of the value \(id) that the version \(reference.version) stored are not in \(path). The version cannot be imported.",
            valueID: reference.id, versionID: reference.version.description, path: path)
    }

    func node(_ name: NodeName) throws -> Node {
        let key = String(decoding: name.key, as: UTF8.self)
        let file =
            "maps/__llvs_values/\(ForeignFileNames.split(ForeignFileNames.escaped(key), 2))/"
            + "\(ForeignFileNames.split(name.version.description + ".json", 1))"
        guard let bytes = try row(maps, key, name.version) ?? read(file, atMost: ForeignStoreDirectory.nodeSize) else {
            throw StoreError(
                .missingChanges,
                "\(path)/\(file) is missing, a part of the index of the version \(name.version). "
                    + "The versions that need it cannot be imported.",
                versionID: name.version.description, path: "\(path)/\(file)")
        }
        return try Node(bytes, file: "\(path)/\(file)")
    }

    private func row(_ database: ForeignDatabase?, _ key: String, _ version: VersionID) throws -> [UInt8]? {
        guard let database else { return nil }
        for key in [key, ForeignFileNames.escaped(key)] {
            if let bytes = try database.data(key, version.description) { return try decoded(bytes, "\(key) of \(version) in \(path)") }
        }
        return nil
    }

    /// The most bytes read of a node of the index. A root names a leaf for every 4 KB or so.
    private static let nodeSize = 128 << 20

    private func read(_ file: String, atMost limit: Int) throws -> [UInt8]? {
        try files.read(file, atMost: limit, control).map { try decoded($0, "\(path)/\(file)") }
    }

    /// Decodes data that begins with `LLZF`. Data that does not decode to its end only happens to begin that way, and is returned
    /// unchanged.
    private func decoded(_ bytes: [UInt8], _ name: String) throws -> [UInt8] {
        guard bytes.starts(with: "LLZF".utf8) else { return bytes }
        guard let decode else {
            throw StoreError(
                .unsupported, "\(name) is compressed (LLZF), as Apple systems do, and there is no decoder. Give one for LZFSE.", path: path)
        }
        try Memory.expect(bytes.count, "Decoding \(name)")
        return try decode(Array(bytes.dropFirst(4))) ?? bytes
    }

    // MARK: Names

    private static func withoutExtension(_ name: String) -> String {
        name.utf8.suffix(5).elementsEqual(".json".utf8) ? String(decoding: name.utf8.dropLast(5), as: UTF8.self) : name
    }
}

extension ForeignStoreDirectory {
    /// The name of a node of the index.
    struct NodeName: Hashable {
        var key: [UInt8]
        var version: VersionID
        static func root(_ version: VersionID) -> NodeName { NodeName(key: Array("__llvs_root".utf8), version: version) }
    }

    /// A node of the index: names of further nodes, or references to values.
    struct Node {
        var nodes: [NodeName] = []
        var values: [Value.Reference] = []
        /// The number of entries, counting the node itself.
        var entryCount: Int { 1 + nodes.count + values.count }

        /// `{"children":{"nodes":[{"key","version"}]}}` or `{"children":{"values":[{"valueReference":{"valueId","storedVersionId"}}]}}`
        init(_ bytes: [UInt8], file: String) throws {
            let decoder = InterchangeDecoder(file: file)
            self = try decoder.reading(.bytes(bytes)) { reader in
                var node: Node?
                try reader.beginObject()
                while let member = try reader.nextMember() {
                    if try reader.equals(member, "children") { node = try Node(children: &reader, decoder) } else { try reader.skip() }
                }
                guard let node else { throw reader.failure("the node has no \"children\"") }
                return node
            }
        }

        private init(children reader: inout JSONReader, _ decoder: InterchangeDecoder) throws {
            try reader.beginObject()
            while let member = try reader.nextMember() {
                if try reader.equals(member, "nodes") {
                    try reader.beginArray()
                    while try reader.nextElement() { nodes.append(try Node.name(&reader, decoder)) }
                } else if try reader.equals(member, "values") {
                    try reader.beginArray()
                    while try reader.nextElement() { values.append(try Node.value(&reader, decoder)) }
                } else {
                    try reader.skip()
                }
            }
        }

        private static func name(_ reader: inout JSONReader, _ decoder: InterchangeDecoder) throws -> NodeName {
            var key: [UInt8]?, version: VersionID?
            try reader.beginObject()
            while let member = try reader.nextMember() {
                if try reader.equals(member, "key") {
                    key = try reader.string()
                } else if try reader.equals(member, "version") {
                    version = try decoder.versionID(&reader)
                } else {
                    try reader.skip()
                }
            }
            guard let key, let version else { throw reader.failure("a child has no \"key\" or no \"version\"") }
            return NodeName(key: key, version: version)
        }

        private static func value(_ reader: inout JSONReader, _ decoder: InterchangeDecoder) throws -> Value.Reference {
            var reference: Value.Reference?
            try reader.beginObject()
            while let member = try reader.nextMember() {
                if try reader.equals(member, "valueReference") { reference = try decoder.reference(&reader) } else { try reader.skip() }
            }
            guard let reference else { throw reader.failure("a child has no \"valueReference\"") }
            return reference
        }
    }
}
