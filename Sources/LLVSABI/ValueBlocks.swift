import CLLVS
import Glibc
import LLVS

// MARK: Many values in one piece

/// What stands behind `llvs_value_block`: a batch, and the sizes of its rows as columns.
final class ValueBlock: Handle, @unchecked Sendable {
    private let batch: ValueBatch
    private let columns: UnsafeMutableRawPointer
    fileprivate let info: UnsafeMutablePointer<llvs_value_block_info>

    /// - Parameters:
    ///   - batch: with nothing between its values.
    ///   - withIDs: whether the caller does not know the ids.
    init(_ batch: ValueBatch, withIDs: Bool) throws {
        let count = batch.count, none = UInt32(truncatingIfNeeded: batch.versionCount)
        let perRow = 2 * MemoryLayout<UInt64>.size + MemoryLayout<UInt32>.size
        guard let columns = malloc(max(1, count * perRow)) else { throw OutOfMemory() }
        let dataSizes = columns.bindMemory(to: UInt64.self, capacity: count)
        let idSizes = (columns + count * 8).bindMemory(to: UInt64.self, capacity: count)
        let versions = (columns + count * 16).bindMemory(to: UInt32.self, capacity: count)
        batch.rows.withUnsafeBufferPointer { rows in
            for i in rows.indices {
                dataSizes[i] = UInt64(rows[i].data.count)
                idSizes[i] = UInt64(rows[i].id.count)
                versions[i] = rows[i].version.map { UInt32(truncatingIfNeeded: $0) } ?? none
            }
        }
        self.batch = batch
        self.columns = columns
        info = .allocate(capacity: 1)
        info.initialize(to: llvs_value_block_info(
            struct_size: UInt32(MemoryLayout<llvs_value_block_info>.size), version_count: none, count: count, present_count: batch.presentCount,
            ids: withIDs ? llvs_bytes(batch.ids) : noBytes, id_sizes: withIDs ? UnsafePointer(idSizes) : nil,
            data: llvs_bytes(batch.data), data_sizes: batch.hasData ? UnsafePointer(dataSizes) : nil,
            versions: llvs_bytes(batch.versions), version_indexes: UnsafePointer(versions)))
    }

    deinit {
        info.deallocate()
        Glibc.free(columns)
    }
}

extension llvs_bytes {
    fileprivate init(_ piece: UnsafeRawBufferPointer) {
        self.init(data: piece.baseAddress?.assumingMemoryBound(to: UInt8.self), size: piece.count)
    }
}

/// The ids that lie one behind the other in `joined`; nil as the version: where nothing is stored.
func fetchBlock(_ joined: llvs_bytes, _ sizes: UnsafePointer<UInt64>?, _ count: Int, at version: VersionID?, from store: Store) throws -> ValueBlock {
    let joined = try rawBytes(joined, "ids"), sizes = try elements(sizes, count, "id_sizes")
    func forEach(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var at = 0
        for size in sizes {
            guard size <= UInt64(joined.count - at) else { throw idSizes() }
            try body(UnsafeRawBufferPointer(rebasing: joined[at..<at + Int(size)]))
            at += Int(size)
        }
        guard at == joined.count else { throw idSizes() }
    }
    if let version { return try ValueBlock(store.batch(at: version, isSeparated: false, ids: forEach), withIDs: false) }
    var ids: [ValueID] = []
    try forEach { ids.append(try ValueID(utf8: Array($0))) }
    return try ValueBlock(store.emptyBatch(ids), withIDs: false)
}

private func idSizes() -> StoreError {
    StoreError(.invalidArgument, "The sizes in \"id_sizes\" do not add up to the size of \"ids\"; give one for each id, and the ids with nothing between them.")
}

@_cdecl("llvs_value_block_get") @implementation
public func llvs_value_block_get(_ block: OpaquePointer!) -> UnsafePointer<llvs_value_block_info>! { peek(block, ValueBlock.self).map { UnsafePointer($0.info) } }

@_cdecl("llvs_value_block_free") @implementation
public func llvs_value_block_free(_ block: OpaquePointer!) { free(block, ValueBlock.self, leadsToStore: false) }

@_cdecl("llvs_store_value_block") @implementation
public func llvs_store_value_block(_ store: OpaquePointer!, _ ids: llvs_bytes, _ id_sizes: UnsafePointer<UInt64>!, _ count: Int, _ at: llvs_bytes,
                                   _ block: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    block?.pointee = nil
    return entry(error) {
        let out = try required(block, "block")
        let store = try LLVSABI.store(store)
        out.pointee = try fetchBlock(ids, id_sizes, count, at: versionID(at, "at"), from: store).owned
    }
}

@_cdecl("llvs_store_enumerate_block") @implementation
public func llvs_store_enumerate_block(_ store: OpaquePointer!, _ at: llvs_bytes, _ range: UnsafePointer<llvs_range>!, _ block: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    block?.pointee = nil
    return entry(error) {
        let out = try required(block, "block")
        let store = try LLVSABI.store(store)
        guard let page = try Page(range).batch(at: versionID(at, "at"), of: store, isSeparated: false) else { return }
        out.pointee = try ValueBlock(page, withIDs: true).owned
    }
}

// MARK: One value into memory of the caller's

/// Where a value goes that is read into memory of the caller's: nowhere when it does not fit. `size` stays -1, which is
/// SIZE_MAX, when there is none.
struct Target {
    let buffer: UnsafeMutableRawPointer?
    let capacity: Int
    let size: UnsafeMutablePointer<Int>
    let stored: UnsafeMutablePointer<llvs_version_id>?

    init(_ buffer: UnsafeMutableRawPointer?, _ capacity: Int, _ size: UnsafeMutablePointer<Int>?, _ stored: UnsafeMutablePointer<llvs_version_id>?) throws {
        guard buffer != nil || capacity == 0 else { throw InputError.nullWithSize("buffer", capacity) }
        guard capacity >= 0 else { throw InputError.tooLarge("capacity", capacity, Int.max) }
        self.buffer = buffer
        self.capacity = capacity
        self.size = try required(size, "size")
        self.stored = stored
    }

    func room(_ size: Int) -> UnsafeMutableRawPointer? { size <= capacity ? buffer : nil }

    func take(_ fetched: Store.Fetched) {
        guard case .copied(let size, let version) = fetched else { return }
        self.size.pointee = size
        if stored != nil { write(version, to: stored) }
    }
}

@_cdecl("llvs_store_read_value") @implementation
public func llvs_store_read_value(_ store: OpaquePointer!, _ id: llvs_bytes, _ at: llvs_bytes, _ buffer: UnsafeMutableRawPointer!, _ capacity: Int,
                                  _ size: UnsafeMutablePointer<Int>!, _ stored_version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!) -> llvs_status {
    size?.pointee = -1
    write(nil, to: stored_version)
    return entry(error) {
        let target = try Target(buffer, capacity, size, stored_version)
        let version = try versionID(at, "at")
        if let store, let fetched = try fetchQuickly(id, at: version, from: store, into: target.room) { return target.take(fetched) }
        target.take(try LLVSABI.store(store).fetch(rawBytes(id, "id"), at: version, into: target.room))
    }
}
