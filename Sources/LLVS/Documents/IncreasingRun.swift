/// Longest increasing subsequences, the one among them that is always the same: scanning from the left, the first that can be in one.
enum IncreasingRun {
    /// Whether each of the numbers is in it; negative ones never are. In O(n log n).
    /// - Parameter sizes: how many each number counts for, by number; empty: one.
    static func members(_ numbers: [Int32], sizes: [Int32] = [], _ work: DocumentControl) throws -> [Bool] {
        if !sizes.isEmpty { return try weighed(numbers, sizes, work) }
        // The length of the longest run that begins at each: tails[l] is the largest number with which a run of l + 1 can begin.
        var lengths = [Int32](repeating: 0, count: numbers.count), tails: [Int32] = []
        for i in stride(from: numbers.count - 1, through: 0, by: -1) where numbers[i] >= 0 {
            var low = 0, high = tails.count
            while low < high {
                let middle = (low + high) / 2
                if tails[middle] > numbers[i] { low = middle + 1 } else { high = middle }
            }
            if low == tails.count { tails.append(numbers[i]) } else { tails[low] = numbers[i] }
            lengths[i] = Int32(truncatingIfNeeded: low + 1)
        }
        try work.done(2 * numbers.count)
        var members = [Bool](repeating: false, count: numbers.count)
        var wanted = Int32(truncatingIfNeeded: tails.count), last: Int32 = -1
        for i in 0..<numbers.count where wanted > 0 && lengths[i] == wanted && numbers[i] > last {
            members[i] = true
            last = numbers[i]
            wanted -= 1
        }
        return members
    }

    private static func weighed(_ numbers: [Int32], _ sizes: [Int32], _ work: DocumentControl) throws -> [Bool] {
        // The largest run that begins with a number, as maxima over stretches of numbers from the largest down (Fenwick).
        var best = [Int32](repeating: 0, count: sizes.count + 1), totals = [Int32](repeating: 0, count: numbers.count), most: Int32 = 0
        for i in numbers.indices.reversed() where numbers[i] >= 0 {
            let number = Int(numbers[i])
            var place = sizes.count - number - 1, total: Int32 = 0
            while place > 0 { total = max(total, best[place]); place &= place - 1 }
            total += sizes[number]
            place = sizes.count - number
            while place <= sizes.count { best[place] = max(best[place], total); place += place & -place }
            totals[i] = total
            most = max(most, total)
        }
        try work.done(8 * numbers.count)
        var members = [Bool](repeating: false, count: numbers.count), last: Int32 = -1
        for i in numbers.indices where most > 0 && totals[i] == most && numbers[i] > last {
            members[i] = true
            last = numbers[i]
            most -= sizes[Int(numbers[i])]
        }
        return members
    }
}
