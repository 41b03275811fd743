/// The sizes of pages, unless the caller sets them.
package enum PageLimits {
    /// The elements of a page.
    package static let count = 1_000
    /// The bytes of values at which a page ends.
    package static let bytes = 16 << 20
    /// The most elements of a page. The sum with a position does not overflow.
    package static let most = Int(Int32.max)

    /// Returns the number of elements for a caller's limit; 0 means no limit was given.
    package static func count(_ limit: Int) -> Int { limit <= 0 ? count : min(limit, most) }
}

/// The page of the values at a version that is to be read.
package struct PageQuery {
    /// Only ids in this range.
    package var range = IDRange.all
    /// Only ids after `after`, and before `before`.
    package var after: ValueID?, before: ValueID?
    /// Whether to go from the last id down.
    package var isBackwards = false
    package var limit = PageLimits.count
    package var byteLimit = PageLimits.bytes
    /// Whether to return only ids and versions.
    package var withoutData = false

    /// Creates a query for the first page of all values.
    package init() {}

    /// The range of all pages together.
    package var whole: IDRange { range.narrowed(after: after, before: before) }
}

extension Store {
    /// Returns a page of the values at a version; nil if it is empty.
    /// - Parameter isSeparated: whether a NUL follows the bytes of each value.
    /// - Throws: like `batch`.
    package func page(_ query: PageQuery, at version: VersionID, isSeparated: Bool = true) throws -> ValueBatch? {
        let batch = try batch(
            at: version, in: query.range, after: query.after, before: query.before, isBackwards: query.isBackwards, limit: query.limit,
            byteLimit: query.byteLimit, withData: !query.withoutData, isSeparated: isSeparated)
        return batch.count > 0 ? batch : nil
    }
}

/// Changes that were found at once and are returned page by page. Used by one thread at a time.
package final class ChangePages {
    package let store: Store
    /// All changes.
    package let changes: [Store.ChangeSummary]
    private var position = 0
    package init(_ store: Store, _ changes: [Store.ChangeSummary]) { self.store = store; self.changes = changes }

    /// Returns the next page, which `make` makes of the changes and their values; nil at the end. If it throws, the next call repeats the
    /// page.
    /// - Throws: `.closed`, also at the end; like `batch`, and the errors of `make`.
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

/// Returns the versions of a walk through the history page by page. Used by one thread at a time.
package final class HistoryPages {
    package let store: Store
    private let walk: HistoryWalk
    /// Steps of the walk that were not returned yet.
    private var met: [HistoryWalk.Step] = []

    /// - Throws: like `Store.walk`.
    package init(_ store: Store, _ query: HistoryQuery, _ control: OperationControl) throws {
        self.store = store
        walk = try store.walk(query, control: control)
    }

    /// Returns the next page, which `make` makes of the versions and what each recorded of the queried value; nil at the end. If it
    /// throws, the next call repeats the page.
    /// - Throws: like `HistoryWalk.next`, and the errors of `make`.
    package func next<Made>(
        _ limit: Int, _ control: OperationControl, _ make: ([(version: Version, kind: Value.Change.Kind?)]) throws -> Made
    ) throws -> Made? {
        let limit = PageLimits.count(limit)
        while true {
            if met.isEmpty { met = try walk.next(limit, control: control) }
            let steps = met.prefix(limit)
            if steps.isEmpty { return nil }
            // A version from a cache may turn out to be damaged. Then it and its descendants are no longer in the history.
            let found = try steps.compactMap { step in try store.readableVersion(step.version).map { (version: $0, kind: step.kind) } }
            let page = found.isEmpty ? nil : try make(found)
            met.removeFirst(steps.count)
            if let page { return page }
        }
    }
}
