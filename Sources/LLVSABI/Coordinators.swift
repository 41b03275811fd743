import CLLVS
import LLVSCoordinator

// MARK: Coordinator

final class CoordinatorHandle: Handle, @unchecked Sendable {
    let coordinator: StoreCoordinator
    /// The coordinator's store, which the coordinator retains.
    private let store: Unmanaged<Store>
    init(_ coordinator: StoreCoordinator) { self.coordinator = coordinator; store = .passUnretained(coordinator.store) }
    deinit { try? coordinator.close() }
    override func checkReentry() throws { try store._withUnsafeGuaranteedRef { try $0.checkReentry() } }
}

private func coordinator(_ pointer: OpaquePointer?) throws -> StoreCoordinator {
    try handle(pointer, CoordinatorHandle.self, "coordinator").coordinator
}

/// Returns the coordinator, for calls that would not notice by themselves that the store is closed.
func openCoordinator(_ pointer: OpaquePointer?) throws -> StoreCoordinator {
    let coordinator = try coordinator(pointer)
    try coordinator.store.requireOpen()
    return coordinator
}

/// Sets the output to "not moved", for calls that may fail before a move.
private func begin(_ move: UnsafeMutablePointer<llvs_move>?) throws {
    _ = try optionalStruct(UnsafePointer(move), "llvs_move")
    fill(move, with: llvs_move())
}

private func write(_ done: StoreCoordinator.Move, to move: UnsafeMutablePointer<llvs_move>?) {
    guard move != nil else { return }
    var told = llvs_move()
    told.moved = done.isMove ? 1 : 0
    write(done.from, to: &told.from)
    write(done.to, to: &told.to)
    fill(move, with: told)
}

@_cdecl("llvs_coordinator_open") @implementation
public func llvs_coordinator_open(
    _ path: llvs_bytes, _ options: UnsafePointer<llvs_coordinator_options>!, _ coordinator: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    coordinator?.pointee = nil
    return entry(error) {
        let out = try required(coordinator, "coordinator")
        var settings = StoreCoordinator.Options()
        if let input = try optionalStruct(options, "llvs_coordinator_options", earlierSizes: [56]) {
            switch input.snapshot_policy {
            case LLVS_SNAPSHOT_OFF.rawValue: settings.snapshotPolicy = .off
            case LLVS_SNAPSHOT_AUTO.rawValue: settings.snapshotPolicy = .auto
            default: throw InputError.constant("snapshot_policy", input.snapshot_policy)
            }
            let name = try text(input.name, "name")
            if !name.isEmpty { settings.name = name }
            settings.arbiter = try arbiter(input.arbiter)
            settings.defaultMetadataForNewVersions = try metadata(input.metadata, input.metadata_count)
            settings.store = try storeOptions(input.store)
            if input.device.size != 0 { settings.device = try text(input.device, "device", limit: Limits.valueIDSize) }
        }
        out.pointee = CoordinatorHandle(try StoreCoordinator(path: storePath(path, settings.store), options: settings)).owned
    }
}

@_cdecl("llvs_coordinator_close") @implementation
public func llvs_coordinator_close(_ coordinator: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error, whileShort: true) { try LLVSABI.coordinator(coordinator).close() }
}

@_cdecl("llvs_coordinator_free") @implementation
public func llvs_coordinator_free(_ coordinator: OpaquePointer!) { free(coordinator, CoordinatorHandle.self, leadsToStore: true) }

@_cdecl("llvs_coordinator_store") @implementation
public func llvs_coordinator_store(_ coordinator: OpaquePointer!, _ store: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    store?.pointee = nil
    return entry(error) { try required(store, "store").pointee = StoreHandle(try LLVSABI.coordinator(coordinator).store).owned }
}

@_cdecl("llvs_coordinator_current_version") @implementation
public func llvs_coordinator_current_version(
    _ coordinator: OpaquePointer!, _ version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!
) -> llvs_status {
    write(nil, to: version)
    return entry(error) { write(try openCoordinator(coordinator).currentVersion, to: try required(version, "version")) }
}

