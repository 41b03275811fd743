import CLLVSShims

/// Values that were read in one go: all ids in one piece of memory, all bytes in another, and a row for each value that
/// says where its own are. Nothing is allocated per value.
///
/// The pieces move while the batch is made, and stay where they are once it was handed out. Immutable then; safe from
/// all threads.
public final class ValueBatch: @unchecked Sendable {
    // Sendable: it is filled by the thread that makes it and does not change after that.
    /// Where a value's parts are in the pieces.
    public struct Row: Sendable {
        /// Of the id, in `ids`.
        public var id: Range<Int> { idStart..<idStart + idSize }
        /// Of the bytes, in `data`; empty when there is no value, or its bytes were not asked for.
        public var data: Range<Int> { dataStart..<dataStart + dataSize }
        /// Which version stored it, of `version(_:)`; nil when there is no such value.
        public var version: Int? { storing == Row.none ? nil : Int(storing) }

        fileprivate static let none = UInt32.max
        fileprivate(set) var idStart: Int
        fileprivate(set) var idSize: Int
        var dataStart = 0
        var dataSize = 0
        fileprivate(set) var storing = Row.none
    }

    /// In order: of the ids, or as they were asked for.
    public internal(set) var rows = ContiguousArray<Row>()
    /// How many of them are there.
    public private(set) var presentCount = 0
    /// Whether the bytes were asked for.
    public let hasData: Bool
    /// The ids, each with a NUL behind it.
    public var ids: UnsafeRawBufferPointer { idPiece.bytes }
    /// The bytes of the values, with a NUL behind each if that was asked for, and one behind all of them.
    public var data: UnsafeRawBufferPointer { dataPiece.bytes }
    /// The texts of the versions that stored them, each with a NUL behind it.
    public var versions: UnsafeRawBufferPointer { versionPiece.bytes }

    /// Bytes between two values.
    private let gap: Int
    private var idPiece = Piece()
    private var dataPiece = Piece()
    private var versionPiece = Piece()
    private var versionRanges = ContiguousArray<Range<Int>>()
    /// By some bits of the ordinal, the version that had it last, and its number plus 1: most values were stored by few.
    private var lastVersions = ContiguousArray<(ordinal: UInt32, number: UInt32)>()
    private static let lastVersionCount = 256

    /// - Parameters:
    ///   - hasData: whether bytes are to be read.
    ///   - isSeparated: whether a NUL follows the bytes of each value.
    init(hasData: Bool = true, isSeparated: Bool = true) {
        self.hasData = hasData
        gap = isSeparated ? 1 : 0
    }

    deinit {
        idPiece.release()
        dataPiece.release()
        versionPiece.release()
    }

    /// How many rows there are.
    public var count: Int { rows.count }
    /// How many versions are in `versions`; one may be there several times.
    public var versionCount: Int { versionRanges.count }
    /// Where in `versions` the text of one is.
    public func version(_ number: Int) -> Range<Int> { versionRanges[number] }

    /// A row's id.
    @inline(__always) func id(_ row: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: ids[rows[row].id]) }
    /// The text of the version that stored a row's value; empty when there is none.
    @inline(__always) func storedVersion(_ row: Int) -> UnsafeRawBufferPointer {
        rows[row].version.map { UnsafeRawBufferPointer(rebasing: versions[versionRanges[$0]]) }
            ?? UnsafeRawBufferPointer(start: nil, count: 0)
    }
    /// Where a row's bytes go.
    @inline(__always) func target(_ row: Int) -> UnsafeMutableRawBufferPointer { dataPiece.mutable(rows[row].data) }

    // MARK: Making

    /// A row for an id, with no value as yet.
    @inline(__always)
    func append(id: UnsafeRawBufferPointer) throws {
        let start = idPiece.count
        try idPiece.append(id, gap: 1)
        try Memory.grow(&rows, "A list of values")
        rows.append(Row(idStart: start, idSize: id.count))
    }

    /// Says which version stored a row's value.
    @inline(__always)
    func setVersion(_ row: Int, ordinal: UInt32, id: @autoclosure () -> VersionID) throws {
        if lastVersions.isEmpty { lastVersions = .init(repeating: (0, 0), count: ValueBatch.lastVersionCount) }
        let at = Int(ordinal) & (ValueBatch.lastVersionCount - 1)
        if lastVersions[at].number == 0 || lastVersions[at].ordinal != ordinal {
            let start = versionPiece.count
            try id().withASCII { try versionPiece.append($0, gap: 1) }
            try Memory.grow(&versionRanges, "A list of values")
            versionRanges.append(start..<versionPiece.count - 1)
            lastVersions[at] = (ordinal, UInt32(truncatingIfNeeded: versionRanges.count))
        }
        rows[row].storing = lastVersions[at].number - 1
        presentCount += 1
    }

    /// Makes room for the bytes of rows, `sizes` in all: `reserveData` for each follows.
    func growData(_ sizes: Int, rows: Int) throws { try dataPiece.reserve(sizes + rows * gap + 1) }

    /// Where a row's bytes will be, which are to be filled in.
    @inline(__always)
    func reserveData(_ row: Int, size: Int) {
        rows[row].dataStart = dataPiece.take(size, gap: gap)
        rows[row].dataSize = size
    }

    /// Forgets rows, of which none has a version yet.
    func removeRows(from first: Int) {
        guard first < rows.count else { return }
        idPiece.cut(to: rows[first].idStart)
        rows.removeLast(rows.count - first)
    }

    /// Once all is in it.
    func finish() throws {
        lastVersions = []
        try dataPiece.reserve(1)
        dataPiece.end()
    }

    /// Memory that grows by what is put behind its end.
    private struct Piece {
        private(set) var start: UnsafeMutableRawPointer?
        private(set) var count = 0
        private var capacity = 0

        var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
        func mutable(_ range: Range<Int>) -> UnsafeMutableRawBufferPointer {
            UnsafeMutableRawBufferPointer(start: start.map { $0 + range.lowerBound }, count: start == nil ? 0 : range.count)
        }
        func release() { free(start) }

        @inline(__always)
        mutating func reserve(_ size: Int) throws { if size > capacity - count { try grow(size) } }

        @inline(never)
        private mutating func grow(_ size: Int) throws {
            let (needed, overflow) = count.addingReportingOverflow(size)
            let wanted = max(needed, capacity < 1 << 24 ? capacity * 2 : capacity / 4 * 5, 256)
            guard !overflow, let moved = llvs_shim_reallocate(start, wanted) else {
                throw StoreError(.outOfMemory, "There is no memory for \(size) bytes more of values. Ask for fewer at once.")
            }
            start = moved
            capacity = wanted
        }

        @inline(__always)
        mutating func append(_ bytes: UnsafeRawBufferPointer, gap: Int) throws {
            try reserve(bytes.count + gap)
            guard let start else { return }
            if let from = bytes.baseAddress { memcpy(start + count, from, bytes.count) }
            count += bytes.count
            if gap > 0 { start.storeBytes(of: 0, toByteOffset: count, as: UInt8.self) }
            count += gap
        }

        /// Room that was reserved.
        @inline(__always)
        mutating func take(_ size: Int, gap: Int) -> Int {
            let at = count
            count += size
            if gap > 0 { start?.storeBytes(of: 0, toByteOffset: count, as: UInt8.self) }
            count += gap
            return at
        }
        mutating func cut(to count: Int) { self.count = min(count, self.count) }
        /// A NUL behind the end, for which there is room.
        func end() { start?.storeBytes(of: 0, toByteOffset: count, as: UInt8.self) }
    }
}
