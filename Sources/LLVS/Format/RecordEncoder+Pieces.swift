/// The second pass: the bytes of the record prepared last.
extension RecordEncoder {
    /// The record prepared last, to be used before the encoder is used again or let go; `changes` are those that it was made from.
    func pieces(_ changes: RecordChanges) -> RecordPieces {
        guard let recordChecksum else { return RecordPieces(head.bytes) }
        return RecordPieces(length: recordSize, checksum: recordChecksum) { [unowned self] sink in try forEachPiece(changes, sink) }
    }

    /// The record prepared last, as one run of bytes.
    func bytes(_ changes: RecordChanges) throws -> [UInt8] { try pieces(changes).bytes() }

    private func forEachPiece(_ changes: RecordChanges, _ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        piece.removeAll()
        try piece.reserve(sizes.piece)
        try sink(head.bytes)
        var cursor = Cursor()
        if isTableKept {
            try sink(table.bytes)
        } else {
            try changes.forEachRun(of: RecordTable.changesPerPage) { first, page in
                try writePage(page, first, &cursor, into: &piece)
                if piece.count >= sizes.piece { try flush(sink) }
            }
            try writeDirectory(into: &piece)
        }
        try changes.forEachRun(of: RecordTable.changesPerPage) { first, run in
            for i in run.indices where bodies[first + i].size != Body.none {
                try writeBody(run[i].data, bodies[first + i], first + i, &cursor, sink)
            }
        }
        try flush(sink)
    }

    private func writeBody(_ data: UnsafeRawBufferPointer, _ body: Body, _ index: Int, _ cursor: inout Cursor, _ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        let size = Int(body.size)
        var stored = data
        let isDeflated = size != data.count
        if isDeflated, index < deflatedEnd {
            guard cursor.deflated + size <= deflated.count else { throw RecordPieces.changed }
            stored = UnsafeRawBufferPointer(rebasing: deflated.bytes[cursor.deflated..<cursor.deflated + size])
            cursor.deflated += size
        }
        if piece.count + RecordTable.bodyHeaderSize + min(size, sizes.largeValue) > sizes.piece { try flush(sink) }
        try writeBodyHeader(body)
        if isDeflated, index >= deflatedEnd {
            try flush(sink)
            _ = try forEachDeflated(data) { try sink($0); return true }
        } else if size > sizes.largeValue {
            try flush(sink)
            try sink(stored)
        } else {
            try piece.reserve(size)
            piece.raw(stored)
        }
    }

    private func flush(_ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        if piece.count > 0 { try sink(piece.bytes) }
        piece.removeAll()
    }
}
