/// Writes what another store lacks, as bytes that the host transports.
extension Store {
    /// Writes the versions that a store lacks as one stream of packs, predecessors first. At the other store, `readPack` adds them.
    /// Versions that are already in transit, or came from that store, are written again unless `have` covers them. They are skipped
    /// there.
    ///
    /// Memory: one pack of at most 16 MiB, whatever the sizes of versions and values. A reader detects a truncated stream.
    /// - Parameters:
    ///   - have: versions that the other side has, with all their ancestors: its heads. Ids that are unknown here are ignored.
    ///   - control: called with stage `.sending`, in versions.
    ///   - write: receives the next bytes, which are valid during the call.
    /// - Returns: the versions written, in that order, and those that could not be written, which hold back their descendants.
    /// - Throws: the errors of `write`, `.cancelled`, errors of the store. Then discard what was written.
    public func writePack(
        have: [VersionID] = [], control: OperationControl = OperationControl(), _ write: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> ExchangeResult {
        let what = "Packing versions of \(description)"
        _ = try reloadHistory(control: control)
        try control.check(.listing, 0, of: 0, doing: what)
        let listing = control.paced(.listing, doing: what)
        let ids = try missing(from: coverage(behind: have, listing.look), listing.look)
        let storeID = PackID.random(), writer = max(1, PackID.random().high)
        let paced = control.paced(.sending, of: ids.count, doing: what)
        return try withoutActuallyEscaping(write) { write in
            var sum = PackStreamSum(), result = ExchangeResult(), failed: Set<VersionID> = []
            try PackStream.start(storeID).withUnsafeBytes(write)
            func emit(_ made: MadePack, _ ids: [VersionID]) throws {
                try PackStream.frame(made.name.kind.rawValue, made.size, made.name.id).withUnsafeBytes(write)
                for piece in made.pieces {
                    try paced.look()
                    try piece.withUnsafeBytes(write)
                }
                sum.add(made.name.id)
            }
            try withoutActuallyEscaping(emit) { emit in
                var packer = VersionPacker(self, storeID: storeID, writer: writer, paced, emit)
                for (i, id) in ids.enumerated() {
                    try control.check(.sending, i, of: ids.count, doing: what)
                    if let error = try heldBack(id, failed) {
                        failed.insert(id)
                        result.problems.append(ExchangeProblem(name: id.description, error: error))
                        continue
                    }
                    do {
                        try packer.add(id)
                        result.versions.append(id)
                    } catch let refusal as VersionPacker.Refusal {
                        failed.insert(id)
                        result.problems.append(ExchangeProblem(name: id.description, error: refusal.error))
                    }
                }
                try packer.finish()
            }
            try PackStream.frame(0, sum.count, sum.finish()).withUnsafeBytes(write)
            if !ids.isEmpty { try control.check(.sending, ids.count, of: ids.count, doing: what) }
            result.problems = ExchangeProblem.inOrder(result.problems)
            if !result.versions.isEmpty { orders.note([NotedPlace(.stream, "streams of \(description)")]) }
            return result.counting()
        }
    }

    /// Returns why a version cannot be written: a predecessor, or a version whose bytes it preserves, could not be.
    private func heldBack(_ id: VersionID, _ failed: Set<VersionID>) throws -> StoreError? {
        guard !failed.isEmpty, let held = try version(id)?.predecessors.first(where: failed.contains) else { return nil }
        return StoreError(
            .missingPredecessor,
            "The version \(id) was not packed, since its predecessor \(held) could not be. It is packed once that one can be.",
            versionID: held.description)
    }
}
