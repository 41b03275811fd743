import CLLVS
import Glibc
import LLVS

// MARK: Many values in one piece

/// Memory that grows by what is put behind its end.
private struct GrowingMemory {
    private(set) var start: UnsafeMutableRawPointer?
    private(set) var count = 0
    private var capacity = 0

    /// Room for `size` further bytes. Amortised O(size).
    mutating func reserve(_ size: Int) throws {
        guard size > capacity - count else { return }
        let (needed, overflow) = count.addingReportingOverflow(size)
        guard !overflow, needed <= Int.max / 2, let moved = realloc(start, max(needed, capacity * 2, 64)) else { throw OutOfMemory() }
        start = moved
        capacity = max(needed, capacity * 2, 64)
    }

    /// Where `size` further bytes are to be put, of which `extend` then says that they are there.
    mutating func room(_ size: Int) throws -> UnsafeMutableRawPointer? {
        try reserve(size)
        return start.map { $0 + count }
    }
    mutating func extend(_ size: Int) { count += size }

    mutating func append(_ bytes: UnsafeRawBufferPointer) throws {
        guard let to = try room(bytes.count), let from = bytes.baseAddress else { return }
        memcpy(to, from, bytes.count)
        extend(bytes.count)
    }

    mutating func append<T: BitwiseCopyable>(_ value: T) throws {
        try reserve(MemoryLayout<T>.size)
        start?.storeBytes(of: value, toByteOffset: count, as: T.self)
        count += MemoryLayout<T>.size
    }

    var bytes: llvs_bytes { llvs_bytes(data: UnsafePointer(start?.assumingMemoryBound(to: UInt8.self)), size: count) }
    func array<T>(of type: T.Type) -> UnsafePointer<T>? { UnsafePointer(start?.assumingMemoryBound(to: type)) }
}

/// What stands behind `llvs_value_block`: column by column what a `ValueList` holds value by value.
final class ValueBlock: Handle, @unchecked Sendable {
    private var ids = GrowingMemory()
    private var idSizes = GrowingMemory()
    private var data = GrowingMemory()
    private var dataSizes = GrowingMemory()
    private var versions = GrowingMemory()
    private var versionIndexes = GrowingMemory()
    private var versionCount: UInt32 = 0
    private var lastVersion: VersionID?
    private var count = 0
    private var present = 0
    fileprivate let info: UnsafeMutablePointer<llvs_value_block_info> = .allocate(capacity: 1)

    deinit {
        for memory in [ids, idSizes, data, dataSizes, versions, versionIndexes] { Glibc.free(memory.start) }
        info.deallocate()
    }

    func reserve(_ count: Int) throws {
        try dataSizes.reserve(count * MemoryLayout<UInt64>.size)
        try versionIndexes.reserve(count * MemoryLayout<UInt32>.size)
    }

    func append(id: ValueID) throws {
        try id.bytes.withUnsafeBytes { try ids.append($0) }
        try ids.append(0 as UInt8)
        try idSizes.append(UInt64(id.bytes.count))
    }

    func append(stored: VersionID) throws {
        if stored != lastVersion {
            try stored.withASCII { try versions.append($0) }
            try versions.append(0 as UInt8)
            guard versionCount < UInt32.max else { throw OutOfMemory() }
            versionCount += 1
            lastVersion = stored
        }
        try versionIndexes.append(versionCount - 1)
        count += 1
        present += 1
    }

    func append(_ bytes: UnsafeRawBufferPointer, stored: VersionID) throws {
        try data.append(bytes)
        try dataSizes.append(UInt64(bytes.count))
        try append(stored: stored)
    }

    /// The value under an id, or that there is none.
    func append(_ id: UnsafeRawBufferPointer, at version: VersionID, from store: Store) throws {
        guard case .copied(let size, let stored) = try store.fetch(id, at: version, into: { try data.room($0) }) else { return try appendAbsent() }
        data.extend(size)
        try dataSizes.append(UInt64(size))
        try append(stored: stored)
    }

    func appendAbsent() throws {
        try dataSizes.append(0 as UInt64)
        try versionIndexes.append(UInt32.max)
        count += 1
    }

    /// Fills `info`, when all is in.
    func finished() throws -> ValueBlock {
        for i in 0..<count where present < count {
            guard let at = versionIndexes.start?.advanced(by: i * MemoryLayout<UInt32>.size) else { break }
            if at.load(as: UInt32.self) == UInt32.max { at.storeBytes(of: versionCount, as: UInt32.self) }
        }
        let size = data.count
        try data.append(0 as UInt8)
        info.initialize(to: llvs_value_block_info(
            struct_size: UInt32(MemoryLayout<llvs_value_block_info>.size), version_count: versionCount, count: count, present_count: present,
            ids: ids.bytes, id_sizes: idSizes.array(of: UInt64.self),
            data: llvs_bytes(data: data.bytes.data, size: size), data_sizes: dataSizes.array(of: UInt64.self),
            versions: versions.bytes, version_indexes: versionIndexes.array(of: UInt32.self)))
        return self
    }
}

/// The ids that lie one behind the other in `joined`; nil as the version: where nothing is stored.
func fetchBlock(_ joined: llvs_bytes, _ sizes: UnsafePointer<UInt64>?, _ count: Int, at version: VersionID?, from store: Store) throws -> ValueBlock {
    let joined = try rawBytes(joined, "ids")
    let block = ValueBlock()
    let sizes = try elements(sizes, count, "id_sizes")
    // An unknown version is an error also when nothing is asked for.
    if let version, count == 0 { _ = try store.values([], at: version) }
    try block.reserve(count)
    var at = 0
    for size in sizes {
        guard size <= UInt64(joined.count - at) else { throw idSizes() }
        let id = UnsafeRawBufferPointer(rebasing: joined[at..<at + Int(size)])
        at += Int(size)
        guard let version else {
            try ValueID.check(id)
            try block.appendAbsent()
            continue
        }
        try block.append(id, at: version, from: store)
    }
    guard at == joined.count else { throw idSizes() }
    return try block.finished()
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
        let filled = ValueBlock()
        var isEmpty = true
        try Page(range).forEach(at: versionID(at, "at"), of: store) { item in
            isEmpty = false
            switch item {
            case .value(let value):
                try filled.append(id: value.id)
                try value.data.withUnsafeBytes { try filled.append($0, stored: value.storedVersion) }
            case .reference(let reference):
                try filled.append(id: reference.id)
                try filled.append(stored: reference.version)
            case .absent: break  // an enumeration meets none
            }
        }
        if !isEmpty { out.pointee = try filled.finished().owned }
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
        if let store, let fetched = try fetchFromMemory(id, at: version, from: store, into: target.room) { return target.take(fetched) }
        target.take(try LLVSABI.store(store).fetch(rawBytes(id, "id"), at: version, into: target.room))
    }
}
