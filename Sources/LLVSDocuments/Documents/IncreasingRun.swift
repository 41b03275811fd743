/// Longest increasing subsequences. If there are several, takes the one that, from the left, includes each number as soon as possible.
enum IncreasingRun {
    /// Returns which of the numbers are in the subsequence; negative ones never are. O(n log n) time and O(n) memory, however far apart the
    /// numbers are.
    static func members(_ numbers: [Int32], _ work: DocumentControl) throws -> TokenBits {
        let least = numbers.lazy.filter { $0 >= 0 }.min() ?? 0
        return try members(numbers.count, below: max(0, Int(numbers.max() ?? -1) + 1 - Int(least)), work) {
            numbers[$0] < 0 ? -1 : numbers[$0] - least
        }
    }

    /// Returns which of the keys are in the subsequence; keys at or above the limit never are.
    /// - Parameter sizes: for each key, how many it counts for; empty if each counts for one.
    static func members(_ keys: [UInt32], below limit: Int, sizes: [Int32], _ work: DocumentControl) throws -> TokenBits {
        func number(_ i: Int) -> Int32 { keys[i] < limit ? Int32(truncatingIfNeeded: keys[i]) : -1 }
        return try sizes.isEmpty ? members(keys.count, below: limit, work, number) : weighed(keys.count, sizes, work, number)
    }

    private static let nearBits = 5

    @inline(__always)
    private static func members(_ count: Int, below limit: Int, _ work: DocumentControl, _ number: (Int) -> Int32) throws -> TokenBits {
        // The length of the longest run that begins at each number. tails[l] is the largest number with which a run of l + 1 can begin.
        var lengths = [Int32](repeating: 0, count: count), tails: [Int32] = []
        // For each range of numbers, the end of the last search for a number in it. The next search begins there. Ranges may share a hint.
        var nearBits = nearBits
        while limit >> nearBits > count { nearBits += 1 }
        var near = [Int32](repeating: 0, count: limit >> nearBits + 1)
        for i in stride(from: count - 1, through: 0, by: -1) {
            let one = number(i)
            guard one >= 0 else { continue }
            var low = 0, high = tails.count
            // Most numbers extend the longest run.
            if let last = tails.last, last > one {
                low = high
            } else if high > 0 {
                // Other searches end near the last similar number.
                var step = 1
                let before = min(Int(near[Int(one) >> nearBits]), high - 1)
                if tails[before] > one {
                    low = before + 1
                    while low + step < high, tails[low + step - 1] > one { low += step; step *= 2 }
                    high = min(high, low + step)
                } else {
                    high = before
                    while high - step >= 0, tails[high - step] <= one { high -= step; step *= 2 }
                    low = max(0, high - step)
                }
            }
            while low < high {
                let middle = (low + high) / 2
                if tails[middle] > one { low = middle + 1 } else { high = middle }
            }
            if low == tails.count { tails.append(one) } else { tails[low] = one }
            lengths[i] = Int32(truncatingIfNeeded: low + 1)
            near[Int(one) >> nearBits] = Int32(truncatingIfNeeded: low)
        }
        try work.done(2 * count)
        var members = TokenBits(count: count)
        var wanted = Int32(truncatingIfNeeded: tails.count), last: Int32 = -1
        for i in 0..<count where wanted > 0 && lengths[i] == wanted && number(i) > last {
            members[i] = true
            last = number(i)
            wanted -= 1
        }
        return members
    }

    @inline(__always)
    private static func weighed(
        _ count: Int, _ sizes: [Int32], _ work: DocumentControl, _ number: (Int) -> Int32
    ) throws -> TokenBits {
        // The largest run that begins with a number, as maxima over stretches of numbers from the largest down (Fenwick).
        var best = [Int32](repeating: 0, count: sizes.count + 1), totals = [Int32](repeating: 0, count: count), most: Int32 = 0
        for i in stride(from: count - 1, through: 0, by: -1) where number(i) >= 0 {
            let number = Int(number(i))
            var place = sizes.count - number - 1, total: Int32 = 0
            while place > 0 { total = max(total, best[place]); place &= place - 1 }
            total += sizes[number]
            place = sizes.count - number
            while place <= sizes.count { best[place] = max(best[place], total); place += place & -place }
            totals[i] = total
            most = max(most, total)
        }
        try work.done(8 * count)
        var members = TokenBits(count: count), last: Int32 = -1
        for i in 0..<count where most > 0 && totals[i] == most && number(i) > last {
            members[i] = true
            last = number(i)
            most -= sizes[Int(number(i))]
        }
        return members
    }
}
