import CLLVSShims

/// A change that is about to be recorded. Pointers are borrowed for the call.
package typealias RecordChange = BorrowedChange

/// The changes from which a record is made: sorted by the bytes of their ids, each id once. Bytes are borrowed.
///
/// A view of the caller's changes, with an order and labels of its own: four bytes for each change.
package struct RecordChanges: RandomAccessCollection {
    private let source: BorrowedChanges
    /// For each change, its index in the source, and its label; nil if the source has the order and the labels already.
    private let order: [Item]?

    /// The index of a change in the source, and the kind under which it is recorded.
    struct Item {
        private var packed: UInt32
        /// An index is below `Limits.changesPerVersion`, which is 2^24.
        init(_ index: Int, _ kind: Value.Change.Kind) { packed = UInt32(truncatingIfNeeded: index) | UInt32(kind.rawValue) << 24 }
        var index: Int { Int(packed & 0xFF_FFFF) }
        var kind: Value.Change.Kind { Value.Change.Kind(rawValue: UInt8(packed >> 24)) ?? .remove }
    }

    init(_ source: BorrowedChanges, order: [Item]? = nil) { self.source = source; self.order = order }
    package init(_ list: [RecordChange]) { self.init(BorrowedChanges(list)) }

    package var startIndex: Int { 0 }
    package var endIndex: Int { order?.count ?? source.count }
    package var count: Int { endIndex }
    @inline(__always)
    package subscript(i: Int) -> RecordChange {
        guard let order else { return source[i] }
        var change = source[order[i].index]
        change.kind = order[i].kind
        return change
    }

    func storedVersion(at i: Int) -> VersionID? { self[i].storedVersion }

    /// Calls with a few changes at a time, and the index of the first of them, in order. `withData`: the body also reads the bytes of the
    /// values.
    func forEachRun(of size: Int, withData: Bool, _ body: (_ first: Int, _ run: UnsafeBufferPointer<BorrowedChange.Bytes>) throws -> Void)
        rethrows
    {
        // Two runs: the memory of the next one is prefetched while the current one is processed. Otherwise each change in random order
        // would wait three times for memory: for the struct, the id and the data.
        let size = Swift.max(1, Swift.min(size, count))
        try withUnsafeTemporaryAllocation(of: BorrowedChange.Bytes.self, capacity: 2 * size) { runs in
            let halves = (UnsafeMutableBufferPointer(rebasing: runs[..<size]), UnsafeMutableBufferPointer(rebasing: runs[size...]))
            var first = 0, isSecond = false
            var made = gather(0, withData, into: halves.0)
            while made > 0 {
                let following = gather(first + made, withData, into: isSecond ? halves.0 : halves.1)
                try body(first, UnsafeBufferPointer(rebasing: (isSecond ? halves.1 : halves.0)[..<made]))
                first += made
                isSecond.toggle()
                made = following
            }
        }
    }

    /// Makes the changes from `first` on, and prefetches the memory to which they point. Returns how many there are.
    private func gather(_ first: Int, _ withData: Bool, into run: UnsafeMutableBufferPointer<BorrowedChange.Bytes>) -> Int {
        let made = Swift.max(0, Swift.min(run.count, count - first))
        guard let order else {
            source.forEach(first..<first + made) { run[$0 - first] = $1 }
            return made
        }
        if let (start, stride) = source.memory {
            for i in first + made..<Swift.min(first + made + run.count, order.count) {
                let element = start + order[i].index * stride
                llvs_shim_prefetch(element)
                llvs_shim_prefetch(element + Swift.max(0, stride - 1))
            }
        }
        source.forEach(first..<first + made, which: { order[$0].index }) { i, bytes in
            run[i - first] = bytes
            run[i - first].kind = order[i].kind
            RecordChanges.prefetch(bytes.id)
            if withData { RecordChanges.prefetch(bytes.data) }
        }
        return made
    }

    /// Prefetches the first four cache lines; the processor predicts the following ones.
    @inline(__always)
    static func prefetch(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        var at = 0
        while at < Swift.min(bytes.count, 256) { llvs_shim_prefetch(start + at); at += 64 }
    }
}

extension RecordChanges {
    /// Returns the change of an id; nil if there is none. O(log changes).
    func change(of id: UnsafeRawBufferPointer) -> RecordChange? {
        var low = 0, high = count
        while low < high {
            let middle = (low + high) >> 1, change = self[middle], order = Bytes.compare(change.id, id)
            if order == 0 { return change }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return nil
    }
}
