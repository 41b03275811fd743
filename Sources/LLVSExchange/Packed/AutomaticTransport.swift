/// Finds the layout of a place over a network if the caller did not name one. It uses packs if the place has packs, and single files (two
/// per version) if it has those. An empty place gets packs. A place that had single files and is now empty is refused, since that may be
/// temporary. It does not count as empty if remembered files can be read: then only the listing is behind.
package final class AutomaticTransport: StoreTransport, PacedTransport, AddressedTransport, @unchecked Sendable {
    // Sendable: `lock` guards the state below it; the other objects have locks of their own.
    private let files: any RemoteFiles
    private let versions: RemoteTransport
    let packs: PackedTransport
    private let spelling: PlaceSpelling
    private let lock = Lock(.leaf)
    private var isPacked: Bool?
    /// Whether single files were found at the place.
    private var hadVersions = false
    /// The store whose caches remember the place.
    private weak var store: Store?
    /// The time until which an empty place is not checked again.
    private var emptyUntil = -Double.infinity
    /// Whether to discard the state of the place.
    private var mustForget = false
    /// Whether the store joins the place whatever it contains.
    private var joins = false
    /// Whether the place has or gets packs, as a check for a snapshot determined.
    private var isPackedForSnapshots: Bool?
    private static let freshness = 10.0

    /// - Parameter keys: the keys of an encrypted place, which always has packs.
    package init(_ files: any RemoteFiles, settings: PackedSettings = PackedSettings(), keys: PackedKeys? = nil) {
        self.files = files
        spelling = PlaceSpelling(files)
        versions = RemoteTransport(files)
        packs = PackedTransport(files, settings: settings, keys: keys)
        isPacked = keys == nil ? nil : true
    }

    /// Returns whether the place has packs. Determined once for each opened exchange, and again while the place is empty; takes one or two
    /// listings if the store has not exchanged packs with the place before.
    /// - Throws: `.notFound` if it had single files and is empty.
    func isPacked(_ store: Store, _ control: OperationControl) throws -> Bool {
        let decided = lock.withLock {
            self.store = store
            return isPacked
        }
        if let decided { return decided }
        let what = "Listing \(description)", check = { try control.check(.listing, 0, of: 0, doing: what) }
        let account = try files.account(check)
        if lock.withLock({ mustForget }) {
            try store.checkWritable(what)
            try PackedNotes(store, remote: spelling.place(in: store), account: account).forget(PackRandom.system)
            lock.withLock { mustForget = false }
        }
        let found: Bool
        if try !(PackedNotes.known(of: store, remote: spelling.place(in: store), account: account)?.roots ?? []).isEmpty {
            found = true
        } else if lock.withLock({ emptyUntil > Clock.steady() }) {
            return true
        } else if let held = try held(check) {
            if held { try refusePacks(of: store, account, control) }
            found = held
        } else if try hadVersions(store, account) {
            guard try isBehind(store, control) else { throw isGone }
            found = false
        } else {
            lock.withLock { emptyUntil = Clock.steady() + AutomaticTransport.freshness }
            return true
        }
        if !found { try PlaceNotes.setHadVersions(store, spelling.place(in: store), account) }
        lock.withLock {
            isPacked = found
            hadVersions = !found
        }
        return found
    }

    private func hadVersions(_ store: Store, _ account: String?) throws -> Bool {
        if lock.withLock({ hadVersions }) { return true }
        guard try PlaceNotes.hadVersions(store, spelling.place(in: store), account) else { return false }
        lock.withLock { hadVersions = true }
        return true
    }

    /// Refuses a place for snapshots that had versions and is empty, as an exchange would.
    /// - Throws: `.notFound`.
    package func checkForSnapshot(of store: Store, _ control: OperationControl) throws {
        if lock.withLock({ isPacked == true || mustForget }) { return }
        let check = { [description] in try control.check(.listing, 0, of: 0, doing: "Listing \(description)") }
        let account = try files.account(check)
        if try !(PackedNotes.known(of: store, remote: spelling.place(in: store), account: account)?.roots ?? []).isEmpty {
            // The store knows that the place has packs, and therefore no snapshots, even if the packs are missing now.
            lock.withLock { isPacked = true }
        } else if try hadVersions(store, account), try held(check) == nil, try !isBehind(store, control) {
            lock.withLock { isPacked = nil }
            throw isGone
        }
    }

    /// Returns whether the place has packs (true) or single files (false); nil: neither.
    private func held(_ check: () throws -> Void) throws -> Bool? {
        if try !(files.list("pack1", withTimes: false, check) ?? []).isEmpty { return true }
        // An empty or foreign file is no version.
        return try (files.list("versions", withTimes: false, check) ?? []).contains { VersionID(validating: $0.name) != nil } ? false : nil
    }

    /// Refuses packs at a place that had single files, unless these are present as well.
    /// - Throws: `.notFound`.
    private func refusePacks(of store: Store, _ account: String?, _ control: OperationControl) throws {
        let check = { [description] in try control.check(.listing, 0, of: 0, doing: "Listing \(description)") }
        guard let known = try PlaceNotes.identity(of: store, spelling.place(in: store), account), !known.isEmpty else { return }
        let listed = (try files.list("versions", withTimes: false, check) ?? []).lazy.compactMap { VersionID(validating: $0.name) }
        if try known.match(listed, check) == .none, try !isBehind(store, control) {
            throw PlaceIdentity.refusal(of: description, isEmpty: false)
        }
    }

    /// Returns whether remembered single files can be read although the listing has none of them.
    private func isBehind(_ store: Store, _ control: OperationControl) throws -> Bool {
        let account = try files.account { [description] in try control.check(.listing, 0, of: 0, doing: "Listing \(description)") }
        guard let known = try PlaceNotes.identity(of: store, spelling.place(in: store), account) else { return false }
        return try known.canBeRead { try versions.fetchVersions($0, control) }
    }

    private var isGone: StoreError { PlaceIdentity.refusal(of: description, isEmpty: true) }
    /// - Throws: `.notFound` if a place that had single files is empty.
    private func checked(_ listing: ExchangeListing, _ control: OperationControl) throws -> ExchangeListing {
        let (isEmpty, store) = lock.withLock { (isPacked == false && listing.versions.isEmpty && hadVersions, self.store) }
        guard isEmpty else { return listing }
        if let store, try isBehind(store, control) { return listing }
        // The layout is determined again, since the place may get packs next.
        lock.withLock { isPacked = nil }
        throw isGone
    }

    /// Returns the transport for snapshots, which exist only beside single files; the caller names no store. For an empty place it is packs
    /// if a store found it empty; otherwise single files, as for a host's transport that wraps this one.
    private func forSnapshots() throws -> any ExchangeTransport {
        if let known = lock.withLock({ isPacked ?? isPackedForSnapshots }) { return known ? packs : versions }
        guard let found = try held({}) else { return lock.withLock { emptyUntil > -.infinity } ? packs : versions }
        lock.withLock { isPackedForSnapshots = found }
        return found ? packs : versions
    }

    package func retrieve(into store: Store, verifyKnown: Bool, _ control: OperationControl) throws -> ExchangeResult? {
        try isPacked(store, control) ? packs.retrieve(into: store, verifyKnown: verifyKnown, control) : nil
    }
    package func send(from store: Store, _ control: OperationControl) throws -> ExchangeResult? {
        if try isPacked(store, control) { return try packs.send(from: store, control) }
        versions.keepUploads(in: store)
        return nil
    }

    // `isPacked` also discards the remembered place.
    package func placeAddress(in store: Store, _ check: @escaping () throws -> Void) throws -> (place: String, account: String?)? {
        guard lock.withLock({ isPacked }) == false else { return nil }
        return (try spelling.place(in: store), try files.account(check))
    }
    package func takeJoin() -> Bool {
        lock.withLock {
            defer { joins = false }
            return joins
        }
    }

    package var description: String { files.description }
    package var counts: RemoteCounts { files.counts }
    package func notedPlace(in store: Store) throws -> String { try spelling.place(in: store) }
    package func knownAccount() throws -> String? { try files.account(nil) }
    private var chosen: any ExchangeTransport { lock.withLock { isPacked } ?? false ? packs : versions }

    package func list(_ control: OperationControl) throws -> ExchangeListing { try checked(chosen.list(control), control) }
    package func listToSend(_ control: OperationControl) throws -> ExchangeListing { try checked(chosen.listToSend(control), control) }
    package func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try chosen.fetchVersions(names, control)
    }
    package func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try chosen.fetchChanges(names, control)
    }
    package func send(_ files: [ExchangeFiles], _ control: OperationControl) throws { try chosen.send(files, control) }
    package func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
        try chosen.unusable(among: names, control)
    }
    package func readSnapshotFile(_ name: String) throws -> [UInt8]? { try chosen.readSnapshotFile(name) }
    package func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws { try forSnapshots().writeSnapshotFile(name, data) }
    package func deleteSnapshotFile(_ name: String) throws { try forSnapshots().deleteSnapshotFile(name) }
    package func snapshotFileNames() throws -> [String] { try chosen.snapshotFileNames() }
    package func snapshotFileNames(_ control: PacedControl) throws -> [String] { try chosen.snapshotFileNames(control) }

    package var restorationState: [UInt8] {
        get { chosen.restorationState }
        set {
            versions.restorationState = newValue
            packs.restorationState = newValue
            guard newValue.elementsEqual("new".utf8) else { return }
            lock.withLock {
                (isPacked, isPackedForSnapshots, emptyUntil) = (isKeyed ? true : nil, nil, -Double.infinity)
                (hadVersions, mustForget, joins) = (false, !isKeyed, true)
            }
        }
    }
    /// Returns whether this process or an earlier one found single files at the place.
    package func isReadByOthers(_ store: Store) -> Bool {
        let (isPacked, hadVersions) = lock.withLock { (self.isPacked, self.hadVersions) }
        switch isPacked {
        case .some(true): return packs.isReadByOthers(store)
        case .some(false): return true
        case nil: return hadVersions || (try? PlaceNotes.hadVersions(store, spelling.place(in: store), files.account(nil))) ?? false
        }
    }
    package func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { nil }
    package func close() { files.close() }
}

extension AutomaticTransport: RequestingTransport {}
