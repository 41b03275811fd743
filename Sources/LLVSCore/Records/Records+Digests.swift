/// Checks whether records are valid, equal, and what their ids claim.
extension Records {
    /// Returns the digest over the content of a record's version.
    /// - Parameter control: checked for each change.
    package func identityDigest(_ place: RecordPlace, _ control: PacedControl = .none) throws -> [UInt8] {
        let header = try header(place)
        var hasher = IdentityHasher(.identity)
        hasher.add(header.version, changeCount: header.changeCount)
        try forEachDigest(place) { entry, header, digest in
            try control.step(0, bytes: entry.size)
            if let digest {
                hasher.add(setting: entry.id, size: entry.size, digest: digest)
            } else {
                hasher.add(entry.kind, entry.id, stored: entry.kind == .preserve ? header.dependencies[entry.dependency] : nil)
            }
        }
        return hasher.finish()
    }

    /// Calls with each change of a record. For inserts and updates it passes the SHA-256 of the value: the recorded one, or a computed
    /// one.
    func forEachDigest(_ place: RecordPlace, _ body: (RecordTable.Entry, RecordHeader, UnsafeRawBufferPointer?) throws -> Void) throws {
        try forEachChange(place) { entry, header in
            guard entry.kind == .insert || entry.kind == .update else { return try body(entry, header, nil) }
            if let digest = entry.digest { return try Array(digest).withUnsafeBytes { try body(entry, header, $0) } }
            let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
            let digest = try withBody(place, located, id: entry.id, stored: header.id) { SHA256.words($0) }
            try withUnsafeBytes(of: digest) { try body(entry, header, $0) }
        }
    }

    /// Returns the SHA-256 of the value that a record stores under an id: the recorded one, or a computed one. A hollow change has it.
    package func digest(of id: UnsafeRawBufferPointer, in place: RecordPlace, stored: VersionID) throws -> [UInt8] {
        if let digest = try findChange(place, id)?.body.digest { return digest }
        let unknown = MapEntry(version: 0, size: MapEntry.unknownSize, bodyOffset: 0)
        return try withBody(place, unknown, id: id, stored: stored) { SHA256.digest($0) }
    }

    /// Returns whether a value that a version stored has these bytes. If its own are gone, digests are compared.
    package func hasBytes(_ bytes: [UInt8], _ place: RecordPlace, _ entry: MapEntry, id: UnsafeRawBufferPointer, stored: VersionID) throws
        -> Bool
    {
        do {
            return try withBody(place, entry, id: id, stored: stored) { own in bytes.withUnsafeBytes { Bytes.equal(own, $0) } }
        } catch let error as StoreError where error.code.isGone {
            return try digest(of: id, in: place, stored: stored) == bytes.withUnsafeBytes { SHA256.digest($0) }
        }
    }

    /// Returns the number of changes of a record whose values have no bytes.
    func hollowCount(_ place: RecordPlace) throws -> Int {
        guard try header(place).hasHollow else { return 0 }
        var count = 0
        try forEachChange(place) { entry, _ in if entry.isHollow { count += 1 } }
        return count
    }

    /// Returns whether a record is what its id claims, and its version. The id of a merge in the old form does not cover the timestamp,
    /// which the caller must compare with that of its first predecessor.
    /// - Throws: the errors of reading.
    func vouching(_ place: RecordPlace) throws -> (Vouching, Version) {
        let header = try header(place)
        guard var check = ContentCheck(header.version, changeCount: header.changeCount) else { return (.free, header.version) }
        guard header.id.text == nil else { return (.none, header.version) }
        try forEachDigest(place) { entry, header, digest in
            if let digest {
                check.add(setting: entry.id, size: entry.size, digest: digest)
            } else {
                check.add(entry.kind, entry.id, stored: entry.kind == .preserve ? header.dependencies[entry.dependency] : nil)
            }
        }
        return (check.finish(), header.version)
    }

    /// Returns whether all of a record can be read and is valid, and, on request, all blobs that it names. Hollow changes are valid.
    package func isWhole(_ place: RecordPlace, withBlobs: Bool) throws -> Bool {
        do {
            try forEachChange(place) { entry, header in
                guard entry.kind == .insert || entry.kind == .update, withBlobs || entry.blob == nil, !entry.isHollow else { return }
                do {
                    try withValue(entry, in: place, of: header.id) { bytes in
                        if let digest = entry.digest, !digest.elementsEqual(SHA256.digest(bytes)) {
                            throw damaged(place, "has a digest that its value does not have", version: header.id, value: entry.id)
                        }
                    }
                } catch let error as StoreError where error.code.isGone {} // The base of a difference has no bytes.
            }
            return true
        } catch let error as StoreError where error.code.isDamage { return false }
    }

    /// Returns whether two records of equal length have the same bytes. Their header checksums do not cover the bytes of values. False if
    /// one of them cannot be read.
    func haveSameBytes(_ a: RecordPlace, _ b: RecordPlace) throws -> Bool {
        var x = reader(a), y = reader(b)
        var offset = 0
        let length = Int(clamping: a.length)
        do {
            while offset < length {
                let count = min(length - offset, 256 << 10)
                guard
                    try x.with(
                        offset, count,
                        { left in
                            try y.with(offset, count) {
                                Bytes.equal(
                                    UnsafeRawBufferPointer(rebasing: left.prefix(count)), UnsafeRawBufferPointer(rebasing: $0.prefix(count))
                                )
                            }
                        }) == true
                else { return false }
                offset += count
            }
            return true
        } catch let error as StoreError where error.code.isDamage {
            return false
        }
    }
}
