/// Snapshots beside the versions of an exchange.
extension StoreCoordinator {
    /// Writes a snapshot if one is due. A failure becomes a problem in the result, unless the host or the caller ended the call.
    func putSnapshotWhenDue(_ name: String, _ exchange: Exchange, _ result: inout ExchangeResult, _ control: OperationControl) throws {
        let endsTheCall: [StoreError.Code] = [.cancelled, .user, .closed, .outOfMemory]
        do { try putSnapshotWhenDue(name, exchange, control) } catch let error as StoreError where !endsTheCall.contains(error.code) {
            result.problems = ExchangeProblem.inOrder(result.problems + [ExchangeProblem(name: "snapshots", error: error)])
        }
    }

    private func putSnapshotWhenDue(_ name: String, _ exchange: Exchange, _ control: OperationControl) throws {
        let snapshots = Snapshots(store: store, transport: exchange.transport)
        let count = UInt64(try store.statistics().versions)
        guard count > 0 else { return }
        let isBroken = lock.withLock { brokenSnapshots.contains(name) }
        do {
            if !isBroken, let found = try snapshots.find(), !found.manifest.isForeign {
                let last = found.manifest, age = Clock.now() - last.createdAt
                // If the snapshot is dated in the future, one of the two clocks is wrong. Then only the number of versions counts;
                // otherwise the two devices would write a snapshot with each exchange.
                let isOld = age >= 7 * 86_400 || age < -86_400
                let isDue = isOld && (last.versionCount > count || count - last.versionCount >= 20)
                if try !isDue && !snapshots.lacksChunks(found, control) { return }
            }
        } catch let error as StoreError where error.code == .snapshotDamaged {
            Log.write(.warning, "The snapshot beside \(exchange.transport.description) is broken and is replaced.")
        }
        do {
            _ = try snapshots.put(control: control)
            lock.withLock { _ = brokenSnapshots.remove(name) }
        } catch let error as StoreError where error.code == .unsupported {
            Log.write(.info, error.message)
        }
    }

    /// Restores the snapshot beside an attached exchange into the store, which must be empty or hold one version. If nothing was saved yet,
    /// it then moves the current version to the most recent unbranched head. It skips a snapshot that is damaged, that has no version to
    /// restore, or that cannot be read. The next exchange that puts snapshots replaces the first two.
    /// - Returns: the current version before and after; nil if there was no snapshot.
    /// - Throws: the errors of `Snapshots.restore`; if no snapshot could be restored, the error of the first one.
    @discardableResult
    public func bootstrapFromSnapshot(control: OperationControl = OperationControl()) throws -> Move? {
        try exchangeGate.refuseGuest("Restoring a snapshot")
        return try exchangeGate.run("Restoring a snapshot") {
            let at = currentVersion
            var damage: StoreError?
            for (name, exchange) in exchanges {
                do {
                    let restored = try Snapshots(store: store, transport: exchange.transport).restore(control: control)
                    if let first = restored.problems.first {
                        let told = "of the snapshot in \(exchange.transport.description) were not restored. \(first.error.message)"
                        guard restored.addedCount > 0 else { throw StoreError(.snapshotDamaged, "All versions \(told)") }
                        Log.write(.warning, "\(restored.problems.count) versions \(told)")
                    }
                } catch let error as StoreError
                    where error.code == .snapshotMissing || error.code == .unsupported || error.code == .foreignSnapshot
                { continue } catch let error as StoreError
                    where [.snapshotDamaged, .foreignFile, .notADirectory, .tooLarge].contains(error.code)
                {
                    Log.write(.warning, error.message)
                    lock.withLock { _ = brokenSnapshots.insert(name) }
                    damage = damage ?? error
                    continue
                } catch let error as StoreError where [.permission, .io, .noSpace, .transport].contains(error.code) {
                    // The snapshot may be intact, so it is not replaced.
                    Log.write(.warning, error.message)
                    damage = damage ?? error
                    continue
                } catch let error as StoreError where error.code == .storeNotEmpty { throw damage ?? error }
                return try adoptFirstContent() ?? Move(from: at, to: at)
            }
            if let damage { throw damage }
            return nil
        }
    }
}
