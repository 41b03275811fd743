import CLLVS
import LLVS

// MARK: Coordinator

final class CoordinatorHandle: Handle, @unchecked Sendable {
    let coordinator: StoreCoordinator
    /// Of exchanges attached by URL.
    let durability: Durability
    init(_ coordinator: StoreCoordinator, _ durability: Durability) { self.coordinator = coordinator; self.durability = durability }
    deinit { try? coordinator.close() }
    override func checkReentry() throws { try coordinator.store.checkReentry() }
}

private func coordinator(_ pointer: OpaquePointer?) throws -> StoreCoordinator {
    try handle(pointer, CoordinatorHandle.self, "coordinator").coordinator
}

/// The same, for calls that would not notice by themselves that the store is closed.
private func openCoordinator(_ pointer: OpaquePointer?) throws -> StoreCoordinator {
    let coordinator = try coordinator(pointer)
    try coordinator.store.requireOpen()
    return coordinator
}

@_cdecl("llvs_coordinator_open") @implementation
public func llvs_coordinator_open(_ path: llvs_bytes, _ options: UnsafePointer<llvs_coordinator_options>!, _ coordinator: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    coordinator?.pointee = nil
    return entry(error) {
        let out = try required(coordinator, "coordinator")
        var settings = StoreCoordinator.Options()
        var url = "", durability = Durability.full
        if let input = try optionalStruct(options, "llvs_coordinator_options", earlierSizes: earlierSizesOfCoordinatorOptions) {
            switch input.snapshot_policy {
            case LLVS_SNAPSHOT_OFF.rawValue: settings.snapshotPolicy = .off
            case LLVS_SNAPSHOT_AUTO.rawValue: settings.snapshotPolicy = .auto
            default: throw InputError.constant("snapshot_policy", input.snapshot_policy)
            }
            guard input.reserved == 0 else { throw InputError.reserved("llvs_coordinator_options") }
            durability = try LLVSABI.durability(input.exchange_durability, "exchange_durability")
            let name = try text(input.name, "name")
            if !name.isEmpty { settings.name = name }
            url = try text(input.exchange_url, "exchange_url")
            settings.arbiter = try arbiter(input.arbiter)
            settings.defaultMetadataForNewVersions = try metadata(input.metadata, input.metadata_count)
            settings.store = try storeOptions(input.store)
        }
        let made = CoordinatorHandle(try StoreCoordinator(path: storePath(path, settings.store), options: settings), durability)
        if !url.isEmpty { try attach(url, to: made.coordinator, durability) }
        out.pointee = made.owned
    }
}

/// Before `exchange_durability` was appended.
let earlierSizesOfCoordinatorOptions = [72]

private func attach(_ url: String, to coordinator: StoreCoordinator, _ durability: Durability) throws {
    let exchange = Exchange(store: coordinator.store, transport: try ExchangeURL.transport(url, durability))
    try coordinator.attach(exchange, name: ExchangeURL.name(url))
}

@_cdecl("llvs_coordinator_close") @implementation
public func llvs_coordinator_close(_ coordinator: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try LLVSABI.coordinator(coordinator).close() }
}

@_cdecl("llvs_coordinator_free") @implementation
public func llvs_coordinator_free(_ coordinator: OpaquePointer!) { free(coordinator, CoordinatorHandle.self, leadsToStore: true) }

@_cdecl("llvs_coordinator_store") @implementation
public func llvs_coordinator_store(_ coordinator: OpaquePointer!, _ store: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    store?.pointee = nil
    return entry(error) { try required(store, "store").pointee = StoreHandle(try LLVSABI.coordinator(coordinator).store).owned }
}

@_cdecl("llvs_coordinator_current_version") @implementation
public func llvs_coordinator_current_version(_ coordinator: OpaquePointer!, _ version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!) -> llvs_status {
    write(nil, to: version)
    return entry(error) { write(try openCoordinator(coordinator).currentVersion, to: try required(version, "version")) }
}

@_cdecl("llvs_coordinator_missing_version") @implementation
public func llvs_coordinator_missing_version(_ coordinator: OpaquePointer!, _ version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!) -> llvs_status {
    write(nil, to: version)
    return entry(error) { write(try openCoordinator(coordinator).missingVersion, to: try required(version, "version")) }
}

@_cdecl("llvs_coordinator_set_current_version") @implementation
public func llvs_coordinator_set_current_version(_ coordinator: OpaquePointer!, _ version: llvs_bytes, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try openCoordinator(coordinator).setCurrentVersion(versionID(version, "version")) }
}

@_cdecl("llvs_coordinator_branch_version") @implementation
public func llvs_coordinator_branch_version(_ coordinator: OpaquePointer!, _ branch: llvs_bytes, _ version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!) -> llvs_status {
    write(nil, to: version)
    return entry(error) {
        let out = try required(version, "version")
        write(try LLVSABI.coordinator(coordinator).version(at: .branch(text(branch, "branch"))), to: out)
    }
}

// MARK: Saving and reading

