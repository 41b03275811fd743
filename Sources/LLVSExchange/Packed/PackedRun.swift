/// One retrieve or send with a remote in the packed layout. Its knowledge is in `state`, which is saved before each upload that relies on
/// it, and at the end.
package final class PackedRun {
    let store: Store
    let place: PackedPlace
    let notes: PackedNotes
    let control: OperationControl
    let what: String
    var state: PackedState
    /// The versions known to be at the remote.
    var there: Coverage
    /// What was known before this run.
    private(set) var before: (roots: [PackedState.Root], hasBlobs: Bool)
    /// What this run found.
    var found = Findings()
    /// The current stage, for progress.
    var stage = OperationProgress.Stage.receiving
    /// The state as last saved, and what its summary of versions covers.
    private var saved: (body: ArraySlice<UInt8>, coverage: Coverage?) = ([], nil)

    /// What one run found at the remote. Not saved.
    struct Findings {
        /// The listed roots, with their sizes; nil until they are listed.
        var roots: [PackName: Int]?
        /// All existing packs, if this run listed them.
        var packs: [PackName: Int]?
        /// The listing of the files of keys that this run read: it is not read twice in one exchange.
        var keyNames: [String]?
        /// Listed merged packs of this device with an unknown outcome, for `PackMerging.takeBackUnfinished`.
        var toReadBack: Set<PackName> = []
        /// Problems other than those of versions.
        var problems: [ExchangeProblem] = []
        /// The number of unusable files that are not remembered individually.
        var furtherBad = 0
    }

    init(_ store: Store, _ place: PackedPlace, _ notes: PackedNotes, _ control: OperationControl, doing what: String) throws {
        self.store = store; self.place = place; self.notes = notes; self.control = control; self.what = what
        let settings = place.settings
        _ = try store.reloadHistory(control: control)
        try control.check(.listing, 0, of: 0, doing: what)
        if let found = try notes.load() {
            state = found
            saved.body = found.body.dropLast(8)
        } else {
            state = PackedState(settings.random)
        }
        before = (state.roots, false)
        if case let now = settings.clock(), now >= settings.earliest { state.putRight(at: now) }
        // The service may have raised its limit.
        if let refused = state.refusedSize, settings.clock() - refused.at > PackedSettings.attemptLife { state.refusedSize = nil }
        if let cut = state.cut, settings.clock() - cut.at > PackedSettings.cutLife { state.cut = nil }
        before.hasBlobs = !state.blobs.isEmpty
        there = try store.coverage(behind: state.heads)
        store.uncover(state.lacking, in: &there) {}
        if try !store.unknown(among: state.heads).isEmpty {
            // The store was reset, lost records in a power cut, or is a copy. It may have lost versions that it read or sent.
            state.becomeNewWriter(settings.random)
            state.attempts = [:]
            state.read = state.read.filter { $0.value.isReplaced && $0.value.missing != 0 }
            state.based = nil
            state.waiting = [:]
            state.incomplete = [:]
        } else {
            saved.coverage = there
        }
        state.exchanges &+= 1
    }

    /// Deletes and forgets everything that this device sent to the remote, since it cannot be opened any more. The versions of the store
    /// are sent again.
    func beginAnew() throws {
        let names = (state.roots.map(\.name) + state.attempts.keys).map(\.description)
        for name in state.attempts.keys { notes.forget(name) }
        // Remaining files are reported as files without keys.
        if !names.isEmpty { try? files.delete(names, check) }
        let former = state
        state = PackedState(settings.random)
        (state.exchanges, state.seedsAnew, state.formerStores) = (former.exchanges, former.seedsAnew, former.formerStores)
        (before, found.roots, saved.coverage) = (([], false), nil, nil)
        there = try store.coverage(behind: [])
    }

    // What a run can do, by subject. These types have no state of their own.
    var listing: PackListing { PackListing(run: self) }
    var fetching: PackFetching { PackFetching(run: self) }
    var notices: PackNotices { PackNotices(run: self) }
    var bridging: PackBridging { PackBridging(run: self) }
    var keyring: PlaceKeyring { PlaceKeyring(run: self) }
    var publishing: PackPublishing { PackPublishing(run: self) }
    var merging: PackMerging { PackMerging(run: self) }
    var healing: PackHealing { PackHealing(run: self) }
    var erasing: PackErasing { PackErasing(run: self) }

    var files: any RemoteFiles { place.files }
    var settings: PackedSettings { place.settings }
    /// Nil: the remote is not encrypted.
    var keys: PackedKeys? { place.keys }
    var rate: TransferRate { place.rate }
    /// The approximate size limit of a pack.
    var packLimit: Int { min(PackFormat.writtenFile, files.capabilities.largestFile ?? .max, state.refusedSize?.most ?? .max) }
    /// The approximate size limit of a pack that replaces others.
    var mergeLimit: Int { min(packLimit, state.cut?.most ?? .max) }

    var now: Int64 { settings.clock() }
    var check: () throws -> Void { { [control, what, stage] in try control.check(stage, 0, of: 0, doing: what) } }
    func during<R>(_ stage: OperationProgress.Stage, _ body: () throws -> R) rethrows -> R {
        let before = self.stage
        self.stage = stage
        defer { self.stage = before }
        return try body()
    }

    /// Saves the state.
    func save() throws {
        if saved.coverage != there {
            (state.heads, state.lacking) = try store.summary(of: there)
            saved.coverage = there
        }
        let body = state.body
        // A changed count of exchanges alone is not saved.
        guard body.dropLast(8) != saved.body else { return }
        try notes.save(body)
        saved.body = body.dropLast(8)
    }

    func problem(_ name: PackName, _ fault: PackFault) -> ExchangeProblem {
        let text = name.description
        var error = fault.error("The file \(text) in \(files.description)")
        error.path = text
        return ExchangeProblem(name: text, error: error)
    }

    /// Records the fault of a file, which is reported once it is certain. The file is retried, soon if it may still be arriving. The record
    /// is bounded, since other devices may upload any number of files.
    func fail(_ name: PackName, _ fault: PackFault, _ size: Int) {
        if state.bad[name] == nil, state.bad.count >= PackedSettings.badLimit {
            if fault.kind != .notThere { found.furtherBad += 1 }
            if state.passed.count < PackedSettings.passedLimit { state.passed.insert(state.digest(of: name)) }
            return
        }
        let since = state.bad[name]?.since ?? now
        let again = now + PackedSettings.wait(after: fault.kind, for: now - since)
        state.bad[name] = PackedState.Bad(since: since, again: again, fault: fault, size: size == PackListing.unknownSize ? nil : size)
    }

    /// Records that large values of a pack were missing.
    /// - Parameter parts: the missing files, as far as known.
    func lacks(_ name: PackName, _ parts: [PackName]) {
        let since = state.incomplete[name]?.since ?? now
        state.incomplete[name] = PackedState.Incomplete(
            since: since, again: now + PackedSettings.wait(after: .notThere, for: now - since),
            parts: Array(parts.prefix(PackedSettings.missingParts)))
    }

    /// Returns those versions of a pack of which it has all bytes that the store has. The others are sent again.
    func haveAllBytes(_ ids: [VersionID], _ services: PackServices) throws -> [VersionID] {
        let hollow = services.hollow
        guard !hollow.isEmpty else { return ids }
        let absent = try Set(store.unknown(among: Array(hollow)))
        return ids.filter { !hollow.contains($0) || absent.contains($0) || (try? store.hollowCount(of: $0)) ?? 0 > 0 }
    }

    /// Whether the index of a pack can be trusted. At an unencrypted place any device with write access can list versions that were never
    /// sent, so only versions that were read count.
    var believesIndexes: Bool { sealing.isEncrypted }
}
