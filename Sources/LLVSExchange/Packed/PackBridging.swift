/// Bridged remotes: docs/pack-format.md, section 11. They hold single files beside the packs, and versions from each side are copied to the
/// other.
struct PackBridging {
    let run: PackedRun

    /// Returns whether there are single files beside the packs: as a root says; without a root, as the exchange was opened.
    func isBridge() throws -> Bool {
        guard run.keys == nil else { return false }
        guard !run.state.roots.isEmpty else { return run.place.wantsBridge }
        if run.state.roots.contains(where: \.isBridged) { return true }
        if run.place.wantsBridge { throw holdsPacksAlone }
        return false
    }

    /// Records versions from one side that another active device should copy to the other side. If it has not done so after a day, this one
    /// does.
    func note(_ ids: [VersionID], fromPacks: Bool) {
        let turns = BridgeTurns(run)
        for id in ids where run.state.bridging.count < PackedSettings.bridgingLimit && id != EmptyRoot.id && !turns.isMine(id) {
            run.state.bridging[id] = PackedState.Bridging(since: run.now, isFromPacks: fromPacks)
        }
    }

    /// Returns the versions that this device does not copy to the other side now.
    /// - Parameter fromPacks: true for versions from packs, false for those from single files.
    func leftToOthers(fromPacks: Bool) -> Set<VersionID> {
        guard !run.state.bridging.isEmpty else { return [] }
        let turns = BridgeTurns(run), time = run.now
        run.state.bridging = run.state.bridging.filter { (0..<PackedSettings.day).contains(time - $0.value.since) && !turns.isMine($0.key) }
        return Set(run.state.bridging.lazy.filter { $0.value.isFromPacks == fromPacks }.map(\.key))
    }

    /// Returns the missing versions to send in packs.
    func toSend(of missing: [VersionID]) throws -> [VersionID] {
        guard try isBridge(), !run.state.bridging.isEmpty else { return missing }
        let ids = Set(missing)
        // Forget those that another device has copied meanwhile.
        run.state.bridging = run.state.bridging.filter { $0.value.isFromPacks || ids.contains($0.key) }
        return try BridgedVersions.toSend(of: missing, without: leftToOthers(fromPacks: false), run.store)
    }

    private var holdsPacksAlone: StoreError {
        StoreError(
            .invalidArgument,
            "\(run.files.description) holds only packs, and stays so. Open it without the layout bridged, or give a place that is empty or "
                + "holds single files.")
    }
}

/// Decides which device copies a version to the other side.
private struct BridgeTurns {
    private let mine: UInt64, others: [UInt64]

    init(_ run: PackedRun) {
        let time = run.now, writer = run.state.writer
        mine = writer
        others = run.state.active.filter { $0.key != writer && time - $0.value <= PackedSettings.activity }.map(\.key)
    }

    /// Returns whether no active writer has a smaller digest with the version's id.
    func isMine(_ id: VersionID) -> Bool {
        let text = Array(id.description.utf8)
        func digest(_ writer: UInt64) -> [UInt8] { (PackID.bytes(of: writer) + text).withUnsafeBytes { Array(SHA256.digest($0)) } }
        let own = digest(mine)
        return !others.contains { Bytes.compare(digest($0), own) < 0 }
    }
}
