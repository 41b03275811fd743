import LLVS
import LLVSTestSupport

/// One store of a history, with its disk, folders and clock.
final class Replica {
    let number: Int
    let plan: Plan.ReplicaPlan
    let attachments: [Int]
    private(set) var store: Store
    private(set) var coordinator: StoreCoordinator?
    private(set) var exchanges: [Int: Exchange] = [:]
    private(set) var views: [Int: FolderView] = [:]
    /// The version that an app would be at.
    var current: VersionID?
    /// The version at which its coordinator began without a note.
    var unnoted: VersionID?
    /// The versions that the replica must have from now on: all that it made or received.
    var known = VersionSet()
    /// The readings of its clock, and ids for versions that get one from the caller.
    let environment: Box

    /// The environment of the store, for any thread.
    final class Box: @unchecked Sendable {
        var now = 0.0
        var skew: Double
        var ids = SeededRandom(seed: 0)
        /// The timestamps that the replica's process has used: as the process records them, and as the simulator saw them.
        let times = GivenTimes()
        var given: Set<Double> = []
        var reading: Double { let time = now + skew; return time.isFinite ? time : .greatestFiniteMagnitude }
        let checksIDs: Bool
        init(skew: Double, checksIDs: Bool) { self.skew = skew; self.checksIDs = checksIDs }

        func nextID() -> VersionID {
            let (high, low) = (ids.next(), ids.next())
            // Now and then an id that is no UUID.
            let text = high % 16 == 0 ? "note-\(low % 1_000_000)_\(String(high, radix: 36))" : Box.uuid(high, low)
            return (try? VersionID(text)) ?? EmptyRoot.id
        }
        /// Makes an id that does not have the form of content ids.
        private static func uuid(_ high: UInt64, _ low: UInt64) -> String {
            let high = high & ~0xF000 | 0x4000
            let digits = [high, low].map {
                String(repeating: "0", count: 16 - String($0, radix: 16).count) + String($0, radix: 16, uppercase: true)
            }.joined()
            var text = ""
            for (i, c) in digits.enumerated() { text += [8, 12, 16, 20].contains(i) ? "-\(c)" : "\(c)" }
            return text
        }
    }

    private let disk = SimulatedDisk()
    private let path: String
    private let folders: [SimulatedFolder]
    private let folderPaths: [String]
    private let tellsMarks: Bool

    init(
        _ number: Int, _ plan: Plan.ReplicaPlan, attachments: [Int], folders: [SimulatedFolder], folderPaths: [String], path: String,
        checksIDs: Bool = true
    ) throws {
        self.number = number; self.plan = plan; self.attachments = attachments
        self.folders = folders; self.folderPaths = folderPaths
        self.path = path
        tellsMarks = number % 2 == 0
        environment = Box(skew: plan.skew, checksIDs: checksIDs)
        store = try Replica.open(disk, path, plan, environment, environment.times)
        try connect()
        try coordinate()
    }

    private func coordinate() throws {
        coordinator = plan.isCoordinated ? try StoreCoordinator(store: store) : nil
    }

    /// The version at which its coordinator is.
    var coordinated: VersionID? { coordinator.flatMap { $0.currentVersion == EmptyRoot.id ? nil : $0.currentVersion } }

    func go(to id: VersionID) throws {
        try coordinator?.setCurrentVersion(id)
        current = id
    }
    /// Leaves the current version. The next merge begins at the newest head.
    func leave() { current = nil }

    private static func open(_ disk: SimulatedDisk, _ path: String, _ plan: Plan.ReplicaPlan, _ box: Box, _ times: GivenTimes) throws
        -> Store
    {
        var options = Store.Options()
        options.durability = .normal
        options.memoryBudget = plan.memoryBudget
        options.compactionGrace = 0
        switch plan.medium {
        case .simulated:
            options.storage = .custom(
                SimulatedStorage(disk, blobThreshold: plan.blobThreshold, blockShape: plan.isBlocked ? .records(256) : .none))
        case .file: options.storage = .file
        case .sqlite: options.storage = .sqlite
        }
        let store = try Store(path: path, options: options)
        store.environment = Environment(clock: { box.reading }, times: times)
        store.environment.checksIDs = box.checksIDs
        return store
    }

    private func connect() throws {
        for number in attachments {
            let transport: any ExchangeTransport
            if folderPaths.isEmpty {
                let view = views[number] ?? FolderView(folders[number], tellsMarks: tellsMarks)
                views[number] = view
                transport = view
            } else {
                var options = FolderTransport.Options()
                options.durability = .normal
                transport = try FolderTransport(path: folderPaths[number], options: options)
            }
            exchanges[number] = Exchange(store: store, transport: transport)
        }
    }

    func close() throws {
        for exchange in exchanges.values { exchange.close() }
        exchanges = [:]
        try coordinator?.close()
        try store.close()
    }

    func restart(vanishing: Bool, withoutCaches: Bool, defect: Defect?) throws {
        if vanishing {
            // Like a killed process: nothing more is written. The memory is released with the object.
            for exchange in exchanges.values { exchange.close() }
            exchanges = [:]
            store.discard()
        } else {
            try close()
        }
        if defect == .storage, plan.medium == .simulated { disk.loseLastRecord() }
        if withoutCaches {
            disk.forgetCaches()
            if plan.medium == .file { TemporaryDirectory.remove(path + "/cache") }
        }
        // The killed process holds no locks.
        coordinator = nil
        store = try Replica.open(disk, path, plan, environment, environment.times)
        try connect()
        try coordinate()
    }

    /// Another process's handle of the same store.
    func another() throws -> Store { try Replica.open(disk, path, plan, environment, GivenTimes()) }
}
