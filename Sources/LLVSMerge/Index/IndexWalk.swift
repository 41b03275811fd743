/// Walks the entries of an index that match a query. Used by one thread.
struct IndexWalk {
    private let store: Store
    private let definition: IndexDefinition
    private let tree: IndexCache.Tree
    /// The map of the version.
    private let map: MapNode?
    private let question: IndexQuestion
    private let bounds: (low: [UInt8], high: [UInt8]?)
    private let control: PacedControl
    /// The most bytes that matter when a key is compared; the rest of a long key is never built.
    private let most: Int

    /// How many entries are read together.
    private static let stretch = 1_024

    private struct Entry {
        let bytes: [UInt8]
        let keySize: Int
        var key: ArraySlice<UInt8> { bytes[..<keySize] }
        var id: ArraySlice<UInt8> { bytes[keySize...] }
        /// The tuple of a cut key, if requested.
        var tuple: [UInt8]?
        var isCut: Bool { bytes.withUnsafeBytes { IndexKey.isCut($0) } }
    }

    init(
        _ store: Store, _ definition: IndexDefinition, _ tree: IndexCache.Tree, _ question: IndexQuestion,
        _ bounds: (low: [UInt8], high: [UInt8]?), _ control: PacedControl
    ) throws {
        self.store = store
        self.definition = definition
        self.tree = tree
        self.question = question
        self.bounds = bounds
        self.control = control
        most = max(IndexKey.limit, bounds.low.count, bounds.high?.count ?? 0) + 1
        let isUnique = question.isUnique && definition.mayRepeat
        let isLong = bounds.low.count >= IndexKey.limit || (bounds.high?.count ?? 0) >= IndexKey.limit
        looksAtValues = isUnique || isLong
        self.isUnique = isUnique
        let hasCutKeys = question.wantsKeys
        map = looksAtValues || hasCutKeys || question.wantsValues ? try store.maps.map(tree.ordinal, control) : nil
    }

    /// Whether entries within the bounds may not match: cut keys at a long bound, and further entries of a value that is wanted once.
    private let looksAtValues: Bool
    private let isUnique: Bool

    // MARK: Pages

    func page(after: [UInt8]?) throws -> IndexPage {
        let limit = PageLimits.count(question.limit)
        var page = IndexPage(), found: [Entry] = [], last = after, isAll = false
        if question.wantsCount { page.total = try total() }
        // If few of the entries match, more are read together: then a value with many of them is read once for all.
        var more = 1
        while !isAll, found.count <= limit {
            let (entries, isEnd) = try entries(after: last, atMost: min(max(limit + 1 - found.count, more), IndexWalk.stretch))
            more = looksAtValues ? min(2 * max(more, entries.count), IndexWalk.stretch) : 1
            isAll = isEnd
            last = entries.last?.bytes ?? last
            found += looksAtValues ? try meant(entries) : entries
        }
        var isLast = found.count <= limit
        // The last batch may exceed the limit by more than one.
        if !isLast { found.removeLast(found.count - limit) }
        if question.wantsValues {
            let values = try values(found)
            if values.count < found.count {
                found.removeLast(found.count - values.count)
                isLast = false
            }
            page.values = values
        }
        if question.wantsKeys { try addTuples(to: &found) }
        for entry in found {
            page.ids.append(entry.id)
            guard question.wantsKeys else { continue }
            page.keys.append(
                try entry.tuple
                    ?? entry.bytes.withUnsafeBytes { bytes in
                        guard let tuple = IndexKey.read(bytes, parts: definition.parts, folds: definition.folds)?.tuple else {
                            throw broken
                        }
                        return tuple
                    })
        }
        if !isLast, let last = found.last { page.cursor = IndexPage.cursorStart(definition) + last.bytes }
        return page
    }

    private var broken: StoreError {
        guard definition.callback != nil else { return StoreError(.internal, "An index of \(store.description) holds an invalid entry.") }
        return StoreError(
            .invalidArgument,
            "The callback of an index of \(store.description) returned other keys for a value than before. Use only id and bytes.")
    }

    /// Returns the number of entries that match.
    private func total() throws -> UInt64 {
        guard looksAtValues else { return withBounds(after: nil) { UInt64(max(0, tree.count(from: $0, to: $1))) } }
        var total = 0, last: [UInt8]?, isAll = false
        while !isAll {
            let (entries, isEnd) = try entries(after: last, atMost: IndexWalk.stretch)
            isAll = isEnd
            last = entries.last?.bytes ?? last
            total += try meant(entries).count
        }
        return UInt64(total)
    }

