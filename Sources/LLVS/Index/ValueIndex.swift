/// A sorted list of keys and the ids of the values that have them, at any version: docs/index-keys.md says what a key is.
///
/// An index holds nothing of its own: it is made from the values when it is first asked at a version, kept in memory while there is room,
/// and made again. Asked at a version, it always answers for that version. Safe from all threads.
public final class ValueIndex: Sendable {
    /// The store that it is about.
    public let store: Store
    /// Under which rules declare it; nil: the definition was given.
    public let name: [UInt8]?
    private let given: IndexDefinition?
    /// What prepares it at each new current version.
    let warming = Guarded<(any AnyObject & Sendable)?>(nil)
    /// The current version of whoever asks.
    private let current: @Sendable () throws -> VersionID

    /// An index that the rules of the store declare under a name. Which definition counts is found out with each question: that at the
    /// version asked about, or, where there is none, that at the current version.
    /// - Parameters:
    ///   - store: whose values it finds.
    ///   - name: that of the declaration.
    ///   - current: the version that is asked about where none is named; nil: the newest head.
    public convenience init(_ store: Store, named name: String, current: (@Sendable () throws -> VersionID)? = nil) throws {
        guard (1...IndexDeclarations.mostName).contains(name.utf8.count) else {
            throw StoreError(
                .invalidArgument,
                "The name of an index has 1 to \(IndexDeclarations.mostName) bytes; \"\(name)\" has \(name.utf8.count). Check the name.")
        }
        try self.init(store, Array(name.utf8), nil, current)
    }

    /// An index that is defined here.
    public convenience init(_ store: Store, _ definition: IndexDefinition, current: (@Sendable () throws -> VersionID)? = nil) throws {
        try self.init(store, nil, definition, current)
    }

    private init(
        _ store: Store, _ name: [UInt8]?, _ given: IndexDefinition?, _ current: (@Sendable () throws -> VersionID)?
    ) throws {
        try store.requireOpen()
        self.store = store
        self.name = name
        self.given = given
        self.current = current ?? { try store.mostRecentHead()?.id ?? EmptyRoot.id }
    }

    /// The version that a question is about which names none.
    public var currentVersion: VersionID { get throws { try current() } }

    /// What it is called in messages.
    private var description: String { name.map { "The index \"\(String(decoding: $0, as: UTF8.self))\"" } ?? "An index" }

    // MARK: The definition

    /// The definition that counts at a version, and the version at which it is declared; nil there: it was given.
    /// - Throws: `.notFound` where nothing of the name is declared, `.unknownVersion`.
    public func definition(at version: VersionID) throws -> (definition: IndexDefinition, declaredAt: VersionID?) {
        if let given { return (given, nil) }
        let name = name ?? []
        var known: Set<[UInt8]> = [], why: InvalidIndex?
        for place in [version, try current()] {
            let provider = IndexProvider.of(store), declared = try provider.declarations(at: store.requireOrdinal(place), in: store)
            if let found = declared.indexes[name] { return (found, place) }
            known.formUnion(declared.indexes.keys)
            let pointer = "/indexes/" + String(decoding: name.withUnsafeBytes { JSONPointer.escaped($0) }, as: UTF8.self)
            why = why ?? declared.problems.first { $0.pointer == pointer || $0.pointer.hasPrefix(pointer + "/") }
        }
        let names = known.sorted { Bytes.compare($0, $1) < 0 }.map { "\"\(String(decoding: $0, as: UTF8.self))\"" }
        throw StoreError(
            .notFound,
            why.map { "\(description) is declared, but not validly: at \"\($0.pointer)\", \($0.reason). Mend it there." }
                ?? "\(description) is not declared at version \(version), nor at the current one. "
                + (names.isEmpty
                    ? "No index is; declare it under \"indexes\" in \"\(MergeSchema.valueID)\"."
                    : "Declared are \(names.joined(separator: ", "))."),
            versionID: version.description, path: why?.pointer ?? "")
    }

    // MARK: Finding

    /// One page of what is asked.
    /// - Parameters:
    ///   - question: what is looked for, and which page of it.
    ///   - version: the state that is asked about; nil: the current one.
    ///   - control: progress (stage `.reading`, in values read) and cancellation. What is cancelled leaves nothing half made.
    /// - Throws: `.unknownVersion`, `.notFound`, `.invalidArgument`, `.invalidUTF8`, `.busy` from within a callback of the call that
    ///   makes the index, `.damaged` with the id of a value that cannot be read, `.cancelled`, `.outOfMemory`.
    /// - Complexity: O(log entries + page); before, where the index is not in memory at the version, reading the values that differ from
    ///   the nearest version that has it, or all values under the prefix. `isUnique` reads the values found; bounds of more than 1,023
    ///   bytes those that share them.
    public func find(
        _ question: IndexQuestion, at version: VersionID? = nil, _ control: OperationControl = OperationControl()
    ) throws -> IndexPage {
        let version = try version ?? current(), ordinal = try store.requireOrdinal(version)
        let paced = control.paced(.reading, doing: "Asking an index of \(store.description) at version \(version)")
        try paced.look()
        let definition = try definition(at: version).definition
        let bounds = try question.bounds(in: definition), after = try ValueIndex.entry(ofCursor: question.after, in: definition)
        let tree = try IndexProvider.of(store).tree(definition, ordinal, in: store, paced)
        let walk = try IndexWalk(store, definition, tree, question, bounds, paced)
        return try walk.page(after: after)
    }

