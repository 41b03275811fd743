/// Copies the intact parts of a damaged store into a new one.
///
///     read     every record that can be found, and every value in it       -> SalvageIndex
///     copy     the intact ones, under their own ids, into the new store
///     make     versions of the rest, based on the last intact ones
///
/// A version copied under its own id has exactly the state that it had. If a part of a version, or of its ancestry, is lost, the rest of
/// its data is saved in new versions, marked by their metadata.
public struct Salvage {
    /// The metadata key of versions that a salvage makes: `{"version":"<id of the original>","complete":<bool>}`.
    public static let metadataKey = Array("__llvs_salvaged".utf8)
    /// The approximate bytes of values in one version that a salvage makes.
    static let batchSize = 32 << 20

    let source: Store
    let target: Store
    let control: OperationControl
    /// The path of the database from which the source was made, if it was.
    private let database: String?
    private let account = SalvageAccount()
    private(set) var report = SalvageReport()

    /// Writes all intact data of the store at `path` into a new store at `target`.
    ///
    /// The damaged store is only read. A store in SQLite is read page by page, so that a database that SQLite refuses can also be read;
    /// this temporarily takes as much space again beside the new store.
    /// - Parameters:
    ///   - path: the damaged store.
    ///   - options: how to open it.
    ///   - target: where to create the new store; nothing, or an empty directory.
    ///   - targetOptions: how to open that; the two may have different storages.
    ///   - control: called with stages `.verifying` (bytes, or rows) and `.adding` (versions).
    /// - Returns: what was written, and what is lost.
    /// - Throws: `.notFound` and similar errors if there is no store at `path`, `.invalidArgument` if `target` is within it: then nothing
    ///   is created; `.storeNotEmpty` if there are versions at `target`; errors of opening and writing; `.cancelled`: then delete the new
    ///   store.
    /// - Complexity: reads the damaged store at most three times. Takes memory for the history, and for the ids of values changed by
    ///   versions that cannot be copied.
    public static func run(
        _ path: String, _ options: Store.Options = Store.Options(), into target: String, _ targetOptions: Store.Options = Store.Options(),
        control: OperationControl = OperationControl()
    ) throws -> SalvageReport {
        var reading = options
        reading.readOnly = true
        reading.create = false
        let storage = try damagedStorage(path, reading)
        defer { try? storage?.close(discarding: false) }
        try checkIsOutside(target, targetOptions, of: path, options)
        // All is synced at the end.
        var writing = targetOptions
        writing.durability = .normal
        writing.readOnly = false
        writing.create = true
        let new = try Store(path: target, options: writing)
        do {
            guard try new.allVersionIDs().isEmpty, try new.statistics().pending == 0 else {
                throw StoreError(
                    .storeNotEmpty, "A salvage can only be written to a new store; \(new.description) has versions. Give another path.",
                    path: target)
            }
            let report = try run(path, storage, reading, beside: target, into: new, control)
            try new.storage.sync()
            try new.close()
            Log.write(
                .info,
                "Salvaged \(path) into \(new.description): \(report.versions) versions whole, \(report.made.count) made, "
                    + "\(report.damages.count) damaged places."
            )
            return report
        } catch {
            try? new.close()
            throw error
        }
    }

    /// Opens the storage of the damaged store; for a database only checks that it exists and returns nil, since SQLite may refuse it.
    private static func damagedStorage(_ path: String, _ options: Store.Options) throws -> (any Storage)? {
        guard case .sqlite = options.storage.kind else { return try Store.makeStorage(path, options) }
        try SQLiteLibrary.checkProcess("Salvaging the database", path)
        let status = try posix("Salvaging the database", path) { () throws(Errno) in try System.status(path) }
        guard status.isRegularFile else {
            throw StoreError(
                .notAStore, "Salvaging the database \(path) failed: it is not a file. A store in SQLite is one file; give its path.",
                path: path)
        }
        try OpenDatabases.checkIsClosed(status, "Salvaging the database", path)
        return nil
    }

    /// Throws if the target lies within the damaged store, which is only read.
    private static func checkIsOutside(_ target: String, _ targetOptions: Store.Options, of path: String, _ options: Store.Options) throws {
        switch (options.storage.kind, targetOptions.storage.kind) {
        case (.file, .file), (.file, .sqlite), (.sqlite, .file), (.sqlite, .sqlite): break
        default: return
        }
        guard !target.isEmpty, let damaged = System.resolved(path) else { return }
        // The part of the target's path that exists.
        var at = System.absolute(Paths.withoutTrailingSlashes(target))
        while at != "/", (try? System.status(at)) == nil, Paths.parent(of: at) != at { at = Paths.parent(of: at) }
        guard let new = System.resolved(at), new == damaged || new.utf8.starts(with: (damaged + "/").utf8) else { return }
        throw StoreError(
            .invalidArgument,
            "Salvaging \(path) into \(target) is not possible: the new store would be within the damaged one. Give a path outside of it.",
            path: target)
    }

