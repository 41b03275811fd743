/// A change that a caller passes for the duration of a call. Its bytes belong to the caller.
@usableFromInline
package struct BorrowedChange {
    /// The kind of the change.
    @usableFromInline package var kind: Value.Change.Kind
    /// The value's id in UTF-8, 1 to 4,096 bytes of the caller's.
    @usableFromInline package var id: UnsafeRawBufferPointer
    /// For insert and update.
    @usableFromInline package var data: UnsafeRawBufferPointer
    /// For preserve.
    @usableFromInline package var storedVersion: VersionID?
    /// For insert and update, instead of `data`: the blob that holds the bytes already.
    @usableFromInline package var written: Unmanaged<WrittenValue>?
    /// A change whose bytes must stay where they are, unchanged, until the call that receives it returns.
    @inlinable
    package init(
        kind: Value.Change.Kind, id: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer = .init(start: nil, count: 0),
        storedVersion: VersionID? = nil
    ) {
        self.kind = kind; self.id = id; self.data = data; self.storedVersion = storedVersion
    }

    /// A change without its version. Code that visits a million changes uses this, so nothing is reference-counted and only these words are
    /// copied.
    @usableFromInline
    package struct Bytes {
        /// The kind of the change.
        @usableFromInline package var kind: Value.Change.Kind
        /// The value's id in UTF-8, 1 to 4,096 bytes of the caller's.
        @usableFromInline package var id: UnsafeRawBufferPointer
        /// For insert and update.
        @usableFromInline package var data: UnsafeRawBufferPointer
        @usableFromInline var written: Unmanaged<WrittenValue>?
        /// The bytes of a change, which belong to the caller.
        @inlinable
        package init(kind: Value.Change.Kind, id: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer) {
            self.kind = kind; self.id = id; self.data = data
        }
        var hasData: Bool { kind == .insert || kind == .update }
        /// Bytes of the value.
        var size: Int { written.map { $0._withUnsafeGuaranteedRef(\.size) } ?? data.count }
    }
    var bytes: Bytes {
        var bytes = Bytes(kind: kind, id: id, data: data)
        bytes.written = written
        return bytes
    }
    /// Bytes of the value.
    var size: Int { bytes.size }
    /// SHA-256 of the value.
    var digest: [UInt8] { written.map { $0._withUnsafeGuaranteedRef(\.digest) } ?? SHA256.digest(data) }
    package var hasData: Bool { kind == .insert || kind == .update }
}

/// Changes that are passed in for the length of one call, in any order.
///
/// Either a list, or computed on demand: then a million of them take no memory besides the caller's. Each may be requested several times
/// and must be the same each time.
package struct BorrowedChanges: RandomAccessCollection {
    private enum Source {
        case list([BorrowedChange])
        case elements(Elements)
    }
    /// The caller's structs, if known, and the closures that make changes of them.
    struct Elements {
        let count: Int
        var start: UnsafeRawPointer?
        var stride = 0
        let bytes: (Int) -> BorrowedChange.Bytes
        let storedVersion: (Int) -> VersionID?
    }
    private let source: Source

    /// A list of changes; their bytes are not copied.
    package init(_ list: [BorrowedChange]) { source = .list(list) }

    /// `count` changes, each requested by its index: its bytes, and for preserve the version.
    /// - Parameters:
    ///   - count: the number of changes.
    ///   - start: an array of structs of `stride` bytes from which they are made, if there is one.
    ///   - stride: bytes from one struct of that array to the next.
    ///   - bytes: returns the kind, id and value of the change with an index below `count`.
    ///   - storedVersion: returns, for a preserve, the version that stored the value.
    package init(
        count: Int, of start: UnsafeRawPointer? = nil, stride: Int = 0,
        bytes: @escaping (Int) -> BorrowedChange.Bytes, storedVersion: @escaping (Int) -> VersionID?
    ) {
        source = .elements(Elements(count: count, start: start, stride: stride, bytes: bytes, storedVersion: storedVersion))
    }

    package var startIndex: Int { 0 }
    package var endIndex: Int {
        switch source {
        case .list(let list): list.count
        case .elements(let elements): elements.count
        }
    }
    package var count: Int { endIndex }
    package subscript(index: Int) -> BorrowedChange {
        switch source {
        case .list(let list): return list[index]
        case .elements(let elements):
            let bytes = elements.bytes(index)
            return BorrowedChange(
                kind: bytes.kind, id: bytes.id, data: bytes.data,
                storedVersion: bytes.kind == .preserve ? elements.storedVersion(index) : nil)
        }
    }
    @inline(__always)
    func bytes(at index: Int) -> BorrowedChange.Bytes {
        switch source {
        case .list(let list): list[index].bytes
        case .elements(let elements): elements.bytes(index)
        }
    }
    /// Calls `body` with each index of a range and the result of `bytes(at:)` for it, or for the index that `which` returns instead.
    @inline(__always)
    func forEach(_ range: Range<Int>, which: (Int) -> Int = { $0 }, _ body: (Int, BorrowedChange.Bytes) throws -> Void) rethrows {
        switch source {
        case .list(let list):
            for i in range { try body(i, list[which(i)].bytes) }
        case .elements(let elements):
            let bytes = elements.bytes
            for i in range { try body(i, bytes(which(i))) }
        }
    }
    /// The array of structs that they are made from, and the bytes of each struct.
    var memory: (start: UnsafeRawPointer, stride: Int)? {
        guard case .elements(let elements) = source, let start = elements.start else { return nil }
        return (start, elements.stride)
    }
}

extension Array where Element == Value.Change {
    /// Calls `body` with the changes as borrowed ones. The arrays of bytes in `self` are kept alive for the call, and an array's storage
    /// does not move while nothing changes it.
    package func withBorrowed<R>(_ body: (BorrowedChanges) throws -> R) rethrows -> R {
        let owned = self
        return try withExtendedLifetime(owned) {
            try body(BorrowedChanges(count: owned.count, bytes: { owned[$0].borrowed }, storedVersion: { owned[$0].storedVersion }))
        }
    }
}

extension Value.Change {
    /// Valid as long as the arrays of bytes in it are alive and unchanged.
    fileprivate var borrowed: BorrowedChange.Bytes {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        return switch self {
        case .insert(let id, let data), .update(let id, let data):
            BorrowedChange.Bytes(kind: kind, id: id.bytes.withUnsafeBytes { $0 }, data: data.withUnsafeBytes { $0 })
        case .preserve(let reference):
            BorrowedChange.Bytes(kind: kind, id: reference.id.bytes.withUnsafeBytes { $0 }, data: none)
        case .remove(let id), .preserveRemoval(let id):
            BorrowedChange.Bytes(kind: kind, id: id.bytes.withUnsafeBytes { $0 }, data: none)
        }
    }
    fileprivate var storedVersion: VersionID? {
        if case .preserve(let reference) = self { return reference.version }
        return nil
    }
}
