/// What comes in from others, where bytes are gone: docs/format.md, "Exchanging hollow changes".
extension Store {
    /// Returns those values of an added version that its record names: they belong to the version. The files of the others, which an order
    /// of this device names, are removed.
    package func valuesKept(of received: ReceivedVersion) -> [WrittenValue] {
        let values = received.written.values.filter { !$0.isHollow }
        guard !values.isEmpty, (try? orders.erased())?[received.version.id] != nil,
            let place = recordPlaces(of: received.version.id).first, let blobs = try? Set(records.header(place).blobs)
        else { return values }
        return values.filter { blobs.contains($0.blob) }
    }

    // MARK: Versions that came without bytes

    /// The cache with the ids of versions that came without bytes, one a line. If it is lost, only their bytes do not come later.
    private static let lackingName = "hollow"
    private static let mostLacking = 65_536

    /// Returns the versions that came from others without bytes of values, except those that orders of this device name.
    package func lackingBytes() throws -> Set<VersionID> {
        if let known = lock.withRead({ lacking }) { return known }
        var found: Set<VersionID> = []
        for line in (try !storage.hasCache(Store.lackingName) ? [] : storage.cacheGet(Store.lackingName) ?? []).split(
            separator: UInt8(ascii: "\n")
        ).prefix(Store.mostLacking) {
            if let id = Array(line).withUnsafeBytes({ try? VersionID(ascii: $0) }) { found.insert(id) }
        }
        return lock.withWrite {
            lacking = lacking ?? found
            return lacking ?? found
        }
    }

    /// Returns whether values without bytes are known: by orders of this device, by its policy, or in versions that came so.
    package func mayHaveHollow() throws -> Bool {
        try orders.known()?.hasThinned == true || !orders.erased().isEmpty || !lackingBytes().isEmpty
    }

    /// Notes versions that were added without bytes of values.
    func noteLacking(_ added: some Sequence<ReceivedVersion>) {
        let new = added.filter { $0.written.values.contains(where: \.isHollow) }.map(\.version.id)
        guard !new.isEmpty else { return }
        changeLacking { $0.formUnion(new.prefix(max(0, Store.mostLacking - $0.count))) }
    }
    func noteFilled(_ id: VersionID) { changeLacking { $0.remove(id) } }
    /// Notes that the bytes of a version are needed, if they are forgotten: if it comes with them, they are stored.
    package func noteWanted(after error: StoreError) {
        guard error.code == .forgotten, !isReadOnly, let id = error.versionID.flatMap({ try? VersionID($0) }),
            (try? lackingBytes().contains(id)) == false
        else { return }
        changeLacking { if $0.count < Store.mostLacking { $0.insert(id) } }
    }

    private func changeLacking(_ change: (inout Set<VersionID>) -> Void) {
        do {
            lock.withWrite { lacking = nil }
            var now = try lackingBytes()
            change(&now)
            try storage.cachePut(Store.lackingName, Array(now.sorted().map { "\($0)\n" }.joined().utf8))
            lock.withWrite { lacking = now }
        } catch { Log.write(.info, "The versions of \(description) without bytes were not noted: \(error)") }
    }
}
