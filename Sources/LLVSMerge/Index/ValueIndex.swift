/// A sorted list of keys and the ids of the values that have them, at any version; docs/index-keys.md defines keys.
///
/// An index stores nothing: it is built from the values at the first query of a version, cached in memory, and rebuilt on demand. A query
/// at a version always returns the state of that version. Safe from all threads.
public final class ValueIndex: Sendable {
    /// The store whose values it finds.
    public let store: Store
    /// The name under which rules declare it; nil: the definition was given.
    public let name: [UInt8]?
    private let given: IndexDefinition?
    /// The object that prepares the index at each new current version.
    package let warming = Guarded<(any AnyObject & Sendable)?>(nil)
    /// Returns the caller's current version.
    private let current: @Sendable () throws -> VersionID

    /// An index that the rules of the store declare under a name. Each query looks up the definition: first at the version queried, then at
    /// the current version.
    /// - Parameters:
    ///   - store: the store whose values it finds.
    ///   - name: the name in the declaration.
    ///   - current: returns the version to query if none is named; nil: the newest head.
    public convenience init(_ store: Store, named name: String, current: (@Sendable () throws -> VersionID)? = nil) throws {
        guard (1...IndexDeclarations.mostName).contains(name.utf8.count) else {
            throw StoreError(
                .invalidArgument,
                "The name of an index has 1 to \(IndexDeclarations.mostName) bytes; \"\(name)\" has \(name.utf8.count). Check the name.")
        }
        try self.init(store, Array(name.utf8), nil, current)
    }

    /// An index with the given definition.
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

    /// The version that a query reads if it names none.
    public var currentVersion: VersionID { get throws { try current() } }

    /// Its name in messages.
    private var description: String { name.map { "The index \"\(String(decoding: $0, as: UTF8.self))\"" } ?? "An index" }

    // MARK: The definition

    /// Returns the definition in effect at a version, and the version that declares it; nil for that if the definition was given.
    /// - Throws: `.notFound` if no index of the name is declared, `.unknownVersion`.
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
            why.map { "\(description) is declared, but not validly: at \"\($0.pointer)\", \($0.reason). Correct it there." }
                ?? "\(description) is not declared at version \(version), nor at the current one. "
                + (names.isEmpty
                    ? "No index is; declare it under \"indexes\" in \"\(MergeSchema.valueID)\"."
                    : "Declared are \(names.joined(separator: ", "))."),
            versionID: version.description, path: why?.pointer ?? "")
    }

    // MARK: Queries

    /// Returns one page of the result.
    /// - Parameters:
    ///   - question: the query, and which page of it.
    ///   - version: the state to query; nil: the current one.
    ///   - control: progress (stage `.reading`, in values read) and cancellation. A cancelled call leaves no partial index behind.
    /// - Throws: `.unknownVersion`, `.notFound`, `.invalidArgument`, `.invalidUTF8`, `.busy` from within a callback of the call that builds
    ///   the index, `.damaged` with the id of a value that cannot be read, `.cancelled`, `.outOfMemory`.
    /// - Complexity: O(log entries + page). If the index is not in memory at the version, it also reads the values that differ from the
    ///   nearest version that has it, or all values under the prefix. `isUnique` reads the values found; bounds of more than 1,023 bytes
    ///   read those that share them.
    public func find(
        _ question: IndexQuestion, at version: VersionID? = nil, control: OperationControl = OperationControl()
    ) throws -> IndexPage {
        let version = try version ?? current(), ordinal = try store.requireOrdinal(version)
        let paced = control.paced(.reading, doing: "Querying an index of \(store.description) at version \(version)")
        try paced.look()
        let definition = try definition(at: version).definition
        let bounds = try question.bounds(in: definition), after = try ValueIndex.entry(ofCursor: question.after, in: definition)
        let tree = try IndexProvider.of(store).tree(definition, ordinal, in: store, paced)
        let walk = try IndexWalk(store, definition, tree, question, bounds, paced)
        return try walk.page(after: after)
    }

    /// Builds the index that the first query at the current version would build; no effect if none is declared.
    package func prepare(_ control: OperationControl) throws {
        let version = try current(), ordinal = try store.requireOrdinal(version)
        do {
            let paced = control.paced(.reading, doing: "Preparing an index of \(store.description) at version \(version)")
            _ = try IndexProvider.of(store).tree(definition(at: version).definition, ordinal, in: store, paced)
        } catch let error as StoreError where error.code == .notFound {}
    }

    /// Returns the entry with which the page of a cursor ended.
    private static func entry(ofCursor cursor: [UInt8], in definition: IndexDefinition) throws -> [UInt8]? {
        if cursor.isEmpty { return nil }
        let entry = Array(cursor.dropFirst(1 + IndexPage.cursorDigest))
        let read = entry.withUnsafeBytes { IndexKey.read($0, parts: definition.parts, folds: definition.folds) }
        guard cursor.starts(with: IndexPage.cursorStart(definition)), let read,
            (try? entry[read.size...].withUnsafeBytes { try ValueID.check($0) }) != nil
        else {
            throw StoreError(
                .invalidArgument,
                "A page of an index was requested with the cursor of another index. Give the cursor of the previous page, or none.")
        }
        return entry
    }

    // MARK: Explanations

    /// Explains why a value is in the index, and under which keys, or why it is not.
    public struct Explanation: Sendable {
        /// The uncut tuples as JSON, in order.
        public var tuples: [[UInt8]] = []
        /// The keys of the tuples; tuples that agree in their first 1,023 bytes may have one key.
        public var keys: [[UInt8]] = []
        /// Why there are none, in the words of docs/index-keys.md; `no-value` if the value does not exist at the version.
        public var why: String?
        /// The definition in effect, as canonical JSON.
        public var definition: [UInt8]
        /// The version that declares it; nil: it was given.
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
    /// The explanation as JSON: `{"keys":[[…],…],"bytes":["…",…],"why":null,"definition":{…},"from":"version id"}`; `bytes` are keys in
    /// hexadecimal.
    public var json: [UInt8] {
        func quoted(_ text: String) -> [UInt8] {
            var out: [UInt8] = []
            Array(text.utf8).withUnsafeBytes { CanonicalText.append($0, to: &out) }
            return out
        }
        let null = Array("null".utf8), comma = [UInt8(ascii: ",")]
        return Array("{\"keys\":[".utf8) + Array(tuples.joined(separator: comma)) + Array("],\"bytes\":[".utf8)
            + Array(keys.map { quoted(Hex.text(of: $0)) }.joined(separator: comma)) + Array("],\"why\":".utf8) + (why.map(quoted) ?? null)
            + Array(",\"definition\":".utf8) + definition + Array(",\"from\":".utf8) + (declaredAt.map { quoted($0.description) } ?? null)
            + [UInt8(ascii: "}")]
    }
}