    /// Makes what the first question at the current version would have to make. Nothing where nothing is declared.
    package func prepare(_ control: OperationControl) throws {
        let version = try current(), ordinal = try store.requireOrdinal(version)
        do {
            let paced = control.paced(.reading, doing: "Preparing an index of \(store.description) at version \(version)")
            _ = try IndexProvider.of(store).tree(definition(at: version).definition, ordinal, in: store, paced)
        } catch let error as StoreError where error.code == .notFound {}
    }

    /// The entry that a page ended with.
    private static func entry(ofCursor cursor: [UInt8], in definition: IndexDefinition) throws -> [UInt8]? {
        if cursor.isEmpty { return nil }
        let entry = Array(cursor.dropFirst(1 + IndexPage.cursorDigest))
        let read = entry.withUnsafeBytes { IndexKey.read($0, parts: definition.parts, folds: definition.folds) }
        guard cursor.starts(with: IndexPage.cursorStart(definition)), let read,
            (try? entry[read.size...].withUnsafeBytes { try ValueID.check($0) }) != nil
        else {
            throw StoreError(
                .invalidArgument,
                "A page of an index was asked for behind a cursor that is none of this index. Give the cursor of the page before, or none.")
        }
        return entry
    }

    // MARK: Explaining

    /// Why a value is in the index, and under which keys, or why it is not.
    public struct Explanation: Sendable {
        /// The tuples as JSON, in order, before anything is cut off.
        public var tuples: [[UInt8]] = []
        /// Their keys; tuples that agree in their first 1,023 bytes may have one key.
        public var keys: [[UInt8]] = []
        /// Why there are none, as docs/index-keys.md has it; `no-value` where there is no such value at the version.
        public var why: String?
        /// The definition that counted, as canonical JSON.
        public var definition: [UInt8]
        /// The version at which it is declared; nil: it was given.
        public var declaredAt: VersionID?
    }

    /// - Throws: `.unknownVersion`, `.notFound`, `.damaged`, `.outOfMemory`.
    /// - Complexity: O(size of the value).
    public func explain(_ id: ValueID, at version: VersionID? = nil) throws -> Explanation {
        let version = try version ?? current(), (definition, declaredAt) = try definition(at: version)
        var found = Explanation(definition: definition.text, declaredAt: declaredAt)
        try id.bytes.withUnsafeBytes { raw in
            if let absence = IndexTuples.absence(of: raw, in: definition) {
                found.why = absence.rawValue
                return
            }
            guard let located = try store.locate(raw, at: version) else {
                found.why = "no-value"
                return
            }
            let reading = IndexReading(store, definition)
            try reading.append(id.bytes, located.entry)
            try reading.forEachValue(.none) { _, _, data in
                guard let data else {
                    found.why = IndexTuples.Absence.notJSON.rawValue
                    return
                }
                var tuples: [[UInt8]: [UInt8]] = [:]
                found.why = try definition.forEachTuple(of: raw, data, DocumentControl()) { parts in
                    var whole: [UInt8] = []
                    IndexKey.append(whole: parts, folds: definition.folds, to: &whole)
                    tuples[whole] = IndexKey.tuple(parts)
                }?.rawValue
                let keys = tuples.keys.sorted { Bytes.compare($0, $1) < 0 }
                found.tuples = keys.compactMap { tuples[$0] }
                found.keys = IndexReading.distinct(keys.map(IndexKey.cut))
            }
        }
        return found
    }
}

extension ValueIndex.Explanation {
    /// The same as JSON: `{"keys":[[…],…],"bytes":["…",…],"why":null,"definition":{…},"from":"version id"}`; `bytes` are keys in
    /// hexadecimal.
    public var json: [UInt8] {
        func quoted(_ text: String) -> [UInt8] {
            var out: [UInt8] = []
            Array(text.utf8).withUnsafeBytes { CanonicalText.append($0, to: &out) }
            return out
        }
        func hexadecimal(_ bytes: [UInt8]) -> String {
            String(decoding: bytes.flatMap { [digit($0 >> 4), digit($0 & 15)] }, as: UTF8.self)
        }
        func digit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? nibble + 0x30 : nibble + 0x57 }
        let null = Array("null".utf8), comma = [UInt8(ascii: ",")]
        return Array("{\"keys\":[".utf8) + Array(tuples.joined(separator: comma)) + Array("],\"bytes\":[".utf8)
            + Array(keys.map { quoted(hexadecimal($0)) }.joined(separator: comma)) + Array("],\"why\":".utf8) + (why.map(quoted) ?? null)
            + Array(",\"definition\":".utf8) + definition + Array(",\"from\":".utf8) + (declaredAt.map { quoted($0.description) } ?? null)
            + [UInt8(ascii: "}")]
    }
}
