/// Reports what damage costs, and where undelivered records may be.
extension SegmentScanner {
    mutating func noteUnreadable() { if buffer.metUnreadable, unreadableFrom == nil { unreadableFrom = position } }

    /// Reports a record that was complete once, and delivers it if only values of it are damaged.
    mutating func reportDamaged(_ entry: Entry, _ found: Found, _ damage: Damage) throws {
        noteUnreadable()
        let prefix = try bytes(at: entry.offset, Int(min(entry.length, UInt64(ScannedRecord.prefixSize))))
        let version = prefix.flatMap { inspector?($0) }
        let tellsVersion = try version != nil && self.tellsVersion(entry)
        let what = "a record does not match its checksum"
        try damage(
            StorageDamage(
                file: path, offset: entry.offset, message: tellsVersion ? messageOfValues(what, version) : message(what, version),
                version: version,
                lost: tellsVersion ? .value : .version))
        try suspect?(entry.offset, entry.length)
        guard tellsVersion, !thorough, suspect == nil,
            let prefix = try bytes(at: entry.offset, Int(min(entry.length, UInt64(ScannedRecord.prefixSize))))
        else { return }
        records &+= 1
        try found(entry.offset, entry.length, prefix, true)
    }

    /// Returns whether the part of a record that describes the version is valid.
    func tellsVersion(_ entry: Entry) throws -> Bool {
        try withoutActuallyEscaping({ (offset: UInt64, buffer: UnsafeMutableRawBufferPointer) in
            guard let piece = try bytes(at: entry.offset + offset, buffer.count) else {
                throw StoreError(.damaged, "The segment \(path) ends within a record.", path: path)
            }
            buffer.copyMemory(from: piece)
        }) { read in
            var reader = RecordReader(length: entry.length, read: read)
            return try reader.tellsVersion()
        }
    }

    /// Reports a skipped frame, once for each of its records that can be identified.
    func reportLost(at start: UInt64, _ reason: String, _ damage: Damage) throws {
        // How many of its records were identified, and how many it claims to have.
        var named = 0, told = 1
        if let head = try bytes(at: start, FrameFormat.frameHeaderSize + 4) {
            // The header may be damaged: then this is a guess, and the inspector decides.
            let count = Int(FrameFormat.load(head, FrameFormat.frameHeaderSize, UInt32.self))
            let table = start + UInt64(FrameFormat.frameHeaderSize + 4)
            if count >= 1, count <= FrameFormat.maxRecords, UInt64(count * FrameFormat.entrySize) <= size - table {
                told = count
                var offset = table + UInt64(count * FrameFormat.entrySize)
                for i in 0..<count {
                    guard let entry = try bytes(at: table + UInt64(i * FrameFormat.entrySize), FrameFormat.entrySize) else { break }
                    let length = FrameFormat.load(entry, 0, UInt64.self)
                    guard offset <= size, length <= size - offset else { break }
                    guard let prefix = try bytes(at: offset, Int(min(length, UInt64(ScannedRecord.prefixSize)))) else { break }
                    if let version = inspector?(prefix) {
                        named += 1
                        try damage(StorageDamage(file: path, offset: offset, message: message(reason, version), version: version))
                    }
                    offset += length
                }
            }
        }
        if named < told { try damage(StorageDamage(file: path, offset: start, message: message(reason, nil))) }
    }