@_cdecl("llvs_coordinator_missing_version") @implementation
public func llvs_coordinator_missing_version(
    _ coordinator: OpaquePointer!, _ version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!
) -> llvs_status {
    write(nil, to: version)
    return entry(error) { write(try openCoordinator(coordinator).missingVersion, to: try required(version, "version")) }
}

@_cdecl("llvs_coordinator_set_current_version") @implementation
public func llvs_coordinator_set_current_version(_ coordinator: OpaquePointer!, _ version: llvs_bytes, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try openCoordinator(coordinator).setCurrentVersion(versionID(version, "version")) }
}

// MARK: Saving and reading

extension Metadata {
    fileprivate var withoutBranch: Metadata {
        var others = self
        others.branch = nil
        return others
    }
}

/// Saves one change. Errors name the parameters of the caller, not the members of a struct that the caller did not make.
private func saveOne(
    _ coordinator: OpaquePointer!, _ kind: llvs_change_kind_value, _ id: llvs_bytes, _ data: llvs_bytes,
    _ version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!
) -> llvs_status {
    write(nil, to: version)
    let checked = entry(error) {
        _ = try rawBytes(id, "id")
        _ = try rawBytes(data, "data")
    }
    guard checked == LLVS_OK.rawValue else { return checked }
    let change = llvs_change(kind: kind.rawValue, reserved: 0, id: id, data: data, stored_version: llvs_bytes(data: nil, size: 0))
    return withUnsafePointer(to: change) {
        llvs_coordinator_save(coordinator, $0, 1, MemoryLayout<llvs_change>.stride, nil, version, nil, nil, error)
    }
}

@_cdecl("llvs_coordinator_put") @implementation
public func llvs_coordinator_put(
    _ coordinator: OpaquePointer!, _ id: llvs_bytes, _ data: llvs_bytes, _ version: UnsafeMutablePointer<llvs_version_id>!,
    _ error: ErrorOut!
) -> llvs_status {
    saveOne(coordinator, LLVS_CHANGE_UPDATE, id, data, version, error)
}

@_cdecl("llvs_coordinator_remove") @implementation
public func llvs_coordinator_remove(
    _ coordinator: OpaquePointer!, _ id: llvs_bytes, _ version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!
) -> llvs_status {
    saveOne(coordinator, LLVS_CHANGE_REMOVE, id, llvs_bytes(data: nil, size: 0), version, error)
}

@_cdecl("llvs_coordinator_save") @implementation
public func llvs_coordinator_save(
    _ coordinator: OpaquePointer!, _ changes: UnsafePointer<llvs_change>!, _ change_count: Int, _ change_size: Int,
    _ options: UnsafePointer<llvs_version_options>!, _ id: UnsafeMutablePointer<llvs_version_id>!,
    _ version: StructOut<llvs_version_list>!, _ move: UnsafeMutablePointer<llvs_move>!, _ error: ErrorOut!
) -> llvs_status {
    write(nil, to: id)
    version?.pointee = nil
    return entry(error) {
        try begin(move)
        let coordinator = try LLVSABI.coordinator(coordinator)
        let settings = try versionOptions(options)
        guard settings.id == nil else {
            throw StoreError(.invalidArgument, "A save through a coordinator takes no id; make the version in its store.")
        }
        let branch = settings.branch.size == 0 ? nil : try text(settings.branch, "branch")
        // The coordinator sets the branch itself; without other metadata the save counts as empty.
        let metadata = branch == nil ? settings.metadata : settings.metadata.withoutBranch
        let made = try withChanges(changes, change_count, change_size) {
            try coordinator.save(
                borrowing: $0, reading: settings.sources, metadata: metadata, branch: branch, expected: settings.expected,
                merges: settings.merges, timestamp: settings.timestamp)
        }
        write(made.move, to: move)
        guard let made = made.version else { return }
        write(made.id, to: id)
        if let version { version.pointee = try VersionList([made]).handedOut }
    }
}

