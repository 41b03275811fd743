/// The records of a merge. Since there may be as many as a value has members, they are stored in one piece of memory, and each is created
/// on access.
public struct ConflictRecords: RandomAccessCollection, Sendable {
    /// Where a record is in the memory. Its parts follow each other in the order of these fields, each with a NUL after it. The fields
    /// are the sizes of the parts, which are mostly short.
    fileprivate struct Entry {
        /// Two special sizes. `none`: the record has no such part. `long`: the four bytes before the part hold its size, or a negative
        /// number for a part in `apart`.
        static let none = UInt8.max, long = UInt8.max - 1

        var start: UInt32
        ///  bits 0-3 kind · 4-5 the source of the result: computed, the newer side or the older side · 6-31 the number of the rule plus
        ///  one, or 0
        var about: UInt32
        var path = Self.none
        var base = Self.none
        var newer = Self.none
        var older = Self.none
        var result = Self.none
    }

    /// The parts of a record, each with a NUL after it. Valid while the records exist.
    package struct Parts {
        package var kind: ConflictRecord.Kind
        package var path: UnsafeRawBufferPointer
        package var base: UnsafeRawBufferPointer?
        package var newer: UnsafeRawBufferPointer?
        package var older: UnsafeRawBufferPointer?
        package var result: UnsafeRawBufferPointer?
        /// The index of its rule in `rules`.
        package var rule: Int?
    }

    /// Nil if there are no records.
    private let storage: Room?

    package init(_ storage: Room? = nil) { self.storage = storage }

    /// Creates a collection of one record.
    package init(_ record: ConflictRecord) throws {
        let storage = Room()
        try storage.append(record)
        self.storage = storage
    }