    /// Reports where the records of an invalid frame may be. If its table is valid, the table says so. Otherwise, records are found by
    /// their headers, each with a valid size, up to the next frame. Bytes within a value are never taken for a record.
    /// - Parameter next: where the next frame begins; nil if this one is the last, which may be truncated.
    func reportSuspects(at start: UInt64, upTo next: UInt64?) throws {
        guard let suspect else { return }
        let end = next ?? size, table = start + UInt64(FrameFormat.frameHeaderSize)
        guard table <= end, end - table >= 4 else { return }
        if let head = try bytes(at: start, FrameFormat.frameHeaderSize + 4), let header = FrameFormat.frameHeader(head, id: id, offset: nil)
        {
            let count = FrameFormat.load(head, FrameFormat.frameHeaderSize, UInt32.self),
                tableSize = 4 + UInt64(count) * UInt64(FrameFormat.entrySize)
            if count <= FrameFormat.maxRecords, tableSize <= end - table, let entries = try bytes(at: table, Int(tableSize)),
                Bytes.crc32c(entries) == header.tableChecksum
            {
                let lengths = (0..<Int(count)).map { FrameFormat.load(entries, 4 + $0 * FrameFormat.entrySize, UInt64.self) }
                var at = table + tableSize
                for length in lengths where at < end {
                    try suspect(at, length)
                    let (behind, overflow) = at.addingReportingOverflow(length)
                    guard !overflow else { return }
                    at = behind
                }
                return
            }
        }
        var first = table + 4 + UInt64(FrameFormat.entrySize), count = 1
        var effort = 8 * (end - table) + (64 << 20)
        while first < end, count <= FrameFormat.maxRecords {
            var found: [(UInt64, UInt64)] = [], at = first
            while found.count < count, at < end, let length = try recordLength(at: at, &effort) {
                found.append((at, length))
                let (behind, overflow) = at.addingReportingOverflow(length)
                guard !overflow else { break }
                at = behind
            }
            if next == nil ? found.count == count || (!found.isEmpty && at >= end) : at == end && found.count == count {
                for (offset, length) in found { try suspect(offset, length) }
                return
            }
            first += UInt64(FrameFormat.entrySize)
            count += 1
        }
    }

    /// Returns the length of a record from its header at an offset; nil if there is no valid header. Any bytes may be there: their sizes
    /// are used only if the checksum over them matches, which is computed piece by piece.
    /// - Parameter effort: the bytes that may still be read, so that bytes that look like many large headers do not take hours.
    func recordLength(at offset: UInt64, _ effort: inout UInt64) throws -> UInt64? {
        let preludeSize = RecordHeader.preludeSize
        guard let start = try bytes(at: offset, min(preludeSize, Int(clamping: size - offset))), start.count == preludeSize,
            start[0] == RecordHeader.format
        else { return nil }
        let headerSize = UInt64(FrameFormat.load(start, 4, UInt32.self)), checksum = FrameFormat.load(start, 24, UInt32.self)
        let tableSize = FrameFormat.load(start, 8, UInt64.self), bodiesSize = FrameFormat.load(start, 16, UInt64.self),
            largest = UInt64(Int64.max / 4)
        guard tableSize <= largest, bodiesSize <= largest, headerSize <= size - offset - UInt64(preludeSize), headerSize <= effort else {
            return nil
        }
        effort -= headerSize
        var crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: start[..<24]))
        var done: UInt64 = 0
        while done < headerSize {
            let count = Int(min(headerSize - done, UInt64(ScanBuffer.chunk / 4)))
            guard let piece = try bytes(at: offset + UInt64(preludeSize) + done, count) else { return nil }
            crc = Bytes.crc32c(piece, from: crc)
            done += UInt64(count)
        }
        return crc == checksum ? UInt64(preludeSize) + headerSize + tableSize + bodiesSize : nil
    }

    func messageOfValues(_ reason: String, _ version: VersionID?) -> String {
        "Values that version \(version.map(\.description) ?? "") stored are damaged: \(reason). "
            + "Bytes were changed after they were written. The version and its other values can be read. "
            + "An exchange with a store that has the version restores them."
    }

    func message(_ reason: String, _ version: VersionID?) -> String {
        let lost = version.map { "Version \($0) (as far as its bytes can be trusted)" } ?? "A version that can no longer be named"
        return
            "\(lost) is damaged: \(reason). Bytes were changed after they were written. "
            + "An exchange with a store that has the version restores it."
    }
}
