/// Reads version files and changes files of the interchange layout, by whatever implementation they were written.
///
/// Lenient about the differences between implementations (member order, escapes, unknown members, repeats), strict about what a store
/// holds. Errors name the file: `.invalidJSON`, `.cutShort`, `.invalidBase64`, `.invalidUTF8`, `.identifierMismatch`, `.invalidValueID`,
/// `.invalidVersionID`, `.invalidMetadata`, `.tooLarge`.
package struct InterchangeDecoder {
    /// For messages: "versions/1C227BD7-…".
    package let file: String
    /// Called now and then by long work on what was read; may throw to end it.
    var look: (() throws -> Void)?
    package init(file: String, look: (() throws -> Void)? = nil) { self.file = file; self.look = look }

    /// The most bytes of one file that are read: 4 GiB.
    package static let largestFile = 4 << 30

    /// A file to read: as a whole, or piece by piece.
    package enum Document {
        case bytes([UInt8])
        case pieces(any PieceReader)
        var size: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .pieces(let reader): reader.size
            }
        }
        /// Errors that it throws are `PieceFailure`s. Nil for small documents.
        var look: (() throws -> Void)? {
            guard case .pieces(let reader) = self else { return nil }
            return { do { try reader.look() } catch { throw PieceFailure(error: StoreError.of(error)) } }
        }
    }

    // MARK: Versions

    /// Reads the version in a version file. Its `valueDataSize` is what the file claims, or 0 if it claims nothing; the actual size follows
    /// from the changes.
    /// - Parameter name: the name of the file, which must be the version's id.
    package static func version(_ bytes: [UInt8], name: VersionID, file: String? = nil) throws -> Version {
        try version(.bytes(bytes), name: name, file: file)
    }
    package static func version(_ document: Document, name: VersionID, file: String? = nil) throws -> Version {
        try versionFile(document, name: name, file: file).version
    }
    /// Reads everything in a version file.
    package static func versionFile(_ document: Document, name: VersionID, file: String? = nil) throws -> VersionFile {
        let file = file ?? "versions/\(name)"
        let found = try versionFile(document, file: file)
        try check(found, isNamed: name, file: file)
        return found
    }
    package static func check(_ found: VersionFile, isNamed name: VersionID, file: String) throws {
        try InterchangeDecoder(file: file).check(found.version, isNamed: name)
    }

    /// What a version file says.
    package struct VersionFile {
        package var version: Version
        /// The identity digest of the version and its changes, as the file has it; nil if the file has none.
        package var digest: [UInt8]?
        /// Whether the digest is a member beside the version, as earlier releases wrote it: other implementations cannot read such a file.
        package var isOldForm = false
    }

    package static func versionOfAnyName(_ document: Document, file: String) throws -> Version {
        try versionFile(document, file: file).version
    }

    /// Reads everything in a version file, whatever its name is.
    package static func versionFile(_ document: Document, file: String) throws -> VersionFile {
        let decoder = InterchangeDecoder(file: file, look: document.look)
        return try decoder.reading(document) { reader in
            var version: Version?, digest: [UInt8]?, digestBeside: [UInt8]?, isOldForm = false
            try reader.beginObject()
            while let member = try reader.nextMember() {
                if try reader.equals(member, "version") {
                    version = try decoder.version(&reader, &digest)
                } else if try reader.equals(member, oldDigestMember) {
                    digestBeside = try reader.skipNull() ? nil : try decoder.digest(&reader)
                    isOldForm = true
                } else {
                    try reader.skip()
                }
            }
            guard let version else { throw reader.failure("it has no member \"version\"") }
            return VersionFile(version: version, digest: digest ?? digestBeside, isOldForm: isOldForm)
        }
    }
    /// The name of the digest's member beside `version` in files of earlier releases.
    package static let oldDigestMember: StaticString = "digest"

    /// Reads a version as a document of its own, without the enclosing object.
    package static func bareVersion(_ bytes: [UInt8], name: VersionID, file: String) throws -> Version {
        let decoder = InterchangeDecoder(file: file)
        var digest: [UInt8]?
        let version = try decoder.reading(.bytes(bytes)) { try decoder.version(&$0, &digest) }
        try decoder.check(version, isNamed: name)
        return version
    }

    private func check(_ version: Version, isNamed name: VersionID) throws {
        guard version.id == name else {
            throw StoreError(
                .identifierMismatch, "\(file) holds the version \(version.id), not the one that its name says. Nothing of it was stored.",
                versionID: name.description, path: file)
        }
    }

    private func version(_ reader: inout JSONReader, _ digest: inout [UInt8]?) throws -> Version {
        var id: VersionID?, timestamp: Double?, size: UInt64 = 0
        var predecessors: [VersionID] = [], metadata = Metadata()
        try reader.beginObject()
        while let member = try reader.nextMember() {
            if try reader.equals(member, "identifier") {
                id = try versionID(&reader)
            } else if try reader.equals(member, "timestamp") {
                timestamp = try reader.double()
            } else if try reader.equals(member, "predecessors") {
                predecessors = try self.predecessors(&reader)
            } else if try reader.equals(member, "valueDataSize") {
                size = try reader.skipNull() ? 0 : try reader.unsigned()
            } else if try reader.equals(member, "metadata") {
                metadata = try reader.skipNull() ? Metadata() : try self.metadata(&reader)
            } else if try reader.equals(member, "digest") {
                digest = try reader.skipNull() ? nil : try self.digest(&reader)
            } else {
                try reader.skip()
            }
        }
        guard let id else { throw reader.failure("the version has no \"identifier\"") }
        guard let timestamp else { throw reader.failure("the version has no \"timestamp\"") }
        guard !predecessors.contains(id) else { throw reader.failure("the version is its own predecessor") }
        return Version(id: id, predecessors: predecessors, timestamp: timestamp, valueDataSize: size, metadata: metadata)
    }

    private func digest(_ reader: inout JSONReader) throws -> [UInt8] {
        let digest = try string(&reader, atMost: InterchangeDecoder.digestSize, .damaged, "a digest")
        guard digest.count <= InterchangeDecoder.digestSize else {
            throw StoreError(
                .damaged,
                "\(file) has a digest of \(digest.count) digits; a digest has \(InterchangeDecoder.digestSize). Nothing of it was stored.",
                path: file)
        }
        return digest
    }
    /// Digits of a digest.
    private static let digestSize = 64

    private func predecessors(_ reader: inout JSONReader) throws -> [VersionID] {
        if try reader.skipNull() { return [] }
        var first: VersionID?, second: VersionID?
        try reader.beginObject()
        while let member = try reader.nextMember() {
            if try reader.equals(member, "idOfFirst") {
                first = try reader.skipNull() ? nil : try versionID(&reader)
            } else if try reader.equals(member, "idOfSecond") {
                second = try reader.skipNull() ? nil : try versionID(&reader)
            } else {
                try reader.skip()
            }
        }
        guard let first else {
            guard second == nil else { throw reader.failure("the version has a second predecessor but no first") }
            return []
        }
        guard let second else { return [first] }
        guard first != second else { throw reader.failure("the version names one predecessor twice") }
        return [first, second]
    }

    private func metadata(_ reader: inout JSONReader) throws -> Metadata {
        var pairs: [(key: [UInt8], value: [UInt8])] = [], size = 0
        try reader.beginArray()
        while try reader.nextElement() {
            let key = try string(&reader, atMost: Limits.metadataKeySize, .invalidMetadata, "a metadata key")
            guard try reader.nextElement() else { throw reader.failure("the metadata has a key without a value") }
            try Memory.grow(&pairs, "Reading \(file)")
            pairs.append((key, try metadataValue(&reader)))
            size += key.count + pairs[pairs.count - 1].value.count
            guard size <= Limits.metadataSize, pairs.count <= Limits.metadataKeys else {
                throw StoreError(
                    .invalidMetadata,
                    "The metadata in \(file) cannot be stored: one version may have at most \(Limits.metadataSize) bytes under "
                        + "\(Limits.metadataKeys) keys. Nothing of it was stored.",
                    path: file)
            }
        }
        do { return try Metadata(pairs) { try look?() } } catch let error as StoreError {
            throw StoreError(error.code, "The metadata in \(file) cannot be stored. \(error.message)", path: file)
        }
    }

    /// Reads a string of at most `limit` bytes; a longer one is not read to its end.
    private func string(_ reader: inout JSONReader, atMost limit: Int, _ code: StoreError.Code, _ what: String) throws -> [UInt8] {
        let text = try text(&reader, atMost: limit, code, what)
        return try reader.string(text)
    }
    private func text(_ reader: inout JSONReader, atMost limit: Int, _ code: StoreError.Code, _ what: String) throws -> JSONReader.Text {
        // A character may be written in six bytes: \u00e9.
        do { return try reader.text(atMost: 6 * limit) } catch let failure as JSONReader.TooLong {
            throw StoreError(
                code,
                "\(file) holds \(what) of more than \(limit) bytes, in the string at byte \(failure.start); more are not allowed. "
                    + "Nothing of it was stored.",
                path: file)
        }
    }

    private func metadataValue(_ reader: inout JSONReader) throws -> [UInt8] {
        var data: [UInt8]?
        try reader.beginObject()
        while let member = try reader.nextMember() {
            if try reader.equals(member, "data") {
                data = try base64(&reader, atMost: Limits.metadataSize, of: "a metadata value")
            } else {
                try reader.skip()
            }
        }
        guard let data else { throw reader.failure("a metadata value has no \"data\"") }
        return data
    }

    // MARK: Changes

    /// Reads the changes in a changes file. Sorts them by id bytes; if one id occurs twice, the last counts.
    package static func changes(_ bytes: [UInt8], of version: VersionID) throws -> [Value.Change] {
        try changes(.bytes(bytes), of: version)
    }
    package static func changes(_ document: Document, of version: VersionID) throws -> [Value.Change] {
        try changesFile(document, of: version).changes
    }
    /// What a changes file says.
    package struct ChangesFile: Equatable {
        package var changes: [Value.Change]
        /// The values without bytes, by the index of their change, which has no data.
        package var hollow: [Int: WrittenValue]
        /// Returns whether one of these values has bytes in the file.
        package func hasBytes(of ids: Set<ValueID>) -> Bool {
            changes.enumerated().contains { i, change in
                guard hollow[i] == nil, ids.contains(change.id) else { return false }
                switch change {
                case .insert(_, let data), .update(_, let data): return !data.isEmpty
                case .remove, .preserve, .preserveRemoval: return false
                }
            }
        }
        package static func == (a: ChangesFile, b: ChangesFile) -> Bool {
            a.changes == b.changes && a.hollow.mapValues(\.digest) == b.hollow.mapValues(\.digest)
        }
    }
    /// Reads everything in a changes file, in the same way.
    package static func changesFile(_ document: Document, of version: VersionID) throws -> ChangesFile {
        let decoder = InterchangeDecoder(file: "changes/\(version)", look: document.look)
        return try decoder.reading(document) { reader in
            var changes: [Value.Change] = [], hollow: [ValueID: WrittenValue] = [:]
            try reader.beginArray()
            while try reader.nextElement() {
                guard changes.count < Limits.changesPerVersion else {
                    throw StoreError(
                        .tooLarge, "\(decoder.file) holds more than \(Limits.changesPerVersion) changes; one version can record no more.",
                        versionID: version.description, path: decoder.file)
                }
                try Memory.grow(&changes, "Reading \(decoder.file)")
                changes.append(try decoder.change(&reader, &hollow))
            }
            changes = try InterchangeOrder.sorted(changes) { try decoder.look?() }
            var found: [Int: WrittenValue] = [:]
            for (i, change) in changes.enumerated() where !hollow.isEmpty && (change.kind == .insert || change.kind == .update) {
                found[i] = hollow[change.id]
            }
            return ChangesFile(changes: changes, hollow: found)
        }
    }

    /// - Parameter hollow: gets the value without bytes, if the change has one. If an id occurs twice, the last counts.
    private func change(_ reader: inout JSONReader, _ hollow: inout [ValueID: WrittenValue]) throws -> Value.Change {
        var change: Value.Change?
        try reader.beginObject()
        while let member = try reader.nextMember() {
            let next: Value.Change
            if try reader.equals(member, "insert") {
                let value = try self.value(&reader, &hollow); next = .insert(value.id, data: value.data)
            } else if try reader.equals(member, "update") {
                let value = try self.value(&reader, &hollow); next = .update(value.id, data: value.data)
            } else if try reader.equals(member, "remove") {
                next = .remove(try valueID(&reader))
            } else if try reader.equals(member, "preserve") {
                next = .preserve(try reference(&reader))
            } else if try reader.equals(member, "preserveRemoval") {
                next = .preserveRemoval(try valueID(&reader))
            } else {
                try reader.skip(); continue
            }
            guard change.map({ $0.kind == next.kind }) ?? true else { throw reader.failure("one change is of two kinds") }
            change = next
        }
        guard let change else { throw reader.failure("a change is of no known kind") }
        return change
    }

    private func value(_ reader: inout JSONReader, _ hollow: inout [ValueID: WrittenValue]) throws -> (id: ValueID, data: [UInt8]) {
        var id: ValueID?, data: [UInt8]?, erased: WrittenValue?
        try reader.beginObject()
        while let member = try reader.nextMember() {
            if try reader.equals(member, "id") {
                id = try valueID(&reader)
            } else if try reader.equals(member, "data") {
                data = try base64(&reader, atMost: Limits.valueSize, of: "a value")
            } else if try reader.equals(member, "erased") {
                erased = try reader.skipNull() ? nil : try self.erased(&reader)
            } else {
                try reader.skip()
            }
        }
        guard let id else { throw reader.failure("a value has no \"id\"") }
        guard let data else { throw reader.failure("a value has no \"data\"") }
        // If there are bytes, they count.
        if erased != nil || !hollow.isEmpty { hollow[id] = data.isEmpty ? erased : nil }
        return (id, data)
    }

    private func erased(_ reader: inout JSONReader) throws -> WrittenValue {
        var size: UInt64?, digest: [UInt8] = []
        try reader.beginObject()
        while let member = try reader.nextMember() {
            if try reader.equals(member, "size") {
                size = try reader.unsigned()
            } else if try reader.equals(member, "sha256") {
                digest = Hex.bytes(spelledBy: try self.digest(&reader)) ?? []
            } else {
                try reader.skip()
            }
        }
        guard let size, size <= UInt64(Limits.valueSize), digest.count == 32 else {
            throw reader.failure("a value without bytes has no valid size or digest")
        }
        return WrittenValue(hollow: Int(size), digest: digest)
    }

    package func reference(_ reader: inout JSONReader) throws -> Value.Reference {
        var id: ValueID?, version: VersionID?
        try reader.beginObject()
        while let member = try reader.nextMember() {
            if try reader.equals(member, "valueId") {
                id = try valueID(&reader)
            } else if try reader.equals(member, "storedVersionId") {
                version = try versionID(&reader)
            } else {
                try reader.skip()
            }
        }
        guard let id else { throw reader.failure("a reference has no \"valueId\"") }
        guard let version else { throw reader.failure("a reference has no \"storedVersionId\"") }
        return Value.Reference(id: id, version: version)
    }

    // MARK: Pieces

    package func versionID(_ reader: inout JSONReader) throws -> VersionID {
        let text = try text(&reader, atMost: Limits.versionIDSize, .invalidVersionID, "a version id")
        if !text.escaped, let id = VersionID(validating: try reader.slice(text)) { return id }
        let bytes = try reader.string(text)
        guard let id = bytes.withUnsafeBytes({ VersionID(validating: $0) }) else {
            let shown = String(decoding: bytes.prefix(140), as: UTF8.self)
            throw StoreError(
                .invalidVersionID,
                "\(file) names \"\(shown)\", which cannot be a version id: those are 1 to \(Limits.versionIDSize) of the characters A-Z, "
                    + "a-z, 0-9, _ and -.",
                versionID: shown, path: file)
        }
        return id
    }

    func valueID(_ reader: inout JSONReader) throws -> ValueID {
        let bytes = try string(&reader, atMost: Limits.valueIDSize, .invalidValueID, "a value id")
        do { try bytes.withUnsafeBytes(ValueID.check) } catch let error as StoreError {
            throw StoreError(error.code, "A value id in \(file) cannot be stored. \(error.message)", path: file)
        }
        return ValueID(unchecked: bytes)
    }

    private func base64(_ reader: inout JSONReader, atMost limit: Int, of what: String) throws -> [UInt8] {
        do {
            let (data, start) = try reader.base64(atMost: limit)
            if let data { return data }
            throw StoreError(
                .invalidBase64,
                "\(file) holds data that is not base64, in the string at byte \(start). Nothing of it was stored; "
                    + "a device that has the version can write the file again.",
                path: file)
        } catch let failure as JSONReader.TooLong {
            throw StoreError(
                .tooLarge,
                "\(file) holds \(what) of more than \(limit) bytes, in the string at byte \(failure.start); more are not allowed.",
                path: file)
        }
    }

    /// Reads a whole document, and converts faults in it to errors that name the file.
    /// - Throws: `StoreError` for a fault in the document, `PieceFailure` for an error of its reader.
    package func reading<R>(_ document: Document, _ body: (inout JSONReader) throws -> R) throws -> R {
        guard document.size > 0 else {
            throw StoreError(
                .cutShort, "\(file) is empty: it is still in transit, or was cut short. The next exchange reads it again.", path: file)
        }
        do {
            switch document {
            case .bytes(let bytes):
                return try bytes.withUnsafeBytes { raw in
                    var reader = JSONReader(raw)
                    return try InterchangeDecoder.whole(&reader, body)
                }
            case .pieces(let source):
                let window = PieceWindow(source, limit: InterchangeDecoder.largestFile)
                return try withExtendedLifetime(window) {
                    var reader = JSONReader(window)
                    return try InterchangeDecoder.whole(&reader, body)
                }
            }
        } catch let failure as JSONReader.Failure {
            let size = failure.position <= document.size ? " of \(document.size)" : ""
            let (code, why): (StoreError.Code, String) =
                switch failure.reason {
                case .utf8: (.invalidUTF8, "It was damaged, or never was valid.")
                case .syntax: (.invalidJSON, "It was damaged, or never was valid.")
                case .end: (.cutShort, "It is still in transit, or was cut short.")
                }
            throw StoreError(
                code,
                "\(file) cannot be read: \(failure.message), at byte \(failure.position)\(size). "
                    + "\(why) The next exchange reads it again.",
                path: file)
        }
    }

    private static func whole<R>(_ reader: inout JSONReader, _ body: (inout JSONReader) throws -> R) throws -> R {
        let result = try body(&reader)
        try reader.end()
        return result
    }
}
