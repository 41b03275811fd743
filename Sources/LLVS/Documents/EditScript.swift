/// The shortest edit script between two runs of tokens (Myers, O(ND)): of all of that length the one that keeps a token as soon as it can,
/// else deletes, else inserts.
struct EditScript {
    private var base: ArraySlice<UInt32> = []
    private var side: ArraySlice<UInt32> = []
    /// For each distance d, and each diagonal k = -d, -d + 2, …, d, how far from the end an edit of that distance reaches: at (k + d) / 2.
    private var reached: [[Int32]] = []
    private var distance = 0

    private static let nowhere = Int32.min / 2

    /// Compares, from the end; false when that takes too many steps, all of which count.
    mutating func find(
        _ base: [UInt32], _ o: Range<Int>, _ side: [UInt32], _ s: Range<Int>, steps: inout Int, work: DocumentControl
    ) throws -> Bool {
        self.base = base[o]
        self.side = side[s]
        reached.removeAll(keepingCapacity: true)
        let n = o.count, m = s.count
        return try base.withUnsafeBufferPointer { a in
            try side.withUnsafeBufferPointer { b in
                for d in 0...TextAlignment.distanceLimit {
                    guard steps >= d + 1 else { return false }
                    steps -= d + 1
                    var row = [Int32](repeating: Self.nowhere, count: d + 1), walked = d + 1
                    // Diagonals outside of both runs lead nowhere.
                    let low = d <= m ? -d : -m + (d - m) & 1, high = d <= n ? d : n - (d - n) & 1
                    for k in stride(from: low, through: high, by: 2) {
                        var x: Int32 = 0
                        if d > 0 {
                            x = Self.nowhere
                            // A token less of the base, or of the side.
                            let left = k > -d ? reached[d - 1][(k + d) / 2 - 1] : Self.nowhere
                            let right = k < d ? reached[d - 1][(k + d) / 2] : Self.nowhere
                            if left >= 0, left < n { x = left + 1 }
                            if right >= 0, Int(right) - k <= m { x = max(x, right) }
                            guard x >= 0 else { continue }
                        }
                        var i = Int(x), j = i - k
                        let start = i
                        while i < n, j < m, a[o.upperBound - 1 - i] == b[s.upperBound - 1 - j] { i += 1; j += 1 }
                        walked += (i - start) >> 3
                        row[(k + d) / 2] = Int32(truncatingIfNeeded: i)
                        if i == n, j == m { distance = d; reached.append(row); try work.done(walked); return true }
                    }
                    reached.append(row)
                    try work.done(walked)
                }
                return false
            }
        }
    }

    /// Calls with the places of each token that is kept, after `find`.
    func keep(_ body: (Int, Int) -> Void) {
        var i = base.startIndex, j = side.startIndex, left = distance
        while i < base.endIndex || j < side.endIndex {
            if i < base.endIndex, j < side.endIndex, base[i] == side[j] {
                body(i, j)
                i += 1
                j += 1
                continue
            }
            left -= 1
            guard left >= 0 else { return }
            let x = base.endIndex - i - 1, k = x - (side.endIndex - j)
            if i < base.endIndex, abs(k) <= left, (k + left) % 2 == 0, Int(reached[left][(k + left) / 2]) >= x { i += 1 } else { j += 1 }
        }
    }
}
