import LLVSCore

/// Wraps a storage of the engine, which checks what it reads, and fails as planned.
///
/// Such storages report changed or truncated bytes as `.damaged`, and a cache as missing; so does this one.
/// `CallbackStorage.Functions.failing` works below the checks.
package final class FaultyStorage: Storage, @unchecked Sendable {
    // Sendable: immutable; the plan has a lock.
    private let base: any Storage
    private let plan: FaultPlan
    private let closed: () -> Void

    /// - Parameter closed: called when this storage is closed.
    /// - Throws: the plan's error for opening; then `base` is closed.
    package init(_ base: any Storage, plan: FaultPlan, closed: @escaping () -> Void = {}) throws {
        self.base = base
        self.plan = plan
        self.closed = closed
        do { try plan.opening(base.description) } catch {
            try? base.close(discarding: false)
            throw error
        }
    }

    package var description: String { base.description }
    package var isReadOnly: Bool { base.isReadOnly }
    package var path: String { base.path }
    package var watchedPlaces: [WatchedDirectory] { base.watchedPlaces }
    package var isCallingBack: Bool { base.isCallingBack }
    package var blockShape: BlockShape { base.blockShape }
    package var blobThreshold: Int? { base.blobThreshold }
    package var damages: [StorageDamage] { base.damages }
    package func room() -> StorageRoom? { base.room() }
    package func checkPresence(_ doing: String) throws { try base.checkPresence(doing) }
    package func statistics(_ control: PacedControl) throws -> StorageStatistics { try base.statistics(control) }
    package func cacheBytes(_ control: PacedControl) throws -> UInt64 { try base.cacheBytes(control) }
    package func overhead(of place: RecordPlace) -> UInt64 { base.overhead(of: place) }

    private func damaged(_ met: FaultPlan.Met) -> StoreError {
        var error = met.error
        if [.corrupt, .cut, .absent].contains(met.kind) { error.code = .damaged }
        return error
    }

    // MARK: Records

    package func append(_ records: [RecordPieces]) throws -> [RecordPlace] {
        guard let met = try plan.begin(.append, description) else { return try base.append(records) }
        switch met.kind {
        case .loseAcknowledgement: _ = try base.append(records)
        case .partial: if records.count > 1 { _ = try base.append(Array(records.prefix(records.count / 2))) }
        case .fail, .corrupt, .cut, .absent, .delay: break
        }
        throw met.error
    }
    package func sync() throws { try plan.around(.sync, description) { try base.sync() } }

    package func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        guard let met = try plan.begin(.scan, description) else { return try base.scan(control, found) }
        switch met.kind {
        case .absent:
            // For this handle, permanently omits the first record that has the fault.
            var isFirst = true
            try base.scan(control) { record in
                if isFirst { isFirst = false } else { try found(record) }
            }
        case .partial:
            var isFirst = true
            try base.scan(control) { record in
                guard isFirst else { throw met.error }
                isFirst = false
                try found(record)
            }
            throw met.error
        case .loseAcknowledgement:
            try base.scan(control, found)
            throw met.error
        case .fail, .corrupt, .cut, .delay: throw damaged(met)
        }
    }
    package func scanMark() -> [UInt8]? { base.scanMark() }
    package func resume(_ mark: [UInt8]) -> [UInt32]? { base.resume(mark) }
    package func forgetResumed() { base.forgetResumed() }
    package func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport {
        try base.compact(trigger, control)
    }
    package func currentPlace(_ place: RecordPlace) -> RecordPlace { base.currentPlace(place) }
    package var canErase: Bool { base.canErase }
    package func openRecordsLock() throws -> OpenFile? { try base.openRecordsLock() }
    package func erase(_ erasure: any StorageErasure, _ control: PacedControl) throws -> [String] { try base.erase(erasure, control) }
    package func isGone(_ place: RecordPlace) -> Bool { base.isGone(place) }
    package func noteErased(_ place: RecordPlace) { base.noteErased(place) }
    package func noteUsed(_ segments: Set<UInt32>) { base.noteUsed(segments) }
    package func forgetScanned() { base.forgetScanned() }
    package func cacheNames() throws -> [String] { try base.cacheNames() }
    package func cacheErase(_ name: String) throws { try base.cacheErase(name) }
    package func hasCache(_ name: String) -> Bool { base.hasCache(name) }
    package func orders() throws -> [[UInt8]] { try base.orders() }
    package func changeOrders(_ change: ([[UInt8]]) throws -> [UInt8]) throws { try base.changeOrders(change) }
    package func ordersStamp() -> UInt64 { base.ordersStamp() }
    package func hasErasedFiles() -> Bool { base.hasErasedFiles() }
    package func touchOrders() { base.touchOrders() }
    package func finishErasing() throws -> [String] { try base.finishErasing() }
    package func location(_ place: RecordPlace) -> (file: String, offset: UInt64) { base.location(place) }

    package func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        if let met = try plan.begin(.read, description) { throw damaged(met) }
        try base.read(place, at: offset, into: buffer)
    }
    /// The caller checks these bytes, so they are really changed.
    package func readSegment(_ segment: UInt32, at position: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        guard let met = try plan.begin(.read, description) else { return try base.readSegment(segment, at: position, into: buffer) }
        let count = min(buffer.count, try base.readSegment(segment, at: position, into: buffer))
        switch met.kind {
        case .corrupt: if count > 0 { buffer[met.index(count)] ^= 0x40 }; return count
        case .cut: return count / 2
        case .absent: return 0
        case .fail, .loseAcknowledgement, .partial, .delay: throw met.error
        }
    }
    package func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        if let met = try plan.begin(.scan, description) { throw damaged(met) }
        try base.verify(control, found: found, damage: damage)
    }
    package func salvage(_ control: OperationControl, found: (RecordPlace) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        if let met = try plan.begin(.scan, description) { throw damaged(met) }
        try base.salvage(control, found: found, damage: damage)
    }

    // MARK: Blobs

    package func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID {
        guard let met = try plan.begin(.blobWrite, description) else { return try base.storeBlob(data) }
        if met.kind == .loseAcknowledgement { _ = try base.storeBlob(data) }
        throw met.error
    }
    package func blobWriter(size: Int?) throws -> any BlobWriter {
        if let met = try plan.begin(.blobWrite, description) { throw met.error }
        return try base.blobWriter(size: size)
    }
    package func replaceBlob(_ id: BlobID, _ data: UnsafeRawBufferPointer, digest: [UInt8]) throws {
        try plan.around(.blobWrite, description) { try base.replaceBlob(id, data, digest: digest) }
    }
    package func blobTells(_ id: BlobID) -> [UInt8]? { base.blobTells(id) }
    package func removeBlob(_ id: BlobID) { base.removeBlob(id) }
    package func hasBlob(_ id: BlobID) throws -> Bool { try base.hasBlob(id) }
    package func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        if let met = try plan.begin(.blobRead, description) { throw damaged(met) }
        try base.readBlob(id, at: offset, into: buffer)
    }

    // MARK: Caches

    /// Returns whether the cache is to be read at all.
    private func looks() throws -> Bool {
        guard let met = try plan.begin(.cacheGet, description) else { return true }
        if [.corrupt, .cut, .absent].contains(met.kind) { return false }
        throw met.error
    }
    package func cacheGet(_ name: String) throws -> [UInt8]? { try looks() ? base.cacheGet(name) : nil }
    package func cacheOpen(_ name: String) throws -> OpenCache? { try looks() ? base.cacheOpen(name) : nil }
    package func cachePut(_ name: String, _ data: [UInt8]) throws {
        try plan.around(.cachePut, description) { try base.cachePut(name, data) }
    }
    package func cacheDelete(_ name: String) throws { try plan.around(.cacheDelete, description) { try base.cacheDelete(name) } }
    package func cacheWriter(_ name: String?) throws -> any CacheWriter {
        // Maps too large for memory are also written this way, but have no name.
        if name != nil, let met = try plan.begin(.cachePut, description) { throw met.error }
        return try base.cacheWriter(name)
    }

    package func close(discarding: Bool) throws {
        defer { closed() }
        if discarding { return try base.close(discarding: true) }
        // A close that fails must still close.
        let met = Result { try plan.begin(.closeStorage, description) }
        try base.close(discarding: false)
        if let met = try met.get() { throw met.error }
    }
}
