/// Reads the records that the host lists, to find new ones and to verify all.
extension CallbackStorage {
    package func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        var from = lock.withLock { mark }
        var watch = ListingWatch()
        while true {
            try control.look()
            let (records, next) = try lock.withLockWhileCalling {
                try checkOpen(); return try functions.list(from)
            }
            try watch.met(records, of: description)
            for record in records where !lock.withLock({ own.contains(record.place) }) {
                try control.step(bytes: record.first.count)
                try visit(record, thorough: false, found) { damage in
                    lock.withLock { if damageSet.insert(damage).inserted { damageList.append(damage) } }
                    Log.write(.warning, "\(damage.file): \(damage.message)")
                }
            }
            lock.withLock {
                mark = next
                for record in records { own.remove(record.place) }
            }
            if records.isEmpty || next == from { return }
            from = next
        }
    }

    package func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        var from: UInt64 = 0, done = 0
        var watch = ListingWatch()
        while true {
            let (records, next) = try lock.withLockWhileCalling {
                try checkOpen(); return try functions.list(from)
            }
            try watch.met(records, of: description)
            for record in records {
                try control.check(.verifying, done, of: 0, doing: "Verifying \(description)")
                try visit(record, thorough: true, found, damage)
                done += 1
            }
            if records.isEmpty || next == from { break }
            from = next
        }
        try control.check(.verifying, done, of: done, doing: "Verifying \(description)")
    }

    /// Detects a host that lists the same records forever.
    private struct ListingWatch {
        private var seen: Set<UInt64> = []
        private var idle = 0
        mutating func met(_ records: [Listed], of store: String) throws {
            let before = seen.count
            for record in records { seen.insert(record.place) }
            idle = seen.count == before ? idle + 1 : 0
            guard idle < 1000 else {
                throw StoreError(
                    .io,
                    "Listing the records of \(store) does not end: its mark advances, and it always lists the same. "
                        + "Repair the storage: its scan reports what came after the mark, and returns the same mark if nothing did."
                )
            }
        }
    }

    private func visit(_ listed: Listed, thorough: Bool, _ found: (ScannedRecord) throws -> Void, _ damage: (StorageDamage) throws -> Void)
        throws
    {
        var first: [UInt8] = []
        var length: UInt64 = 0
        let place = listed.place, size = listed.size
        do {
            // Far more than the size of any record. Keeps the arithmetic below from overflowing.
            guard size >= UInt64(CallbackStorage.headerSize), size < 1 << 60 else {
                throw damaged(place, "the host lists \(size) bytes, which is impossible")
            }
            let wanted = Int(min(size, UInt64(CallbackStorage.headerSize + 4 + CallbackStorage.blockSize)))
            if !thorough, listed.first.count >= wanted {
                first = Array(listed.first.prefix(wanted))
            } else {
                first = [UInt8](repeating: 0, count: wanted)
                try fetch(place, 0, &first)
            }
            guard let told = first.withUnsafeBytes({ CallbackStorage.length($0) }), told <= size, CallbackStorage.envelopeSize(told) == size
            else {
                throw damaged(place, "the envelope does not match its checksum or its size")
            }
            length = told
            if length > 0 {
                let whole = first.withUnsafeBytes { bytes in
                    FrameFormat.load(bytes, CallbackStorage.headerSize, UInt32.self)
                        == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: bytes[(CallbackStorage.headerSize + 4)...]))
                }
                guard whole else { throw damaged(place, "the first bytes do not match their checksum") }
            }
            if thorough {
                let record = RecordPlace(segment: 0, offset: place, length: length)
                var block: [UInt8] = []
                var number: UInt64 = 1
                while number * UInt64(CallbackStorage.blockSize) < length {
                    try load(record, number, &block, checked: true)
                    number += 1
                }
            }
        } catch let error as StoreError where error.code == .damaged || (thorough && error.code.isOfOne) {
            let version =
                first.count > CallbackStorage.headerSize + 4
                ? first.withUnsafeBytes { inspector?(UnsafeRawBufferPointer(rebasing: $0[(CallbackStorage.headerSize + 4)...])) } : nil
            var met = StorageDamage(file: description, offset: place, message: error.message, version: version)
            let record = RecordPlace(segment: 0, offset: place, length: CallbackStorage.recordSize(size))
            if version == nil { met.place = record }
            // The record was complete once, so it counts if its parts match their own checksums.
            var reader = RecordReader(length: record.length) { try self.read(record, at: $0, into: $1) }
            let tellsVersion = version != nil && CallbackStorage.envelopeSize(record.length) == size && (try? reader.tellsVersion()) == true
            if tellsVersion { met.lost = .value }
            try damage(met)
            guard tellsVersion, !thorough else { return }
            return try first.withUnsafeBytes {
                try found(
                    ScannedRecord(
                        place: record, prefix: UnsafeRawBufferPointer(rebasing: $0[(CallbackStorage.headerSize + 4)...]), isDamaged: true))
            }
        }
        try first.withUnsafeBytes { bytes in
            let prefix =
                length == 0
                ? UnsafeRawBufferPointer(start: nil, count: 0)
                : UnsafeRawBufferPointer(rebasing: bytes[(CallbackStorage.headerSize + 4)...])
            try found(ScannedRecord(place: RecordPlace(segment: 0, offset: place, length: length), prefix: prefix))
        }
    }
}
