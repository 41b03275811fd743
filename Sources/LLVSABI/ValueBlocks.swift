import CLLVS
import Glibc
import LLVSCoordinator

// MARK: Many values in one piece

/// Behind `llvs_value_block`: a batch, and the sizes of its rows as columns.
final class ValueBlock: StructHandle<llvs_value_block>, @unchecked Sendable {
    private let batch: ValueBatch

    /// - Parameters:
    ///   - batch: its values must be contiguous.
    ///   - withIDs: whether to include the ids, for a caller that does not know them.
    init(_ batch: ValueBatch, withIDs: Bool) throws {
        let arena = Arena()
        let count = batch.count, none = UInt32(truncatingIfNeeded: batch.versionCount)
        let dataSizes = try arena.array(UInt64.self, count), idSizes = try arena.array(UInt64.self, count)
        let versions = try arena.array(UInt32.self, count)
        let states = batch.hasForgotten ? try arena.array(UInt8.self, count) : nil
        batch.rows.withUnsafeBufferPointer { rows in
            for i in rows.indices {
                dataSizes[i] = UInt64(rows[i].data.count)
                idSizes[i] = UInt64(rows[i].id.count)
                states?[i] = UInt8(truncatingIfNeeded: rows[i].state)
                versions[i] = rows[i].version.map { UInt32(truncatingIfNeeded: $0) } ?? none
            }
        }
        self.batch = batch
        try super.init(
            arena,
            llvs_value_block(
                struct_size: UInt32(sizeOf: llvs_value_block.self), version_count: none, count: count, present_count: batch.presentCount,
                ids: withIDs ? llvs_bytes(batch.ids) : noBytes, id_sizes: withIDs ? UnsafePointer(idSizes) : nil,
                data: llvs_bytes(batch.data), data_sizes: batch.hasData ? UnsafePointer(dataSizes) : nil,
                versions: llvs_bytes(batch.versions), version_indexes: UnsafePointer(versions),
                states: states.map { UnsafePointer($0) }))
    }
}

extension llvs_bytes {
    fileprivate init(_ piece: UnsafeRawBufferPointer) {
        self.init(data: piece.baseAddress?.assumingMemoryBound(to: UInt8.self), size: piece.count)
    }
}

/// Fetches values by ids that are concatenated in `joined`.
private func fetchBlock(_ joined: llvs_bytes, _ sizes: UnsafePointer<UInt64>?, _ count: Int, at version: VersionID, from store: Store)
    throws -> ValueBlock
{
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
    return try ValueBlock(store.batch(at: version, isSeparated: false, ids: forEach), withIDs: false)
}

private func idSizes() -> StoreError {
    StoreError(
        .invalidArgument,
        "The sizes in \"id_sizes\" do not add up to the size of \"ids\"; give one for each id, and the ids with nothing between them.")
}

@_cdecl("llvs_value_block_free") @implementation
public func llvs_value_block_free(_ block: UnsafeMutablePointer<llvs_value_block>!) { ValueBlock.free(block) }

@_cdecl("llvs_store_value_block") @implementation
public func llvs_store_value_block(
    _ store: OpaquePointer!, _ ids: llvs_bytes, _ id_sizes: UnsafePointer<UInt64>!, _ count: Int, _ at: llvs_bytes,
    _ block: StructOut<llvs_value_block>!, _ error: ErrorOut!
) -> llvs_status {
    block?.pointee = nil
    return entry(error) {
        let out = try required(block, "block")
        let store = try LLVSABI.store(store)
        out.pointee = try fetchBlock(ids, id_sizes, count, at: versionID(at, "at"), from: store).handedOut
    }
}

@_cdecl("llvs_store_enumerate_block") @implementation
public func llvs_store_enumerate_block(
    _ store: OpaquePointer!, _ at: llvs_bytes, _ range: UnsafePointer<llvs_range>!, _ block: StructOut<llvs_value_block>!,
    _ error: ErrorOut!
) -> llvs_status {
    block?.pointee = nil
    return entry(error) {
        let out = try required(block, "block")
        let store = try LLVSABI.store(store)
        guard let batch = try store.page(page(range), at: versionID(at, "at"), isSeparated: false) else { return }
        out.pointee = try ValueBlock(batch, withIDs: true).handedOut
    }
}

// MARK: Reading one value into memory of the caller

/// The destination of a value read into the caller's memory; nothing is written if it does not fit. If there is no value the size is -1,
/// which is SIZE_MAX.
struct Target {
    let buffer: UnsafeMutableRawPointer?
    let capacity: Int
    let size: UnsafeMutablePointer<Int>
    let stored: UnsafeMutablePointer<llvs_version_id>?

    init(
        _ buffer: UnsafeMutableRawPointer?, _ capacity: Int, _ size: UnsafeMutablePointer<Int>?,
        _ stored: UnsafeMutablePointer<llvs_version_id>?
    ) throws {
        guard buffer != nil || capacity == 0 else { throw InputError.nullWithSize("buffer", capacity) }
        guard capacity >= 0 else { throw InputError.tooLarge("capacity", capacity, Int.max) }
        self.buffer = buffer
        self.capacity = capacity
        self.size = try required(size, "size")
        self.stored = stored
    }

    func room(_ size: Int) -> UnsafeMutableRawPointer? { size <= capacity ? buffer : nil }

    func take(_ fetched: Store.Fetched) {
        guard case .copied(let size, let version) = fetched else {
            self.size.pointee = -1
            return
        }
        self.size.pointee = size
        if stored != nil { write(version, to: stored) }
    }
}

@_cdecl("llvs_store_read_value") @implementation
public func llvs_store_read_value(
    _ store: OpaquePointer!, _ id: llvs_bytes, _ at: llvs_bytes, _ buffer: UnsafeMutableRawPointer!, _ capacity: Int,
    _ size: UnsafeMutablePointer<Int>!, _ stored_version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!
) -> llvs_status {
    size?.pointee = 0
    write(nil, to: stored_version)
    return entry(error) {
        let target = try Target(buffer, capacity, size, stored_version)
        let version = try versionID(at, "at")
        target.take(try fetch(id, at: version, from: store, into: target.room))
    }
}
