/// Reads the pages of a database file and of its log one by one, without SQLite (https://www.sqlite.org/fileformat2.html). References
/// between pages are neither trusted nor needed, since rows have checksums of their own.
struct DatabasePages {
    typealias Image = SQLiteLog.PageImage
    /// A row in a leaf page.
    struct Row {
        let sequence: Int64
        /// The serial types of its columns, and the integers among them.
        let types: [Int64]
        let integers: [Int64?]
        /// The local bytes of its last column; the rest is in overflow pages.
        let local: [UInt8]
        let size: Int
        let overflow: UInt32
    }

    let database: DatabaseFile?
    let log: OpenFile?
    let pageSize: Int
    /// All images: those of the database in order; then, if its size is no multiple of the page size, those aligned to its end; then those
    /// of the log, oldest first.
    let images: [Image]
    private let byNumber: [UInt32: [Int]]

    init(database: DatabaseFile?, size: UInt64, log: OpenFile?, frames: [Image], pageSize: Int) {
        self.database = database; self.log = log; self.pageSize = pageSize
        var images: [Image] = [], offset: UInt64 = 0, number: UInt32 = 1
        while offset < size, size - offset >= UInt64(pageSize), number < .max {
            images.append(Image(isInLog: false, offset: offset, number: number))
            offset += UInt64(pageSize)
            number += 1
        }
        // The last one may be cut short.
        if offset < size { images.append(Image(isInLog: false, offset: offset, number: number)) }
        let inPlace = images.count
        // Bytes were inserted or removed: later pages kept their distance from the end.
        let moved = size % UInt64(pageSize)
        offset = moved
        number = 1
        while moved > 0, offset < size, number < .max {
            images.append(Image(isInLog: false, offset: offset, number: number))
            offset += UInt64(pageSize)
            number += 1
        }
        images += frames
        self.images = images
        // Images in place are found by their numbers; only the others need a table.
        var byNumber: [UInt32: [Int]] = [:]
        for i in inPlace..<images.count { byNumber[images[i].number, default: []].append(i) }
        self.byNumber = byNumber
    }

    /// Returns the bytes of an image; unreadable ones are zero.
    func page(_ image: Image) -> [UInt8] {
        var page = [UInt8](repeating: 0, count: pageSize)
        guard let descriptor = image.isInLog ? log?.descriptor : database?.descriptor else { return page }
        _ = try? page.filled { (b) throws(Errno) in try System.pread(descriptor, b, at: image.offset) }
        return page
    }

    /// Returns the images of a page, the newest first.
    private func images(of number: UInt32) -> [Image] {
        var found = (byNumber[number] ?? []).reversed().map { images[$0] }
        if number >= 1, Int(number) <= images.count, !images[Int(number) - 1].isInLog { found.append(images[Int(number) - 1]) }
        return found
    }

    // MARK: Rows

    /// Calls `body` with each row that can be recognized in a leaf page of a table.
    func forEachRow(of image: Image, _ body: (Row) throws -> Void) rethrows {
        let page = page(image), head = image.number == 1 ? 100 : 0
        guard page.count >= head + 8, page[head] == 13 else { return }
        // The number of cells may be damaged: the array of their offsets ends where the cells begin.
        let told = Int(page[head + 3]) << 8 | Int(page[head + 4]), content = Int(page[head + 5]) << 8 | Int(page[head + 6])
        let most = (page.count - head - 8) / 2
        let count = content > head + 8 && content <= page.count ? (content - head - 8) / 2 : told
        for i in 0..<min(most, max(count, min(told, most))) {
            let at = head + 8 + 2 * i, start = Int(page[at]) << 8 | Int(page[at + 1])
            if start >= head + 8, let row = row(page, start) { try body(row) }
        }
    }

    private func row(_ page: [UInt8], _ start: Int) -> Row? {
        var at = start
        guard let size = varint(page, &at), let sequence = varint(page, &at), size > 0, size < 1 << 20, sequence > 0 else { return nil }
        // The size of the local part.
        let usable = pageSize, most = usable - 35, least = (usable - 12) * 32 / 255 - 23
        let total = Int(size), kept = least + (total - least) % (usable - 4)
        let here = total <= most ? total : kept <= most ? kept : least
        guard here > 0, at + here <= page.count else { return nil }
        var overflow: UInt32 = 0
        if here < total {
            guard at + here + 4 <= page.count else { return nil }
            overflow = page[(at + here)..<(at + here + 4)].reduce(0) { $0 << 8 | UInt32($1) }
        }
        let local = Array(page[at..<(at + here)])
        var cursor = 0
        guard let headerSize = varint(local, &cursor), headerSize <= Int64(local.count) else { return nil }
        var types: [Int64] = []
        while cursor < Int(headerSize), types.count < 8 {
            guard let type = varint(local, &cursor) else { return nil }
            types.append(type)
        }
        guard cursor == Int(headerSize), let last = types.last, last == 0 || (last >= 12 && last % 2 == 0) else { return nil }
        var integers: [Int64?] = []
        for type in types.dropLast() {
            guard type >= 0, type <= 9, type != 7 else { return nil }
            if type == 0 { integers.append(nil); continue }
            if type >= 8 { integers.append(type - 8); continue }
            let width = [0, 1, 2, 3, 4, 6, 8][Int(type)]
            guard cursor + width <= local.count else { return nil }
            var value: Int64 = local[cursor] >= 0x80 ? -1 : 0
            for byte in local[cursor..<(cursor + width)] { value = value << 8 | Int64(byte) }
            integers.append(value)
            cursor += width
        }
        guard total - cursor == (last == 0 ? 0 : Int(last - 12) / 2) else { return nil }
        return Row(
            sequence: sequence, types: types, integers: integers, local: Array(local[cursor...]), size: total - cursor, overflow: overflow)
    }

    /// Returns the bytes of the last column. If a page has several images, uses the newest or the oldest.
    func bytes(of row: Row, newest: Bool = true) -> [UInt8] {
        var out = row.local, next = row.overflow, met = 0
        while out.count < row.size, next != 0, met <= row.size / (pageSize - 4) + 1 {
            let there = images(of: next)
            guard let image = newest ? there.first : there.last else { break }
            let page = page(image)
            next = page[0..<4].reduce(0) { $0 << 8 | UInt32($1) }
            out += page[4..<min(page.count, 4 + row.size - out.count)]
            met += 1
        }
        if out.count < row.size { out += [UInt8](repeating: 0, count: row.size - out.count) }
        return out
    }

    /// Reads a varint of SQLite: seven bits per byte, the highest first, at most nine bytes.
    private func varint(_ bytes: [UInt8], _ at: inout Int) -> Int64? {
        var value: UInt64 = 0
        for i in 0..<9 {
            guard at < bytes.count else { return nil }
            let byte = bytes[at]
            at += 1
            if i == 8 { return Int64(bitPattern: value << 8 | UInt64(byte)) }
            value = value << 7 | UInt64(byte & 0x7F)
            if byte < 0x80 { return Int64(bitPattern: value) }
        }
        return nil
    }
}
