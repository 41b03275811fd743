import LLVSCore

/// Operations of storages and transports, which faults can affect, and which are counted.
package struct FaultOperations: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let append = FaultOperations(rawValue: 1)
    package static let sync = FaultOperations(rawValue: 2)
    package static let scan = FaultOperations(rawValue: 4)
    package static let read = FaultOperations(rawValue: 8)
    package static let cacheGet = FaultOperations(rawValue: 16)
    package static let cachePut = FaultOperations(rawValue: 32)
    package static let cacheDelete = FaultOperations(rawValue: 64)
    /// Large values that a storage stores outside its records.
    package static let blobWrite = FaultOperations(rawValue: 128)
    package static let blobRead = FaultOperations(rawValue: 256)
    package static let openStorage = FaultOperations(rawValue: 512)
    package static let closeStorage = FaultOperations(rawValue: 1024)
    /// All operations of storages.
    package static let storage = FaultOperations(rawValue: 0xFFFF)

    package static let list = FaultOperations(rawValue: 65_536)
    package static let fetchVersions = FaultOperations(rawValue: 131_072)
    package static let fetchChanges = FaultOperations(rawValue: 262_144)
    package static let send = FaultOperations(rawValue: 524_288)
    package static let snapshotList = FaultOperations(rawValue: 1_048_576)
    package static let snapshotRead = FaultOperations(rawValue: 2_097_152)
    package static let snapshotWrite = FaultOperations(rawValue: 4_194_304)
    package static let snapshotDelete = FaultOperations(rawValue: 8_388_608)
    /// All operations of transports.
    package static let transport = FaultOperations(rawValue: 0x7FFF_0000)

    static let all = FaultOperations(rawValue: UInt32.max)
    /// Every single counted operation.
    static let known: [(FaultOperations, String)] = [
        (.append, "append"), (.sync, "sync"), (.scan, "scan"), (.read, "read"), (.cacheGet, "cache_get"), (.cachePut, "cache_put"),
        (.cacheDelete, "cache_delete"), (.blobWrite, "blob_write"), (.blobRead, "blob_read"), (.openStorage, "open"),
        (.closeStorage, "close"),
        (.list, "list"), (.fetchVersions, "fetch_versions"), (.fetchChanges, "fetch_changes"), (.send, "send"),
        (.snapshotList, "snapshot_list"),
        (.snapshotRead, "snapshot_read"), (.snapshotWrite, "snapshot_write"), (.snapshotDelete, "snapshot_delete"),
    ]
}

/// The effect of a fault on an operation. If a kind does not apply to the operation, the operation fails.
package enum FaultKind: UInt32, Sendable {
    /// Nothing is done, and the operation fails.
    case fail = 0
    /// The operation is done, and fails all the same.
    case loseAcknowledgement = 1
    /// A part is done, then the operation fails. If the operation may return a part, as a fetch may, it returns one and succeeds.
    case partial = 2
    /// A byte is changed on reading or writing, or a listing names a missing file.
    case corrupt = 3
    /// The data that is read or written is cut short.
    case cut = 4
    /// Requested data is missing; written data vanishes, and the operation succeeds.
    case absent = 5
    /// Only the delay.
    case delay = 6
}

/// A rule of a plan: a fault, and the operations that it affects.
package struct Fault: Sendable {
    package var kind: FaultKind
    /// Empty: all.
    package var operations: FaultOperations
    /// The code of failing operations. If nil, it is `.transport` for transports and `.io` for storages, except `.unknownOutcome` for an
    /// append that is done.
    package var code: StoreError.Code?
    /// The first operation to fail, counted from 1 among `operations` since the plan was created or reset.
    package var first: UInt64
    /// How many operations can fail from there on; nil: all.
    package var count: UInt64?
    /// The probability for each of them, determined by the seed.
    package var probability: Double
    /// The delay before the operation.
    package var delayMilliseconds: UInt32

    package init(
        _ kind: FaultKind = .fail, on operations: FaultOperations = [], code: StoreError.Code? = nil, first: UInt64 = 1,
        count: UInt64? = nil,
        probability: Double = 1, delayMilliseconds: UInt32 = 0
    ) {
        self.kind = kind; self.operations = operations; self.code = code; self.first = first; self.count = count
        self.probability = probability; self.delayMilliseconds = delayMilliseconds
    }
}

