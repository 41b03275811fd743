/// The records found in the pages of a database, written into a temporary file storage for a salvage.
///
/// Every row of the tables `records` and `chunks` in a leaf page is used, whether the tables lead to it or not. If a number has no intact
/// row, a row that does not match its checksum is used: the checksums within the record show which parts are intact.
struct SalvagedDatabase {
    private let pages: DatabasePages
    private typealias Found = (image: Int, isWhole: Bool)
    /// A row's number may be damaged: then two rows have one number.
    private struct RecordRow: Hashable, Comparable {
        let sequence: Int64
        let checksum: Int64
        static func < (a: RecordRow, b: RecordRow) -> Bool { a.sequence != b.sequence ? a.sequence < b.sequence : a.checksum < b.checksum }
    }
    private var records: [RecordRow: Found] = [:]
    private var chunks: [Int64: Found] = [:]

    /// Scans the database at `path` and its log, and creates a storage with the records in a new `folder`.
    /// - Parameter damage: called with missing or damaged parts.
    static func open(_ path: String, in folder: String, _ control: OperationControl, damage: (StorageDamage) -> Void) throws -> FileStorage
    {
        let path = System.absolute(Paths.withoutTrailingSlashes(path))
        let database = try DatabaseFile(path: path, "Opening the database"), size = database.status.size
        var options = FileStorage.Options()
        options.durability = .normal
        options.compaction = .onRequest
        let storage = try FileStorage(path: folder, options: options)
        let sizes = pageSizes(database, size, path)
        var best: SalvagedDatabase?
        for pageSize in sizes {
            var found = SalvagedDatabase(database, size, path, pageSize)
            try found.read(control, path)
            if found.wholeRows >= best?.wholeRows ?? 0 { best = found }
        }
        try best?.write(to: storage, path, control.paced(.verifying, doing: "Salvaging the database \(path)"), damage)
        // SQLite would delete the log of a database without pages.
        if size > 0 { try best?.addWhatSQLiteReads(path, to: storage, control, damage) }
        if !tells(size, database, path) {
            damage(
                StorageDamage(
                    file: path, offset: 0,
                    message:
                        "The database does not have the size, or not the header, that it should have: "
                        + "it was cut short, bytes were inserted, or its first page is damaged. "
                        + "Versions that cannot be named may be lost.",
                    lost: .unfinished))
        }
        if let log = SQLiteLog(path + "-wal", pageSize: best?.pages.pageSize), let at = log.unusedFrom() {
            damage(StorageDamage.log(path, at))
        }
        return storage
    }

    private var wholeRows: Int { records.values.lazy.filter(\.isWhole).count + chunks.values.lazy.filter(\.isWhole).count }

