/// Pairs the lines of a hunk that are the same line, changed (docs/merging-texts.md, 4.2): the order-keeping assignment of alike lines with
/// the largest sum of weights. Its buffers are reused from one hunk to the next.
struct LinePairs {
    /// The most units that pairing one hunk takes.
    private static let mostUnits = 1 << 22

    private var base = LineWords()
    private var side = LineWords()
    private var numbers = WordNumbers()
    /// For each word, how many of a line are not yet matched.
    private var left: [Int32] = []
    private var weights: [Int32] = []
    /// The largest sum of weights of the lines from `i` and `k` on, at `i * (m + 1) + k`.
    private var largest: [Int32] = []

    /// Finds the pairs of one hunk. Does nothing if that takes too many steps.
    /// - Parameters:
    ///   - n: how many lines of the base are in the hunk.
    ///   - m: how many of the side.
    ///   - o: a line of the base, by its number in the hunk.
    ///   - s: one of the side.
    ///   - isOnBoth: returns whether a line of the side is on both sides in this place.
    ///   - steps: how many may still be taken.
    ///   - keep: called with the numbers of the two lines of each pair, in their order.
    mutating func find(
        _ n: Int, _ m: Int, _ o: (Int) -> UnsafeRawBufferPointer, _ s: (Int) -> UnsafeRawBufferPointer, isOnBoth: (Int) -> Bool,
        steps: inout Int, work: DocumentControl, keep: (Int, Int) -> Void
    ) throws {
        guard n > 0, m > 0, 2 * n <= min(Self.mostUnits, steps) / m else { return }
        func count(_ lines: Int, _ line: (Int) -> UnsafeRawBufferPointer) throws -> Int {
            var words = 0
            for i in 0..<lines {
                let line = line(i)
                try work.done(line.count)
                TextLines.forEachWord(in: line) { _ in words += 1 }
            }
            return words
        }
        let words = try (base: count(n, o), side: count(m, s))
        // (Nothing overflows: there are no more words than bytes, and at most 2^21 lines.)
        let units = m * (words.base + n) + n * (words.side + m)
        guard units <= Self.mostUnits, units <= steps else { return }
        steps -= units
        try work.done(units)
        numbers.begin(words.base + words.side)
        numbers.number(n, o, &base)
        numbers.number(m, s, &side)
        weigh(n, m, isOnBoth)
        pair(n, m, keep)
    }

    private mutating func weigh(_ n: Int, _ m: Int, _ isOnBoth: (Int) -> Bool) {
        weights.removeAll(keepingCapacity: true)
        left.removeAll(keepingCapacity: true)
        left.append(contentsOf: repeatElement(0, count: numbers.words.count))
        for i in 0..<n {
            for k in 0..<m {
                let common = common(i, k), isAlike = common > 0 && 2 * common >= base.count(i) && 3 * common >= side.count(k)
                weights.append(isAlike ? Int32(truncatingIfNeeded: isOnBoth(k) ? 2 * common : common) : 0)
            }
        }
    }

    /// Returns the number of words that two lines have in common, as multisets.
    private mutating func common(_ i: Int, _ k: Int) -> Int {
        let one = base.starts[i]..<base.starts[i + 1], other = side.starts[k]..<side.starts[k + 1]
        var count = 0
        for word in one { left[Int(base.all[word])] += 1 }
        for word in other where left[Int(side.all[word])] > 0 {
            left[Int(side.all[word])] -= 1
            count += 1
        }
        for word in one { left[Int(base.all[word])] = 0 }
        return count
    }

    private mutating func pair(_ n: Int, _ m: Int, _ keep: (Int, Int) -> Void) {
        let width = m + 1
        largest.removeAll(keepingCapacity: true)
        largest.append(contentsOf: repeatElement(0, count: (n + 1) * width))
        for i in stride(from: n - 1, through: 0, by: -1) {
            for k in stride(from: m - 1, through: 0, by: -1) {
                let weight = weights[i * m + k]
                var most = max(largest[(i + 1) * width + k], largest[i * width + k + 1])
                if weight > 0 { most = max(most, weight + largest[(i + 1) * width + k + 1]) }
                largest[i * width + k] = most
            }
        }
        var i = 0, k = 0
        while i < n, k < m {
            let weight = weights[i * m + k], most = largest[i * width + k]
            if weight > 0, weight + largest[(i + 1) * width + k + 1] == most {
                keep(i, k)
                i += 1
                k += 1
            } else if largest[(i + 1) * width + k] == most {
                i += 1
            } else {
                k += 1
            }
        }
    }
}

/// The words of some lines as numbers, and where those of each line begin.
private struct LineWords {
    fileprivate(set) var all: [UInt32] = []
    fileprivate(set) var starts: [Int] = []

    mutating func clear() {
        all.removeAll(keepingCapacity: true)
        starts.removeAll(keepingCapacity: true)
        starts.append(0)
    }

    func count(_ line: Int) -> Int { starts[line + 1] - starts[line] }
}

extension WordNumbers {
    /// Numbers the words of some lines.
    fileprivate mutating func number(_ lines: Int, _ line: (Int) -> UnsafeRawBufferPointer, _ words: inout LineWords) {
        words.clear()
        for i in 0..<lines {
            let line = line(i)
            TextLines.forEachWord(in: line) { words.all.append(number(UnsafeRawBufferPointer(rebasing: line[$0]))) }
            words.starts.append(words.all.count)
        }
    }
}
