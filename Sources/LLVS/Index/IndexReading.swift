/// Reads some values together, in the order in which they lie, and finds the keys of each. Used by one thread, once.
final class IndexReading {
    private let store: Store
    private let definition: IndexDefinition
    private let control: PacedControl
    private let work: DocumentControl
    private let batch = ValueBatch(isSeparated: false)
    private var filling: BatchFilling

    init(_ store: Store, _ definition: IndexDefinition, _ control: PacedControl) {
        self.store = store
        self.definition = definition
        self.control = control
        work = DocumentControl { try control.look() }
        filling = BatchFilling(store, batch)
    }

    /// - Parameter entry: where the bytes are; nil: there is no value.
    func append(_ id: [UInt8], _ entry: MapEntry?) throws {
        try id.withUnsafeBytes { raw in
            guard var entry, IndexTuples.absence(of: raw, in: definition) == nil else { return try filling.append(raw, nil) }
            if entry.size == MapEntry.unknownSize { entry = try store.maps.stored(raw, in: entry.version) ?? entry }
            // A larger value is not parsed: it counts as no JSON.
            let isLarge = definition.callback == nil && entry.size != MapEntry.unknownSize && Int(entry.size) > JSONTreeParser.sizeLimit
            try filling.append(raw, isLarge ? nil : entry)
        }
    }

    /// Calls with the number of each value, in the order in which they came, its id and its keys, each once.
    /// - Throws: `.damaged` for a value that cannot be read.
    func forEach(_ body: (Int, [UInt8], [[UInt8]]) throws -> Void) throws {
        try forEachValue { i, id, data in
            var keys: [[UInt8]] = []
            if let data {
                _ = try definition.forEachTuple(of: id, data, work) { parts in
                    var key: [UInt8] = []
                    IndexKey.append(key: parts, folds: definition.folds, to: &key)
                    keys.append(key)
                }
                if keys.count > 1 { keys = IndexReading.distinct(keys) }
            }
            try body(i, id, keys)
        }
    }

    /// The same with the bytes of each value that may be in the index; nil for others.
    func forEachValue(_ body: (Int, [UInt8], UnsafeRawBufferPointer?) throws -> Void) throws {
        try control.look()
        _ = try filling.fill()
        try batch.finish()
        try withExtendedLifetime(batch) {
            for i in 0..<batch.count {
                let row = batch.rows[i]
                try control.step(bytes: row.data.count)
                try Memory.check()
                try body(i, Array(batch.id(i)), row.version == nil ? nil : UnsafeRawBufferPointer(rebasing: batch.data[row.data]))
            }
        }
    }

    /// In order, each once.
    static func distinct(_ keys: [[UInt8]]) -> [[UInt8]] {
        var out: [[UInt8]] = []
        for key in keys.sorted(by: { Bytes.compare($0, $1) < 0 }) where out.last != key { out.append(key) }
        return out
    }
}
