/// Longest increasing subsequences, the one among them that is always the same: scanning from the left, the first that can be in one.
enum IncreasingRun {
    /// Whether each of the numbers is in it; negative ones never are. In O(n log n).
    static func members(_ numbers: [Int32], _ work: DocumentControl) throws -> [Bool] {
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
}