    private static func run(
        _ path: String, _ opened: (any Storage)?, _ options: Store.Options, beside target: String, into new: Store,
        _ control: OperationControl
    ) throws -> SalvageReport {
        var damages: [StorageDamage] = [], folder: String?
        defer { if let folder { removeFolder(folder) } }
        let storage: any Storage
        if let opened {
            storage = opened
        } else {
            let name = try posix("Naming a folder", target) { () throws(Errno) in try RandomName.random().hex }
            let made = System.absolute(Paths.withoutTrailingSlashes(target.isEmpty ? path : target)) + ".salvage-" + name
            folder = made
            storage = try SalvagedDatabase.open(path, in: made, control) { damages.append($0) }
        }
        let source = try Store(storage: storage, options: options, loading: false)
        defer { try? source.close() }
        var salvage = Salvage(source: source, target: new, control: control, database: folder == nil ? nil : path)
        salvage.report.damages = damages
        try salvage.run()
        return salvage.report
    }

    /// Removes the temporary folder of a salvage; failures are ignored.
    private static func removeFolder(_ path: String) {
        let place = DirectoryEntry(path)
        place.folder.folder(place.name).remove()
    }

    private mutating func run() throws {
        var index = SalvageIndex(source)
        var damages: [StorageDamage] = []
        var unreadable: [StorageDamage] = []
        var failure: (any Error)?
        let paced = control.paced(.verifying, doing: "Salvaging \(source.description)")
        try source.storage.salvage(
            control,
            found: { place in
                guard failure == nil else { return }
                do { if try index.add(place, source, paced) { return } } catch {
                    // The scan ignores errors of reading, but not this one.
                    failure = error
                    throw error
                }
                let (file, offset) = location(place)
                unreadable.append(
                    StorageDamage(
                        file: file, offset: offset,
                        message:
                            "A record cannot be read: a version that can no longer be named is lost. "
                            + "An exchange with a store that has it restores it."
                    ))
            }, damage: { damages.append($0) })
        if let failure { throw failure }
        try index.addPostponed(source, paced)
        let places = try Set(
            damages.map { damage in
                try paced.step(0)
                return "\(damage.offset) \(damage.file)"
            })
        damages += try unreadable.filter { damage in
            try paced.step(0)
            return database != nil || !places.contains("\(damage.offset) \(damage.file)")
        }
        try index.settle(source, paced)
        // A damaged copy of a record loses nothing if another is intact.
        report.damages += try damages.map { damage in
            try paced.step(0)
            guard damage.lost == .version, let id = damage.version, index.whole(id) != nil else { return damage }
            var harmless = damage
            harmless.lost = .nothing
            return harmless
        }
        try count(index, paced)
        try copy(index)
        let adding = control.paced(.adding, doing: "Salvaging \(source.description)")
        try carryOver(index, adding)
        try makeVersions(&index, adding)
        try tellLosses(index, adding)
        if let left = account.report(source.description) { report.damages.append(left) }
    }

    /// Counts what the damaged store has.
    private func count(_ index: SalvageIndex, _ paced: PacedControl) throws {
        for id in index.order {
            for record in index.all(id) {
                try paced.step(0)
                account.came(record)
                guard !record.header.blobs.isEmpty else { continue }
                _ = try Memory.unlessShort(paced) {
                    try source.records.forEachChange(record.place) { entry, _ in
                        if let blob = entry.blob { account.came(blob, entry.size) }
                    }
                }
            }
        }
    }

    private func location(_ place: RecordPlace) -> (String, UInt64) { database.map { ($0, 0) } ?? source.storage.location(place) }

    // MARK: Copying versions

    private mutating func copy(_ index: SalvageIndex) throws {
        var done = 0
        for id in index.order {
            try control.check(.adding, done, of: index.order.count, doing: "Salvaging \(source.description)")
            done += 1
            guard let record = index.whole(id) else { continue }
            try SalvageCopy(source: source, target: target, account: account).copy(record, control)
        }
        try control.check(.adding, done, of: index.order.count, doing: "Salvaging \(source.description)")
        let counts = try target.statistics()
        report.versions = counts.versions
        report.waiting = counts.pending
    }

