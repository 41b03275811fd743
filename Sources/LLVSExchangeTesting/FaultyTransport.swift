import LLVSCore
import LLVSExchange
import LLVSTesting
import LLVSUpkeep

/// Wraps a transport, and fails as planned. It changes, truncates or loses the files that the exchange gets, or those that the other side
/// stores.
package final class FaultyTransport: ExchangeTransport, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let base: any ExchangeTransport
    private let plan: FaultPlan
    private let closed: () -> Void
    private let lock = Lock()
    private var isClosed = false

    /// - Parameter closed: called once, when this transport is closed or released.
    package init(_ base: any ExchangeTransport, plan: FaultPlan, closed: @escaping () -> Void = {}) {
        self.base = base; self.plan = plan; self.closed = closed
    }
    deinit { close() }

    package var description: String { base.description }

    package func list(_ control: OperationControl) throws -> ExchangeListing {
        guard let met = try plan.begin(.list, description) else { return try base.list(control) }
        var listing = try base.list(control)
        // The mark no longer matches the listing.
        listing.mark = nil
        switch met.kind {
        case .absent: if !listing.versions.isEmpty { listing.versions.remove(at: met.index(listing.versions.count)) }
        case .cut: listing.versions = Array(listing.versions.sorted().prefix(listing.versions.count / 2))
        case .corrupt: listing.versions.append(try VersionID("NOT-THERE-\(met.bits)"))
        case .fail, .loseAcknowledgement, .partial, .delay: throw met.error
        }
        return listing
    }

    package func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try fetch(.fetchVersions, names) { try base.fetchVersions($0, control) }
    }
    package func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try fetch(.fetchChanges, names) { try base.fetchChanges($0, control) }
    }
    private func fetch(_ operation: FaultOperations, _ names: [String], _ body: ([String]) throws -> [FetchedFile]) throws -> [FetchedFile]
    {
        guard let met = try plan.begin(operation, description) else { return try body(names) }
        switch met.kind {
        // A transport may return a part: the caller requests the rest again.
        case .partial: return try body(Array(names.prefix(max(1, names.count / 2))))
        case .absent, .corrupt, .cut:
            var files = try body(names)
            guard !files.isEmpty else { return files }
            let which = met.index(files.count)
            if met.kind == .absent {
                files[which] = .missing
            } else if let bytes = try FaultyTransport.bytes(files[which]) {
                files[which] = .data(met.spoil(bytes))
            }
            return files
        case .loseAcknowledgement:
            _ = try body(names)
            throw met.error
        case .fail, .delay: throw met.error
        }
    }

    /// Returns the whole file; nil if there is none.
    static func bytes(_ file: FetchedFile) throws -> [UInt8]? {
        switch file {
        case .data(let bytes): return bytes
        case .missing, .unreadable: return nil
        case .pieces(let reader):
            var all: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 1 << 20)
            while true {
                let count = try piece.withUnsafeMutableBytes { try reader.read(into: $0) }
                guard count > 0, count <= piece.count else { return all }
                all += piece[..<count]
            }
        }
    }

    package func send(_ files: [ExchangeFiles], _ control: OperationControl) throws {
        guard let met = try plan.begin(.send, description), !files.isEmpty else { return try base.send(files, control) }
        let which = met.index(files.count)
        var files = files
        switch met.kind {
        case .loseAcknowledgement:
            try base.send(files, control)
            throw met.error
        case .partial:
            if which > 0 { try base.send(Array(files.prefix(which)), control) }
            throw met.error
        case .absent:
            files.remove(at: which)
            if !files.isEmpty { try base.send(files, control) }
        case .corrupt, .cut:
            if met.bits >> 62 == 0 {
                files[which].version = met.spoil(files[which].version)
            } else {
                files[which].changes = OutgoingFile(met.spoil(try files[which].changes.bytes()))
            }
            try base.send(files, control)
        case .fail, .delay: throw met.error
        }
    }
    package func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
        try base.unusable(among: names, control)
    }

    // MARK: Snapshots

    package func readSnapshotFile(_ name: String) throws -> [UInt8]? {
        guard let met = try plan.begin(.snapshotRead, description) else { return try base.readSnapshotFile(name) }
        switch met.kind {
        case .absent: return nil
        case .corrupt, .cut: return try base.readSnapshotFile(name).map(met.spoil)
        case .fail, .loseAcknowledgement, .partial, .delay: throw met.error
        }
    }
    package func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws {
        guard let met = try plan.begin(.snapshotWrite, description) else { return try base.writeSnapshotFile(name, data) }
        switch met.kind {
        case .absent: return
        case .corrupt, .cut: try base.writeSnapshotFile(name, met.spoil(data))
        case .loseAcknowledgement:
            try base.writeSnapshotFile(name, data)
            throw met.error
        case .fail, .partial, .delay: throw met.error
        }
    }
    package func deleteSnapshotFile(_ name: String) throws {
        try plan.around(.snapshotDelete, description) { try base.deleteSnapshotFile(name) }
    }
    package func snapshotFileNames() throws -> [String] {
        guard let met = try plan.begin(.snapshotList, description) else { return try base.snapshotFileNames() }
        var names = try base.snapshotFileNames()
        switch met.kind {
        case .absent: if !names.isEmpty { names.remove(at: met.index(names.count)) }
        case .cut: names = Array(names.sorted().prefix(names.count / 2))
        case .corrupt: names.append("not-there-\(met.bits)")
        case .fail, .loseAcknowledgement, .partial, .delay: throw met.error
        }
        return names
    }

    // MARK: The rest

    package var restorationState: [UInt8] {
        get { base.restorationState }
        set { base.restorationState = newValue }
    }
    package func isReadByOthers(_ store: Store) -> Bool { base.isReadByOthers(store) }
    package func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { try base.observe(changed) }
    package func close() {
        let first = lock.withLock {
            defer { isClosed = true }; return !isClosed
        }
        guard first else { return }
        base.close()
        closed()
    }
}
