/// Sorts items by a number for each, and by a comparison if the numbers are equal.
struct WordOrder {
    private(set) var items: ContiguousArray<(word: UInt64, index: UInt32)>
    /// For fewer items, comparing is as fast as counting.
    private static let fewItems = 256

    /// - Parameter word: returns the number of an item. Numbers must be in the order of the items, or equal.
    init(_ count: Int, _ word: (Int) -> UInt64) {
        items = []
        items.reserveCapacity(count)
        for i in 0..<count { items.append((word(i), UInt32(truncatingIfNeeded: i))) }
    }

    /// - Parameter isBefore: compares two items with equal words; called for no others. It must be a strict total order.
    mutating func sort(_ isBefore: (Int, Int) -> Bool) {
        guard items.count >= WordOrder.fewItems else {
            items.sort { $0.word != $1.word ? $0.word < $1.word : isBefore(Int($0.index), Int($1.index)) }
            return
        }
        sortByWords()
        // Sort in place, since sorting a slice would copy it.
        items.withUnsafeMutableBufferPointer { items in
            var start = 0
            while start < items.count {
                var end = start + 1
                while end < items.count, items[end].word == items[start].word { end += 1 }
                if end - start > 1 {
                    var equal = UnsafeMutableBufferPointer(rebasing: items[start..<end])
                    equal.sort { isBefore(Int($0.index), Int($1.index)) }
                }
                start = end
            }
        }
    }

    /// A radix sort by the bytes of the words, the lowest first; bytes that all words share are skipped.
    private mutating func sortByWords() {
        var differing: UInt64 = 0
        for item in items { differing |= item.word ^ items[0].word }
        var other = items
        for shift in stride(from: 0 as UInt64, to: 64, by: 8) where differing >> shift & 0xFF != 0 {
            withUnsafeTemporaryAllocation(of: Int.self, capacity: 256) { places in
                places.initialize(repeating: 0)
                for item in items { places[Int(item.word >> shift & 0xFF)] += 1 }
                var at = 0
                for i in 0..<256 {
                    let count = places[i]
                    places[i] = at
                    at += count
                }
                items.withUnsafeBufferPointer { items in
                    other.withUnsafeMutableBufferPointer { other in
                        for item in items {
                            let byte = Int(item.word >> shift & 0xFF)
                            other[places[byte]] = item
                            places[byte] += 1
                        }
                    }
                }
            }
            swap(&items, &other)
        }
    }
}
