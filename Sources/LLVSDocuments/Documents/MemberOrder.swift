/// Orders the members of objects by their names.
enum MemberOrder {
    /// A member during a comparison of names, with eight bytes of its name from some offset on, which decide most comparisons.
    struct Named {
        var word: UInt64
        /// The node of the value.
        var node: UInt32
        /// The index of the member among the others, or the size of its name in bytes.
        var note: UInt32
    }

    /// Fewer members are sorted by comparing them.
    private static let many = 128

    /// Returns whether both have the same names in the same order.
    static func agrees(_ left: [UInt32], _ p: JSONTree, _ right: [UInt32], _ q: JSONTree) -> Bool {
        guard left.count == right.count else { return false }
        for k in 0..<left.count where !Bytes.equal(p.name(of: left[k]), q.name(of: right[k])) { return false }
        return true
    }

    /// Sorts the values of members by their names, from an index on.
    static func sort(_ values: inout [UInt32], from start: Int = 0, in tree: JSONTree, _ work: DocumentControl) throws {
        guard values.count - start > 8 else {
            guard values.count - start > 1 else { return }
            for i in start + 1..<values.count {
                var j = i
                while j > start, Bytes.compare(tree.name(of: values[j - 1]), tree.name(of: values[j])) > 0 {
                    values.swapAt(j - 1, j)
                    j -= 1
                }
            }
            return
        }
        let offset = shared(values[start...], in: tree)
        var all = named(values[start...], in: tree, from: offset)
        try sort(&all, offset, in: tree, work)
        for (i, member) in all.enumerated() { values[start + i] = member.node }
    }

    /// Returns the indexes of the values, in the order of their names.
    static func order(of values: [UInt32], in tree: JSONTree, _ work: DocumentControl) throws -> [UInt32] {
        let offset = shared(values[...], in: tree)
        var all = named(values[...], in: tree, from: offset)
        try sort(&all, offset, in: tree, work)
        return all.map(\.note)
    }

    /// Returns how many bytes all names have in common at the beginning.
    static func shared(_ values: ArraySlice<UInt32>, in tree: JSONTree) -> Int {
        guard let one = values.first else { return .max }
        let first = tree.name(of: one)
        var shared = first.count
        for value in values {
            if shared == 0 { break }
            shared = min(shared, common(tree.name(of: value), first))
        }
        return shared
    }

    /// Returns how many bytes both have in common at the beginning.
    static func common(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int { Bytes.common(a, 0, b, 0) }

    /// - Parameter notesSizes: whether `note` is the size of the name instead of the index.
    static func named(_ values: ArraySlice<UInt32>, in tree: JSONTree, from offset: Int, notesSizes: Bool = false) -> [Named] {
        var all: [Named] = []
        all.reserveCapacity(values.count)
        for (i, value) in values.enumerated() {
            let name = tree.name(of: value)
            let note = UInt32(truncatingIfNeeded: notesSizes ? name.count : i)
            all.append(Named(word: Bytes.word(name, at: offset), node: value, note: note))
        }
        return all
    }

    /// Sorts members whose names have the bytes before `offset` in common. Their words begin at `offset`.
    static func sort(_ all: inout [Named], _ offset: Int, in tree: JSONTree, _ work: DocumentControl) throws {
        try work.done(2 * all.count)
        try Memory.expect(MemoryLayout<Named>.stride * all.count, "Merging an object")
        var spare: [Named] = [], hasLookedDeeper = false
        // Ranges of members with a common prefix that remain to be sorted.
        var open = [(range: 0..<all.count, offset: offset)]
        while let (range, offset) = open.popLast() {
            guard range.count >= many else {
                sortNames(&all, range, in: tree)
                continue
            }
            sortWords(&all, range, &spare)
            var start = range.lowerBound
            while start < range.upperBound {
                var end = start + 1
                while end < range.upperBound, all[end].word == all[start].word { end += 1 }
                if end - start > 1 {
                    if let next = try deeper(&all, start..<end, offset + 8, in: tree, work) {
                        hasLookedDeeper = true
                        open.append((start..<end, next))
                    }
                }
                start = end
            }
        }
        // Restore the words at the first difference of all names.
        if hasLookedDeeper { for i in all.indices { all[i].word = Bytes.word(tree.name(of: all[i].node), at: offset) } }
    }

    /// Compares the names of members that are equal up to an offset at a later offset. A shorter name counts as if zeros followed.
    /// - Returns: the offset of the new words; nil if the range is sorted.
    private static func deeper(
        _ all: inout [Named], _ range: Range<Int>, _ offset: Int, in tree: JSONTree, _ work: DocumentControl
    ) throws -> Int? {
        // No further than some words. If single names end on the way, the rest would be read again and again.
        func piece(_ name: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: name[min(offset, name.count)..<min(offset + 64, name.count)])
        }
        let first = piece(tree.name(of: all[range.lowerBound].node))
        var shared = offset + 64, longest = 0
        for i in range {
            let name = tree.name(of: all[i].node)
            longest = max(longest, name.count)
            let alike = common(piece(name), first)
            Work.names.count(alike)
            shared = min(shared, offset + alike)
        }
        guard longest > offset, range.count >= many else {
            sortNames(&all, range, in: tree)
            return nil
        }
        let next = max(offset, shared)
        try work.done(2 * range.count)
        for i in range { all[i].word = Bytes.word(tree.name(of: all[i].node), at: next) }
        return next
    }

