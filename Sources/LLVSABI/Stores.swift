import CLLVS
import LLVSCoordinator

// MARK: Opening and closing a store

final class StoreHandle: Handle, @unchecked Sendable {
    let store: Store
    /// The same store, for calls that need not retain it.
    let reference: Unmanaged<Store>
    init(_ store: Store) { self.store = store; reference = .passUnretained(store) }
    override func checkReentry() throws { try store.checkReentry() }
}

@inline(__always)
package func store(_ pointer: OpaquePointer?) throws -> Store { try handle(pointer, StoreHandle.self, "store").store }

func durability(_ input: llvs_durability, _ name: StaticString) throws -> Durability {
    switch input {
    case LLVS_DURABILITY_FULL.rawValue: .full
    case LLVS_DURABILITY_NORMAL.rawValue: .normal
    default: throw InputError.constant(name, input)
    }
}

/// The sizes before `compaction_grace`, `busy_timeout`, `control` and `differences` were appended.
let earlierSizesOfStoreOptions = [56, 64, 80, 88]

/// Converts the options for the engine; claims the host's storage.
func storeOptions(_ input: UnsafePointer<llvs_store_options>?) throws -> Store.Options {
    var options = Store.Options()
    guard let input = try optionalStruct(input, "llvs_store_options", earlierSizes: earlierSizesOfStoreOptions) else { return options }
    options.readOnly = try flag(input.read_only, "read_only")
    options.create = try !flag(input.must_exist, "must_exist") && !options.readOnly
    options.durability = try durability(input.durability, "durability")
    if input.memory_budget > 0 { options.memoryBudget = Int(clamping: input.memory_budget) }
    let cache = try path(input.cache_directory, "cache_directory", mayBeEmpty: true)
    if !cache.isEmpty { options.cacheDirectory = cache }
    guard let compaction = Compaction(rawValue: input.compaction) else { throw InputError.constant("compaction", input.compaction) }
    options.compaction = compaction
    if input.compaction_grace != 0 { options.compactionGrace = input.compaction_grace }
    guard input.reserved == 0, input.reserved_2 == 0 else { throw InputError.reserved("llvs_store_options") }
    guard let differences = Store.Differences(rawValue: input.differences) else {
        throw InputError.constant("differences", input.differences)
    }
    options.differences = differences
    if input.busy_timeout != 0 { options.busyTimeout = input.busy_timeout }
    if input.file_mode != 0 { options.fileMode = input.file_mode }
    options.control = try control(input.control)
    // Check the options before a storage of the host is claimed.
    try options.check()
    guard input.host_storage == nil || input.storage == LLVS_STORAGE_HOST.rawValue else {
        throw StoreError(
            .invalidArgument,
            "host_storage is given, but the kind of storage is not LLVS_STORAGE_HOST. Set storage to that, or leave host_storage NULL.")
    }
    switch input.storage {
    case LLVS_STORAGE_FILE.rawValue: options.storage = .file
    case LLVS_STORAGE_SQLITE.rawValue: options.storage = .sqlite
    case LLVS_STORAGE_MEMORY.rawValue: options.storage = .memory
    case LLVS_STORAGE_HOST.rawValue:
        let host = try handle(input.host_storage, StorageHandle.self, "host_storage")
        options.storage = .custom(try host.claim(readOnly: options.readOnly))
    default: throw InputError.constant("storage", input.storage)
    }
    return options
}

/// Returns the path of a store of that kind; memory and host storages have none.
func storePath(_ input: llvs_bytes, _ options: Store.Options) throws -> String {
    switch options.storage.kind {
    case .file, .sqlite: try path(input, "path")
    case .memory, .custom: ""
    }
}

@_cdecl("llvs_store_open") @implementation
public func llvs_store_open(_ path: llvs_bytes, _ options: UnsafePointer<llvs_store_options>!, _ store: HandleOut!, _ error: ErrorOut!)
    -> llvs_status
{
    store?.pointee = nil
    return entry(error) {
        let out = try required(store, "store")
        let options = try storeOptions(options)
        out.pointee = StoreHandle(try Store(path: storePath(path, options), options: options)).owned
    }
}

@_cdecl("llvs_store_close") @implementation
public func llvs_store_close(_ store: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error, whileShort: true) { try handle(store, StoreHandle.self, "store").store.close() }
}

@_cdecl("llvs_store_free") @implementation
public func llvs_store_free(_ store: OpaquePointer!) { free(store, StoreHandle.self, leadsToStore: true) }

@_cdecl("llvs_store_reload") @implementation
public func llvs_store_reload(
    _ store: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ added: UnsafeMutablePointer<UInt64>!, _ error: ErrorOut!
) -> llvs_status {
    added?.pointee = 0
    return entry(error) {
        let store = try handle(store, StoreHandle.self, "store").store, control = try LLVSABI.control(control)
        // Called here, since the reload checks only for cancellation while it holds locks.
        try control.check(.reading, 0, of: 0, doing: "Checking for new versions in \(store.description)")
        let count = try store.reloadHistory(control: control)
        added?.pointee = UInt64(clamping: count)
    }
}

