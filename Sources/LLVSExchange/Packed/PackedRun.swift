/// One retrieve or send with a remote in the packed layout. Its knowledge is in `state`, which is saved before each upload that relies on
/// it, and at the end.
package final class PackedRun {
    let store: Store
    let files: any RemoteFiles
    let notes: PackedNotes
    let settings: PackedSettings
    /// Nil: the remote is not encrypted.
    let keys: PackedKeys?
    let rate: TransferRate
    let control: OperationControl
    let what: String
    var state: PackedState
    /// The versions known to be at the remote.
    var there: Coverage
    /// All existing packs, if this run listed them.
    var listedInFull: [PackName: Int]?
    /// Whether a new root says that there are single files beside the packs.
    var wantsBridge = false
    /// The listing of the files of keys that this run read: it is not read twice in one exchange.
    var keyNamesRead: [String]?
    /// Whether the next retrieve lists all packs.
    var mustListFully = false
    /// Listed merged packs of this device with an unknown outcome, for `takeBackUnfinished`.
    var toReadBack: Set<PackName> = []
    /// The roots that were known before this run.
    private(set) var rootsBefore: [PackedState.Root]
    /// Whether large values at the remote were known before this run. Those first met in this run need no check.
    private(set) var knewBlobs: Bool
    private var saved: ArraySlice<UInt8> = []
    private var summarized: Coverage?
    /// The approximate size limit of a pack.
    var packLimit: Int { min(PackFormat.writtenFile, files.capabilities.largestFile ?? .max, state.refusedSize?.most ?? .max) }
    /// The approximate size limit of a pack that replaces others.
    var mergeLimit: Int { min(packLimit, state.cut?.most ?? .max) }

    init(
        _ store: Store, _ files: any RemoteFiles, _ notes: PackedNotes, _ settings: PackedSettings, _ keys: PackedKeys?,
        _ rate: TransferRate, _ control: OperationControl, doing what: String
    ) throws {
        self.store = store; self.files = files; self.notes = notes; self.settings = settings; self.keys = keys; self.rate = rate
        self.control = control; self.what = what
        _ = try store.reloadHistory(control: control)
        try control.check(.listing, 0, of: 0, doing: what)
        if let found = try notes.load() {
            state = found
            saved = found.body.dropLast(8)
        } else {
            state = PackedState(settings.random)
        }
        rootsBefore = state.roots
        if case let now = settings.clock(), now >= settings.earliest { state.putRight(at: now) }
        // The service may have raised its limit.
        if let refused = state.refusedSize, settings.clock() - refused.at > PackedSettings.attemptLife { state.refusedSize = nil }
        if let cut = state.cut, settings.clock() - cut.at > PackedSettings.cutLife { state.cut = nil }
        knewBlobs = !state.blobs.isEmpty
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
            summarized = there
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
        let before = state
        state = PackedState(settings.random)
        (state.exchanges, state.seedsAnew, state.formerStores) = (before.exchanges, before.seedsAnew, before.formerStores)
        (rootsBefore, rootsListed, knewBlobs, summarized) = ([], nil, false, nil)
        there = try store.coverage(behind: [])
    }

    var now: Int64 { settings.clock() }
    /// The current stage, for progress.
    var stage = OperationProgress.Stage.receiving
    var check: () throws -> Void { { [control, what, stage] in try control.check(stage, 0, of: 0, doing: what) } }
    func during<R>(_ stage: OperationProgress.Stage, _ body: () throws -> R) rethrows -> R {
        let before = self.stage
        self.stage = stage
        defer { self.stage = before }
        return try body()
    }

    /// Saves the state.
    func save() throws {
        if summarized != there {
            (state.heads, state.lacking) = try store.summary(of: there)
            summarized = there
        }
        let body = state.body
        // A changed count of exchanges alone is not saved.
        guard body.dropLast(8) != saved else { return }
        try notes.save(body)
        saved = body.dropLast(8)
    }

    // MARK: Listing

    /// The size of a file if the service does not return it.
    static let notTold = -1

    /// Returns the packs in a directory, with their sizes; `notTold` if the service does not return them.
    func list(_ kind: PackKind) throws -> [PackName: Int] {
        try control.check(.listing, 0, of: 0, doing: what)
        let directory = String(kind.prefix.dropLast()), paced = control.paced(.listing, doing: what)
        var found: [PackName: Int] = [:]
        for entry in try files.list(directory, withTimes: false, check) ?? [] where !entry.isDirectory {
            try paced.step(0)
            guard let name = PackName(kind.prefix + entry.name), found.count < 1_000_000 else { continue }
            // The service may return an impossible size.
            found[name] = entry.size.map { min(max(0, $0), 1 << 40) } ?? PackedRun.notTold
        }
        return found
    }

    /// The listed roots, with their sizes; nil until they were listed in this run.
    var rootsListed: [PackName: Int]?

    /// Discards the roots of a place that is refused.
    func forgetNewRoots() { (state.roots, rootsListed) = (rootsBefore, nil) }

    func listRootsAnew() throws -> Bool {
        rootsListed = nil
        return try listRoots()
    }

    /// Lists the roots, and reads new ones; once per run.
    /// - Returns: whether there is any.
    func listRoots() throws -> Bool {
        if let rootsListed { return !rootsListed.isEmpty }
        let paced = control.paced(.listing, doing: what)
        var sizes: [PackName: Int] = [:], hasKeys = false, holdsOther = false
        for entry in try files.list("pack1", withTimes: false, check) ?? [] {
            try paced.step(0)
            if entry.isDirectory { hasKeys = hasKeys || entry.name == "keys"; holdsOther = true; continue }
            if let name = PackName("pack1/" + entry.name), name.kind == .root { sizes[name] = entry.size ?? PackedRun.notTold }
        }
        // A root itself says whether the place is encrypted.
        if keys == nil, hasKeys || (holdsOther && sizes.isEmpty) { try RemoteKeyDirectory.refuseKeys(files, check) }
        let known = Set(state.roots.map(\.name))
        // Known roots stay, so that an attacker who writes many with smaller ids displaces none.
        let unknown = try sizes.keys.filter {
            try paced.step(0); return !known.contains($0)
        }
        var new = try unknown.sorted(by: { $0.id < $1.id }, looking: paced.look).prefix(PackedSettings.rootsLookedAt)
        var withheld: [(name: PackName, error: StoreError)] = []
        while !new.isEmpty, state.roots.count < PackedSettings.rootsLimit {
            let some = new.prefix(PackedSettings.rootsLimit - state.roots.count)
            new = new.dropFirst(some.count)
            let reads = some.map { RemoteRead(name: $0.description, limit: PackFormat.fileLimit(.root)) }
            for (name, contents) in try zip(some, files.read(reads, check)) {
                if case .unreadable(let error) = contents, error.code != .tooLarge { withheld.append((name, error)) }
                try takeRoot(name, contents)
            }
        }
        // Without this error, a device that knows no root would create another one beside the unreadable one.
        if state.roots.isEmpty, let error = withheld.first?.error { throw error }
        for (name, error) in withheld { problems.append(ExchangeProblem(name: name.description, error: error)) }
        state.roots.sort { $0.name.id < $1.name.id }
        rootsListed = sizes
        return !sizes.isEmpty
    }

    private func takeRoot(_ name: PackName, _ contents: RemoteContents) throws {
        guard case .bytes(let bytes, _) = contents else { return }
        do {
            state.roots.append(try PackedRun.root(name, bytes, sealing))
            // Packs may belong to the store that it names.
            for (name, bad) in state.bad where bad.fault?.kind == .otherStore { state.bad[name]?.again = 0 }
            // Another device has refilled it already.
            state.seedsAnew = false
            state.formerStores = []
        } catch let fault as PackFault {
            if keys == nil, bytes.starts(with: AgeHeader.magic) { throw RemoteKeyDirectory.isEncrypted(files.description) }
            if fault.kind != .notThere { problems.append(problem(name, fault)) }
        }
    }
    /// Problems other than those of versions.
    var problems: [ExchangeProblem] = []
    /// The number of unusable files that are not remembered individually.
    var furtherBad = 0

    func problem(_ name: PackName, _ fault: PackFault) -> ExchangeProblem {
        let text = name.description
        var error = fault.error("The file \(text) in \(files.description)")
        error.path = text
        return ExchangeProblem(name: text, error: error)
    }

    /// - Throws: `PackFault`.
    static func root(_ name: PackName, _ bytes: [UInt8], _ sealing: PackSealing = .none) throws -> PackedState.Root {
        let file = try PackFile(name, bytes, stores: [], sealing: sealing)
        guard let store = PackID(file.index.header[16..<32]) else { throw PackFault.damaged("it is not a root") }
        let said = try RootText(file)
        guard said.format == 1 else { throw PackFault.newer("its format is another than 1") }
        guard said.store == store.description else { throw PackFault.damaged("it names another store than its header") }
        guard said.layout == RootText.packed || (said.layout == RootText.bridged && !said.isEncrypted) else {
            throw PackFault.newer("its layout is \"\(said.layout)\"")
        }
        guard said.isEncrypted == sealing.isEncrypted else {
            throw PackFault.damaged("it contradicts the packs about encryption")
        }
        return PackedState.Root(name: name, store: store, bytes: bytes)
    }

    // MARK: Packs of this device

    /// Processes the packs of this device in a listing.
    func lookAtOwn(_ listing: [PackName: Int]) throws {
        let paced = control.paced(.listing, doing: what)
        // Other devices may have written any number of names at the remote.
        var own: [(key: PackName, value: Int)] = []
        for one in listing {
            try paced.step(0)
            if one.key.writer == state.writer || state.attempts[one.key] != nil { own.append(one) }
        }
        for (name, size) in try own.sorted(by: { $0.key.id < $1.key.id }, looking: paced.look) {
            if name.writer != state.writer {
                // Sent under a former writer id.
                if let attempt = state.attempts[name], attempt.outcome == .done, size != PackedRun.notTold, size != attempt.size {
                    try isShort(name)
                    state.attempts[name] = nil
                    state.read[name] = nil
                }
                continue
            }
            guard var attempt = state.attempts[name] else {
                if state.read[name] == nil, try isPack(name, size) { return state.becomeNewWriter(settings.random) }
                continue
            }
            if now - attempt.listed > PackedSettings.day {
                attempt.listed = now
                state.attempts[name] = attempt
            }
            if size != PackedRun.notTold, size != attempt.size {
                if attempt.outcome == .done {
                    try isShort(name)
                    state.attempts[name]?.outcome = .failed
                    if name.kind == .log || attempt.isAdoption { state.holes.insert(name.first) }
                } else if attempt.outcome == .trying {
                    state.attempts[name]?.outcome = .failed
                }
            } else if attempt.outcome == .trying, name.kind == .log, name.first == state.next || state.holes.contains(name.first) {
                // If the service returns digests, the size is not sufficient. A file that it withholds at present is sent again, since it
                // may never return it.
                let answer = files.capabilities.tellsDigests ? try readBack(name, attempt.size) : .success(true)
                if (try? answer.get()) != true {
                    state.attempts[name]?.outcome = .failed
                } else {
                    try settle(name)
                }
            } else if attempt.outcome == .failed || attempt.outcome == .trying, name.kind == .base {
                toReadBack.insert(name)
            }
        }
    }

    /// An acknowledged pack is incomplete or missing: its versions are sent again.
    private func isShort(_ name: PackName) throws {
        if let ids = try notes.ids(of: name) { store.uncover(ids, in: &there) {} }
    }

    /// Records that an attempt is complete at the remote.
    func settle(_ name: PackName) throws {
        state.attempts[name]?.outcome = .done
        if let ids = try notes.ids(of: name) { store.cover(ids, in: &there) }
        if state.holes.remove(name.first) == nil, name.first == state.next {
            if state.next == .max { return state.becomeNewWriter(settings.random) }
            state.next += 1
        }
        state.moved = []
        if name.kind == .log { takeNewest(PackServices.Seen(writer: name.writer, number: name.last, id: name.id)) }
    }

    // MARK: Progress of all writers

    /// Records the newest pack of each writer in `log/`, of those that this device knows.
    func takeNewest(of logs: [PackName: Int]) {
        let before = state.newest
        state.newest = [:]
        for name in logs.keys where state.isKnown(name) {
            takeNewest(PackServices.Seen(writer: name.writer, number: name.last, id: name.id))
        }
        // A pack just sent may not be listed yet.
        if let own = before[state.writer] { takeNewest(own) }
    }
    private func takeNewest(_ one: PackServices.Seen) {
        if let known = state.newest[one.writer], (known.number, known.id) >= (one.number, one.id) { return }
        guard state.newest[one.writer] != nil || state.newest.count < CoveredNumbers.writersLimit else { return }
        state.newest[one.writer] = one
    }
}

