/// Snapshots beside the versions of an exchange.
extension StoreCoordinator {
    func putSnapshotWhenDue(_ exchange: Exchange, _ control: OperationControl) throws {
        let snapshots = Snapshots(store: store, transport: exchange.transport)
        let count = UInt64(try store.statistics().versions)
        guard count > 0 else { return }
        do {
            if let last = try snapshots.manifest(), !last.isForeign {
                let age = Clock.now() - last.createdAt
                // What the manifest says may be anything.
                let isDue = age >= 7 * 86_400 && (last.versionCount > count || count - last.versionCount >= 20)
                if try !isDue && !snapshots.lacksChunks() { return }
            }
        } catch let error as StoreError where error.code == .snapshotDamaged {
            Log.write(.warning, "The snapshot beside \(exchange.transport.description) is broken and is replaced.")
        }
        do { _ = try snapshots.put(control) } catch let error as StoreError where error.code == .unsupported {
            Log.write(.info, error.message)
        }
    }

    /// Restores the snapshot beside an attached exchange into the store, which must be empty or hold one version,
    /// and moves the current version to the most recent unbranched head when nothing had been saved yet.
    /// - Returns: where the current version was, and is; nil when there was no snapshot.
    @discardableResult
    public func bootstrapFromSnapshot(_ control: OperationControl = OperationControl()) throws -> Move? {
        try exchangeGate.run("Restoring a snapshot") {
            let at = currentVersion
            for (_, exchange) in exchanges {
                do {
                    let restored = try Snapshots(store: store, transport: exchange.transport).restore(control)
                    if let first = restored.problems.first {
                        Log.write(.warning, "\(restored.problems.count) versions of the snapshot in \(exchange.transport.description) were not taken. \(first.error.message)")
                    }
                } catch let error as StoreError
                    where error.code == .snapshotMissing || error.code == .unsupported || error.code == .foreignSnapshot { continue }
                return try adoptFirstContent() ?? Move(from: at, to: at)
            }
            return nil
        }
    }
}