@_cdecl("llvs_store_statistics") @implementation
public func llvs_store_statistics(
    _ store: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ statistics: UnsafeMutablePointer<llvs_statistics>!,
    _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        // The size before the counts of differences were appended.
        _ = try requiredStruct(UnsafePointer(statistics), "llvs_statistics", earlierSizes: [80])
        let found = try handle(store, StoreHandle.self, "store").store.statistics(control: LLVSABI.control(control))
        fill(
            statistics,
            with: llvs_statistics(
                struct_size: 0, reserved: 0, versions: found.versions, heads: found.heads, pending: found.pending,
                damaged: found.damaged, bytes: found.storage.bytes, bytes_written: found.storage.bytesWritten, syncs: found.storage.syncs,
                segments: found.storage.segments, memory_used: found.historyMemory,
                differences: found.differences, difference_bytes: found.differenceBytes,
                difference_value_bytes: found.differenceValueBytes))
    }
}

// MARK: Verifying

extension llvs_damage {
    init(_ damage: StorageDamage, in arena: Arena) throws {
        self.init(
            struct_size: UInt32(sizeOf: llvs_damage.self), lost: damage.lost.rawValue, file: try arena.copy(damage.file),
            offset: damage.offset,
            message: try arena.copy(damage.message), version: try damage.version.map { try arena.copy($0) } ?? noBytes,
            value_id: try damage.value.map { try arena.copy($0.bytes) } ?? noBytes,
            caused_by: try damage.causedBy.map { try arena.copy($0) } ?? noBytes)
    }
}

final class VerifyReportHandle: StructHandle<llvs_verify_report>, @unchecked Sendable {
    init(_ report: VerifyReport) throws {
        let arena = Arena()
        let damages = try Items(report.damages, in: arena, llvs_damage.init(_:in:))
        let unfinished = try Items(report.unfinished, in: arena, llvs_damage.init(_:in:))
        try super.init(
            arena,
            llvs_verify_report(
                struct_size: UInt32(sizeOf: llvs_verify_report.self), reserved: 0, versions: report.versions, values: report.values,
                pending: report.pending,
                damages: damages.start, damage_count: damages.count, unfinished: unfinished.start, unfinished_count: unfinished.count,
                vouched: report.vouched, unvouched: report.unvouched, forgotten: report.forgotten))
    }
}

@_cdecl("llvs_store_verify") @implementation
public func llvs_store_verify(
    _ store: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ report: StructOut<llvs_verify_report>!, _ error: ErrorOut!
) -> llvs_status {
    report?.pointee = nil
    return entry(error) {
        let out = try required(report, "report")
        let store = try handle(store, StoreHandle.self, "store").store
        out.pointee = try VerifyReportHandle(store.verify(control: LLVSABI.control(control))).handedOut
    }
}

@_cdecl("llvs_verify_report_free") @implementation
public func llvs_verify_report_free(_ report: UnsafeMutablePointer<llvs_verify_report>!) { VerifyReportHandle.free(report) }

// MARK: Compacting

@_cdecl("llvs_store_compact") @implementation
public func llvs_store_compact(
    _ store: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ report: UnsafeMutablePointer<llvs_compaction_report>!,
    _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        let isWanted = try optionalStruct(UnsafePointer(report), "llvs_compaction_report") != nil
        write(CompactionReport(), noBuffer, to: report)
        let store = try handle(store, StoreHandle.self, "store").store
        let done = try store.compact(control: LLVSABI.control(control))
        guard isWanted else { return }
        var marker = done.syncMarker ?? ""
        let path = try done.syncMarker == nil ? noBuffer : marker.withUTF8 { try ownedBuffer(UnsafeRawBufferPointer($0)) }
        write(done, path, to: report)
    }
}

private func write(_ done: CompactionReport, _ marker: llvs_buffer, to report: UnsafeMutablePointer<llvs_compaction_report>?) {
    fill(
        report,
        with: llvs_compaction_report(
            struct_size: 0, reserved: 0, folded: done.folded, made: done.made, deleted: done.deleted,
            bytes_written: done.bytesWritten, bytes_deleted: done.bytesDeleted, sync_marker: marker))
}

@_cdecl("llvs_store_path") @implementation
public func llvs_store_path(_ store: OpaquePointer!) -> llvs_bytes {
    peek(store, StoreHandle.self).map { llvs_bytes(data: $0.store.pathText.baseAddress, size: $0.store.pathText.count) } ?? noBytes
}

@_cdecl("llvs_store_observe") @implementation
public func llvs_store_observe(
    _ store: OpaquePointer!, _ fn: llvs_notify_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
    _ observer: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    registering(fn, payload, payload_free, observer, error) { fn, gate in
        let observation = try LLVSABI.store(store).observeAdditions { gate.run { fn($0.pointer) } }
        return ObserverHandle(gate) { observation.cancel() }
    }
}
