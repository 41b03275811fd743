/// How much is handed out at once, unless the caller says so.
package enum PageLimits {
    /// Elements of a page.
    package static let count = 1_000
    /// Bytes of values with which a page ends.
    package static let bytes = 16 << 20
    /// The most elements that a page can have: the sum with a position does not overflow.
    package static let most = Int(Int32.max)

    /// Of a page for which the caller gave a limit; 0: none.
    package static func count(_ limit: Int) -> Int { limit <= 0 ? count : min(limit, most) }
}

/// Which page of the values at a version is asked for.
package struct PageQuery {
    /// Only ids in it.
    package var range = IDRange.all
    /// Only ids behind the one, and before the other.
    package var after: ValueID?, before: ValueID?
    /// From the last one down.
    package var isBackwards = false
    package var limit = PageLimits.count
    package var byteLimit = PageLimits.bytes
    /// Whether ids and versions alone are wanted.
    package var withoutData = false

    /// The first page of all values.
    package init() {}

    /// All that the pages hold together.
    package var whole: IDRange { range.narrowed(after: after, before: before) }
}

extension Store {
    /// A page of the values at a version; nil when it is empty.
    /// - Parameter isSeparated: whether a NUL follows the bytes of each value.
    /// - Throws: as `batch`.
    package func page(_ query: PageQuery, at version: VersionID, isSeparated: Bool = true) throws -> ValueBatch? {
        let batch = try batch(
            at: version, in: query.range, after: query.after, before: query.before, isBackwards: query.isBackwards, limit: query.limit,
            byteLimit: query.byteLimit, withData: !query.withoutData, isSeparated: isSeparated)
        return batch.count > 0 ? batch : nil
    }
}

/// Changes that were found at once and are handed out page by page. Used by one thread at a time.
package final class ChangePages {
    package let store: Store
    /// All of them.
    package let changes: [Store.ChangeSummary]
    private var position = 0
    package init(_ store: Store, _ changes: [Store.ChangeSummary]) { self.store = store; self.changes = changes }

    /// The next page, as `make` makes it of changes and what they set; nil at the end. Where it throws, the page comes again.
    /// - Throws: `.closed`, also at the end; as `batch`, and what `make` throws.
    package func next<Made>(_ limit: Int, withData: Bool, _ make: (ArraySlice<Store.ChangeSummary>, ValueBatch?) throws -> Made) throws
        -> Made?
    {
        guard position < changes.count else { try store.requireOpen(); return nil }
        var page = changes[position..<min(changes.count - position, PageLimits.count(limit)) + position]
        let batch = withData ? try store.batch(page, byteLimit: PageLimits.bytes) : nil
        if let batch { page = page.prefix(batch.count) }
        let made = try make(page, batch)
        position += page.count
        return made
    }
}

/// The versions of a walk through history, page by page. Used by one thread at a time.
package final class HistoryPages {
    package let store: Store
    private let walk: HistoryWalk
    /// Met by the walk, and not handed out yet.
    private var met: [HistoryWalk.Step] = []

    /// - Throws: as `Store.walk`.
    package init(_ store: Store, _ query: HistoryQuery, _ control: OperationControl) throws {
        self.store = store
        walk = try store.walk(query, control)
    }

    /// The next page, as `make` makes it of versions and what each recorded of the value that was asked about; nil at the end. Where it
    /// throws, the page comes again.
    /// - Throws: as `HistoryWalk.next`, and what `make` throws.
    package func next<Made>(
        _ limit: Int, _ control: OperationControl, _ make: ([(version: Version, kind: Value.Change.Kind?)]) throws -> Made
    ) throws -> Made? {
        let limit = PageLimits.count(limit)
        while true {
            if met.isEmpty { met = try walk.next(limit, control) }
            let steps = met.prefix(limit)
            if steps.isEmpty { return nil }
            // A version of which a cache told may turn out damaged, and is not in the history any more, nor is what builds on it.
            let found = try steps.compactMap { step in try store.readableVersion(step.version).map { (version: $0, kind: step.kind) } }
            let page = found.isEmpty ? nil : try make(found)
            met.removeFirst(steps.count)
            if let page { return page }
        }
    }
}
