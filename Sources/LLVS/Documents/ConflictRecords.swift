/// The records of a merge. There may be as many as a value has members, so they lie one behind the other in one piece of memory, and each
/// is made when it is asked for.
public struct ConflictRecords: RandomAccessCollection, Sendable {
    /// Where in the memory a record is. Its parts follow each other in the order of these, with a NUL behind each; -1: there is
    /// none; below: it is apart.
    fileprivate struct Entry {
        var start: Int
        var base: Int32
        var newer: Int32
        var older: Int32
        var result: Int32
        var path: UInt32
        ///     bits 0-3 kind · 4-5 whose part the result is: its own, the newer side's or the older's · 6-31 one more than its rule, or 0
        var about: UInt32
    }

    /// The parts of a record, which are good while the records are kept. Behind each stands a NUL.
    package struct Parts {
        package var kind: ConflictRecord.Kind
        package var path: UnsafeRawBufferPointer
        package var base: UnsafeRawBufferPointer?
        package var newer: UnsafeRawBufferPointer?
        package var older: UnsafeRawBufferPointer?
        package var result: UnsafeRawBufferPointer?
        /// Which of `rules`.
        package var rule: Int?
    }

    /// Nil: there are none.
    private let storage: Room?

    init(_ storage: Room? = nil) { self.storage = storage }

    /// One record.
    init(_ record: ConflictRecord) throws {
        let storage = Room()
        try storage.append(record)
        self.storage = storage
    }