/// Decides which operations of storages and transports fail, and how; reproducible by the seed.
///
/// All wrapped objects count together, so one plan may serve a storage and a transport, and "the n-th" counts both. Safe from all threads;
/// with several threads, scheduling decides which of them gets the n-th.
package final class FaultPlan: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    package let seed: UInt64
    private let lock = Lock()
    private var faults: [Fault] = []
    private var counts: [FaultOperations: UInt64] = [:]
    private var injectedCount: UInt64 = 0
    private var last = ""

    package init(seed: UInt64 = 0) { self.seed = seed }

    /// Adds a rule. If several match an operation, the one added first applies.
    package func add(_ fault: Fault) { lock.withLock { faults.append(fault) } }
    /// Removes the rules; counting continues.
    package func clear() { lock.withLock { faults = [] } }
    /// Resets the counts to 0; the rules stay.
    package func reset() {
        lock.withLock {
            counts = [:]; injectedCount = 0; last = ""
        }
    }

    /// Returns the number of these operations so far; of all if empty.
    package func count(of operations: FaultOperations = []) -> UInt64 { lock.withLock { total(operations.isEmpty ? .all : operations) } }
    /// The number of injected faults.
    package var injected: UInt64 { lock.withLock { injectedCount } }
    /// The last injected fault, for messages: "append 7 of the store at /x: fail"; empty if there was none.
    package var lastInjected: String { lock.withLock { last } }

    private func total(_ operations: FaultOperations) -> UInt64 {
        counts.reduce(0) { operations.contains($1.key) ? $0 &+ $1.value : $0 }
    }

    /// The fault of one operation.
    package struct Met {
        package let kind: FaultKind
        package let error: StoreError
        /// Random bits, determined by the seed.
        package let bits: UInt64

        /// Returns an index below `count`; 0 if that is 0.
        package func index(_ count: Int) -> Int { count > 0 ? Int(bits % UInt64(count)) : 0 }

        /// Returns the bytes with one of them changed, or cut short.
        package func spoil(_ bytes: [UInt8]) -> [UInt8] {
            var spoiled = bytes
            guard !spoiled.isEmpty else { return kind == .cut ? [] : [0x5A] }
            if kind == .cut {
                spoiled.removeLast(spoiled.count - index(spoiled.count))
            } else {
                spoiled[index(spoiled.count)] ^= UInt8(1) << UInt8(bits >> 60 & 7)
            }
            return spoiled
        }
    }

    /// Counts the operation, waits for the delay, and throws if it must fail; otherwise returns its fault, if any.
    package func begin(_ operation: FaultOperations, _ what: String) throws -> Met? {
        let found = lock.withLock { () -> (fault: Fault, met: Met)? in
            counts[operation, default: 0] &+= 1
            for (i, fault) in faults.enumerated() {
                let operations = fault.operations.isEmpty ? FaultOperations.all : fault.operations
                guard operations.contains(operation) else { continue }
                let number = total(operations)
                guard number >= fault.first, fault.count.map({ number - fault.first < $0 }) ?? true else { continue }
                var random = SeededRandom(seed: seed ^ (UInt64(i) &+ 1) &* 0xD6E8_FEB8_6659_FD93 ^ number &* 0xA076_1D64_78BD_642F)
                let bits = random.next()
                // Never for 0, always for 1.
                guard fault.probability >= 1 || Double(random.next() >> 11) * 0x1p-53 < fault.probability else { continue }
                injectedCount &+= 1
                let name = FaultOperations.known.first { $0.0 == operation }?.1 ?? "operation"
                last = "\(name) \(total(operation)) of \(what): \(fault.kind)"
                let code = fault.code ?? FaultPlan.usualCode(fault.kind, operation)
                return (fault, Met(kind: fault.kind, error: StoreError(code, "An injected fault: \(last) (seed \(seed))."), bits: bits))
            }
            return nil
        }
        guard let (fault, met) = found else { return nil }
        if fault.delayMilliseconds > 0 { usleep(min(fault.delayMilliseconds, 3_600_000) * 1000) }
        if met.kind == .fail { throw met.error }
        return met.kind == .delay ? nil : met
    }

    /// Returns the code that a correct storage or transport would throw.
    private static func usualCode(_ kind: FaultKind, _ operation: FaultOperations) -> StoreError.Code {
        if FaultOperations.transport.contains(operation) { return .transport }
        return kind == .loseAcknowledgement && operation == .append ? .unknownOutcome : .io
    }

    /// Counts an opening.
    /// - Throws: the error of the plan.
    package func opening(_ what: String) throws { try around(.openStorage, what) {} }

    /// Runs an operation that returns nothing, with its fault; `absent` skips it and succeeds.
    package func around(_ operation: FaultOperations, _ what: String, _ body: () throws -> Void) throws {
        guard let met = try begin(operation, what) else { return try body() }
        switch met.kind {
        case .absent: return
        case .loseAcknowledgement:
            try body()
            throw met.error
        default: throw met.error
        }
    }
}
