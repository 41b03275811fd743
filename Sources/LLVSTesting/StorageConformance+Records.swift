import LLVSCore

// Checks of records that one handle appends.
extension StorageConformance {
    static func emptiness(_ subject: Subject) throws {
        let storage = try subject.open(false)
        try expect(try scan(storage).isEmpty, "the first scan of an empty storage reports records")
        try expect(storage.damages.isEmpty, "an empty storage is damaged: \(storage.damages)")
        try expect(!storage.isReadOnly, "it reports that it is read-only")
        try expect(!storage.description.isEmpty, "it has no description")
        try storage.sync()
        try expect(try append(storage, []).isEmpty, "appending no records returns places")
        try storage.close(discarding: false)
    }

    static func roundTrip(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records = (1...20).map { bytes(seed: UInt64($0), count: $0 * 37) }
        var places = try append(storage, Array(records[0..<1]))
        places += try append(storage, Array(records[1..<20]))
        for (record, place) in zip(records, places) {
            try expect(place.length == UInt64(record.count), "the place of a record of \(record.count) bytes has length \(place.length)")
            try expect(try read(storage, place) == record, "a record of \(record.count) bytes is not read back")
        }
        try storage.sync()
        try storage.close(discarding: false)
    }

    static func places(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records = (0..<300).map { bytes(seed: UInt64($0), count: 200 - $0 % 7) }
        var places: [RecordPlace] = []
        for start in stride(from: 0, to: 300, by: 100) { places += try append(storage, Array(records[start..<start + 100])) }
        try expect(Set(places).count == 300, "300 records share \(Set(places).count) places")
        for (i, place) in places.enumerated().reversed() {
            try expect(try read(storage, place) == records[i], "reading the place of record \(i % 100) of a batch returns another record")
        }
        try storage.close(discarding: false)
    }

    static func ownRecordsAreNotScanned(_ subject: Subject) throws {
        let storage = try subject.open(false)
        _ = try scan(storage)
        let records = (1...3).map { bytes(seed: UInt64($0), count: 10) }
        try append(storage, [records[0]])
        try append(storage, Array(records[1...]))
        let found = try scan(storage)
        try expect(found.allSatisfy(records.contains), "a scan reports records that were not appended")
        try expect(found.isEmpty || !subject.isOrderly, "a scan reports records that this handle appended")
        try storage.close(discarding: false)
    }

    static func ranges(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let record = bytes(seed: 7, count: 300_000)
        let place = try append(storage, [bytes(seed: 6, count: 10), record, bytes(seed: 8, count: 10)])[1]
        for (offset, count) in [
            (0, 0), (0, 1), (0, 300_000), (299_999, 1), (300_000, 0), (65_535, 2), (65_536, 65_536), (1, 299_998), (100_000, 150_000),
        ] {
            try expect(
                try read(storage, place, offset, count) == Array(record[offset..<offset + count]),
                "bytes \(offset) ..< \(offset + count) are not read back")
        }
        try storage.close(discarding: false)
    }

    static func rangeErrors(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let place = try appendOne(storage, bytes(seed: 1, count: 100))
        for (offset, count) in [(0, 101), (100, 1), (101, 0), (Int.max, 1), (1, 100)] as [(Int, Int)] {
            try expectError([.damaged, .invalidArgument], "reading \(min(count, 200)) bytes at \(offset) of a record of 100") {
                _ = try read(storage, place, offset, count)
            }
        }
        var unknown = place
        unknown.segment = 4_000_000
        if unknown.segment != place.segment {
            try expectError([.damaged, .invalidArgument], "reading at a place that does not exist") { _ = try read(storage, unknown, 0, 1) }
        }
        try expect(try read(storage, place).count == 100, "the storage cannot be used after a refused read")
        try storage.close(discarding: false)
    }

