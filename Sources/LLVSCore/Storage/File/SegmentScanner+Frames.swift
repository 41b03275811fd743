/// Reads one frame: a valid one, a seal, or an invalid one.
extension SegmentScanner {
    mutating func frame(at start: UInt64, wasWhole: Bool, _ found: Found, _ damage: Damage) throws -> Frame {
        let headerSize = UInt64(FrameFormat.frameHeaderSize)
        guard let head = try bytes(at: start, FrameFormat.frameHeaderSize) else {
            return .bad("the segment ends within a frame's header", next: nil)
        }
        guard let header = FrameFormat.frameHeader(head, id: id, offset: suspect == nil ? start : nil) else {
            return .bad("a frame's header does not match its checksum", next: start + 1)
        }
        guard header.bodySize <= size - start - headerSize else { return .bad("the segment ends within a frame", next: nil) }
        let body = start + headerSize, end = body + header.bodySize
        switch FrameFormat.Kind(rawValue: header.kind) {
        case .seal:
            guard let all = try bytes(at: start, FrameFormat.sealSize),
                FrameFormat.isSeal(all, id: id, offset: suspect == nil ? start : nil)
            else { return .bad("a seal does not match its checksum", next: end) }
            return .seal(end)
        case .batch:
            return try batch(at: body, end: end, checksum: header.tableChecksum, wasWhole: wasWhole, found, damage)
        case .sources:
            guard header.bodySize <= FrameFormat.maxSourcesSize, let list = try bytes(at: body, Int(header.bodySize)),
                Bytes.crc32c(list) == header.tableChecksum
            else {
                if !wasWhole { return .bad("the list of compacted segments does not match its checksum", next: end) }
                try damage(
                    StorageDamage(
                        file: path, offset: start,
                        message: "The list of the segments that were compacted into this one is damaged. The versions are not affected.",
                        lost: .nothing))
                return .passed(end)
            }
            return .passed(end)
        case nil:
            return try unknown(header, start, end, wasWhole: wasWhole, damage)
        }
    }

    /// Handles a frame of a kind that this library does not know. Unlike a batch, its checksum covers all of its body.
    mutating func unknown(_ header: FrameFormat.FrameHeader, _ start: UInt64, _ end: UInt64, wasWhole: Bool, _ damage: Damage)
        throws -> Frame
    {
        let isIgnorable = header.kind >= FrameFormat.ignorableKinds
        let body = start + UInt64(FrameFormat.frameHeaderSize)
        let isWhole = try isWhole(Entry(offset: body, length: end - body, checksum: header.tableChecksum))
        guard isWhole || (wasWhole && isIgnorable) else {
            return .bad("a frame of kind \(header.kind) does not match its checksum", next: end)
        }
        metUnknown = true
        if !isWhole {
            try damage(
                StorageDamage(
                    file: path, offset: start,
                    message: "Data that a newer version of the library added to the versions is damaged. The versions are not affected.",
                    lost: .nothing))
        } else if !isIgnorable {
            try damage(
                StorageDamage(
                    file: path, offset: start,
                    message:
                        "A newer version of the library wrote this (a frame of kind \(header.kind)), and this version cannot read it. "
                        + "Use a newer version of the library."
                ))
        }
        return .passed(end)
    }

    struct Entry { var offset: UInt64; var length: UInt64; var checksum: UInt32 }

    mutating func batch(at body: UInt64, end: UInt64, checksum: UInt32, wasWhole: Bool, _ found: Found, _ damage: Damage) throws
        -> Frame
    {
        let bad = Frame.bad("a frame's table does not match its checksum", next: end)
        guard end - body >= 4, let first = try bytes(at: body, 4) else { return bad }
        let count = Int(FrameFormat.load(first, 0, UInt32.self))
        let tableSize = 4 + count * FrameFormat.entrySize
        guard count <= FrameFormat.maxRecords, UInt64(tableSize) <= end - body, let table = try bytes(at: body, tableSize),
            Bytes.crc32c(table) == checksum
        else { return bad }

        // Most frames have one small record and are completely in the buffer.
        if count == 1 {
            let entry = Entry(
                offset: body + UInt64(tableSize), length: FrameFormat.load(table, 4, UInt64.self),
                checksum: FrameFormat.load(table, 12, UInt32.self))
            guard entry.length == end - entry.offset else { return bad }
            return try records([entry], end, wasWhole: wasWhole, found, damage)
        }
        var entries: [Entry] = []
        entries.reserveCapacity(count)
        var offset = body + UInt64(tableSize)
        for i in 0..<count {
            let at = 4 + i * FrameFormat.entrySize
            let entry = Entry(
                offset: offset, length: FrameFormat.load(table, at, UInt64.self), checksum: FrameFormat.load(table, at + 8, UInt32.self))
            guard entry.length <= end - offset else { return bad }
            offset += entry.length
            entries.append(entry)
        }
        guard offset == end else { return bad }
        return try records(entries, end, wasWhole: wasWhole, found, damage)
    }

    mutating func records(_ entries: [Entry], _ end: UInt64, wasWhole: Bool, _ found: Found, _ damage: Damage) throws -> Frame {
        if !wasWhole {
            // A batch counts as a whole or not at all, so check all of it before delivering any of it.
            if entries.count > 1 || (entries.first?.length ?? 0) > UInt64(ScannedRecord.prefixSize) {
                for entry in entries where try !isWhole(entry) { return .bad("a record does not match its checksum", next: end) }
            }
        }
        for entry in entries {
            let prefixSize = Int(min(entry.length, UInt64(ScannedRecord.prefixSize)))
            let small = UInt64(prefixSize) == entry.length
            // The bytes of a large record in a sealed segment are trusted, unless the scan is `thorough`.
            if wasWhole, !small, thorough || !sealed, try !isWhole(entry) {
                try reportDamaged(entry, found, damage)
                continue
            }
            guard let prefix = try bytes(at: entry.offset, prefixSize) else { return .bad("the segment ends within a record", next: nil) }
            if small, Bytes.crc32c(prefix) != entry.checksum {
                if !wasWhole { return .bad("a record does not match its checksum", next: end) }
                try reportDamaged(entry, found, damage)
                continue
            }
            records &+= 1
            try found(entry.offset, entry.length, prefix, false)
        }
        return .passed(end)
    }

    func isWhole(_ entry: Entry) throws -> Bool {
        var crc: UInt32 = 0
        var done: UInt64 = 0
        while done < entry.length {
            let here = entry.offset + done, count = Int(min(entry.length - done, UInt64(ScanBuffer.chunk)))
            if count == ScanBuffer.chunk {
                // The claimed size of a hole must not cost time.
                let hole = min(System.nextData(file.descriptor, from: here) ?? .max, entry.offset + entry.length) - here
                if hole > UInt64(count) {
                    crc = Bytes.crc32c(zeros: hole, from: crc)
                    done += hole
                    continue
                }
            }
            guard let piece = try bytes(at: here, count) else { return false }
            crc = Bytes.crc32c(piece, from: crc)
            done += UInt64(count)
        }
        return crc == entry.checksum
    }
}