    /// Calls `body` with bounds that include all matches.
    private func withBounds<R>(after: [UInt8]?, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer?) -> R) -> R {
        // A cut key may match a long bound if they agree as far as the key goes.
        let kept = IndexKey.limit - 1
        var low = Array(bounds.low.prefix(kept)), high = bounds.high
        if let long = high, long.count > kept { high = IndexKey.behind(Array(long[..<kept])) }
        if let after {
            if question.isBackwards {
                if high.map({ Bytes.compare(after, $0) < 0 }) ?? true { high = after }
            } else if Bytes.compare(after, low) >= 0 {
                low = after + [0]
            }
        }
        return low.withUnsafeBytes { low in
            guard let high else { return body(low, nil) }
            return high.withUnsafeBytes { body(low, $0) }
        }
    }

    /// Returns the next entries within the bounds, and whether these are all.
    private func entries(after: [UInt8]?, atMost most: Int) throws -> ([Entry], Bool) {
        try control.look()
        var found: [Entry] = [], isBroken = false
        func add(_ entry: UnsafeRawBufferPointer) -> Bool {
            guard let size = IndexKey.size(entry, parts: definition.parts, folds: definition.folds) else {
                isBroken = true
                return false
            }
            found.append(Entry(bytes: Array(entry), keySize: size))
            return found.count < most
        }
        withBounds(after: after) { low, high in
            // Beyond the other bound nothing is left.
            if let high, Bytes.compare(low, high) >= 0 { return }
            tree.forEach(from: low, to: high, isBackwards: question.isBackwards, add)
        }
        guard !isBroken else { throw broken }
        return (found, found.count < most)
    }

    // MARK: Values

    /// Returns the entries that match, which only their values show.
    private func meant(_ entries: [Entry]) throws -> [Entry] {
        var found: [Entry] = [], open: [Int] = []
        var answers = entries.map { entry in entry.bytes.withUnsafeBytes { IndexKey.isWithin(key($0, entry), bounds.low, bounds.high) } }
        for i in entries.indices where isUnique ? answers[i] != false : answers[i] == nil { open.append(i) }
        try forEachTuples(open, of: entries) { same, tuples in
            let keys = IndexReading.distinct(tuples.filter { isMeant($0.whole) }.map { IndexKey.cut($0.whole) })
            let told = isUnique ? Set([question.isBackwards ? keys.last : keys.first].compactMap { $0 }) : Set(keys)
            for i in same { answers[i] = told.contains(Array(entries[i].key)) }
        }
        for i in entries.indices where answers[i] == true { found.append(entries[i]) }
        return found
    }

    private func key(_ bytes: UnsafeRawBufferPointer, _ entry: Entry) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[..<entry.keySize])
    }

    /// Returns whether an uncut key matches.
    private func isMeant(_ whole: [UInt8]) -> Bool {
        Bytes.compare(whole, bounds.low) >= 0 && (bounds.high.map { Bytes.compare(whole, $0) < 0 } ?? true)
    }

    /// Reads the tuples of cut keys from their values.
    private func addTuples(to entries: inout [Entry]) throws {
        let cut = entries.indices.filter { entries[$0].isCut }, asked = entries
        try forEachTuples(cut, of: asked) { same, tuples in
            let meant = tuples.filter { isMeant($0.whole) }
            for i in same {
                let key = Array(asked[i].key)
                entries[i].tuple = meant.filter { IndexKey.cut($0.whole) == key }.min { Bytes.compare($0.whole, $1.whole) < 0 }?.tuple()
            }
        }
    }

    /// An uncut key of a value, as far as it is ever compared. The tuple is valid during the call.
    private struct Tuple {
        let whole: [UInt8]
        let parts: [IndexPart]
        func tuple() -> [UInt8] { IndexKey.tuple(parts) }
    }

    /// Groups the entries by value, and calls `body` with the numbers of each group and all tuples of its value.
    private func forEachTuples(_ numbers: [Int], of entries: [Entry], _ body: ([Int], [Tuple]) throws -> Void) throws {
        var places: [ArraySlice<UInt8>: Int] = [:], values: [(id: [UInt8], same: [Int])] = []
        for i in numbers {
            if let known = places[entries[i].id] { values[known].same.append(i); continue }
            places[entries[i].id] = values.count
            values.append((Array(entries[i].id), [i]))
        }
        for start in stride(from: 0, to: values.count, by: IndexWalk.readTogether) {
            let reading = IndexReading(store, definition)
            for value in values[start..<min(start + IndexWalk.readTogether, values.count)] {
                try reading.append(value.id, value.id.withUnsafeBytes { map?.lookup($0) })
            }
            try reading.forEachValue(control) { i, _, data in
                guard let data else { throw broken }
                try definition.withTuples(of: values[start + i].id, data) { parts in
                    try body(
                        values[start + i].same,
                        parts.map { parts in
                            var whole: [UInt8] = []
                            IndexKey.append(whole: parts, folds: definition.folds, most: most, to: &whole)
                            return Tuple(whole: whole, parts: parts)
                        })
                }
            }
        }
    }
    /// How many values are read together to compute their tuples.
    private static let readTogether = 64

    /// Returns the values of the first entries, up to the limit of bytes.
    private func values(_ entries: [Entry]) throws -> ValueBatch {
        let batch = ValueBatch(isSeparated: false)
        var filling = BatchFilling(store, batch, byteLimit: question.byteLimit > 0 ? question.byteLimit : PageLimits.bytes)
        for start in stride(from: 0, to: entries.count, by: Store.batchRows) {
            try control.look()
            for entry in entries[start..<min(start + Store.batchRows, entries.count)] {
                try entry.id.withUnsafeBytes { id in
                    guard let found = map?.lookup(id) else { throw broken }
                    try filling.append(id, found)
                }
                if !filling.isBelowLimit { break }
            }
            let goesOn = try filling.fill()
            if !goesOn || !filling.isBelowLimit { break }
        }
        try batch.finish()
        return batch
    }
}
