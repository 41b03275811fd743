import LLVSCore

// Checks of several handles, and of everything besides records.
extension StorageConformance {
    static func reopening(_ subject: Subject) throws {
        try skip(unless: subject.isPersistent, "it does not outlive its closing")
        var stored: Set<[UInt8]> = []
        for round in 0..<5 {
            let storage = try subject.open(false)
            try expect(Set(try scan(storage)) == stored, "in round \(round) not all records are found")
            let new = (0..<3).map { bytes(seed: UInt64(round * 10 + $0), count: 50 + round) }
            try append(storage, new)
            stored.formUnion(new)
            try storage.close(discarding: round % 2 == 1)
        }
    }

    static func sharing(_ subject: Subject) throws {
        try skip(unless: subject.isShared, "only one handle may be open")
        let a = try subject.open(false), b = try subject.open(false)
        _ = try scan(a)
        _ = try scan(b)
        // A handle may report records again that it already knows.
        var known: [Set<[UInt8]>] = [[], []]
        func sees(_ handle: Int, _ found: [[UInt8]], _ expected: [[UInt8]]) -> Bool {
            defer { known[handle].formUnion(found) }
            return subject.isOrderly ? found == expected : Set(found).subtracting(known[handle]) == Set(expected)
        }
        for round in 0..<10 {
            let one = bytes(seed: UInt64(round), count: 100), two = (0..<3).map { bytes(seed: UInt64(100 + round * 3 + $0), count: 100) }
            try append(a, [one])
            try append(b, two)
            known[0].insert(one)
            known[1].formUnion(two)
            try expect(try sees(1, scan(b), [one]), "round \(round): the second handle does not see exactly what the first appended")
            try expect(try sees(0, scan(a), two), "round \(round): the first handle does not see exactly what the second appended")
            try expect(try sees(0, scan(a), []) && sees(1, scan(b), []), "round \(round): records are reported twice")
            try a.sync()
        }
        try a.close(discarding: false)
        try append(b, [[1]])
        try b.close(discarding: false)
        if subject.isPersistent {
            let c = try subject.open(false)
            let found = Set(try scan(c))
            try expect(found.count == 41, "\(found.count) of 41 records are found by a third handle")
            try c.close(discarding: false)
        }
    }

    static func appendingAtOnce(_ subject: Subject) throws {
        try skip(unless: subject.isShared, "only one handle may be open")
        let handles = [try subject.open(false), try subject.open(false)]
        let record = { (thread: Int, turn: Int) in bytes(seed: UInt64(thread * 1000 + turn), count: 60 + turn) }
        let lock = Lock()
        var places: [(handle: Int, place: RecordPlace, record: [UInt8])] = []
        let failures = Parallel.run(threads: 2, times: 100) { thread, turn in
            let place = try appendOne(handles[thread], record(thread, turn))
            lock.withLock { places.append((thread, place, record(thread, turn))) }
        }
        try expect(failures.isEmpty, "appending through two handles at once failed: \(failures.prefix(2))")
        for (handle, place, record) in places {
            try expect(try read(handles[handle], place) == record, "a record is not read back after two handles appended at once")
        }
        let all = Set((0..<200).map { record($0 / 100, $0 % 100) })
        for handle in handles { try handle.close(discarding: false) }
        guard subject.isPersistent else { return }
        let again = try subject.open(false)
        let found = Set(try scan(again))
        try expect(found == all, "\(all.subtracting(found).count) of 200 records that two handles appended at once are lost")
        try again.close(discarding: false)
    }

    static func blobs(_ subject: Subject) throws {
        let storage = try subject.open(false)
        guard let threshold = storage.blobThreshold else {
            try expect(try !storage.hasBlob(BlobID(high: 1, low: 2)), "a storage without blobs has one")
            try [UInt8](repeating: 0, count: 10).withUnsafeBytes { data in
                try expectError([.unsupported], "storing a blob") { _ = try storage.storeBlob(data) }
            }
            return try storage.close(discarding: false)
        }
        for count in [0, 1, 65_536, 65_537, threshold + 1, 3_000_000] {
            let data = bytes(seed: UInt64(count), count: count)
            let id = try data.withUnsafeBytes { try storage.storeBlob($0) }
            try expect(try storage.hasBlob(id), "a blob of \(count) bytes is missing")
            for (offset, length) in [
                (0, count), (0, min(1, count)), (count / 2, count / 3), (max(0, count - 10), min(10, count)),
                (min(65_530, count), max(0, min(20, count - 65_530))),
            ] {
                var out = [UInt8](repeating: 0, count: length)
                try out.withUnsafeMutableBytes { try storage.readBlob(id, at: UInt64(offset), into: $0) }
                try expect(
                    out == Array(data[offset..<offset + length]),
                    "bytes \(offset) ..< \(offset + length) of a blob of \(count) are not read back")
            }
            var over = [UInt8](repeating: 0, count: count + 1)
            try expectError([.damaged, .invalidArgument], "reading beyond the end of a blob") {
                try over.withUnsafeMutableBytes { try storage.readBlob(id, at: 0, into: $0) }
            }
        }
        try expect(try !storage.hasBlob(BlobID(high: 1, low: 2)), "a blob that was never stored exists")
        try storage.sync()
        try storage.close(discarding: false)
    }