    /// Sorts by words, and by `isBefore` if the words are equal.
    static func sort(_ all: inout [Named], _ isBefore: (Named, Named) -> Bool) {
        var spare: [Named] = [], start = 0
        if all.count >= many { sortWords(&all, 0..<all.count, &spare) } else { all.sort { $0.word < $1.word } }
        all.withUnsafeMutableBufferPointer { all in
            while start < all.count {
                var end = start + 1
                while end < all.count, all[end].word == all[start].word { end += 1 }
                if end - start > 1 {
                    var some = UnsafeMutableBufferPointer(rebasing: all[start..<end])
                    some.sort(by: isBefore)
                }
                start = end
            }
        }
    }

    private static func sortNames(_ all: inout [Named], _ range: Range<Int>, in tree: JSONTree) {
        all.withUnsafeMutableBufferPointer { all in
            var some = UnsafeMutableBufferPointer(rebasing: all[range])
            some.sort { a, b in
                a.word != b.word ? a.word < b.word : Bytes.compare(tree.name(of: a.node), tree.name(of: b.node)) < 0
            }
        }
    }

    /// Sorts by the words alone: byte by byte, from the last one that differs.
    private static func sortWords(_ all: inout [Named], _ range: Range<Int>, _ spare: inout [Named]) {
        var differing: UInt64 = 0, isSorted = true, last = all[range.lowerBound].word
        let first = last
        for i in range {
            let word = all[i].word
            differing |= word ^ first
            if word < last { isSorted = false }
            last = word
        }
        if isSorted { return }
        if spare.count < range.count { spare = [Named](repeating: Named(word: 0, node: 0, note: 0), count: range.count) }
        all.withUnsafeMutableBufferPointer { all in
            spare.withUnsafeMutableBufferPointer { spare in
                guard let base = all.baseAddress, var to = spare.baseAddress else { return }
                var from = base + range.lowerBound
                withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 256) { places in
                    for shift in stride(from: UInt64(0), to: 64, by: 8) where differing >> shift & 0xFF != 0 {
                        for i in 0..<256 { places[i] = 0 }
                        for i in 0..<range.count { places[Int(truncatingIfNeeded: from[i].word >> shift & 0xFF)] += 1 }
                        var sum: UInt32 = 0
                        for i in 0..<256 { (places[i], sum) = (sum, sum + places[i]) }
                        for i in 0..<range.count {
                            let slot = Int(truncatingIfNeeded: from[i].word >> shift & 0xFF)
                            to[Int(places[slot])] = from[i]
                            places[slot] += 1
                        }
                        swap(&from, &to)
                    }
                }
                if from != base + range.lowerBound { (base + range.lowerBound).update(from: from, count: range.count) }
            }
        }
    }
}
