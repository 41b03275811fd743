/// Reads values.
extension Store {
    /// A value's entry, the version that stored it, and the place of its record.
    package struct Located: Sendable {
        package var entry: MapEntry
        package var stored: VersionID
        package var place: RecordPlace
        package init(entry: MapEntry, stored: VersionID, place: RecordPlace) {
            self.entry = entry; self.stored = stored; self.place = place
        }
    }

    /// Returns what prevails for an id at a version; nil if nothing does.
    package func locate(_ id: UnsafeRawBufferPointer, at version: VersionID) throws -> Located? {
        enum Fast { case found(Located), absent, slow(UInt32?) }
        let fast: Fast = try lock.withRead {
            try checkOpenLocked()
            guard let ordinal = dag.ordinal(of: version) else { return .slow(nil) }
            let (isHere, root) = maps.root(of: ordinal)
            guard isHere else { return .slow(ordinal) }
            guard let entry = root?._withUnsafeGuaranteedRef({ $0.lookup(id) }) else { return .absent }
            return .found(locatedLocked(entry))
        }
        switch fast {
        case .found(let located): return located
        case .absent: return nil
        case .slow(let ordinal): return try locateWithoutMap(id, at: ordinal ?? requireOrdinal(version))
        }
    }

    /// The same as `locate`, at a version whose map was just not found in memory.
    func locateWithoutMap(_ id: UnsafeRawBufferPointer, at ordinal: UInt32) throws -> Located? {
        let entry = try maps.entryWithoutMap(id, at: ordinal)
        return lock.withRead { entry.map { locatedLocked($0) } }
    }

    /// Precondition: the caller holds the lock.
    @inline(__always)
    func locatedLocked(_ entry: MapEntry) -> Located {
        Located(entry: entry, stored: dag.id(entry.version), place: dag.rows[Int(entry.version)].place)
    }

    /// Calls with the bytes of the value that prevails, and the version that stored them. Returns nil if there is none. The bytes are
    /// valid during the call.
    /// - Throws: `.invalidValueID`, `.invalidUTF8`, `.unknownVersion`, `.damaged`.
    /// - Complexity: O(length of the id + log values), one read.
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await value(_:at:).")
    public func withValue<R>(_ id: UnsafeRawBufferPointer, at version: VersionID, _ body: (UnsafeRawBufferPointer, VersionID) throws -> R)
        throws -> R?
    {
        try ValueID.check(id)
        guard let located = try locate(id, at: version) else { return nil }
        return try records.withBody(located.place, located.entry, id: id, stored: located.stored) { try body($0, located.stored) }
    }

    /// Returns the value that prevails at a version; nil if there is none.
    public func value(_ id: ValueID, at version: VersionID) throws -> Value? {
        try id.bytes.withUnsafeBytes { raw in
            try withValue(raw, at: version) { Value(id: id, data: try Memory.copy($0, "Reading a value"), storedVersion: $1) }
        }
    }

    /// Returns the reference that prevails at a version, without reading the bytes.
    public func reference(_ id: ValueID, at version: VersionID) throws -> Value.Reference? {
        try id.bytes.withUnsafeBytes { try locate($0, at: version) }.map { Value.Reference(id: id, version: $0.stored) }
    }

    /// Returns the bytes that a version stored under an id; nil if it stored none.
    public func value(_ reference: Value.Reference) throws -> Value? {
        try withValue(reference) { Value(id: reference.id, data: try Memory.copy($0, "Reading a value"), storedVersion: reference.version) }
    }