@_cdecl("llvs_coordinator_value") @implementation
public func llvs_coordinator_value(
    _ coordinator: OpaquePointer!, _ id: llvs_bytes, _ data: UnsafeMutablePointer<llvs_buffer>!,
    _ stored_version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!
) -> llvs_status {
    data?.pointee = noBuffer
    write(nil, to: stored_version)
    return entry(error) {
        let out = try required(data, "data")
        let coordinator = try openCoordinator(coordinator)
        // Before the first save there is no current version.
        guard let version = try coordinator.version(at: .current) else { return try ValueID.check(rawBytes(id, "id")) }
        try fetch(id, at: version, from: coordinator.store, into: out, stored_version)
    }
}

@_cdecl("llvs_coordinator_register_schema") @implementation
public func llvs_coordinator_register_schema(
    _ coordinator: OpaquePointer!, _ rules: llvs_bytes, _ move: UnsafeMutablePointer<llvs_move>!, _ schema: StructOut<llvs_schema>!,
    _ error: ErrorOut!
) -> llvs_status {
    schema?.pointee = nil
    return entry(error) {
        try begin(move)
        let done = try openCoordinator(coordinator).register(array(rules, "rules"))
        write(done.move, to: move)
        if let schema { schema.pointee = try SchemaHandle(done.schema, version: done.version).handedOut }
    }
}

private func undo(
    _ coordinator: OpaquePointer?, _ only_tell: llvs_bool, _ options: UnsafePointer<llvs_merge_options>?,
    _ move: UnsafeMutablePointer<llvs_move>?, _ result: StructOut<llvs_revert_result>?, isRedo: Bool
) throws {
    try begin(move)
    let coordinator = try openCoordinator(coordinator), settings = try MergeSettings(options)
    if try flag(only_tell, "only_tell") {
        let found = try coordinator.undoable(control: settings.control)
        guard let what = isRedo ? found.redo : found.undo, let result else { return }
        var told = Store.Reverted()
        told.versions = what.versions
        result.pointee = try RevertResultHandle(told, description: what.description).handedOut
        return
    }
    let done =
        try isRedo
        ? coordinator.redo(metadata: settings.metadata, control: settings.control)
        : settings.version.map {
            try coordinator.revert($0, parent: settings.parent, metadata: settings.metadata, control: settings.control)
        }
            ?? coordinator.undo(metadata: settings.metadata, control: settings.control)
    write(done.move, to: move)
    guard let what = done.undoable, let result else { return }
    result.pointee = try RevertResultHandle(done.reverted, description: what.description).handedOut
}

@_cdecl("llvs_coordinator_undo") @implementation
public func llvs_coordinator_undo(
    _ coordinator: OpaquePointer!, _ only_tell: llvs_bool, _ options: UnsafePointer<llvs_merge_options>!,
    _ move: UnsafeMutablePointer<llvs_move>!, _ result: StructOut<llvs_revert_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) { try undo(coordinator, only_tell, options, move, result, isRedo: false) }
}

@_cdecl("llvs_coordinator_redo") @implementation
public func llvs_coordinator_redo(
    _ coordinator: OpaquePointer!, _ only_tell: llvs_bool, _ options: UnsafePointer<llvs_merge_options>!,
    _ move: UnsafeMutablePointer<llvs_move>!, _ result: StructOut<llvs_revert_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) { try undo(coordinator, only_tell, options, move, result, isRedo: true) }
}

// MARK: Exchanging and merging

@_cdecl("llvs_coordinator_attach") @implementation
public func llvs_coordinator_attach(
    _ coordinator: OpaquePointer!, _ place: llvs_bytes, _ options: UnsafePointer<llvs_exchange_options>!, _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        let coordinator = try openCoordinator(coordinator)
        let settings = try ExchangeSettings(options), place = try text(place, "place")
        guard let host = settings.hostTransport else {
            var options = settings.place
            options.exchange = settings.exchange
            try coordinator.connect(to: place, options: options)
            return
        }
        try coordinator.attach(
            Exchange(store: coordinator.store, transport: host.claim(settings.place), options: settings.exchange), name: place,
            place: place)
    }
}

@_cdecl("llvs_coordinator_exchange") @implementation
public func llvs_coordinator_exchange(
    _ coordinator: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let outcome = try openCoordinator(coordinator).exchangeReportingFailures(control: LLVSABI.control(control))
        if let result { result.pointee = try ExchangesResultHandle(outcome).handedOut }
        if let failure = outcome.failure { throw failure }
    }
}

