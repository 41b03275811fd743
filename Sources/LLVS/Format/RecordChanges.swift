import CLLVSShims

/// A change on its way into a record. Pointers are borrowed for the call.
typealias RecordChange = BorrowedChange

/// The changes that a record is made of: sorted by the bytes of their ids, each id once. Bytes are borrowed.
///
/// A view of what the caller handed in, in an order and with labels of its own: four bytes for each change.
struct RecordChanges: RandomAccessCollection {
    private let source: BorrowedChanges
    /// For each change, which of the source it is, and its label; nil: all of them as they come.
    private let order: [Item]?

    /// Which change, and what it is recorded as.
    struct Item {
        private var packed: UInt32
        /// An index is below `Limits.changesPerVersion`, which is 2^24.
        init(_ index: Int, _ kind: Value.Change.Kind) { packed = UInt32(truncatingIfNeeded: index) | UInt32(kind.rawValue) << 24 }
        var index: Int { Int(packed & 0xFF_FFFF) }
        var kind: Value.Change.Kind { Value.Change.Kind(rawValue: UInt8(packed >> 24)) ?? .remove }
    }

    init(_ source: BorrowedChanges, order: [Item]? = nil) { self.source = source; self.order = order }
    init(_ list: [RecordChange]) { self.init(BorrowedChanges(list)) }

    var startIndex: Int { 0 }
    var endIndex: Int { order?.count ?? source.count }
    @inline(__always)
    subscript(i: Int) -> RecordChange {
        guard let order else { return source[i] }
        var change = source[order[i].index]
        change.kind = order[i].kind
        return change
    }

    /// Calls with a few changes at a time, and the index of the first of them, from the first to the last. Memory that a
    /// change points to is asked for when its run begins: of changes in no order, each would be waited for otherwise.
    func forEachRun(of size: Int, _ body: (_ first: Int, _ run: UnsafeBufferPointer<RecordChange>) throws -> Void) rethrows {
        if order == nil, let list = source.list {
            return try list.withUnsafeBufferPointer { all in
                for first in stride(from: 0, to: all.count, by: size) {
                    try body(first, UnsafeBufferPointer(rebasing: all[first..<Swift.min(first + size, all.count)]))
                }
            }
        }
        let run = UnsafeMutableBufferPointer<RecordChange>.allocate(capacity: Swift.min(size, count))
        defer { run.deallocate() }
        var first = 0
        while first < count {
            let made = Swift.min(size, count - first)
            for i in 0..<made {
                let change = self[first + i]
                if order != nil {
                    RecordChanges.prefetch(change.id)
                    RecordChanges.prefetch(change.data)
                }
                run.initializeElement(at: i, to: change)
            }
            defer { run[..<made].deinitialize() }
            try body(first, UnsafeBufferPointer(rebasing: run[..<made]))
            first += made
        }
    }

    /// The first four cache lines; the processor guesses what follows.
    @inline(__always)
    private static func prefetch(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        var at = 0
        while at < Swift.min(bytes.count, 256) { llvs_shim_prefetch(start + at); at += 64 }
    }
}