/// The JSON of a root.
struct RootText {
    private(set) var format = 0, store = "", layout = "", isEncrypted = false, hasDifferences = false
    static let packed = "packed", bridged = "bridged"

    /// - Throws: `PackFault`.
    init(_ name: PackName, _ bytes: [UInt8], _ sealing: PackSealing) throws {
        try self.init(PackFile(name, bytes, stores: [], sealing: sealing))
    }
    /// - Throws: `PackFault`.
    init(_ file: PackFile) throws {
        var text: [UInt8] = []
        try file.forEachBlock { text.append(contentsOf: $0) }
        do { self = try text.withUnsafeBytes(RootText.init) } catch { throw PackFault.damaged("its content is not JSON") }
    }
    private init(_ bytes: UnsafeRawBufferPointer) throws {
        var json = JSONReader(bytes)
        func text() throws -> String { String(decoding: try json.string(), as: UTF8.self) }
        try json.beginObject()
        while let member = try json.nextMember() {
            if try json.equals(member, "format") {
                format = Int(clamping: try json.unsigned())
            } else if try json.equals(member, "store") {
                store = try text()
            } else if try json.equals(member, "layout") {
                layout = try text()
            } else if try json.equals(member, "encrypted") {
                isEncrypted = try json.bool()
            } else if try json.equals(member, "differences") {
                hasDifferences = try json.unsigned() == 1
            } else {
                try json.skip()
            }
        }
        try json.end()
    }
}
