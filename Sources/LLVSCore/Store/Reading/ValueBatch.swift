import CLLVSShims

/// Values that were read at once: all ids in one buffer, all bytes in another, and a row for each value with its ranges in them. Nothing
/// is allocated per value.
///
/// The buffers may move while the batch is filled. After it was returned, it is immutable and safe from all threads.
public final class ValueBatch: @unchecked Sendable {
    // Sendable: only the thread that creates it fills it, and it does not change after that.
    /// The ranges of a value's parts in the buffers.
    public struct Row: Sendable {
        /// The range of the id in `ids`.
        public var id: Range<Int> { idStart..<idStart + idSize }
        /// The range of the bytes in `data`; empty if there is no value, or its bytes were not requested.
        public var data: Range<Int> { dataStart..<dataStart + dataSize }
        /// The number of the version that stored it, for `version(_:)`; nil if there is no value.
        public var version: Int? { storing == Row.none ? nil : Int(storing) }

        fileprivate static let none = UInt32.max
        fileprivate(set) var idStart: Int
        fileprivate(set) var idSize: Int
        package var dataStart = 0
        var dataSize = 0
        fileprivate(set) var storing = Row.none
        /// Whether the value has no bytes any more, though the version that stored it is known. Only set if bytes were requested.
        public fileprivate(set) var isForgotten = false
        /// Whether an order of this device erased them. Then `isForgotten` is set as well.
        public fileprivate(set) var isErased = false
    }

    /// The rows, in order of the ids, or in the requested order.
    public internal(set) var rows = ContiguousArray<Row>()
    /// The number of rows with a value.
    public private(set) var presentCount = 0
    /// Whether a row has a value without bytes: `Row.isForgotten`.
    public private(set) var hasForgotten = false
    /// Whether the bytes were requested.
    public let hasData: Bool
    /// The ids, each with a NUL after it.
    public var ids: UnsafeRawBufferPointer { idPiece.bytes }
    /// The bytes of the values, with a NUL after each if that was requested, and one after all of them.
    public var data: UnsafeRawBufferPointer { dataPiece.bytes }
    /// The texts of the versions that stored them, each with a NUL after it.
    public var versions: UnsafeRawBufferPointer { versionPiece.bytes }

    /// The bytes between two values.
    private let gap: Int
    private var idPiece = Piece()
    private var dataPiece = Piece()
    private var versionPiece = Piece()
    private var versionRanges = ContiguousArray<Range<Int>>()
    /// By some bits of the ordinal: the last version with them, and its number plus 1. Most values were stored by few versions.
    private var lastVersions = ContiguousArray<(ordinal: UInt32, number: UInt32)>()
    private static let lastVersionCount = 256

    /// - Parameters:
    ///   - hasData: whether bytes will be read.
    ///   - isSeparated: whether a NUL follows the bytes of each value.
    package init(hasData: Bool = true, isSeparated: Bool = true) {
        self.hasData = hasData
        gap = isSeparated ? 1 : 0
    }

    deinit {
        idPiece.release()
        dataPiece.release()
        versionPiece.release()
    }

    /// The number of rows.
    public var count: Int { rows.count }
    /// The number of versions in `versions`. A version may occur several times.
    public var versionCount: Int { versionRanges.count }
    /// Returns the range of a version's text in `versions`.
    public func version(_ number: Int) -> Range<Int> { versionRanges[number] }

    /// Returns the id of a row.
    @inline(__always) package func id(_ row: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: ids[rows[row].id]) }
    /// Returns the text of the version that stored a row's value; empty if there is none.
    @inline(__always) func storedVersion(_ row: Int) -> UnsafeRawBufferPointer {
        rows[row].version.map { UnsafeRawBufferPointer(rebasing: versions[versionRanges[$0]]) }
            ?? UnsafeRawBufferPointer(start: nil, count: 0)
    }
    /// Returns where a row's bytes are to be written.
    @inline(__always) func target(_ row: Int) -> UnsafeMutableRawBufferPointer { dataPiece.mutable(rows[row].data) }

    // MARK: Making

    /// Appends a row for an id, without a value so far.
    @inline(__always)
    func append(id: UnsafeRawBufferPointer) throws {
        let start = idPiece.count
        try idPiece.append(id, gap: 1)
        try Memory.grow(&rows, "A list of values")
        rows.append(Row(idStart: start, idSize: id.count))
    }

    /// Sets the version that stored a row's value.
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

    /// Reserves memory for the bytes of some rows, `sizes` in total. Call `reserveData` for each of them.
    func growData(_ sizes: Int, rows: Int) throws { try dataPiece.reserve(sizes + rows * gap + 1) }

    /// Assigns the range for a row's bytes, which the caller fills in.
    @inline(__always)
    func reserveData(_ row: Int, size: Int) {
        rows[row].dataStart = dataPiece.take(size, gap: gap)
        rows[row].dataSize = size
    }

    /// Notes that the value of a row has no bytes. Called before room for them is reserved.
    func setForgotten(_ row: Int, isErased: Bool) {
        rows[row].isForgotten = true
        rows[row].isErased = isErased
        hasForgotten = true
    }

    /// Does the same for rows whose bytes have reserved room, in the order of the rows. The bytes after a forgotten row move into its room.
    /// - Parameter forgotten: the rows, and whether an order erased the value.
    func setForgotten(_ forgotten: [Int: Bool], from first: Int) {
        var saved = 0
        for i in first..<rows.count where rows[i].version != nil && !rows[i].isForgotten {
            if saved > 0 {
                let from = rows[i].data, to = from.lowerBound - saved
                dataPiece.mutable(to..<to + from.count + gap).copyMemory(
                    from: UnsafeRawBufferPointer(dataPiece.mutable(from.lowerBound..<from.upperBound + gap)))
                rows[i].dataStart = to
            }
            guard let isErased = forgotten[i] else { continue }
            setForgotten(i, isErased: isErased)
            saved += rows[i].dataSize
            rows[i].dataSize = 0
            if gap > 0 { dataPiece.mutable(rows[i].dataStart..<rows[i].dataStart + gap)[0] = 0 }
        }
        dataPiece.cut(to: dataPiece.count - saved)
    }

    /// Removes rows, none of which has a version yet.
    func removeRows(from first: Int) {
        guard first < rows.count else { return }
        idPiece.cut(to: rows[first].idStart)
        rows.removeLast(rows.count - first)
    }

    /// Completes the batch.
    package func finish() throws {
        lastVersions = []
        try dataPiece.reserve(1)
        dataPiece.end()
    }

    /// A buffer that grows at its end.
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
                throw StoreError(.outOfMemory, "There is no memory for \(size) more bytes of values. Read fewer at once.")
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

        /// Takes bytes that were reserved.
        @inline(__always)
        mutating func take(_ size: Int, gap: Int) -> Int {
            let at = count
            count += size
            if gap > 0 { start?.storeBytes(of: 0, toByteOffset: count, as: UInt8.self) }
            count += gap
            return at
        }
        mutating func cut(to count: Int) { self.count = min(count, self.count) }
        /// Writes a NUL after the end, for which there is room.
        func end() { start?.storeBytes(of: 0, toByteOffset: count, as: UInt8.self) }
    }
}
