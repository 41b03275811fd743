import CLLVS
import LLVSCoordinator

/// Converts arguments. Sizes arrive as `Int` (size_t), so SIZE_MAX is negative.

@inline(__always)
package func rawBytes(_ bytes: llvs_bytes, _ name: StaticString, limit: Int = Limits.valueSize) throws -> UnsafeRawBufferPointer {
    guard bytes.size >= 0, bytes.size <= limit else { throw InputError.tooLarge(name, bytes.size, limit) }
    guard bytes.size > 0 else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    guard let data = bytes.data else { throw InputError.nullWithSize(name, bytes.size) }
    return UnsafeRawBufferPointer(start: data, count: bytes.size)
}

package func array(_ bytes: llvs_bytes, _ name: StaticString, limit: Int = Limits.valueSize) throws -> [UInt8] {
    let raw = try rawBytes(bytes, name, limit: limit)
    try Memory.expect(raw.count, "The argument \"\(name)\"")
    return Array(raw)
}

/// Text: UTF-8.
package func text(_ bytes: llvs_bytes, _ name: StaticString, limit: Int = 1 << 20) throws -> String {
    let raw = try rawBytes(bytes, name, limit: limit)
    guard let text = String(validating: raw, as: UTF8.self) else {
        throw StoreError(.invalidUTF8, "The argument \"\(name)\" is not valid UTF-8. Give it in that encoding.")
    }
    return text
}

/// Text; empty counts as not given.
package func optionalText(_ bytes: llvs_bytes, _ name: StaticString) throws -> String? {
    let text = try text(bytes, name)
    return text.isEmpty ? nil : text
}

/// A path: UTF-8 without NUL, at which the system would cut it.
func path(_ bytes: llvs_bytes, _ name: StaticString, mayBeEmpty: Bool = false) throws -> String {
    let path = try text(bytes, name, limit: 1 << 16)
    guard !path.utf8.contains(0) else { throw StoreError(.invalidArgument, "The argument \"\(name)\" contains a NUL, which no path can.") }
    guard mayBeEmpty || !path.isEmpty else { throw StoreError(.invalidArgument, "The argument \"\(name)\" is empty; give a path.") }
    return path
}

@inline(__always)
func valueID(_ bytes: llvs_bytes, _ name: StaticString) throws -> ValueID {
    try ValueID(utf8: array(bytes, name))
}

@inline(__always)
func versionID(_ bytes: llvs_bytes, _ name: StaticString) throws -> VersionID {
    try VersionID(ascii: rawBytes(bytes, name))
}

func optionalVersionID(_ bytes: llvs_bytes, _ name: StaticString) throws -> VersionID? {
    bytes.size == 0 ? nil : try versionID(bytes, name)
}

/// Returns `count` elements of a type that never grows (llvs_bytes, llvs_reference, llvs_metadata_entry).
package func elements<T>(_ start: UnsafePointer<T>?, _ count: Int, _ name: StaticString, limit: Int = Limits.changesPerVersion) throws
    -> UnsafeBufferPointer<T>
{
    guard count >= 0, count <= limit else { throw InputError.tooLarge(name, count, limit) }
    guard count > 0 else { return UnsafeBufferPointer(start: nil, count: 0) }
    guard let start else { throw InputError.nullWithSize(name, count) }
    return UnsafeBufferPointer(start: start, count: count)
}

/// A larger size is not that of a struct of this library, even if its tail is zero.
let structSizeLimit = 4096

/// The sizes of `llvs_peer_options` before `compares_digits` and `exchange` were appended.
package let earlierSizesOfPeerOptions = [88, 120]

/// Reads a struct that begins with its size, as the caller was compiled; nil for NULL. For one of the `earlierSizes`, the members appended
/// since are zero.
func optionalStruct<T: BitwiseCopyable>(_ start: UnsafePointer<T>?, _ name: StaticString, earlierSizes: [Int] = []) throws -> T? {
    guard let start else { return nil }
    let size = Int(UnsafeRawPointer(start).loadUnaligned(as: UInt32.self))
    if earlierSizes.contains(size) {
        return withUnsafeTemporaryAllocation(byteCount: MemoryLayout<T>.size, alignment: MemoryLayout<T>.alignment) { whole in
            whole.initializeMemory(as: UInt8.self, repeating: 0)
            whole.copyMemory(from: UnsafeRawBufferPointer(start: start, count: min(size, whole.count)))
            return whole.loadUnaligned(as: T.self)
        }
    }
    return try element(UnsafeRawPointer(start), size, T.self, name)
}

package func requiredStruct<T: BitwiseCopyable>(_ start: UnsafePointer<T>?, _ name: StaticString, earlierSizes: [Int] = []) throws -> T {
    guard let value = try optionalStruct(start, name, earlierSizes: earlierSizes) else { throw InputError.null(name) }
    return value
}