    static func caches(_ subject: Subject) throws {
        let storage = try subject.open(false)
        try expect(try storage.cacheGet("index") == nil, "a cache that was never stored exists")
        let large = bytes(seed: 4, count: 200_000)
        try storage.cachePut("index", [1, 2, 3])
        try storage.cachePut("a.b-c_9", large)
        try expect(try storage.cacheGet("index") == [1, 2, 3], "a cache is not read back")
        try storage.cachePut("index", [])
        try expect(try storage.cacheGet("index") == [], "a cache is not replaced")
        try expect(try storage.cacheGet("a.b-c_9") == large, "a cache of 200,000 bytes is not read back")
        try storage.cacheDelete("index")
        try storage.cacheDelete("index")
        try expect(try storage.cacheGet("index") == nil, "a cache exists after it was deleted")
        try storage.close(discarding: false)
        if subject.isPersistent {
            let again = try subject.open(false)
            let kept = try again.cacheGet("a.b-c_9")
            try expect(kept == nil || kept == large, "a cache is different after reopening")
            try again.close(discarding: false)
        }
    }

    static func cacheNames(_ subject: Subject) throws {
        let storage = try subject.open(false)
        for name in ["", "A", "a/b", "é", "a b", String(repeating: "x", count: 101), "a\u{0}"] {
            try expectError([.invalidArgument], "a cache named \"\(name)\"") { try storage.cachePut(name, [1]) }
            try expectError([.invalidArgument], "a cache named \"\(name)\"") { _ = try storage.cacheGet(name) }
        }
        for name in [".", "..", "-", String(repeating: "x", count: 100)] {
            try storage.cachePut(name, [7])
            try expect(try storage.cacheGet(name) == [7], "a cache named \"\(name)\" is not read back")
        }
        try storage.close(discarding: false)
    }

    static func readOnly(_ subject: Subject) throws {
        try skip(unless: subject.opensReadOnly, "it cannot be opened read-only")
        let writer = try subject.open(false)
        let records = [bytes(seed: 1, count: 10), bytes(seed: 2, count: 20)]
        try append(writer, records)
        try writer.close(discarding: false)
        let reader = try subject.open(true)
        try expect(reader.isReadOnly, "it does not report that it is read-only")
        try expect(are(try scan(reader), records, subject), "not all records are found")
        try expectError([.readOnly], "appending") { try append(reader, [[1]]) }
        try reader.sync()
        try reader.cachePut("x", [1])
        try expect(try reader.cacheGet("x") == [1], "a cache is not retained in memory")
        try reader.close(discarding: false)
    }

    static func verifying(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records = (0..<50).map { bytes(seed: UInt64($0), count: $0 * 3000) }
        try append(storage, Array(records[0..<25]))
        for record in records[25...] { try append(storage, [record]) }
        var found: [(RecordPlace, [UInt8])] = [], damage: [StorageDamage] = []
        try storage.verify(
            OperationControl(), found: { found.append(($0.place, Array($0.prefix))) },
            damage: { if $0.lost != .unfinished { damage.append($0) } })
        try expect(damage.isEmpty, "an undamaged storage is reported as damaged: \(damage)")
        try expect(found.count == 50 || !subject.isOrderly, "\(found.count) records are reported for 50")
        try expect(Set(found.map(\.0)).count == 50, "\(Set(found.map(\.0)).count) places are reported for 50 records")
        for (place, prefix) in found {
            let record = try read(storage, place)
            try expect(records.contains(record) && record.starts(with: prefix), "a record is reported that was not stored")
        }
        let token = CancelToken()
        token.cancel()
        try expectError([.cancelled], "verifying after it was cancelled") {
            try storage.verify(OperationControl(token: token), found: { _ in }, damage: { _ in })
        }
        try storage.close(discarding: false)
    }

    static func concurrency(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let record = bytes(seed: 77, count: 70_000)
        let place = try appendOne(storage, record)
        let failures = Parallel.run(threads: 4, times: 200) { thread, turn in
            if thread == 0 { try append(storage, [[UInt8(truncatingIfNeeded: turn)]]) }
            if thread == 1, turn % 20 == 0 { try storage.sync() }
            let offset = (turn * 331) % 60_000
            guard try read(storage, place, offset, 500) == Array(record[offset..<offset + 500]) else {
                throw Checks.Problem(message: "wrong bytes")
            }
        }
        try expect(failures.isEmpty, "threads failed: \(failures.prefix(3))")
        try storage.close(discarding: false)
    }

    static func closing(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let place = try appendOne(storage, [1, 2, 3])
        try storage.close(discarding: false)
        try storage.close(discarding: false)
        try expectError([.closed], "append") { try append(storage, [[1]]) }
        try expectError([.closed], "sync") { try storage.sync() }
        try expectError([.closed], "scan") { _ = try scan(storage) }
        try expectError([.closed], "read") { _ = try read(storage, place) }
        try expectError([.closed], "cacheGet") { _ = try storage.cacheGet("x") }
        try expectError([.closed], "cachePut") { try storage.cachePut("x", [1]) }
        try expectError([.closed], "cacheDelete") { try storage.cacheDelete("x") }
        try expectError([.closed], "verify") { try storage.verify(OperationControl(), found: { _ in }, damage: { _ in }) }
        if storage.blobThreshold != nil {
            try expectError([.closed], "storeBlob") { _ = try [1, 2].withUnsafeBytes { try storage.storeBlob($0) } }
        }
    }
}