    /// The records of an array.
    init(_ records: [ConflictRecord]) throws {
        storage = records.isEmpty ? nil : Room()
        for record in records { try storage?.append(record) }
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { storage?.entries.count ?? 0 }

    public subscript(_ i: Int) -> ConflictRecord {
        let parts = parts(i)
        return ConflictRecord(
            kind: parts.kind, path: Array(parts.path), base: parts.base.map { Array($0) }, newer: parts.newer.map { Array($0) },
            older: parts.older.map { Array($0) }, result: parts.result.map { Array($0) }, rule: parts.rule.map { rules[$0] })
    }

    /// The rules that records name: prefixes and patterns.
    package var rules: [(prefix: [UInt8], pattern: [UInt8])] { storage?.rules ?? [] }

    package func parts(_ i: Int) -> Parts {
        guard let storage else { preconditionFailure("There are no records.") }
        let entry = storage.entries[i]
        var at = entry.start
        func part(_ size: Int) -> UnsafeRawBufferPointer? {
            if size < -1 {
                // It stays where it is while the records are kept.
                let taken = storage.apart[-2 - size]
                return taken.withUnsafeBytes { UnsafeRawBufferPointer(rebasing: $0.dropLast()) }
            }
            guard size >= 0 else { return nil }
            defer { at += size + 1 }
            return UnsafeRawBufferPointer(start: storage.memory.map { $0 + at }, count: size)
        }
        let path = part(Int(entry.path)), base = part(Int(entry.base)), newer = part(Int(entry.newer))
        let older = part(Int(entry.older))
        let result = switch entry.about >> 4 & 3 {
        case 1: newer
        case 2: older
        default: part(Int(entry.result))
        }
        return Parts(
            kind: ConflictRecord.Kind(rawValue: entry.about & 15) ?? .pick, path: path ?? UnsafeRawBufferPointer(start: nil, count: 0),
            base: base, newer: newer, older: older, result: result, rule: entry.about >> 6 == 0 ? nil : Int(entry.about >> 6) - 1)
    }

    /// SHA-256 of the records as canonical JSON, in hexadecimal; of records of one value.
    func digest(id: [UInt8]) -> String { Self.digest([(id, self)]) }

    /// The same of records of several values.
    static func digest(_ values: [(id: [UInt8], records: ConflictRecords)]) -> String {
        var hash = ConflictDigest()
        for (id, records) in values {
            for i in records.indices {
                let parts = records.parts(i)
                hash.add(
                    id: id, parts.kind, path: parts.path, base: parts.base, newer: parts.newer, older: parts.older, result: parts.result,
                    rule: parts.rule.map { records.rules[$0] })
            }
        }
        return hash.finish()
    }

    /// Records while they are made.
    final class Room: @unchecked Sendable {
        // Sendable: it does not change once it is handed out.
        fileprivate var memory: UnsafeMutableRawPointer?
        /// Large parts, each with a NUL behind it.
        fileprivate var apart: [[UInt8]] = []
        private var used = 0
        private var capacity = 0
        fileprivate var entries: [Entry] = []
        fileprivate var rules: [(prefix: [UInt8], pattern: [UInt8])] = []
        private var knownRules: [Int: Int] = [:]

        init() {}
        deinit { free(memory) }

        func reserve(_ count: Int) throws { try Memory.grow(&entries, by: count, "Telling conflicts") }

        /// Begins a record. Its parts follow in their order.
        func begin(_ kind: ConflictRecord.Kind, path: UnsafeRawBufferPointer) throws {
            let size = UInt32(truncatingIfNeeded: path.count)
            entries.append(Entry(start: used, base: -1, newer: -1, older: -1, result: -1, path: size, about: kind.rawValue))
            try add(path)
        }

        /// A part of a record.
        enum Part { case base, newer, older, result }

        func add(_ part: Part, _ bytes: UnsafeRawBufferPointer) throws { set(part, try add(bytes)) }

        /// A part that is taken as it is: it may be large.
        func add(_ part: Part, taking bytes: inout [UInt8]) throws {
            guard bytes.count >= Self.large else { return try bytes.withUnsafeBytes { try add(part, $0) } }
            var taken: [UInt8] = []
            swap(&taken, &bytes)
            try Memory.grow(&taken, by: 1, "Telling conflicts")
            taken.append(0)
            apart.append(taken)
            set(part, -1 - apart.count)
        }
        private static let large = 1 << 16

        private func set(_ part: Part, _ size: Int) {
            // (Larger parts are apart.)
            let last = entries.count - 1, size = Int32(clamping: size)
            switch part {
            case .base: entries[last].base = size
            case .newer: entries[last].newer = size
            case .older: entries[last].older = size
            case .result: entries[last].result = size
            }
        }

        /// The result is what a side has: 1 the newer, 2 the older.
        func addResult(of side: UInt32) { entries[entries.count - 1].about |= side << 4 }

        /// - Parameter number: of the rule, by which it is known.
        func add(_ rule: (prefix: [UInt8], pattern: [UInt8]), number: Int) {
            let known = knownRules[number] ?? rules.count
            if known == rules.count {
                rules.append(rule)
                knownRules[number] = known
            }
            entries[entries.count - 1].about |= UInt32(truncatingIfNeeded: known + 1) << 6
        }

        func append(_ record: ConflictRecord) throws {
            try record.path.withUnsafeBytes { try begin(record.kind, path: $0) }
            for (part, bytes) in [(Part.base, record.base), (.newer, record.newer), (.older, record.older), (.result, record.result)] {
                guard var bytes else { continue }
                try add(part, taking: &bytes)
            }
            if let rule = record.rule {
                rules.append(rule)
                entries[entries.count - 1].about |= UInt32(truncatingIfNeeded: rules.count) << 6
            }
        }

        /// Appends a part.
        @discardableResult
        private func add(_ part: UnsafeRawBufferPointer) throws -> Int {
            let wanted = used + part.count + 1
            if wanted > capacity {
                let more = Swift.max(wanted, capacity + capacity / 2, 256)
                guard let larger = realloc(memory, more) else {
                    throw StoreError(.outOfMemory, "Telling what a merge decided needs \(more) bytes of memory. Free some, and try again.")
                }
                (memory, capacity) = (larger, more)
            }
            guard let memory else { return 0 }
            if let start = part.baseAddress { memcpy(memory + used, start, part.count) }
            memory.storeBytes(of: 0, toByteOffset: used + part.count, as: UInt8.self)
            used = wanted
            return part.count
        }
    }
}

/// SHA-256 of records as one JSON array.
struct ConflictDigest {
    private var hash = SHA256()
    private var text = [UInt8(ascii: "[")]
    private var isFirst = true
    private var id: [UInt8] = []
    private var idText: [UInt8] = []

    init() {}

    mutating func add<Part: Collection<UInt8>>(
        id: [UInt8], _ kind: ConflictRecord.Kind, path: Part, base: Part?, newer: Part?, older: Part?, result: Part?,
        rule: (prefix: [UInt8], pattern: [UInt8])?
    ) {
        if isFirst || id != self.id { (self.id, idText) = (id, ConflictRecord.string(id)) }
        var text: [UInt8] = []
        swap(&text, &self.text)
        defer { swap(&text, &self.text) }
        if !isFirst { text.append(UInt8(ascii: ",")) }
        isFirst = false
        ConflictRecord.append(
            idText, kind, path: path, base: base, newer: newer, older: older, result: result, rule: rule, to: &text
        ) { text, part in
            // A large part is not copied for this.
            take(&text)
            return part.withContiguousStorageIfAvailable { hash.update(UnsafeRawBufferPointer($0)) } != nil
        }
        if text.count >= 1 << 14 { take(&text) }
    }

    private mutating func take(_ text: inout [UInt8]) {
        hash.update(text)
        text.removeAll(keepingCapacity: true)
    }

    /// In hexadecimal.
    mutating func finish() -> String {
        text.append(UInt8(ascii: "]"))
        hash.update(text)
        return hash.finish().reduce(into: "") { $0 += ($1 < 16 ? "0" : "") + String($1, radix: 16) }
    }
}