    /// Creates a collection of the records of an array.
    package init(_ records: [ConflictRecord]) throws {
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

    /// The rules that records name, as prefixes and patterns.
    package var rules: [(prefix: [UInt8], pattern: [UInt8])] { storage?.rules ?? [] }

    package func parts(_ i: Int) -> Parts {
        guard let storage else { preconditionFailure("There are no records.") }
        let entry = storage.entries[i]
        var at = Int(entry.start)
        func part(_ size: UInt8) -> UnsafeRawBufferPointer? {
            guard size != Entry.none, let memory = storage.memory else { return nil }
            var count = Int(size)
            if size == Entry.long {
                count = Int(memory.loadUnaligned(fromByteOffset: at, as: Int32.self))
                at += MemoryLayout<Int32>.size
                // The bytes of the part do not move while the records exist.
                if count < 0 { return storage.apart[-1 - count].withUnsafeBytes { UnsafeRawBufferPointer(rebasing: $0.dropLast()) } }
            }
            defer { at += count + 1 }
            return UnsafeRawBufferPointer(start: memory + at, count: count)
        }
        let path = part(entry.path), base = part(entry.base), newer = part(entry.newer), older = part(entry.older)
        let result =
            switch entry.about >> 4 & 3 {
            case 1: newer
            case 2: older
            default: part(entry.result)
            }
        return Parts(
            kind: ConflictRecord.Kind(rawValue: entry.about & 15) ?? .pick, path: path ?? UnsafeRawBufferPointer(start: nil, count: 0),
            base: base, newer: newer, older: older, result: result, rule: entry.about >> 6 == 0 ? nil : Int(entry.about >> 6) - 1)
    }

    /// Returns the SHA-256, in hexadecimal, of the records of one value as canonical JSON.
    func digest(id: [UInt8]) -> String { Self.digest([(id, self)]) }

    /// Returns the SHA-256, in hexadecimal, of the records of several values as canonical JSON.
    package static func digest(_ values: [(id: [UInt8], records: ConflictRecords)]) -> String {
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

    /// Collects the records of a merge.
    package final class Room: @unchecked Sendable {
        // Sendable: it is not changed after `ConflictRecords` holds it.
        fileprivate var memory: UnsafeMutableRawPointer?
        /// Large parts, each with a NUL after it.
        fileprivate var apart: [[UInt8]] = []
        private var used = 0
        private var capacity = 0
        fileprivate var entries: [Entry] = []
        fileprivate var rules: [(prefix: [UInt8], pattern: [UInt8])] = []
        private var knownRules: [Int: Int] = [:]

        init() {}
        deinit { free(memory) }

        func reserve(_ count: Int) throws { try Memory.grow(&entries, by: count, "Telling conflicts") }

        /// Begins a record. The caller adds its parts in their order.
        func begin(_ kind: ConflictRecord.Kind, path: UnsafeRawBufferPointer) throws {
            guard let start = UInt32(exactly: used) else { throw Self.tooMuch(used) }
            entries.append(Entry(start: start, about: kind.rawValue))
            entries[entries.count - 1].path = try add(path)
        }

        /// A part of a record.
        enum Part { case base, newer, older, result }

        func add(_ part: Part, _ bytes: UnsafeRawBufferPointer) throws { set(part, try add(bytes)) }

        /// Adds a part that may be large: moves it in instead of copying it.
        func add(_ part: Part, taking bytes: inout [UInt8]) throws {
            guard bytes.count >= Self.large else { return try bytes.withUnsafeBytes { try add(part, $0) } }
            var taken: [UInt8] = []
            swap(&taken, &bytes)
            try Memory.grow(&taken, by: 1, "Telling conflicts")
            taken.append(0)
            apart.append(taken)
            try add(count: -apart.count)
            set(part, Entry.long)
        }
        private static let large = 1 << 16

        private func set(_ part: Part, _ size: UInt8) {
            let last = entries.count - 1
            switch part {
            case .base: entries[last].base = size
            case .newer: entries[last].newer = size
            case .older: entries[last].older = size
            case .result: entries[last].result = size
            }
        }

        /// Records that the result is the value of a side: 1 the newer, 2 the older.
        func addResult(of side: UInt32) { entries[entries.count - 1].about |= side << 4 }

        /// - Parameter number: identifies the rule.
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
        /// - Returns: its size, as `Entry` has it.
        private func add(_ part: UnsafeRawBufferPointer) throws -> UInt8 {
            let isLong = part.count >= Int(Entry.long)
            if isLong { try add(count: part.count) }
            let memory = try room(part.count + 1)
            if let start = part.baseAddress { memcpy(memory, start, part.count) }
            memory.storeBytes(of: 0, toByteOffset: part.count, as: UInt8.self)
            used += part.count + 1
            return isLong ? Entry.long : UInt8(truncatingIfNeeded: part.count)
        }

        /// Appends the size of a long part, or a negative number for its index in `apart`.
        private func add(count: Int) throws {
            guard let count = Int32(exactly: count) else { throw Self.tooMuch(count) }
            try room(MemoryLayout<Int32>.size).storeBytes(of: count, as: Int32.self)
            used += MemoryLayout<Int32>.size
        }

        /// Returns where the next `size` bytes are to be written.
        private func room(_ size: Int) throws -> UnsafeMutableRawPointer {
            let wanted = used + size
            if wanted > capacity {
                let more = Swift.max(wanted, capacity + capacity / 2, 256)
                guard let larger = realloc(memory, more) else { throw Self.tooMuch(more) }
                (memory, capacity) = (larger, more)
            }
            guard let memory else { throw Self.tooMuch(wanted) }
            return memory + used
        }

        private static func tooMuch(_ size: Int) -> StoreError {
            StoreError(.outOfMemory, "Reporting what a merge decided needs \(size) bytes of memory. Free some, and try again.")
        }
    }
}

/// The SHA-256 of records as one JSON array.
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
            // Hash a large part without copying it.
            take(&text)
            return part.withContiguousStorageIfAvailable { hash.update(UnsafeRawBufferPointer($0)) } != nil
        }
        if text.count >= 1 << 14 { take(&text) }
    }

    private mutating func take(_ text: inout [UInt8]) {
        hash.update(text)
        text.removeAll(keepingCapacity: true)
    }

    /// Returns the digest in hexadecimal.
    mutating func finish() -> String {
        text.append(UInt8(ascii: "]"))
        hash.update(text)
        return Hex.text(of: hash.finish())
    }
}
