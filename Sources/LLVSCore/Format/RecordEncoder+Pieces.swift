/// The second pass: the bytes of the last prepared record.
extension RecordEncoder {
    /// Returns the last prepared record. It must be used before the encoder is used again or released. `changes` are those from which it
    /// was made.
    package func pieces(_ changes: RecordChanges) -> RecordPieces {
        guard let recordChecksum else { return RecordPieces(head.bytes) }
        return RecordPieces(length: recordSize, checksum: recordChecksum) { [unowned self] sink in try forEachPiece(changes, sink) }
    }

    /// Returns the last prepared record as one array of bytes.
    package func bytes(_ changes: RecordChanges) throws -> [UInt8] { try pieces(changes).bytes() }

    private func forEachPiece(_ changes: RecordChanges, _ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        piece.removeAll()
        try piece.reserve(sizes.piece)
        try sink(head.bytes)
        var cursor = Cursor()
        if isTableKept {
            try sink(table.bytes)
        } else {
            try changes.forEachRun(of: RecordTable.changesPerPage, withData: false) { first, page in
                try writePage(changes, page, first, &cursor, into: &piece)
                if piece.count >= sizes.piece { try flush(sink) }
            }
            try writeDirectory(into: &piece)
        }
        for i in bodies.indices where !bodies[i].isNone {
            if i + 16 < bodies.count, let next = bodies[i + 16].data {
                RecordChanges.prefetch(UnsafeRawBufferPointer(start: next, count: bodies[i + 16].size))
            }
            try writeBody(i, changes, &cursor, sink)
        }
        try flush(sink)
    }

    private func writeBody(_ index: Int, _ changes: RecordChanges, _ cursor: inout Cursor, _ sink: (UnsafeRawBufferPointer) throws -> Void)
        throws
    {
        let body = bodies[index]
        if piece.count + RecordTable.bodyHeaderSize + min(body.size, sizes.largeValue) > sizes.piece { try flush(sink) }
        try writeBodyHeader(body)
        var stored = UnsafeRawBufferPointer(start: body.data, count: body.data == nil ? 0 : body.size)
        if body.isDeflated {
            if index >= deflatedEnd {
                try flush(sink)
                _ = try forEachDeflated(changes[index].data) {
                    try sink($0); return true
                }
                return
            }
            stored = UnsafeRawBufferPointer(rebasing: deflated.bytes[cursor.deflated..<cursor.deflated + body.size])
            cursor.deflated += body.size
        }
        if body.size > sizes.largeValue {
            try flush(sink)
            try sink(stored)
        } else {
            try piece.reserve(body.size)
            piece.raw(stored)
        }
    }

    private func flush(_ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        if piece.count > 0 { try sink(piece.bytes) }
        piece.removeAll()
    }
}
