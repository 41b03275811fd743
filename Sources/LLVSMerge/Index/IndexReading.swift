/// Reads a batch of values, in the order in which they are stored, and finds the keys of each.
final class IndexReading: @unchecked Sendable {
    // Sendable: used by one thread at a time, first the one that adds values, then the one that reads them.
    private let store: Store
    private let definition: IndexDefinition
    private let batch = ValueBatch(isSeparated: false)
    private var filling: BatchFilling
    private var isFilled = false
    private let scan: IndexScan?
    private struct TooMany: Error {}

    init(_ store: Store, _ definition: IndexDefinition) {
        self.store = store
        self.definition = definition
        filling = BatchFilling(store, batch)
        scan = IndexScan(definition)
    }

    /// - Parameter entry: the place of the bytes; nil: there is no value.
    func append(_ id: [UInt8], _ entry: MapEntry?) throws { try id.withUnsafeBytes { try append($0, entry) } }

    func append(_ id: UnsafeRawBufferPointer, _ entry: MapEntry?) throws {
        guard var entry, IndexTuples.absence(of: id, in: definition) == nil else { return try filling.append(id, nil) }
        if entry.size == MapEntry.unknownSize { entry = try store.maps.stored(id, in: entry.version) ?? entry }
        // A larger value is not parsed: it counts as not JSON.
        let isLarge = definition.callback == nil && entry.size != MapEntry.unknownSize && Int(entry.size) > JSONTreeParser.sizeLimit
        try filling.append(id, isLarge ? nil : entry)
    }

    /// Calls `body` with the number of each value, in the order in which they were added, its id, and its distinct keys.
    /// - Throws: `.damaged` for a value that cannot be read.
    func forEach(_ control: PacedControl, _ body: (Int, UnsafeRawBufferPointer, [[UInt8]]) throws -> Void) throws {
        let work = DocumentControl { try control.look() }
        var key: [UInt8] = []
        try forEachValue(control) { i, id, data in
            var keys: [[UInt8]] = []
            if let data { try forEachKey(of: id, data, work, &key) { keys.append($0) } }
            try body(i, id, keys.count > 1 ? IndexReading.distinct(keys) : keys)
        }
    }

    /// Calls `body` with the key and the id of each entry, possibly with duplicates. May be called again.
    /// - Throws: `.damaged` for a value that cannot be read.
    func forEachEntry(_ control: PacedControl, _ body: ([UInt8], UnsafeRawBufferPointer) throws -> Void) throws {
        var key: [UInt8] = []
        let work = DocumentControl { try control.look() }
        try forEachValue(control) { _, id, data in
            if let data { try forEachKey(of: id, data, work, &key) { try body($0, id) } }
        }
    }

    /// Calls `body` with each key of a value, possibly with duplicates.
    /// - Parameter key: a buffer for the key.
    @inline(__always)
    private func forEachKey(
        of id: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer, _ work: DocumentControl, _ key: inout [UInt8],
        _ body: ([UInt8]) throws -> Void
    ) throws {
        switch scan?.read(data) ?? .unsure {
        case .absent: try work.done(data.count)
        case .found:
            try work.done(data.count)
            key.removeAll(keepingCapacity: true)
            if let scan { IndexKey.append(key: scan.tuple, folds: definition.folds, to: &key) }
            try body(key)
        case .unsure:
            _ = try definition.forEachTuple(of: id, data, work) { parts in
                key.removeAll(keepingCapacity: true)
                IndexKey.append(key: parts, folds: definition.folds, to: &key)
                try body(key)
            }
        }
    }

    /// Returns the entries of all values; nil if they exceed `most` bytes.
    func entries(most: Int, _ control: PacedControl) throws -> KeyArena? {
        var arena = KeyArena()
        do {
            try forEachEntry(control) { key, id in
                try arena.makeRoom(for: key.count + id.count, "Making an index")
                arena.append(key, id, IndexMaking.slot)
                if arena.size > most { throw TooMany() }
            }
        } catch is TooMany { return nil }
        return arena
    }

    /// Calls `body` with the number of each value, its id and its bytes; nil instead of bytes if the value cannot be in the index,
    /// or has no bytes any more.
    func forEachValue(
        _ control: PacedControl, _ body: (Int, UnsafeRawBufferPointer, UnsafeRawBufferPointer?) throws -> Void
    ) throws {
        try control.look()
        let isAgain = isFilled
        if !isAgain {
            _ = try filling.fill()
            try batch.finish()
            isFilled = true
        }
        try withExtendedLifetime(batch) {
            for i in 0..<batch.count {
                let row = batch.rows[i]
                try control.step(isAgain ? 0 : 1, bytes: row.data.count)
                try Memory.check()
                let hasBytes = row.version != nil && !row.isForgotten
                try body(i, batch.id(i), !hasBytes ? nil : UnsafeRawBufferPointer(rebasing: batch.data[row.data]))
            }
        }
    }

    /// Returns whether the value with a number has no bytes any more. Known once the values were read.
    func isForgotten(_ number: Int) -> Bool { batch.rows[number].isForgotten }

    /// Returns the keys sorted, without duplicates.
    static func distinct(_ keys: [[UInt8]]) -> [[UInt8]] {
        var out: [[UInt8]] = []
        for key in keys.sorted(by: { Bytes.compare($0, $1) < 0 }) where out.last != key { out.append(key) }
        return out
    }
}
