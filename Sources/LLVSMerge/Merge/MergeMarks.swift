/// Records in the metadata of merge versions how they were decided.
enum MergeMarks {
    /// If two merges of the same versions have different results, the one with the higher rank wins.
    enum Rank: Int {
        case builtIn, rules, host

        /// The rank as JSON. Merges by built-in arbiters record nothing.
        fileprivate var text: [UInt8]? {
            switch self {
            case .builtIn: nil
            case .rules: Array("\"rules\"".utf8)
            case .host: Array("\"host\"".utf8)
            }
        }
    }

    /// The key of the rank: `"rules"` or `"host"`.
    static let arbiterKey = Array("__llvs_arbiter".utf8)
    /// The key of a digest of the conflicts that rules decided: `{"hash":"…","ids":[…],"n":…}`.
    static let conflictsKey = RecordedConflicts.key
    /// The most ids that are named.
    private static let mostIDs = 64

    /// Returns the metadata with the marks of a merge.
    /// - Parameter conflicts: in byte order of the ids.
    /// - Throws: `.invalidMetadata` if that exceeds the limit.
    static func marked(
        _ metadata: Metadata, _ rank: Rank, _ conflicts: [(id: [UInt8], records: ConflictRecords)] = []
    ) throws -> Metadata {
        var pairs = metadata.entries.map { ($0.key, $0.value) }.filter { $0.0 != arbiterKey && $0.0 != conflictsKey }
        if let text = rank.text { pairs.append((arbiterKey, text)) }
        if !conflicts.isEmpty { pairs.append((conflictsKey, try digest(conflicts))) }
        return try Metadata(pairs)
    }

    private static func digest(_ conflicts: [(id: [UInt8], records: ConflictRecords)]) throws -> [UInt8] {
        let count = conflicts.reduce(0) { $0 + $1.records.count }
        var out = Array("{\"hash\":\"\(hash(conflicts))".utf8)
        out += Array("\",\"ids\":[".utf8)
        for (i, entry) in conflicts.prefix(mostIDs).enumerated() {
            if i > 0 { out.append(UInt8(ascii: ",")) }
            entry.id.withUnsafeBytes { CanonicalText.append($0, to: &out) }
        }
        return out + Array("],\"n\":\(count)}".utf8)
    }

    /// Returns all ids with conflicts according to the mark of a merge version; nil if it does not name all.
    static func namedIDs(_ mark: [UInt8]) throws -> Set<[UInt8]>? {
        try mark.withUnsafeBytes { bytes in
            guard let text = try JSONTreeParser.parse(bytes, work: DocumentControl()) else { return nil }
            let tree = text.tree
            guard let list = tree.find([Array("ids".utf8)], from: 0), tree.kind(list) == .array else { return nil }
            let ids = tree.children(of: list)
            guard ids.count < mostIDs, ids.allSatisfy({ tree.kind($0) == .string }) else { return nil }
            return Set(ids.map { Array(tree.text($0)) })
        }
    }

    /// Returns the SHA-256 of all records as canonical JSON, in hexadecimal.
    static func hash(_ conflicts: [(id: [UInt8], records: ConflictRecords)]) -> String {
        ConflictRecords.digest(conflicts)
    }

    /// Returns the metadata of a merge that no arbiter decided: it has the higher of both ranks.
    static func settled(_ first: Rank, _ second: Rank) throws -> Metadata {
        try marked(Metadata(), first.rawValue >= second.rawValue ? first : second)
    }
}

extension Store {
    /// Returns the rank that a merge claims. Versions that are no merges have the lowest.
    func rank(of version: UInt32) throws -> MergeMarks.Rank {
        guard lock.withRead({ dag.rows[Int(version)].second != History.none }) else { return .builtIn }
        let mark = try self.version(version).metadata[MergeMarks.arbiterKey]
        return [.rules, .host].first { $0.text == mark } ?? .builtIn
    }
}

/// Ids for which equal bytes on both sides are two edits, since rules have counters there. The rules are read on first use.
struct CountedIDs {
    private let store: Store
    private let versions: (UInt32, UInt32)
    private let given: MergeSchema?
    private var known: (schemas: [MergeSchema], areAll: Bool)?

    /// - Parameters:
    ///   - a: a version whose rules count, like those at `b`.
    ///   - given: other rules that count.
    init(_ store: Store, _ a: UInt32, _ b: UInt32, given: MergeSchema?) {
        self.store = store
        versions = (a, b)
        self.given = given
    }

    mutating func contains(_ key: UnsafeRawBufferPointer) throws -> Bool {
        let rules = try known ?? find()
        known = rules
        return rules.areAll || rules.schemas.contains { $0.hasCounter(for: key) }
    }

    private func find() throws -> (schemas: [MergeSchema], areAll: Bool) {
        var found = given.map { [$0] } ?? [], areAll = false
        for version in [versions.0, versions.1] {
            guard let entry = try store.rules.schemaEntry(at: version) else { continue }
            if let problem = try store.rules.problem(ofSchema: entry), problem.isUnknownMerge {
                // It is unknown what rules of a newer library count.
                areAll = true
            } else if let schema = try store.rules.countingSchema(entry) {
                found.append(schema)
            }
        }
        return (found, areAll)
    }
}
