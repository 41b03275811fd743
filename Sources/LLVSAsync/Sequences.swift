import LLVS

/// Elements that are read a page at a time, as the loop asks for them: `for try await` waits for the disk without blocking a thread of
/// Swift's pool.
///
/// Each iteration begins anew. Cancelling the task ends the loop with `CancellationError`.
public struct PagedSequence<Element: Sendable>: AsyncSequence, Sendable {
    /// Makes a function that returns the next page, and an empty one at the end. Each is called by one thread at a time.
    let begin: @Sendable (OperationControl) throws -> (OperationControl) throws -> [Element]

    /// Returns an iterator that begins at the first element.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pages: Pages(begin)) }

    /// Reads one page after another.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let pages: Pages
        fileprivate var page: ArraySlice<Element> = []

        /// Returns the next element, and waits for the disk if a page has to be read; nil at the end.
        /// - Throws: the errors of the storage; `CancellationError`.
        public mutating func next() async throws -> Element? {
            if page.isEmpty {
                let pages = pages
                page = try await onOwnThread { try pages.next($0) }[...]
            }
            return page.popFirst()
        }
    }

    /// The function that returns pages, which moves from thread to thread.
    fileprivate final class Pages: @unchecked Sendable {
        // Sendable: `lock` guards all mutable state.
        private let lock = Lock()
        private let begin: @Sendable (OperationControl) throws -> (OperationControl) throws -> [Element]
        private var read: ((OperationControl) throws -> [Element])?

        init(_ begin: @escaping @Sendable (OperationControl) throws -> (OperationControl) throws -> [Element]) { self.begin = begin }

        func next(_ control: OperationControl) throws -> [Element] {
            try lock.withLockWhileCalling {
                let next = try read ?? begin(control)
                read = next
                return try next(control)
            }
        }
    }
}

extension Store {
    /// Returns the versions of the history that match a query, newest first: each version before its predecessors.
    ///
    ///     for try await version in store.versions(matching: HistoryQuery(value: ValueID("note/1"))) { show(version) }
    ///
    /// - Parameter query: the conditions.
    public func versions(matching query: HistoryQuery) -> PagedSequence<Version> {
        PagedSequence { control in
            let walk = try self.walk(query, control: control)
            return { control in
                while true {
                    let steps = try walk.next(64, control: control)
                    // A version may have been found damaged since: then there is another step, or the end.
                    let versions = try steps.compactMap { try self.version($0.version) }
                    if !versions.isEmpty || steps.isEmpty { return versions }
                }
            }
        }
    }

    /// Returns all values at a version, in byte order of their ids.
    ///
    ///     for try await value in store.allValues(at: version, in: .prefix(Array("note/".utf8))) { show(value) }
    ///
    /// - Parameters:
    ///   - version: the version.
    ///   - range: only ids in it.
    public func allValues(at version: VersionID, in range: IDRange = .all) -> PagedSequence<Value> {
        PagedSequence { _ in
            var last: ValueID?
            return { control in
                try control.check(.reading, 0, of: 0, doing: "Reading values of \(self.description)")
                let page = try self.values(at: version, in: range, after: last, limit: 256)
                last = page.last?.id ?? last
                return page
            }
        }
    }

    /// Delivers the ids of the heads, newest first: at once, and whenever they change, whether this handle, another handle or another
    /// process added versions.
    ///
    ///     for try await heads in try store.heads { show(heads.count == 1 ? "merged" : "\(heads.count) heads") }
    ///
    /// The sequence ends when the store is closed or released. It does not keep the store open.
    /// - Throws: `.closed`, `.busy` and `.io`, as `Store.observeAdditions`.
    public var heads: HeadSequence {
        get throws { HeadSequence(store: self, added: try newVersions()) }
    }
}

/// The heads of a store whenever they change: `Store.heads`.
public struct HeadSequence: AsyncSequence, Sendable {
    fileprivate weak let store: Store?
    fileprivate let added: EventSequence<[VersionID]>

    /// Returns an iterator that first delivers the present heads.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(store: store, added: added.makeAsyncIterator()) }

    /// Waits for one change after another.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate weak var store: Store?
        fileprivate var added: EventSequence<[VersionID]>.AsyncIterator
        fileprivate var last: [VersionID]?

        /// Returns the heads, or waits until they differ from those returned last; nil at the end.
        /// - Throws: the errors of the storage; `CancellationError`.
        public mutating func next() async throws -> [VersionID]? {
            while true {
                if last != nil, await added.next() == nil { return nil }
                guard let store else { return nil }
                let heads: [VersionID]
                do {
                    heads = try await onOwnThread { _ in try store.headIDs() }
                } catch StoreError.closed { return nil }
                if heads != last {
                    last = heads
                    return heads
                }
            }
        }
    }
}

extension Syncer {
    /// Delivers the reports of the syncer from now on: after each round, at each change of the status, and at most ten times a second as a
    /// round makes progress.
    ///
    ///     for await event in syncer.events { show(event.status) }
    ///
    /// Reports that arrive while no task waits are one element: the newest status, and the last round with the move of all of them. The
    /// sequence ends when the syncer ends: it is stopped or released, or the coordinator is closed.
    public var events: EventSequence<Event> {
        EventSequence(
            ending: ended,
            together: { earlier, later in
                guard let before = earlier.round else { return later }
                var event = later
                if event.round == nil {
                    event.round = before
                } else {
                    event.round?.move.from = before.move.from
                }
                return event
            }
        ) { put in [listeners.add(put)] }
    }
}