    /// Returns whether the header of the database seems intact and states the size of the file.
    private static func tells(_ size: UInt64, _ database: DatabaseFile, _ path: String) -> Bool {
        var head = [UInt8](repeating: 0, count: 100)
        guard let got = try? head.filled({ (b) throws(Errno) in try System.pread(database.descriptor, b, at: 0) }), got == head.count,
            head.starts(with: "SQLite format 3\0".utf8)
        else { return false }
        let told = Int(head[16]) << 8 | Int(head[17]), pageSize = told == 1 ? 65_536 : told
        return head[28..<32].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } * UInt64(pageSize) == size
    }

    /// Returns the page size; or all possible ones, if nothing reliable states it.
    private static func pageSizes(_ database: DatabaseFile, _ size: UInt64, _ path: String) -> [Int] {
        var head = [UInt8](repeating: 0, count: 32)
        _ = try? head.filled { (b) throws(Errno) in try System.pread(database.descriptor, b, at: 0) }
        let told = Int(head[16]) << 8 | Int(head[17]), pageSize = told == 1 ? 65_536 : told
        let count = head[28..<32].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        if SQLiteLog.isPageSize(pageSize), count * UInt64(pageSize) == size { return [pageSize] }
        if let log = SQLiteLog(path + "-wal", pageSize: nil), SQLiteLog.isPageSize(log.pageSize) { return [log.pageSize] }
        return [4_096, 512, 1_024, 2_048, 8_192, 16_384, 32_768, 65_536]
    }

    private init(_ database: DatabaseFile, _ size: UInt64, _ path: String, _ pageSize: Int) {
        let log = SQLiteLog(path + "-wal", pageSize: pageSize).flatMap { $0.pageSize == pageSize ? $0 : nil }
        pages = DatabasePages(database: database, size: size, log: log?.file, frames: log?.committedImages() ?? [], pageSize: pageSize)
    }

    private mutating func read(_ control: OperationControl, _ path: String) throws {
        for i in pages.images.indices {
            if i % 256 == 0 { try control.check(.verifying, i, of: pages.images.count, doing: "Salvaging the database \(path)") }
            pages.forEachRow(of: pages.images[i]) { row in
                // seq, length, checksum, first, data; seq, checksum, data.
                let isRecord = row.types.count == 5
                guard isRecord || row.types.count == 3, row.integers[0] == nil, row.types[1] != 0 else { return }
                let key = RecordRow(sequence: row.sequence, checksum: isRecord ? row.integers[2] ?? -1 : -1)
                let known = isRecord ? records[key] : chunks[row.sequence]
                if known?.isWhole == true { return }
                let found = (image: i, isWhole: isWhole(row))
                if !found.isWhole, known != nil { return }
                if isRecord { records[key] = found } else { chunks[row.sequence] = found }
            }
        }
    }

    private func isWhole(_ row: DatabasePages.Row) -> Bool {
        let checksum = row.integers[row.types.count == 5 ? 2 : 1]
        if row.types.count == 5, let first = row.integers[3] {
            guard let length = row.integers[1], row.types[4] == 0 else { return false }
            return SQLiteStorage.checksum(length: length, first: first) == checksum
        }
        if row.types.count == 5, row.integers[1] != Int64(row.size) || row.size == 0 { return false }
        return [true, false].contains { pages.bytes(of: row, newest: $0).withUnsafeBytes { Int64(Bytes.crc32c($0)) } == checksum }
    }

    /// Returns the row of that number in an image.
    private func row(_ sequence: Int64, in image: Int, columns: Int, checksum: Int64? = nil) -> DatabasePages.Row? {
        var found: DatabasePages.Row?
        pages.forEachRow(of: pages.images[image]) { row in
            guard row.sequence == sequence, row.types.count == columns, row.integers[0] == nil,
                checksum == nil || row.integers[2] ?? -1 == checksum
            else { return }
            if found == nil || isWhole(row) { found = row }
        }
        return found
    }

    private func bytes(of row: DatabasePages.Row) -> [UInt8] {
        let checksum = row.integers[row.types.count == 5 ? 2 : 1], newest = pages.bytes(of: row)
        if newest.withUnsafeBytes({ Int64(Bytes.crc32c($0)) }) == checksum { return newest }
        let oldest = pages.bytes(of: row, newest: false)
        return oldest.withUnsafeBytes { Int64(Bytes.crc32c($0)) } == checksum ? oldest : newest
    }

    private func write(to storage: FileStorage, _ path: String, _ control: PacedControl, _ damage: (StorageDamage) -> Void) throws {
        var last: Int64 = 0
        for (key, found) in records.sorted(by: { $0.key < $1.key }) {
            let sequence = key.sequence
            try control.step()
            guard let row = row(sequence, in: found.image, columns: 5, checksum: key.checksum) else { continue }
            // Only of intact rows: the number of a damaged one may be impossible.
            if found.isWhole, sequence - 1 > last { damage(StorageDamage.rows(path, last + 1, sequence - 1)) }
            if found.isWhole { last = sequence }
            var name: VersionID?
            if let length = row.integers[1], let first = row.integers[3], row.types[4] == 0 {
                guard length > 0, length <= Int64(chunks.count) * Int64(SQLiteStorage.chunkSize) else { continue }
                name = try write(chunksFrom: first, Int(length), to: storage, control)
            } else {
                let bytes = bytes(of: row)
                try bytes.withUnsafeBytes { b in
                    if case .whole(let header) = RecordHeader.read(b, recordLength: nil) { name = header.id }
                    _ = try storage.append([RecordPieces(b)])
                }
            }
            if !found.isWhole {
                damage(
                    StorageDamage(
                        file: path, offset: UInt64(clamping: sequence),
                        message: "Row \(sequence) of the database does not match its checksum.", version: name))
            }
        }
    }

    /// Adds records that only SQLite finds in the database, if it opens it, and the damage that it reports.
    private func addWhatSQLiteReads(_ path: String, to storage: FileStorage, _ control: OperationControl, _ damage: (StorageDamage) -> Void)
        throws
    {
        var options = SQLiteStorage.Options()
        options.readOnly = true
        options.create = false
        options.inspector = Store.versionNamed
        let database: SQLiteStorage
        do { database = try SQLiteStorage(path: path, options: options) } catch let error as StoreError {
            return damage(StorageDamage(file: path, offset: 0, message: error.message, lost: .unfinished))
        }
        defer { try? database.close(discarding: false) }
        do {
            try database.verify(
                control,
                found: { record in
                    guard let number = Int64(exactly: record.place.offset) else { return }
                    if UInt64(record.prefix.count) == record.place.length {
                        if records[RecordRow(sequence: number, checksum: Int64(Bytes.crc32c(record.prefix)))]?.isWhole != true {
                            _ = try storage.append([RecordPieces(record.prefix)])
                        }
                    } else if chunks[number]?.isWhole != true {
                        try append(record.place, of: database, to: storage)
                    }
                }, damage: damage)
        } catch let error as StoreError where [.damaged, .io, .notAStore].contains(error.code) {
            damage(StorageDamage(file: path, offset: 0, message: error.message))
        }
    }

    private func append(_ place: RecordPlace, of database: SQLiteStorage, to storage: FileStorage) throws {
        guard let length = Int(exactly: place.length) else { return }
        func forEachPiece(_ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
            var at = 0, piece = [UInt8](repeating: 0, count: SQLiteStorage.chunkSize)
            while at < length {
                let count = min(piece.count, length - at)
                try piece.withUnsafeMutableBytes { b in
                    try database.read(place, at: UInt64(at), into: UnsafeMutableRawBufferPointer(rebasing: b[0..<count]))
                    try sink(UnsafeRawBufferPointer(rebasing: b[0..<count]))
                }
                at += count
            }
        }
        var checksum: UInt32 = 0
        try forEachPiece { checksum = Bytes.crc32c($0, from: checksum) }
        try withoutActuallyEscaping(forEachPiece) { forEachPiece in
            _ = try storage.append([RecordPieces(length: length, checksum: checksum, pieces: forEachPiece)])
        }
    }

    /// Writes a record from its chunks; lost ones become zeros. Returns the version that it names.
    private func write(chunksFrom first: Int64, _ length: Int, to storage: FileStorage, _ control: PacedControl) throws -> VersionID? {
        let size = SQLiteStorage.chunkSize
        var name: VersionID?
        func forEachPiece(_ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
            var at = 0
            while at < length {
                let count = min(size, length - at)
                try control.step(0, bytes: count)
                var piece: [UInt8] = []
                let (sequence, overflow) = first.addingReportingOverflow(Int64(at / size))
                if !overflow, let found = chunks[sequence], let row = row(sequence, in: found.image, columns: 3) { piece = bytes(of: row) }
                if piece.count != count { piece = [UInt8](repeating: 0, count: count) }
                try piece.withUnsafeBytes { b in
                    if at == 0, case .whole(let header) = RecordHeader.read(b, recordLength: nil) { name = header.id }
                    try sink(b)
                }
                at += count
            }
        }
        var checksum: UInt32 = 0
        try forEachPiece { checksum = Bytes.crc32c($0, from: checksum) }
        return try withoutActuallyEscaping(forEachPiece) { forEachPiece in
            _ = try storage.append([RecordPieces(length: length, checksum: checksum, pieces: forEachPiece)])
            return name
        }
    }
}
