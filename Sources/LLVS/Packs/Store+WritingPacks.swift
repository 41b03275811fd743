/// What another store lacks, as bytes that the host carries there.
extension Store {
    /// Writes the versions that a store lacks as one stream of packs, predecessors first: by whatever way it goes there, `readPack` adds
    /// them. What is already on the way, or came from there, is written again unless `have` covers it: then it is passed over there.
    ///
    /// Memory: one pack of at most 16 MiB, whatever the sizes of versions and values. A stream that breaks off can be told from a whole
    /// one.
    /// - Parameters:
    ///   - have: versions that the other side has, with all their ancestors: its heads. Those that are not here say nothing.
    ///   - control: called with stage `.sending`, in versions.
    ///   - write: takes what comes next; the bytes are good during the call.
    /// - Returns: the versions written, in that order, and those that could not be, which hold back what builds on them.
    /// - Throws: what `write` throws, `.cancelled`, failures of the store; what was written until then is to be thrown away.
    public func writePack(
        have: [VersionID] = [], _ control: OperationControl = OperationControl(), _ write: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> ExchangeResult {
        let what = "Packing versions of \(description)"
        _ = try reloadHistory(control)
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
            return result.counting()
        }
    }

    /// Why a version cannot go along: one that it builds on, or whose bytes it names, could not be written.
    private func heldBack(_ id: VersionID, _ failed: Set<VersionID>) throws -> StoreError? {
        guard !failed.isEmpty, let held = try version(id)?.predecessors.first(where: failed.contains) else { return nil }
        return StoreError(
            .missingPredecessor,
            "The version \(id) was not packed, since its predecessor \(held) could not be. It is packed once that can be.",
            versionID: held.description)
    }
}
