import CLLVS
import LLVSCoordinator
import LLVSExchangeTesting
import LLVSTesting

// MARK: Storages and transports of the library, as handles (llvs_testing.h)

/// A storage that is opened by path.
private final class BuiltInStorageHandle: StorageHandle, @unchecked Sendable {
    private let path: String
    private let options: Store.Options
    init(_ path: String, _ options: Store.Options) {
        self.path = path; self.options = options
        super.init(path.isEmpty ? "the storage in memory" : "the storage at \(path)")
    }
    override func open(readOnly: Bool, _ plans: [FaultPlan], _ claim: StorageClaim) throws -> any Storage {
        var options = options
        options.readOnly = options.readOnly || readOnly
        options.create = options.create && !readOnly
        // The last plan ends the claim. If there are no plans, a plan without rules is used.
        var storage = try Store.makeStorage(path, options)
        for plan in plans.dropLast() { storage = try FaultyStorage(storage, plan: plan) }
        return try FaultyStorage(storage, plan: plans.last ?? FaultPlan()) { claim.end() }
    }
}

@_cdecl("llvs_testing_storage") @implementation
public func llvs_testing_storage(
    _ path: llvs_bytes, _ options: UnsafePointer<llvs_store_options>!, _ storage: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    storage?.pointee = nil
    return entry(error) {
        let out = try required(storage, "storage")
        if let options, options.pointee.struct_size >= 8, options.pointee.storage == LLVS_STORAGE_HOST.rawValue {
            throw StoreError(
                .invalidArgument, "The storage must be one of the library. One of the host is made by llvs_storage_create.")
        }
        let options = try storeOptions(options)
        out.pointee = BuiltInStorageHandle(try storePath(path, options), options).owned
    }
}

private final class BuiltInTransportHandle: TransportHandle, @unchecked Sendable {
    private let url: String
    private let place: Exchange.URLOptions
    init(_ url: String, _ place: Exchange.URLOptions) {
        self.url = url; self.place = place
        super.init("the transport to \(ExchangeURL.shown(url))")
    }
    override func open(_ place: Exchange.URLOptions) throws -> any ExchangeTransport {
        FaultyTransport(try ExchangeURL.transport(url, self.place), plan: FaultPlan()) { [self] in release() }
    }
    override func openFiles() throws -> any RemoteFiles {
        let files = try ExchangeURL.files(url, place)
        // The claim is released at once, since nothing reports when the files are closed. One place may be opened any number of times.
        release()
        return files
    }
}

@_cdecl("llvs_testing_transport") @implementation
public func llvs_testing_transport(
    _ url: llvs_bytes, _ options: UnsafePointer<llvs_exchange_options>!, _ transport: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    transport?.pointee = nil
    return entry(error) {
        let out = try required(transport, "transport")
        let url = try text(url, "url")
        let settings = try ExchangeSettings(options)
        try ExchangeURL.check(url)
        out.pointee =
            BuiltInTransportHandle(url, settings.place).owned
    }
}

// MARK: Faults

final class FaultsHandle: Handle, @unchecked Sendable {
    let plan: FaultPlan
    init(_ plan: FaultPlan) { self.plan = plan }
}

private func plan(_ pointer: OpaquePointer?) throws -> FaultPlan { try handle(pointer, FaultsHandle.self, "faults").plan }

private func fault(_ input: llvs_fault) throws -> Fault {
    guard input.reserved == 0 else { throw InputError.reserved("llvs_fault") }
    guard let kind = FaultKind(rawValue: input.kind) else { throw InputError.constant("llvs_fault.kind", input.kind) }
    guard input.operations & ~(LLVS_OPERATIONS_STORAGE.rawValue | LLVS_OPERATIONS_TRANSPORT.rawValue) == 0 else {
        throw InputError.constant("llvs_fault.operations", input.operations)
    }
    guard input.code <= 0 else {
        throw StoreError(.invalidArgument, "The code of a fault is \(input.code); give one below zero, or 0 for the default.")
    }
    guard input.probability >= 0, input.probability <= 1 else {
        throw StoreError(
            .invalidArgument, "The probability of a fault is \(input.probability); give one from 0 to 1, where 0 is the default, 1.")
    }
    guard input.delay_milliseconds <= 3_600_000 else {
        throw InputError.tooLarge("llvs_fault.delay_milliseconds", Int(input.delay_milliseconds), 3_600_000)
    }
    return Fault(
        kind, on: FaultOperations(rawValue: input.operations), code: input.code == 0 ? nil : StoreError.Code(rawValue: input.code),
        first: max(1, input.first),
        count: input.count == 0 ? nil : input.count, probability: input.probability == 0 ? 1 : input.probability,
        delayMilliseconds: input.delay_milliseconds)
}

