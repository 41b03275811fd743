import LLVSCore

// Reads and writes for the checks, and for other tests of storages.
extension StorageConformance {
    /// Appends whole byte arrays.
    @discardableResult
    package static func append(_ storage: any Storage, _ records: [[UInt8]]) throws -> [RecordPlace] {
        // One allocation that does not move, since the pieces point into it.
        let all = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, records.reduce(0) { $0 + $1.count }), alignment: 1)
        defer { all.deallocate() }
        var at = 0
        let pieces = records.map { record in
            let part = UnsafeMutableRawBufferPointer(rebasing: all[at..<at + record.count])
            part.copyBytes(from: record)
            at += record.count
            return RecordPieces([UnsafeRawBufferPointer(part)])
        }
        let places = try storage.append(pieces)
        try expect(places.count == records.count, "appending \(records.count) records returned \(places.count) places")
        return places
    }

    /// Appends one record.
    package static func appendOne(_ storage: any Storage, _ record: [UInt8]) throws -> RecordPlace {
        guard let place = try append(storage, [record]).first else { throw Checks.Problem(message: "appending a record returned no place") }
        return place
    }

    /// Returns the records that a scan reports, read whole.
    package static func scan(_ storage: any Storage) throws -> [[UInt8]] {
        var places: [RecordPlace] = []
        try storage.scan {
            places.append($0.place)
            try expect(places.count <= 100_000, "a scan does not end: it reports 100,000 records, but there are fewer")
        }
        return try places.map { try read(storage, $0) }
    }

    package static func read(_ storage: any Storage, _ place: RecordPlace) throws -> [UInt8] {
        try expect(place.length <= 100 << 20, "a record of \(place.length) bytes is reported, but none is as large")
        return try read(storage, place, 0, Int(place.length))
    }

    package static func read(_ storage: any Storage, _ place: RecordPlace, _ offset: Int, _ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        try bytes.withUnsafeMutableBytes { try storage.read(place, at: UInt64(offset), into: $0) }
        return bytes
    }

    /// Returns pseudorandom bytes determined by the seed.
    package static func bytes(seed: UInt64, count: Int) -> [UInt8] {
        var random = SeededRandom(seed: seed)
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            for at in stride(from: 0, to: count & ~7, by: 8) {
                raw.storeBytes(of: random.next().littleEndian, toByteOffset: at, as: UInt64.self)
            }
            var last = random.next()
            for at in count & ~7..<count {
                raw[at] = UInt8(truncatingIfNeeded: last)
                last >>= 8
            }
            filled = count
        }
    }

    /// Returns whether the found records are the expected ones; for an orderly subject, in that order and each once.
    static func are(_ found: [[UInt8]], _ expected: [[UInt8]], _ subject: Subject) -> Bool {
        subject.isOrderly ? found == expected : Set(found) == Set(expected)
    }
}