@_cdecl("llvs_coordinator_save") @implementation
public func llvs_coordinator_save(_ coordinator: OpaquePointer!, _ changes: UnsafePointer<llvs_change>!, _ change_count: Int, _ change_size: Int,
                                  _ options: UnsafePointer<llvs_version_options>!, _ id: UnsafeMutablePointer<llvs_version_id>!,
                                  _ version: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    write(nil, to: id)
    version?.pointee = nil
    return entry(error) {
        let coordinator = try openCoordinator(coordinator)
        let settings = try versionOptions(options)
        guard settings.id == nil else { throw StoreError(.invalidArgument, "A save through a coordinator takes no id; make the version in its store.") }
        let branch = settings.branch.size == 0 ? nil : try text(settings.branch, "branch")
        // The coordinator sets the branch itself; without other metadata the save counts as empty.
        var metadata = settings.metadata
        if branch != nil { metadata.branch = nil }
        let made = try withChanges(changes, change_count, change_size) {
            try coordinator.save(borrowing: $0, reading: settings.sources, metadata: metadata, branch: branch)
        }
        guard let made = made.version else { return }
        write(made.id, to: id)
        if let version { version.pointee = try VersionList([made]).owned }
    }
}

/// Where to read; nil where nothing is stored yet.
private func place(_ coordinator: StoreCoordinator, _ at: llvs_bytes) throws -> VersionID? {
    try coordinator.readable(optionalVersionID(at, "at").map { .version($0) } ?? .current)
}

@_cdecl("llvs_coordinator_value") @implementation
public func llvs_coordinator_value(_ coordinator: OpaquePointer!, _ id: llvs_bytes, _ at: llvs_bytes, _ data: UnsafeMutablePointer<llvs_buffer>!,
                                   _ stored_version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!) -> llvs_status {
    data?.pointee = noBuffer
    write(nil, to: stored_version)
    return entry(error) {
        let out = try required(data, "data")
        let coordinator = try openCoordinator(coordinator)
        guard let version = try place(coordinator, at) else { return try ValueID.check(rawBytes(id, "id")) }
        try fetch(id, at: version, from: coordinator.store, into: out, stored_version)
    }
}

@_cdecl("llvs_coordinator_open_value") @implementation
public func llvs_coordinator_open_value(_ coordinator: OpaquePointer!, _ id: llvs_bytes, _ at: llvs_bytes, _ reader: HandleOut!, _ size: UnsafeMutablePointer<UInt64>!,
                                        _ stored_version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!) -> llvs_status {
    reader?.pointee = nil
    size?.pointee = 0
    write(nil, to: stored_version)
    return entry(error) {
        let out = try required(reader, "reader")
        let coordinator = try openCoordinator(coordinator), id = try valueID(id, "id")
        guard let version = try place(coordinator, at) else { return }
        write(try coordinator.store.openValue(id, at: version), of: coordinator.store, to: out, size, stored_version)
    }
}

@_cdecl("llvs_coordinator_values") @implementation
public func llvs_coordinator_values(_ coordinator: OpaquePointer!, _ ids: UnsafePointer<llvs_bytes>!, _ count: Int, _ at: llvs_bytes, _ values: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    values?.pointee = nil
    return entry(error) {
        let out = try required(values, "values")
        let coordinator = try openCoordinator(coordinator)
        guard let version = try place(coordinator, at) else {
            out.pointee = try ValueList(coordinator.store.emptyBatch(elements(ids, count, "ids").map { try valueID($0, "ids") })).owned
            return
        }
        out.pointee = try fetchMany(ids, count, at: version, from: coordinator.store).owned
    }
}

@_cdecl("llvs_coordinator_read_value") @implementation
public func llvs_coordinator_read_value(_ coordinator: OpaquePointer!, _ id: llvs_bytes, _ at: llvs_bytes, _ buffer: UnsafeMutableRawPointer!, _ capacity: Int,
                                        _ size: UnsafeMutablePointer<Int>!, _ stored_version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!) -> llvs_status {
    size?.pointee = -1
    write(nil, to: stored_version)
    return entry(error) {
        let target = try Target(buffer, capacity, size, stored_version)
        let coordinator = try openCoordinator(coordinator)
        guard let version = try place(coordinator, at) else { return try ValueID.check(rawBytes(id, "id")) }
        target.take(try coordinator.store.fetch(rawBytes(id, "id"), at: version, into: target.room))
    }
}

@_cdecl("llvs_coordinator_value_block") @implementation
public func llvs_coordinator_value_block(_ coordinator: OpaquePointer!, _ ids: llvs_bytes, _ id_sizes: UnsafePointer<UInt64>!, _ count: Int, _ at: llvs_bytes,
                                         _ block: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    block?.pointee = nil
    return entry(error) {
        let out = try required(block, "block")
        let coordinator = try openCoordinator(coordinator)
        out.pointee = try fetchBlock(ids, id_sizes, count, at: place(coordinator, at), from: coordinator.store).owned
    }
}