@_cdecl("llvs_faults_create") @implementation
public func llvs_faults_create(_ seed: UInt64, _ faults: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    faults?.pointee = nil
    return entry(error) { try required(faults, "faults").pointee = FaultsHandle(FaultPlan(seed: seed)).owned }
}

@_cdecl("llvs_faults_add") @implementation
public func llvs_faults_add(_ faults: OpaquePointer!, _ fault: UnsafePointer<llvs_fault>!, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try plan(faults).add(LLVSABI.fault(requiredStruct(fault, "llvs_fault"))) }
}

@_cdecl("llvs_faults_clear") @implementation
public func llvs_faults_clear(_ faults: OpaquePointer!, _ error: ErrorOut!) -> llvs_status { entry(error) { try plan(faults).clear() } }

@_cdecl("llvs_faults_reset") @implementation
public func llvs_faults_reset(_ faults: OpaquePointer!, _ error: ErrorOut!) -> llvs_status { entry(error) { try plan(faults).reset() } }

@_cdecl("llvs_faults_count") @implementation
public func llvs_faults_count(_ faults: OpaquePointer!, _ operations: llvs_operations) -> UInt64 {
    // In a forked child the lock of the counts may never be released.
    guard let handle = peek(faults, FaultsHandle.self), !handle.isForked else { return 0 }
    return handle.plan.count(of: FaultOperations(rawValue: operations))
}

@_cdecl("llvs_faults_injected") @implementation
public func llvs_faults_injected(_ faults: OpaquePointer!) -> UInt64 {
    guard let handle = peek(faults, FaultsHandle.self), !handle.isForked else { return 0 }
    return handle.plan.injected
}

@_cdecl("llvs_faults_last") @implementation
public func llvs_faults_last(_ faults: OpaquePointer!, _ text: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    text?.pointee = noBuffer
    return entry(error) {
        let out = try required(text, "text")
        out.pointee = try Array(plan(faults).lastInjected.utf8).withUnsafeBytes(ownedBuffer)
    }
}

@_cdecl("llvs_faults_free") @implementation
public func llvs_faults_free(_ faults: OpaquePointer!) { free(faults, FaultsHandle.self, leadsToStore: false) }

// MARK: Wrapping

private final class FaultyStorageHandle: StorageHandle, @unchecked Sendable {
    private let inner: StorageHandle
    private let plan: FaultPlan
    init(_ inner: StorageHandle, _ plan: FaultPlan) {
        self.inner = inner; self.plan = plan
        super.init(inner.name)
    }
    override func open(readOnly: Bool, _ plans: [FaultPlan], _ claim: StorageClaim) throws -> any Storage {
        // The claim of the inner handle covers both handles.
        claim.end()
        return try inner.claim(readOnly: readOnly, failing: [plan] + plans)
    }
}

private final class FaultyTransportHandle: TransportHandle, @unchecked Sendable {
    private let inner: TransportHandle
    private let plan: FaultPlan
    init(_ inner: TransportHandle, _ plan: FaultPlan) {
        self.inner = inner; self.plan = plan
        super.init(inner.name)
    }
    override func open(_ place: Exchange.URLOptions) throws -> any ExchangeTransport {
        FaultyTransport(try inner.claim(place), plan: plan) { [self] in release() }
    }
    /// The plan covers transports of single versions only.
    override func openFiles() throws -> any RemoteFiles {
        release()
        return try inner.claimFiles()
    }
    override func state() throws -> [UInt8] { try inner.state() }
    override func setState(_ state: [UInt8]) throws { try inner.setState(state) }
    override func notify() { inner.notify() }
}

@_cdecl("llvs_faults_storage") @implementation
public func llvs_faults_storage(_ faults: OpaquePointer!, _ inner: OpaquePointer!, _ storage: HandleOut!, _ error: ErrorOut!) -> llvs_status
{
    storage?.pointee = nil
    return entry(error) {
        let out = try required(storage, "storage")
        out.pointee = FaultyStorageHandle(try handle(inner, StorageHandle.self, "inner"), try plan(faults)).owned
    }
}

@_cdecl("llvs_faults_transport") @implementation
public func llvs_faults_transport(_ faults: OpaquePointer!, _ inner: OpaquePointer!, _ transport: HandleOut!, _ error: ErrorOut!)
    -> llvs_status
{
    transport?.pointee = nil
    return entry(error) {
        let out = try required(transport, "transport")
        out.pointee = FaultyTransportHandle(try handle(inner, TransportHandle.self, "inner"), try plan(faults)).owned
    }
}