    /// Calls with the bytes that a version stored under an id. Returns nil if it stored none.
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await value(_:).")
    public func withValue<R>(_ reference: Value.Reference, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R? {
        let ordinal = try requireOrdinal(reference.version)
        return try reference.id.bytes.withUnsafeBytes { raw in
            guard let entry = try maps.stored(raw, in: ordinal) else { return nil }
            return try records.withBody(place(of: ordinal), entry, id: raw, stored: reference.version, body)
        }
    }

    /// Returns how many values prevail at a version, in a range of ids. O(length of an id + log values).
    public func count(at version: VersionID, in range: IDRange = .all) throws -> Int {
        guard let root = try maps.map(requireOrdinal(version)) else { return 0 }
        if case .all = range { return root.count }
        return withBounds(range) { root.count(from: $0, to: $1) }
    }

    // MARK: By id and by version

    /// Returns all versions that stored bytes under an id, newest first.
    /// - Complexity: reads the change tables of the versions that changed it, and of those with more than 1,024 changes. Also O(versions)
    ///   the first time in a process and after many versions were added.
    /// - Parameters:
    ///   - id: the id of the value.
    ///   - control: checked with stage `.reading`.
    public func versions(of id: ValueID, control: OperationControl = OperationControl()) throws -> [Version] {
        try checkOpen()
        let paced = control.paced(.reading, doing: "Finding the versions that stored \(id) in \(description)")
        try paced.look()
        let found = try versionsThatMayHaveChanged(id, control).filter { ordinal in
            try paced.step()
            let kind = try recordedKind(of: id, in: ordinal)
            return kind == .insert || kind == .update
        }
        return try newestFirst(found, paced.look).map {
            try paced.step()
            return try version($0)
        }
    }

    /// A change without its bytes; `batch(_:byteLimit:)` reads them.
    public struct ChangeSummary: Hashable, Sendable {
        /// The kind of the change.
        public var kind: Value.Change.Kind
        /// The id of the value.
        public var id: ValueID
        /// The reference to the bytes that were set or preserved; nil for removals.
        public var reference: Value.Reference?
        /// The size of the value in bytes; 0 for removals.
        public var size: UInt64
        /// Where the bytes are, if that is known.
        package var entry: MapEntry?

        public static func == (a: ChangeSummary, b: ChangeSummary) -> Bool {
            a.kind == b.kind && a.id == b.id && a.reference == b.reference && a.size == b.size
        }
        public func hash(into hasher: inout Hasher) {
            hasher.combine(kind)
            hasher.combine(id)
            hasher.combine(reference)
        }
    }

    /// Returns what a version recorded, in byte order of the ids, without the bytes.
    /// - Parameters:
    ///   - id: the version.
    ///   - range: only ids in it.
    ///   - control: called with the changes read, with stage `.reading`.
    public func recordedChanges(
        madeIn id: VersionID, in range: IDRange = .all, control: OperationControl = OperationControl()
    ) throws -> [ChangeSummary] {
        let ordinal = try requireOrdinal(id)
        let paced = control.paced(.reading, doing: "Reading what version \(id) of \(self.description) changed")
        try paced.look()
        return try withBounds(range) { try recordedChanges(ordinal, within: KeyBounds(low: $0, high: $1), paced) }
    }

    private func recordedChanges(_ ordinal: UInt32, within bounds: KeyBounds, _ control: PacedControl) throws -> [ChangeSummary] {
        var out: [ChangeSummary] = []
        try records.forEachChange(place(of: ordinal)) { entry, header in
            try control.step()
            guard bounds.areOpen || bounds.hold(entry.id) else { return }
            try Memory.grow(&out, "The changes of a version")
            let key = ValueID(unchecked: entry.id)
            switch entry.kind {
            case .insert, .update:
                out.append(
                    ChangeSummary(
                        kind: entry.kind, id: key, reference: .init(id: key, version: header.id), size: UInt64(entry.size),
                        entry: MapEntry(
                            version: ordinal, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))))
            case .preserve:
                out.append(
                    ChangeSummary(
                        kind: .preserve, id: key, reference: .init(id: key, version: header.dependencies[entry.dependency]), size: 0))
            case .remove, .preserveRemoval:
                out.append(ChangeSummary(kind: entry.kind, id: key, reference: nil, size: 0))
            }
        }
        for i in out.indices where out[i].kind == .preserve {
            try control.step(0)
            if let reference = out[i].reference { out[i].size = UInt64(try size(reference)) }
        }
        return out
    }

    func size(_ reference: Value.Reference) throws -> Int {
        guard let ordinal = try findOrdinal(reference.version) else { return 0 }
        return try reference.id.bytes.withUnsafeBytes { try maps.stored($0, in: ordinal).map { Int($0.size) } ?? 0 }
    }

    /// Returns what a version recorded, in byte order of the ids, with the bytes.
    public func changes(madeIn id: VersionID) throws -> [Value.Change] {
        var out: [Value.Change] = []
        try forEachChange(madeIn: id) { if let change = Value.Change(copying: $0) { out.append(change) } }
        return out
    }

    /// Returns the changes that lead from the state at `a` to that at `b`, as insert, update and remove, in byte order of the ids. Any two
    /// versions can be compared. References are compared: a value that was stored again counts as an update, even with the same bytes.
    /// - Parameters:
    ///   - a: the version to begin at.
    ///   - b: the version to reach.
    ///   - range: only ids in it.
    ///   - control: called with the differences found, with stage `.reading`.
    /// - Complexity: grows with what was recorded between the two if their chains of first predecessors meet near, else with what differs
    ///   in the range; not with the size of the store.
    public func differences(
        from a: VersionID, to b: VersionID, in range: IDRange = .all, control: OperationControl = OperationControl()
    ) throws -> [ChangeSummary] {
        let x = try requireOrdinal(a), y = try requireOrdinal(b)
        let paced = control.paced(.reading, doing: "Comparing versions \(a) and \(b) of \(self.description)")
        try paced.look()
        return try withBounds(range) { try differences(x, y, within: KeyBounds(low: $0, high: $1), paced) }
    }

    private func differences(_ x: UInt32, _ y: UInt32, within bounds: KeyBounds, _ control: PacedControl) throws -> [ChangeSummary] {
        var out: [ChangeSummary] = []
        func add(_ kind: Value.Change.Kind, _ key: UnsafeRawBufferPointer, _ entry: MapEntry?) throws {
            try control.step()
            guard bounds.areOpen || bounds.hold(key) else { return }
            try Memory.check()
            try Memory.grow(&out, "The differences of two versions")
            let id = ValueID(unchecked: key)
            guard let entry else { out.append(ChangeSummary(kind: kind, id: id, reference: nil, size: 0)); return }
            let reference = Value.Reference(id: id, version: versionID(entry.version))
            let found = entry.size == MapEntry.unknownSize ? try maps.stored(key, in: entry.version) ?? entry : entry
            let size = found.size == MapEntry.unknownSize ? 0 : UInt64(found.size)
            out.append(ChangeSummary(kind: kind, id: id, reference: reference, size: size, entry: found))
        }
        if x == y { return [] }
        // For a range of ids, maps in memory need less work than recorded changes.
        let areMapsHere = !bounds.areOpen && maps.slot(x) != nil && maps.slot(y) != nil
        if !areMapsHere, let sides = try RecordedSides(x, y, needsMaps: false, in: self, control) {
            try withExtendedLifetime(sides) { try sides.forEachChange(add) }
        } else {
            try MapNode.forEachDifference(maps.map(x), maps.map(y), within: bounds) { key, before, after in
                try add(after == nil ? .remove : before == nil ? .insert : .update, key, after)
            }
        }
        return out
    }
}