@_cdecl("llvs_coordinator_enumerate") @implementation
public func llvs_coordinator_enumerate(_ coordinator: OpaquePointer!, _ at: llvs_bytes, _ range: UnsafePointer<llvs_range>!, _ values: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    values?.pointee = nil
    return entry(error) {
        let out = try required(values, "values")
        let coordinator = try openCoordinator(coordinator)
        let page = try Page(range)
        guard let version = try place(coordinator, at) else { return }
        out.pointee = try page.list(at: version, of: coordinator.store)?.owned
    }
}

// MARK: Exchanging and merging

@_cdecl("llvs_coordinator_attach") @implementation
public func llvs_coordinator_attach(_ coordinator: OpaquePointer!, _ url: llvs_bytes, _ error: ErrorOut!) -> llvs_status {
    entry(error) {
        let durability = try handle(coordinator, CoordinatorHandle.self, "coordinator").durability
        try attach(text(url, "url"), to: openCoordinator(coordinator), durability)
    }
}

@_cdecl("llvs_coordinator_attach_transport") @implementation
public func llvs_coordinator_attach_transport(_ coordinator: OpaquePointer!, _ name: llvs_bytes, _ transport: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error) {
        let coordinator = try openCoordinator(coordinator)
        let claimed = try handle(transport, TransportHandle.self, "transport").claim()
        try coordinator.attach(Exchange(store: coordinator.store, transport: claimed), name: text(name, "name"))
    }
}

@_cdecl("llvs_coordinator_exchange") @implementation
public func llvs_coordinator_exchange(_ coordinator: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ result: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let outcome = try openCoordinator(coordinator).exchangeAll(LLVSABI.control(control)), done = outcome.exchanges
        if let result {
            result.pointee = try ExchangeResultHandle(
                retrieved: done.flatMap(\.retrieved.versions), sent: done.flatMap(\.sent.versions), repaired: done.flatMap(\.retrieved.repaired),
                problems: done.flatMap { $0.retrieved.problems + $0.sent.problems }).owned
        }
        if let failure = outcome.failure { throw failure }
    }
}

@_cdecl("llvs_coordinator_merge") @implementation
public func llvs_coordinator_merge(_ coordinator: OpaquePointer!, _ options: UnsafePointer<llvs_merge_options>!, _ changed: UnsafeMutablePointer<llvs_bool>!, _ error: ErrorOut!) -> llvs_status {
    changed?.pointee = 0
    return entry(error) {
        let coordinator = try openCoordinator(coordinator)
        let settings = try MergeSettings(options)
        let moved = try coordinator.merge(selection: settings.selection, metadata: settings.metadata, settings.control)
        changed?.pointee = moved ? 1 : 0
    }
}

@_cdecl("llvs_coordinator_observe") @implementation
public func llvs_coordinator_observe(_ coordinator: OpaquePointer!, _ fn: llvs_current_version_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
                                     _ observer: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    let payload = Payload(payload, payload_free)
    observer?.pointee = nil
    return entry(error) {
        let out = try required(observer, "observer")
        guard let fn else { throw InputError.null("fn") }
        let gate = CallbackGate(payload)
        let observation = try openCoordinator(coordinator).observe { version in
            var id = llvs_version_id()
            write(version, to: &id)
            gate.run { fn($0, &id) }
        }
        out.pointee = ObserverHandle(gate) { observation.cancel() }.owned
    }
}

@_cdecl("llvs_coordinator_observe_exchanges") @implementation
public func llvs_coordinator_observe_exchanges(_ coordinator: OpaquePointer!, _ fn: llvs_notify_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
                                               _ observer: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    let payload = Payload(payload, payload_free)
    observer?.pointee = nil
    return entry(error) {
        let out = try required(observer, "observer")
        guard let fn else { throw InputError.null("fn") }
        guard let observation = try observe(openCoordinator(coordinator).exchanges.map(\.exchange), fn, payload) else {
            throw StoreError(.unsupported, "None of the attached exchanges can tell when it gains versions; exchange from time to time.")
        }
        out.pointee = observation.owned
    }
}

@_cdecl("llvs_coordinator_bootstrap") @implementation
public func llvs_coordinator_bootstrap(_ coordinator: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ restored: UnsafeMutablePointer<llvs_bool>!, _ error: ErrorOut!) -> llvs_status {
    restored?.pointee = 0
    return entry(error) {
        let found = try openCoordinator(coordinator).bootstrapFromSnapshot(LLVSABI.control(control))
        restored?.pointee = found == nil ? 0 : 1
    }
}

// MARK: Names and places

@_cdecl("llvs_branch_make_unique") @implementation
public func llvs_branch_make_unique(_ base: llvs_bytes, _ name: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    name?.pointee = noBuffer
    return entry(error) {
        let out = try required(name, "name")
        out.pointee = try Array(StoreCoordinator.randomBranchName(text(base, "base")).utf8).withUnsafeBytes(ownedBuffer)
    }
}

@_cdecl("llvs_default_path") @implementation
public func llvs_default_path(_ application: llvs_bytes, _ path: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    path?.pointee = noBuffer
    return entry(error) {
        let out = try required(path, "path")
        out.pointee = try Array(StoreCoordinator.defaultLocation(app: text(application, "application")).utf8).withUnsafeBytes(ownedBuffer)
    }
}
