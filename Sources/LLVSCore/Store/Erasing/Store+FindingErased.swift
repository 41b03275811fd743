/// Finds the changes to erase.
extension Store {
    /// Calls with the records of all versions, also of those that wait for others.
    /// - Parameters:
    ///   - ids: skips versions that changed none of these, as far as that is known without reading. Nil: none is skipped.
    ///   - end: skips none from this row on.
    func forEachRecord(
        changing ids: Set<ValueID>? = nil, before end: Int = .max, _ control: PacedControl, _ body: (VersionID, RecordPlace) throws -> Void
    ) throws {
        let hashes = ids.map { Set($0.map { $0.bytes.withUnsafeBytes(History.keyHash) }) }
        let (rows, waiting) = lock.withRead { (dag.rows.count, Array(pending.records.keys)) }
        for i in 0..<rows {
            let ordinal = UInt32(truncatingIfNeeded: i)
            let found = lock.withRead { () -> (VersionID, RecordPlace)? in
                guard dag.isLive(i) else { return nil }
                if i < end, let hashes, let own = dag.keyHashes(of: ordinal), !own.contains(where: hashes.contains) { return nil }
                return (dag.id(ordinal), dag.rows[i].place)
            }
            guard let found else { continue }
            try control.step(1)
            try Memory.check()
            try body(found.0, found.1)
        }
        for id in waiting {
            // A version that was admitted meanwhile may be read in another record.
            guard let place = recordPlaces(of: id).first else { continue }
            try body(id, place)
        }
    }

    /// The prefix of the ids of values that say which conflicts were reviewed. Their bytes have both sides of a conflict.
    private static let chosenPrefix = Array("__llvs_chosen/".utf8)

    /// Returns the indexes of the changes to erase.
    func findChanges(_ query: ErasureQuery, _ report: inout ErasureReport, _ control: PacedControl) throws -> [VersionID: [Int]] {
        var ids = Set(query.ids)
        var equal: [ValueID: (size: Int, digest: [UInt8])] = [:]
        if let version = query.version {
            let ordinal = try requireOrdinal(version)
            for id in ids {
                try id.bytes.withUnsafeBytes { key in
                    guard let entry = try maps.entry(key, at: ordinal) else { return }
                    let stored = lock.withRead { (dag.id(entry.version), dag.rows[Int(entry.version)].place) }
                    guard let found = try records.findChange(stored.1, key) else { return }
                    equal[id] = (found.body.size, try records.digest(of: key, in: stored.1, stored: stored.0))
                }
            }
            ids = Set(equal.keys)
        }
        var counted: Set<VersionID> = []
        var found: [VersionID: [Int]] = [:], chosen: [(VersionID, Int, ValueID, [UInt8], Int)] = []
        var all = ids
        let ordered = try orders.named().ordered
        var unread: Set<VersionID> = []
        /// Calls with the bytes of a value. If it is a difference from a value without bytes, they are not known: nil.
        func withValue<R>(
            _ entry: RecordTable.Entry, _ place: RecordPlace, _ version: VersionID, _ body: (UnsafeRawBufferPointer) throws -> R
        ) throws -> R? {
            do { return try records.withValue(entry, in: place, of: version, body) } catch let error as StoreError where error.code.isGone {
                unread.insert(version)
                return nil
            }
        }
        func add(_ version: VersionID, _ index: Int, _ size: Int) {
            report.values &+= 1
            report.bytes &+= UInt64(size)
            counted.insert(version)
            found[version, default: []].append(index)
        }
        // Without a search by bytes, only versions that changed one of the ids are read, and those that may have reviewed conflicts.
        let first = lock.withRead { dag.rows.firstIndex { $0.second != History.none } } ?? .max
        try forEachRecord(changing: query.containing.isEmpty ? ids : nil, before: first, control) { version, place in
            var i = -1
            let named = Set(ordered[version] ?? [])
            do {
                try records.forEachChange(place) { entry, _ in
                    i += 1
                    guard entry.kind == .insert || entry.kind == .update, !entry.id.starts(with: EraseOrder.reserved) else { return }
                    let id = ValueID(unchecked: entry.id)
                    if let digest = entry.digest, entry.isHollow {
                        // The order names it as well, so that the bytes are not stored if they come from others.
                        guard ids.contains(id), !named.contains(i),
                            equal[id].map({ $0.size == entry.size && digest.elementsEqual($0.digest) }) ?? (query.version == nil)
                        else { return }
                        found[version, default: []].append(i)
                        return
                    }
                    var isWanted = false
                    if ids.contains(id) {
                        if let one = equal[id] {
                            isWanted =
                                try entry.size == one.size
                                && one.digest == (entry.digest.map { Array($0) } ?? withValue(entry, place, version) { SHA256.digest($0) })
                        } else {
                            isWanted = query.version == nil
                        }
                    }
                    if !isWanted, !query.containing.isEmpty, entry.size >= query.containing.count {
                        isWanted = try withValue(entry, place, version) { Bytes.contains($0, query.containing) } ?? false
                        if isWanted { all.insert(id) }
                    }
                    if isWanted {
                        add(version, i, entry.size)
                    } else if entry.id.starts(with: Store.chosenPrefix) {
                        let mark = try withValue(entry, place, version) { Store.valueID(ofMark: $0) } ?? nil
                        if let mark { chosen.append((version, i, id, mark, entry.size)) }
                    }
                }
            } catch let error as StoreError where error.code.isOfOne { unread.insert(version) }
        }
        report.unread = UInt64(unread.count)
        for (version, index, _, mark, size) in chosen where all.contains(ValueID(unchecked: mark)) {
            add(version, index, size)
            report.copies &+= 1
        }
        for version in found.keys { found[version]?.sort() }
        report.versions = UInt64(counted.count)
        return found
    }

    /// Returns the id of the value in the record of a conflict; nil if the bytes are none.
    private static func valueID(ofMark bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        var reader = JSONReader(bytes)
        do {
            try reader.beginObject()
            while let key = try reader.nextMember() {
                if try reader.equals(key, "id") { return try reader.string() }
                try reader.skip()
            }
        } catch {}
        return nil
    }
}
