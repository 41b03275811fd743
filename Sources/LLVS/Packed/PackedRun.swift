/// One retrieve or send with a remote in the packed layout. What it knows lives in `state`, which is written down before anything is
/// uploaded by it, and at the end.
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
    /// Which versions are known to be at the remote.
    var there: Coverage
    /// All packs there are, where this run listed them.
    var listedInFull: [PackName: Int]?
    /// Whether single files are to lie beside the packs, where a root is made.
    var wantsBridge = false
    /// Whether the next retrieve lists all packs.
    var mustListFully = false
    /// Merged packs of this device that were listed, and of which the outcome is not known: looked at by `takeBackUnfinished`.
    var toReadBack: Set<PackName> = []
    /// The roots that were known before this run looked.
    private(set) var rootsBefore: [PackedState.Root]
    /// Whether large values were known to be there before this run: those that are met in it are not looked for.
    private(set) var knewBlobs: Bool
    /// Parts of large values that others say are damaged.
    var claims: [PackID: PackID] = [:]
    private var saved: ArraySlice<UInt8> = []
    private var summarized: Coverage?
    /// Bytes of a pack that is written here, about.
    var packLimit: Int { min(PackFormat.writtenFile, files.capabilities.largestFile ?? .max, state.refusedSize?.most ?? .max) }
    /// Of one that replaces others.
    var mergeLimit: Int { min(packLimit, state.cut?.most ?? .max) }

    init(
        _ store: Store, _ files: any RemoteFiles, _ notes: PackedNotes, _ settings: PackedSettings, _ keys: PackedKeys?,
        _ rate: TransferRate, _ control: OperationControl, doing what: String
    ) throws {
        self.store = store; self.files = files; self.notes = notes; self.settings = settings; self.keys = keys; self.rate = rate
        self.control = control; self.what = what
        _ = try store.reloadHistory(control)
        try control.check(.listing, 0, of: 0, doing: what)
        if let found = try notes.load() {
            state = found
            saved = found.body.dropLast(8)
        } else {
            state = PackedState(settings.random)
        }
        rootsBefore = state.roots
        if case let now = settings.clock(), now >= settings.earliest { state.putRight(at: now) }
        // Whoever runs the service may have raised its limit.
        if let refused = state.refusedSize, settings.clock() - refused.at > PackedSettings.attemptLife { state.refusedSize = nil }
        if let cut = state.cut, settings.clock() - cut.at > PackedSettings.cutLife { state.cut = nil }
        knewBlobs = !state.blobs.isEmpty
        there = try store.coverage(behind: state.heads)
        store.uncover(state.lacking, in: &there) {}
        if try !store.unknown(among: state.heads).isEmpty {
            // The store fell back to what it was, a power cut took records, or this is the copy of a state. What was read, or sent, may be
            // lost here.
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

    /// Forgets all that this device sent there, and removes it: nobody can open it any more. What is here is sent again.
    func beginAnew() throws {
        let names = (state.roots.map(\.name) + state.attempts.keys).map(\.description)
        for name in state.attempts.keys { notes.forget(name) }
        // What stays is told as a file without keys.
        if !names.isEmpty { try? files.delete(names, check) }
        let before = state
        state = PackedState(settings.random)
        (state.exchanges, state.seedsAnew, state.formerStores) = (before.exchanges, before.seedsAnew, before.formerStores)
        (rootsBefore, rootsListed, knewBlobs, summarized) = ([], nil, false, nil)
        there = try store.coverage(behind: [])
    }

    var now: Int64 { settings.clock() }
    /// What is being done, as progress tells.
    var stage = Progress.Stage.receiving
    var check: () throws -> Void { { [control, what, stage] in try control.check(stage, 0, of: 0, doing: what) } }
    func during<R>(_ stage: Progress.Stage, _ body: () throws -> R) rethrows -> R {
        let before = self.stage
        self.stage = stage
        defer { self.stage = before }
        return try body()
    }

    /// Writes down what is known.
    func save() throws {
        if summarized != there {
            (state.heads, state.lacking) = try store.summary(of: there)
            summarized = there
        }
        let body = state.body
        // The count of exchanges alone is worth no writing.
        guard body.dropLast(8) != saved else { return }
        try notes.save(body)
        saved = body.dropLast(8)
    }

    // MARK: Listing

    /// The size of a file where the service does not tell it.
    static let notTold = -1

    /// The packs in a directory, with their sizes; `notTold` where the service does not tell.
    func list(_ kind: PackKind) throws -> [PackName: Int] {
        try control.check(.listing, 0, of: 0, doing: what)
        let directory = String(kind.prefix.dropLast()), paced = control.paced(.listing, doing: what)
        var found: [PackName: Int] = [:]
        for entry in try files.list(directory, withTimes: false, check) ?? [] where !entry.isDirectory {
            try paced.step(0)
            guard let name = PackName(kind.prefix + entry.name), found.count < 1_000_000 else { continue }
            // A size that no file has comes from whoever answers.
            found[name] = entry.size.map { min(max(0, $0), 1 << 40) } ?? PackedRun.notTold
        }
        return found
    }

    /// The roots that are there, with their sizes, once they were listed in this run.
    var rootsListed: [PackName: Int]?

    /// Forgets the roots of a place that is refused.
    func forgetNewRoots() { (state.roots, rootsListed) = (rootsBefore, nil) }

    func listRootsAnew() throws -> Bool {
        rootsListed = nil
        return try listRoots()
    }

    /// Lists the roots, and reads those that are new; once in a run.
    /// - Returns: whether any is there.
    func listRoots() throws -> Bool {
        if let rootsListed { return !rootsListed.isEmpty }
        let paced = control.paced(.listing, doing: what)
        var sizes: [PackName: Int] = [:], hasKeys = false, holdsOther = false
        for entry in try files.list("pack1", withTimes: false, check) ?? [] {
            try paced.step(0)
            if entry.isDirectory { hasKeys = hasKeys || entry.name == "keys"; holdsOther = true; continue }
            if let name = PackName("pack1/" + entry.name), name.kind == .root { sizes[name] = entry.size ?? PackedRun.notTold }
        }
        // A root tells by itself whether it is encrypted.
        if keys == nil, hasKeys || (holdsOther && sizes.isEmpty) { try RemoteKeyDirectory.refuseKeys(files, check) }
        let known = Set(state.roots.map(\.name))
        // Those that are known stay: somebody who writes many with smaller ids pushes none of them out.
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
        // Who knows no root would make another beside one that cannot be read just now.
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
            // Packs may be of the store that it names.
            for (name, bad) in state.bad where bad.fault?.kind == .otherStore { state.bad[name]?.again = 0 }
            // Another device filled it already.
            state.seedsAnew = false
            state.formerStores = []
        } catch let fault as PackFault {
            if keys == nil, bytes.starts(with: AgeHeader.magic) { throw RemoteKeyDirectory.isEncrypted(files.description) }
            if fault.kind != .notThere { problems.append(problem(name, fault)) }
        }
    }
    /// Beside those of versions.
    var problems: [ExchangeProblem] = []
    /// Of files that cannot be taken, and are not kept in mind each.
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
        guard let store = PackID(file.index.header[16..<32]) else { throw PackFault.damaged("it is no root") }
        let said = try RootText(file)
        guard said.format == 1 else { throw PackFault.newer("its format is another than 1") }
        guard said.store == store.description else { throw PackFault.damaged("it names another store than its header") }
        guard said.layout == RootText.packed || (said.layout == RootText.bridged && !said.isEncrypted) else {
            throw PackFault.newer("its layout is \"\(said.layout)\"")
        }
        guard said.isEncrypted == sealing.isEncrypted else {
            throw PackFault.damaged("it says otherwise of whether the packs are encrypted")
        }
        return PackedState.Root(name: name, store: store, bytes: bytes)
    }

    // MARK: Own names

    /// Takes up which packs of this device a listing has.
    func lookAtOwn(_ listing: [PackName: Int]) throws {
        let paced = control.paced(.listing, doing: what)
        // What others left there may be any number of names.
        var own: [(key: PackName, value: Int)] = []
        for one in listing {
            try paced.step(0)
            if one.key.writer == state.writer || state.attempts[one.key] != nil { own.append(one) }
        }
        for (name, size) in try own.sorted(by: { $0.key.id < $1.key.id }, looking: paced.look) {
            if name.writer != state.writer {
                // Sent as a former writer.
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
                // Where more is told than a size, the size is not enough. What the service does not give now is sent once more: it may
                // never give it again.
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

    /// What was acknowledged is not whole, or not there any more: its versions are to be sent again.
    private func isShort(_ name: PackName) throws {
        if let ids = try notes.ids(of: name) { store.uncover(ids, in: &there) {} }
    }

    /// An attempt is known to be whole at the remote.
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

    // MARK: How far everybody is

    /// The newest pack of each writer that is in `log/`, of those that are known here.
    func takeNewest(of logs: [PackName: Int]) {
        let before = state.newest
        state.newest = [:]
        for name in logs.keys where state.isKnown(name) {
            takeNewest(PackServices.Seen(writer: name.writer, number: name.last, id: name.id))
        }
        // What was sent a moment ago may not be listed yet.
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
    private(set) var format = 0, store = "", layout = "", isEncrypted = false
    static let packed = "packed", bridged = "bridged"

    /// - Throws: `PackFault`.
    init(_ name: PackName, _ bytes: [UInt8], _ sealing: PackSealing) throws {
        try self.init(PackFile(name, bytes, stores: [], sealing: sealing))
    }
    /// - Throws: `PackFault`.
    init(_ file: PackFile) throws {
        var text: [UInt8] = []
        try file.forEachBlock { text.append(contentsOf: $0) }
        do { self = try text.withUnsafeBytes(RootText.init) } catch { throw PackFault.damaged("what it says is no JSON") }
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
            } else {
                try json.skip()
            }
        }
        try json.end()
    }
}