/// Reads a struct of the caller's size. Members that this library does not know must be zero.
@inline(__always)
func element<T: BitwiseCopyable>(_ start: UnsafeRawPointer, _ size: Int, _ type: T.Type, _ name: StaticString) throws -> T {
    let known = MemoryLayout<T>.size
    if size != known {
        guard size >= known else { throw InputError.structTooSmall(name, size, known) }
        guard size <= structSizeLimit, UnsafeRawBufferPointer(start: start + known, count: size - known).allSatisfy({ $0 == 0 }) else {
            throw InputError.structUnknown(name, size)
        }
    }
    return start.loadUnaligned(as: T.self)
}

package func flag(_ value: llvs_bool, _ name: StaticString) throws -> Bool {
    guard value <= 1 else { throw InputError.constant(name, value) }
    return value == 1
}

// MARK: - Changes and metadata

private func change(_ input: llvs_change) throws -> BorrowedChange {
    guard input.reserved == 0 else { throw InputError.reserved("llvs_change") }
    guard let kind = UInt8(exactly: input.kind).flatMap(Value.Change.Kind.init(rawValue:)) else {
        throw InputError.constant("llvs_change.kind", input.kind)
    }
    let id = try rawBytes(input.id, "llvs_change.id")
    let data = try rawBytes(input.data, "llvs_change.data")
    let stored = try optionalVersionID(input.stored_version, "llvs_change.stored_version")
    guard data.isEmpty || kind == .insert || kind == .update else {
        throw StoreError(.invalidArgument, "A change that is neither insert nor update has data; only those carry bytes.")
    }
    guard (stored != nil) == (kind == .preserve) else {
        throw StoreError(.invalidArgument, "llvs_change.stored_version is for preserve, which needs it, and for no other kind.")
    }
    return BorrowedChange(kind: kind, id: id, data: data, storedVersion: stored)
}

/// Calls `body` with the changes; their bytes belong to the caller.
func withChanges<R>(_ start: UnsafePointer<llvs_change>?, _ count: Int, _ size: Int, _ body: (BorrowedChanges) throws -> R) throws -> R {
    guard count >= 0, count <= Limits.changesPerVersion else { throw InputError.tooLarge("change_count", count, Limits.changesPerVersion) }
    guard count > 0 else { return try body(BorrowedChanges([])) }
    guard let start else { throw InputError.nullWithSize("changes", count) }
    let raw = UnsafeRawPointer(start)
    // The size is checked with the first element, before it is used as a stride.
    func read(_ i: Int) throws -> BorrowedChange { try change(element(raw + i * size, size, llvs_change.self, "llvs_change")) }
    // Many changes are checked now, and read again from the caller's memory on demand.
    if count <= 64 { return try body(BorrowedChanges((0..<count).map(read))) }
    for i in 0..<count { _ = try read(i) }
    return try body(
        BorrowedChanges(
            count: count, of: raw, stride: size, bytes: { checkedBytes(raw + $0 * size) }, storedVersion: { (try? read($0))?.storedVersion }
        ))
}

/// Reads a change that was checked before. If the caller changed it meanwhile, the result is some change, but never a trap.
private func checkedBytes(_ start: UnsafeRawPointer) -> BorrowedChange.Bytes {
    let input = start.loadUnaligned(as: llvs_change.self)
    func bytes(_ bytes: llvs_bytes) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: bytes.data, count: bytes.data == nil ? 0 : min(max(0, bytes.size), Limits.valueSize))
    }
    return BorrowedChange.Bytes(
        kind: Value.Change.Kind(rawValue: UInt8(truncatingIfNeeded: input.kind)) ?? .remove, id: bytes(input.id), data: bytes(input.data))
}

/// Returns the changes with copies of their bytes.
func ownedChanges(_ start: UnsafePointer<llvs_change>?, _ count: Int, _ size: Int) throws -> [Value.Change] {
    try withChanges(start, count, size) { changes in
        try changes.map { change in
            let id = try ValueID(utf8: Array(change.id))
            switch change.kind {
            case .insert: return .insert(id, data: Array(change.data))
            case .update: return .update(id, data: Array(change.data))
            case .remove: return .remove(id)
            case .preserveRemoval: return .preserveRemoval(id)
            case .preserve:
                guard let stored = change.storedVersion else { throw InputError.null("llvs_change.stored_version") }
                return .preserve(Value.Reference(id: id, version: stored))
            }
        }
    }
}

func metadata(_ start: UnsafePointer<llvs_metadata_entry>?, _ count: Int, branch: llvs_bytes = llvs_bytes(data: nil, size: 0)) throws
    -> Metadata
{
    guard count != 0 || branch.size != 0 else { return Metadata() }
    var pairs: [(key: [UInt8], value: [UInt8])] = []
    for entry in try elements(start, count, "metadata", limit: Limits.metadataSize) {
        pairs.append((try array(entry.key, "llvs_metadata_entry.key"), try array(entry.value, "llvs_metadata_entry.value")))
    }
    var metadata = try Metadata(pairs)
    if branch.size != 0 { metadata.branch = try text(branch, "branch", limit: Limits.valueIDSize) }
    try metadata.checkMade()
    return metadata
}
