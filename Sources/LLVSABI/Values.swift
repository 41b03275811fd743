import CLLVS
import CLLVSShims
import Glibc
import LLVSCoordinator

// MARK: Reading values

@_cdecl("llvs_store_value") @implementation
public func llvs_store_value(
    _ store: OpaquePointer!, _ id: llvs_bytes, _ at: llvs_bytes, _ data: UnsafeMutablePointer<llvs_buffer>!,
    _ stored_version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!
) -> llvs_status {
    data?.pointee = noBuffer
    write(nil, to: stored_version)
    return entry(error) {
        let out = try required(data, "data")
        let version = try versionID(at, "at")
        try allocating(into: out, stored_version) { try fetch(id, at: version, from: store, into: $0) }
    }
}

/// Fetches a value. The fast path counts no references to the store, since all threads would contend for the count. Nothing called on that
/// path can release the store.
@inline(__always)
func fetch(_ id: llvs_bytes, at version: VersionID, from pointer: OpaquePointer?, into reserve: (Int) throws -> UnsafeMutableRawPointer?)
    throws -> Store.Fetched
{
    let quick = try pointer.flatMap { try fetchQuickly(id, at: version, from: $0, into: reserve) }
    if case .fetched(let fetched)? = quick { return fetched }
    let store = try LLVSABI.store(pointer)
    if case .unfinished(let unfinished)? = quick {
        return try store.fetch(rawBytes(id, "id"), at: version, going: unfinished, into: reserve)
    }
    return try store.fetch(rawBytes(id, "id"), at: version, into: reserve)
}

@inline(__always)
private func fetchQuickly(
    _ id: llvs_bytes, at version: VersionID, from pointer: OpaquePointer, into reserve: (Int) throws -> UnsafeMutableRawPointer?
) throws -> Store.Quick? {
    try Unmanaged<StoreHandle>.fromOpaque(UnsafeRawPointer(pointer))._withUnsafeGuaranteedRef { handle in
        guard !handle.isForked else { return nil }
        return try handle.reference._withUnsafeGuaranteedRef { store in
            try store.checkReentry()
            return try store.fetchQuickly(rawBytes(id, "id"), at: version, into: reserve)
        }
    }
}

/// Does the same as above for a store that is retained.
func fetch(
    _ id: llvs_bytes, at version: VersionID, from store: Store,
    into out: UnsafeMutablePointer<llvs_buffer>, _ stored: UnsafeMutablePointer<llvs_version_id>?
) throws {
    try allocating(into: out, stored) { try store.fetch(rawBytes(id, "id"), at: version, into: $0) }
}

/// Calls `fetch` with an allocator, and gives the result to the library's caller.
@inline(__always)
private func allocating(
    into out: UnsafeMutablePointer<llvs_buffer>, _ stored: UnsafeMutablePointer<llvs_version_id>?,
    _ fetch: ((Int) throws -> UnsafeMutableRawPointer?) throws -> Store.Fetched
) throws {
    var memory: UnsafeMutableRawPointer?
    do {
        let fetched = try fetch { size in
            guard let start = llvs_shim_allocate(size + 1) else { throw OutOfMemory() }
            start.storeBytes(of: 0, toByteOffset: size, as: UInt8.self)
            memory = start
            return start
        }
        if case .copied(let size, let storedVersion) = fetched {
            out.pointee = llvs_buffer(data: memory?.assumingMemoryBound(to: UInt8.self), size: size)
            if stored != nil { write(storedVersion, to: stored) }
        }
    } catch {
        Glibc.free(memory)
        throw error
    }
}

@_cdecl("llvs_store_reference") @implementation
public func llvs_store_reference(
    _ store: OpaquePointer!, _ id: llvs_bytes, _ at: llvs_bytes, _ stored_version: UnsafeMutablePointer<llvs_version_id>!,
    _ error: ErrorOut!
) -> llvs_status {
    write(nil, to: stored_version)
    return entry(error) {
        let out = try required(stored_version, "stored_version")
        let store = try LLVSABI.store(store)
        write(try store.reference(valueID(id, "id"), at: versionID(at, "at"))?.version, to: out)
    }
}

@_cdecl("llvs_store_values") @implementation
public func llvs_store_values(
    _ store: OpaquePointer!, _ ids: UnsafePointer<llvs_bytes>!, _ count: Int, _ at: llvs_bytes, _ values: StructOut<llvs_value_list>!,
    _ error: ErrorOut!
) -> llvs_status {
    values?.pointee = nil
    return entry(error) {
        let out = try required(values, "values")
        let store = try LLVSABI.store(store)
        let version = try versionID(at, "at"), ids = try elements(ids, count, "ids")
        out.pointee = try ValueList(
            store.batch(at: version) { sink in
                for id in ids { try sink(rawBytes(id, "ids")) }
            }
        ).handedOut
    }
}

// MARK: Enumerating

/// The size before `reverse` was appended.
let earlierSizesOfRange = [88]

/// Converts a range for the engine; NULL: all.
func page(_ input: UnsafePointer<llvs_range>?) throws -> PageQuery {
    var query = PageQuery()
    guard let input = try optionalStruct(input, "llvs_range", earlierSizes: earlierSizesOfRange) else { return query }
    guard input.reserved == 0 else { throw InputError.reserved("llvs_range") }
    query.withoutData = try flag(input.without_data, "without_data")
    query.range = IDRange(prefix: try array(input.prefix, "prefix"), from: try array(input.from, "from"), to: try array(input.to, "to"))
    if input.after.size != 0 { query.after = try valueID(input.after, "after") }
    if input.before.size != 0 { query.before = try valueID(input.before, "before") }
    query.isBackwards = try flag(input.reverse, "reverse")
    query.limit = PageLimits.count(Int(clamping: input.limit))
    if input.byte_limit > 0 { query.byteLimit = Int(clamping: input.byte_limit) }
    return query
}

/// Checks the most elements of a page; 0: the default.
func pageLimit(_ limit: Int) throws -> Int {
    guard limit >= 0 else { throw InputError.tooLarge("limit", limit, PageLimits.most) }
    return limit
}

@_cdecl("llvs_store_enumerate") @implementation
public func llvs_store_enumerate(
    _ store: OpaquePointer!, _ at: llvs_bytes, _ range: UnsafePointer<llvs_range>!, _ values: StructOut<llvs_value_list>!,
    _ error: ErrorOut!
) -> llvs_status {
    values?.pointee = nil
    return entry(error) {
        let out = try required(values, "values")
        let store = try LLVSABI.store(store)
        out.pointee = try store.page(page(range), at: versionID(at, "at")).map { try ValueList($0).handedOut }
    }
}

@_cdecl("llvs_store_count") @implementation
public func llvs_store_count(
    _ store: OpaquePointer!, _ at: llvs_bytes, _ range: UnsafePointer<llvs_range>!, _ count: UnsafeMutablePointer<UInt64>!,
    _ error: ErrorOut!
) -> llvs_status {
    count?.pointee = 0
    return entry(error) {
        let out = try required(count, "count")
        let store = try LLVSABI.store(store)
        out.pointee = UInt64(clamping: try store.count(at: versionID(at, "at"), in: page(range).whole))
    }
}