    /// Records of a newer version of the library are copied unread, for a library that can read them.
    private mutating func carryOver(_ index: SalvageIndex, _ paced: PacedControl) throws {
        for (place, error) in index.newer {
            try paced.step()
            let (file, offset) = location(place)
            let version = error.versionID.flatMap { try? VersionID($0) }
            if version.map({ index.whole($0) != nil }) != true {
                try SalvageCopy(source: source, target: target, account: account).copyUnread(place, control)
            }
            report.damages.append(
                StorageDamage(
                    file: file, offset: offset,
                    message: error.message
                        + " The record was copied as it is, without large values that have files of their own: "
                        + "keep the damaged store until it was read.",
                    version: version, lost: .version))
        }
    }

    // MARK: Making versions

    private mutating func makeVersions(_ index: inout SalvageIndex, _ paced: PacedControl) throws {
        // Finds the versions that could not be copied, then those on which no other of them builds.
        var left: [VersionID] = [], built: Set<VersionID> = []
        for id in index.order {
            try paced.step()
            guard try !target.contains(id) else { continue }
            left.append(id)
            built.formUnion(index.best(id)?.header.predecessors ?? [])
        }
        let ends = try left.filter { id in
            try paced.step(0)
            return !built.contains(id)
        }
        if ends.isEmpty { return }
        try index.markKept(target.contains, file: { location($0).0 }, paced)
        let parting = try whereLinesPart(ends, index, paced)
        // The versions that were made so far, by the version at which lines part or end. So each part of a line is processed once.
        var grounds: [VersionID: SalvageLine.Ground] = [:]
        for end in ends {
            for id in try parts(of: end, parting, grounds, index, paced) {
                var line = SalvageLine(source: source, index: index)
                try line.follow(
                    from: id, file: { location($0).0 },
                    until: { other in
                        if let ground = grounds[other] { return ground }
                        return try target.contains(other) ? SalvageLine.Ground(version: other) : nil
                    }, paced)
                let made = try line.write(to: target, account, control)
                grounds[id] = SalvageLine.Ground(version: made?.version ?? line.base, isComplete: made?.isComplete ?? line.isComplete)
                guard let made else { continue }
                report.made.append(made)
                if let guess = line.guess(made, location) { report.damages.append(guess) }
            }
        }
    }

    /// Returns versions that cannot be copied and that are ancestors of several of the ends.
    private func whereLinesPart(_ ends: [VersionID], _ index: SalvageIndex, _ paced: PacedControl) throws -> Set<VersionID> {
        var met: Set<VersionID> = [], parting: Set<VersionID> = []
        for end in ends {
            var at: VersionID? = end
            while let id = at, try !target.contains(id) {
                try paced.step(0)
                guard met.insert(id).inserted else { parting.insert(id); break }
                at = index.best(id)?.header.predecessors.first
            }
        }
        return parting
    }

    /// Returns the end of a line, and its ancestors from which other lines part, up to the first that another line has processed; the
    /// oldest first.
    private func parts(
        of end: VersionID, _ parting: Set<VersionID>, _ grounds: [VersionID: SalvageLine.Ground], _ index: SalvageIndex,
        _ paced: PacedControl
    ) throws -> [VersionID] {
        var parts = [end], met: Set<VersionID> = [end], at = index.best(end)?.header.predecessors.first
        while let id = at, grounds[id] == nil, try met.insert(id).inserted && !target.contains(id) {
            try paced.step(0)
            if parting.contains(id) { parts.append(id) }
            at = index.best(id)?.header.predecessors.first
        }
        return parts.reversed()
    }

    private mutating func tellLosses(_ index: SalvageIndex, _ paced: PacedControl) throws {
        for id in index.order {
            try paced.step()
            guard index.whole(id) == nil, let record = index.best(id) else { continue }
            let (file, offset) = location(record.place)
            report.damages += record.losses(file, offset)
        }
        let told = Set(report.damages.compactMap { $0.lost == .version ? $0.version : nil })
        for (id, child) in try index.missing(paced) where !told.contains(id) {
            try paced.step(0)
            report.damages.append(
                StorageDamage(
                    file: database ?? source.description, offset: 0,
                    message:
                        "Version \(id) is lost: version \(child) builds on it, and it is nowhere in the store. "
                        + "An exchange with a store that has it restores it, and the versions that wait for it.",
                    version: id))
        }
    }
}
