/// A change as it is handed in for the length of one call: its bytes belong to the caller.
public struct BorrowedChange {
    public var kind: Value.Change.Kind
    public var id: UnsafeRawBufferPointer
    /// For insert and update.
    public var data: UnsafeRawBufferPointer
    /// For preserve.
    public var storedVersion: VersionID?
    public init(kind: Value.Change.Kind, id: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer = .init(start: nil, count: 0), storedVersion: VersionID? = nil) {
        self.kind = kind; self.id = id; self.data = data; self.storedVersion = storedVersion
    }

    var hasData: Bool { kind == .insert || kind == .update }
}

/// Changes as they are handed in for the length of one call, in any order.
///
/// Either a list, or made one by one as they are asked for: then a million of them take no memory beside the
/// caller's. Each may be asked for several times, and is to be the same each time.
public struct BorrowedChanges: RandomAccessCollection {
    private enum Source {
        case list([BorrowedChange])
        case made(Int, (Int) -> BorrowedChange)
    }
    private let source: Source

    public init(_ list: [BorrowedChange]) { source = .list(list) }
    /// `count` changes; `make` gives each by its index.
    public init(count: Int, _ make: @escaping (Int) -> BorrowedChange) { source = .made(count, make) }

    /// When they are a list.
    var list: [BorrowedChange]? {
        if case .list(let list) = source { return list }
        return nil
    }
    public var startIndex: Int { 0 }
    public var endIndex: Int {
        switch source {
        case .list(let list): list.count
        case .made(let count, _): count
        }
    }
    @inline(__always)
    public subscript(index: Int) -> BorrowedChange {
        switch source {
        case .list(let list): list[index]
        case .made(_, let make): make(index)
        }
    }
}

extension Array where Element == Value.Change {
    /// Calls with the changes as borrowed ones. The arrays of bytes in `self` are kept alive for the call, and an
    /// array's storage does not move while nobody changes it.
    func withBorrowed<R>(_ body: (BorrowedChanges) throws -> R) rethrows -> R {
        let owned = self
        return try withExtendedLifetime(owned) {
            try body(BorrowedChanges(count: owned.count) { owned[$0].borrowed })
        }
    }
}

extension Value.Change {
    /// Good as long as the arrays of bytes in it are kept alive and unchanged.
    fileprivate var borrowed: BorrowedChange {
        let id = id.bytes.withUnsafeBytes { $0 }
        switch self {
        case .insert(_, let data), .update(_, let data):
            return BorrowedChange(kind: kind, id: id, data: data.withUnsafeBytes { $0 })
        case .preserve(let reference):
            return BorrowedChange(kind: .preserve, id: id, storedVersion: reference.version)
        case .remove, .preserveRemoval:
            return BorrowedChange(kind: kind, id: id)
        }
    }
}