/// Behind `llvs_sync_result`.
final class SyncResultHandle: StructHandle<llvs_sync_result>, @unchecked Sendable {
    private let before: ExchangesResultHandle
    private let after: ExchangesResultHandle?

    init(_ outcome: StoreCoordinator.SyncResult) throws {
        let arena = Arena()
        before = try ExchangesResultHandle(outcome.before)
        after = try outcome.after.map(ExchangesResultHandle.init)
        try super.init(
            arena,
            llvs_sync_result(
                struct_size: UInt32(sizeOf: llvs_sync_result.self), moved: outcome.move.isMove ? 1 : 0, from: arena.copy(outcome.move.from),
                to: arena.copy(outcome.move.to),
                before: UnsafePointer(before.contents), after: after.map { UnsafePointer($0.contents) }, merged: outcome.hasMerged ? 1 : 0,
                reserved: 0))
    }
}

@_cdecl("llvs_sync_result_free") @implementation
public func llvs_sync_result_free(_ result: UnsafeMutablePointer<llvs_sync_result>!) { SyncResultHandle.free(result) }

@_cdecl("llvs_coordinator_sync") @implementation
public func llvs_coordinator_sync(
    _ coordinator: OpaquePointer!, _ options: UnsafePointer<llvs_merge_options>!, _ result: StructOut<llvs_sync_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let coordinator = try openCoordinator(coordinator)
        let settings = try MergeSettings(options)
        let outcome = try coordinator.syncReportingFailures(
            selection: settings.selection, metadata: settings.metadata, control: settings.control)
        if let result { result.pointee = try SyncResultHandle(outcome).handedOut }
        if let failure = outcome.failure { throw failure }
    }
}

@_cdecl("llvs_coordinator_merge") @implementation
public func llvs_coordinator_merge(
    _ coordinator: OpaquePointer!, _ options: UnsafePointer<llvs_merge_options>!, _ move: UnsafeMutablePointer<llvs_move>!,
    _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        try begin(move)
        let coordinator = try openCoordinator(coordinator)
        let settings = try MergeSettings(options)
        let outcome = try coordinator.mergeReportingFailures(
            selection: settings.selection, metadata: settings.metadata, control: settings.control)
        write(outcome.move, to: move)
        if let failure = outcome.failure { throw failure }
    }
}

@_cdecl("llvs_coordinator_observe") @implementation
public func llvs_coordinator_observe(
    _ coordinator: OpaquePointer!, _ fn: llvs_current_version_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
    _ observer: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    registering(fn, payload, payload_free, observer, error) { fn, gate in
        let observation = try openCoordinator(coordinator).observe { version in
            var id = llvs_version_id()
            write(version, to: &id)
            gate.run { fn($0.pointer, &id) }
        }
        return ObserverHandle(gate) { observation.cancel() }
    }
}

@_cdecl("llvs_coordinator_observe_exchanges") @implementation
public func llvs_coordinator_observe_exchanges(
    _ coordinator: OpaquePointer!, _ fn: llvs_notify_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
    _ observer: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    registering(fn, payload, payload_free, observer, error) { fn, gate in
        guard let observation = try openCoordinator(coordinator).observeExchanges({ gate.run { fn($0.pointer) } }) else {
            throw StoreError(.unsupported, "None of the attached exchanges can report new versions. Exchange from time to time.")
        }
        return ObserverHandle(gate) { observation.cancel() }
    }
}

@_cdecl("llvs_coordinator_bootstrap") @implementation
public func llvs_coordinator_bootstrap(
    _ coordinator: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ restored: UnsafeMutablePointer<llvs_bool>!,
    _ move: UnsafeMutablePointer<llvs_move>!, _ error: ErrorOut!
) -> llvs_status {
    restored?.pointee = 0
    return entry(error) {
        try begin(move)
        let coordinator = try openCoordinator(coordinator), at = coordinator.currentVersion
        let found = try coordinator.bootstrapFromSnapshot(control: LLVSABI.control(control))
        restored?.pointee = found == nil ? 0 : 1
        write(found ?? StoreCoordinator.Move(from: at, to: at), to: move)
    }
}
