/// The shortest edit script between two runs of tokens (Myers, O(ND)). If there are several shortest scripts, takes the one that retains a
/// token as soon as it can; otherwise it deletes, otherwise it inserts.
struct EditScript {
    private var base: [UInt32] = []
    private var side: [UInt32] = []
    private var o = 0..<0
    private var s = 0..<0
    /// How far from the end an edit of distance d reaches on each diagonal k = -d, -d + 2, …, d. The rows of the distances follow each
    /// other; diagonal k is at (k + d) / 2 of its row.
    private var reached: [Int32] = []
    private var distance = 0

    private static let nowhere = Int32.min / 2

    /// Returns where the row of a distance begins.
    @inline(__always)
    private static func row(_ d: Int) -> Int { d * (d + 1) / 2 }

    /// Compares from the end. Returns false if that takes too many steps. All steps count, also then.
    mutating func find(
        _ base: [UInt32], _ o: Range<Int>, _ side: [UInt32], _ s: Range<Int>, steps: inout Int, work: DocumentControl
    ) throws -> Bool {
        (self.base, self.side, self.o, self.s) = (base, side, o, s)
        reached.removeAll(keepingCapacity: true)
        let n = o.count, m = s.count
        // Reserved pages take no memory until they are written.
        try Memory.grow(&reached, by: Self.row(min(TextAlignment.distanceLimit, n + m) + 1), "Comparing texts")
        for d in 0...TextAlignment.distanceLimit {
            guard steps >= d + 1 else { return false }
            steps -= d + 1
            let before = Self.row(d - 1), here = Self.row(d)
            reached.append(contentsOf: repeatElement(Self.nowhere, count: d + 1))
            var walked = d + 1
            // Diagonals outside of both runs lead nowhere.
            let low = d <= m ? -d : -m + (d - m) & 1, high = d <= n ? d : n - (d - n) & 1
            let isFound = base.withUnsafeBufferPointer { a in
                side.withUnsafeBufferPointer { b in
                    reached.withUnsafeMutableBufferPointer { reached in
                        for k in stride(from: low, through: high, by: 2) {
                            var x: Int32 = 0
                            if d > 0 {
                                x = Self.nowhere
                                // Deletes a token of the base, or inserts one of the side.
                                let left = k > -d ? reached[before + (k + d) / 2 - 1] : Self.nowhere
                                let right = k < d ? reached[before + (k + d) / 2] : Self.nowhere
                                if left >= 0, left < n { x = left + 1 }
                                if right >= 0, Int(right) - k <= m { x = max(x, right) }
                                guard x >= 0 else { continue }
                            }
                            var i = Int(x), j = i - k
                            let start = i
                            while i < n, j < m, a[o.upperBound - 1 - i] == b[s.upperBound - 1 - j] { i += 1; j += 1 }
                            walked += (i - start) >> 3
                            reached[here + (k + d) / 2] = Int32(truncatingIfNeeded: i)
                            if i == n, j == m { return true }
                        }
                        return false
                    }
                }
            }
            try work.done(walked)
            if isFound { distance = d; return true }
        }
        return false
    }

    /// Calls with each run of retained tokens: its place in the base and in the side, and its length. Call it after `find`.
    func keep(_ body: (Int, Int, Int) -> Void) {
        base.withUnsafeBufferPointer { a in
            side.withUnsafeBufferPointer { b in
                var i = o.lowerBound, j = s.lowerBound, left = distance
                let n = o.upperBound, m = s.upperBound
                while i < n || j < m {
                    let start = i
                    while i < n, j < m, a[i] == b[j] { i += 1; j += 1 }
                    if i > start {
                        body(start, j - (i - start), i - start)
                        continue
                    }
                    left -= 1
                    guard left >= 0 else { return }
                    let x = n - i - 1, k = x - (m - j)
                    if i < n, abs(k) <= left, (k + left) % 2 == 0, Int(reached[Self.row(left) + (k + left) / 2]) >= x {
                        i += 1
                    } else {
                        j += 1
                    }
                }
            }
        }
    }
}