    static func oddRecords(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records: [[UInt8]] = [[], [0], [0xA7, 0x4C, 0x56, 0x46], [UInt8](repeating: 0, count: 5000), [], [0xFF]]
        let places = try append(storage, records)
        try expect(try append(storage, [[]]).first?.length == 0, "an empty record does not have length 0")
        for (record, place) in zip(records, places) {
            try expect(try read(storage, place) == record, "the record \(record.prefix(4)) is not read back")
        }
        try storage.close(discarding: false)
        if subject.isPersistent {
            let again = try subject.open(false)
            try expect(are(try scan(again), records + [[]], subject), "empty and unusual records are not found again")
            try again.close(discarding: false)
        }
    }

    static func manyPieces(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let record = bytes(seed: 3, count: 500_000)
        let place = try record.withUnsafeBytes { all in
            var pieces: [UnsafeRawBufferPointer] = [UnsafeRawBufferPointer(start: nil, count: 0)]
            var at = 0
            var random = SeededRandom(seed: 5)
            while at < all.count {
                let count = min(all.count - at, Int(random.next() % 7) == 0 ? 150_000 : Int(random.next() % 90))
                pieces.append(UnsafeRawBufferPointer(rebasing: all[at..<at + count]))
                at += count
            }
            return try storage.append([RecordPieces(pieces)])
        }
        guard let first = place.first, place.count == 1 else { throw Checks.Problem(message: "a record got \(place.count) places") }
        try expect(try read(storage, first) == record, "a record of many pieces is not read back")
        try storage.close(discarding: false)
    }

    static func largeBatch(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records = (0..<5000).map { bytes(seed: UInt64($0), count: $0 % 200) }
        let places = try append(storage, records)
        for i in stride(from: 0, to: 5000, by: 97) {
            try expect(try read(storage, places[i]) == records[i], "record \(i) of 5,000 is not read back")
        }
        try storage.close(discarding: false)
        if subject.isPersistent {
            let again = try subject.open(false)
            try expect(are(try scan(again), records, subject), "a batch of 5,000 is not found again")
            try again.close(discarding: false)
        }
    }

    static func largeRecord(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let record = bytes(seed: 9, count: 5 << 20)
        let small = bytes(seed: 10, count: 100)
        let places = try append(storage, [small, record, small])
        try expect(try read(storage, places[1]) == record, "a record of 5 MiB is not read back")
        try storage.close(discarding: false)
        if subject.isPersistent {
            let again = try subject.open(false)
            var found: [(place: RecordPlace, prefix: [UInt8])] = []
            try again.scan { found.append(($0.place, Array($0.prefix))) }
            try expect(found.count == 3 || !subject.isOrderly, "\(found.count) records are found for 3")
            guard let large = found.first(where: { $0.place.length > 1000 }) else {
                throw Checks.Problem(message: "the record of 5 MiB is not found again")
            }
            try expect(large.place.length == UInt64(record.count), "the record of 5 MiB is found with \(large.place.length) bytes")
            try expect(
                large.prefix.count >= ScannedRecord.prefixSize && large.prefix.elementsEqual(record.prefix(large.prefix.count)),
                "its first bytes are not those stored, or too few")
            try expect(try read(again, large.place) == record, "it is not read back at the place found")
            try expect(
                try read(again, large.place, 3_000_001, 70_000) == Array(record[3_000_001..<3_070_001]),
                "a range of it is not read back at the place found")
            try again.close(discarding: false)
        }
    }

    static func manyRecords(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records = (0..<10_000).map { bytes(seed: UInt64($0), count: 40 + $0 % 60) }
        for record in records { try append(storage, [record]) }
        try storage.sync()
        try storage.close(discarding: false)
        if subject.isPersistent {
            let again = try subject.open(false)
            try expect(Set(try scan(again)) == Set(records), "10,000 records are not all found again")
            try expect(try scan(again).isEmpty || !subject.isOrderly, "a second scan reports them again")
            try again.close(discarding: false)
        }
    }
}
