import LLVS

/// Calls everything that reads a store, whatever it was made from.
enum Examining {
    /// A store with a small budget of memory, so excessive use is noticed.
    static func options(_ storage: Store.StorageChoice = .memory) -> Store.Options {
        var options = Store.Options()
        options.storage = storage
        options.durability = .normal
        options.memoryBudget = 1 << 20
        return options
    }
    static func memoryStore() throws -> Store { try Store(storage: MemoryStorage(), options: options()) }

    /// Errors are allowed, provided that they are `StoreError`s and not internal errors.
    @discardableResult
    static func attempt<R>(_ body: () throws -> R, file: StaticString = #fileID, line: UInt = #line) -> R? {
        do { return try body() } catch {
            guard let error = error as? StoreError else { fail("threw \(error)", file: file, line: line) }
            require(error.code != .internal, "an internal error: \(error.message)", file: file, line: line)
            require(!error.message.isEmpty, "an error that says nothing: \(error.code)", file: file, line: line)
            return nil
        }
    }

    /// Reads everything in the store, and adds it to another store, where it must mean the same.
    /// - Parameter isDerived: whether prevailing values come from the records. Caches may have been made to claim anything.
    static func examine(_ store: Store, isDerived: Bool = true) {
        guard let ids = attempt({ try store.allVersionIDs() }) else { return }
        let copy = attempt { try memoryStore() }
        for (i, id) in ids.enumerated() {
            // The record may be damaged. If it can be read, it has the right id.
            guard let found = attempt({ try store.version(id) }) else { continue }
            guard let version = found, version.id == id else { fail("\(id) is listed and not there") }
            let changes = attempt { try store.changes(madeIn: id) }
            attempt { _ = try store.recordedChanges(madeIn: id) }
            attempt { _ = try store.successors(of: id) }
            if let first = version.predecessors.first {
                let isAncestor = attempt { try store.isAncestor(first, of: id) }
                require(!isDerived || isAncestor == true, "\(first) is no ancestor of its successor \(id)")
                attempt { _ = try store.differences(from: first, to: id) }
            }
            if let changes, let copy { keep(version, changes, in: copy) }
            // A state is as large as everything that was recorded before it, so only the first and last ones are read.
            if i < 20 || i >= ids.count - 20 { state(of: id, in: store, copy, isDerived) }
        }
        attempt { _ = try store.verify() }
        attempt { _ = try store.statistics() }
        require((attempt { try store.headIDs() } ?? []).allSatisfy { ids.contains($0) }, "a head that is not listed")
        merge(store)
        attempt { try store.close() }
        if let copy { attempt { try copy.close() } }
    }

    /// Adds the decoded version to another store, and checks that it comes out unchanged.
    private static func keep(_ version: Version, _ changes: [Value.Change], in copy: Store) {
        guard case .added? = attempt({ try copy.add([.init(version: version, changes: changes)]) })?.first else { return }
        let kept = attempt { try copy.version(version.id) } ?? nil
        require(
            kept?.predecessors == version.predecessors && kept?.timestamp == version.timestamp && kept?.metadata == version.metadata,
            "the version \(version.id) differs in the copy")
        require(attempt { try copy.changes(madeIn: version.id) } == changes, "the changes of \(version.id) differ in the copy")
        let file = InterchangeEncoder.changes(changes)
        require(
            attempt { try InterchangeDecoder.changes(file, of: version.id) } == changes,
            "the changes of \(version.id) differ after encoding as JSON")
    }

    private static func state(of id: VersionID, in store: Store, _ copy: Store?, _ isDerived: Bool) {
        guard let count = attempt({ try store.count(at: id) }), let references = attempt({ try store.references(at: id, limit: 200) })
        else { return }
        require(references.count == min(count, 200), "\(count) values prevail at \(id), and \(references.count) are listed")
        for (a, b) in zip(references, references.dropFirst()) { require(!isDerived || a.id < b.id, "values of \(id) are not in order") }
        var sizes = 0
        for reference in references where sizes < 4 << 20 {
            require(
                !isDerived || attempt { try store.reference(reference.id, at: id) ?? reference } ?? reference == reference,
                "a query for \(reference.id) alone gives another version")
            let value = attempt { try store.value(reference.id, at: id) } ?? nil
            sizes += value?.data.count ?? 0
            require(value.map { $0.reference == reference } ?? true, "reading the value \(reference.id) gives another version")
        }
        guard isDerived, let copy, attempt({ try copy.contains(id) }) == true,
            let copied = attempt({ try copy.references(at: id, limit: 200) })
        else { return }
        require(copied == references, "the state at \(id) differs in the copy: \(references) became \(copied)")
    }

    private static func merge(_ store: Store) {
        guard let heads = attempt({ try store.headIDs() }), heads.count > 1, !store.isReadOnly else { return }
        guard let merged = attempt({ try store.merge(heads[0], with: heads[1], arbiter: BuiltInArbiter.mostRecentChange) }) else { return }
        attempt { _ = try store.count(at: merged.id) }
    }
}
