/// A set of versions by their numbers in the model.
struct VersionSet: Equatable {
    private var words: [UInt64] = []

    init() {}
    init(_ numbers: some Sequence<Int>) { for number in numbers { insert(number) } }

    func contains(_ number: Int) -> Bool {
        number >> 6 < words.count && words[number >> 6] & (1 << UInt64(number & 63)) != 0
    }
    @discardableResult
    mutating func insert(_ number: Int) -> Bool {
        while words.count <= number >> 6 { words.append(0) }
        let isNew = words[number >> 6] & (1 << UInt64(number & 63)) == 0
        words[number >> 6] |= 1 << UInt64(number & 63)
        return isNew
    }
    mutating func formUnion(_ other: VersionSet) {
        while words.count < other.words.count { words.append(0) }
        for i in other.words.indices { words[i] |= other.words[i] }
    }
    func union(_ other: VersionSet) -> VersionSet { var copy = self; copy.formUnion(other); return copy }
    func intersection(_ other: VersionSet) -> VersionSet { combined(other) { $0 & $1 } }
    func subtracting(_ other: VersionSet) -> VersionSet { combined(other) { $0 & ~$1 } }
    private func combined(_ other: VersionSet, _ combine: (UInt64, UInt64) -> UInt64) -> VersionSet {
        var result = VersionSet()
        result.words = words.indices.map { combine(words[$0], $0 < other.words.count ? other.words[$0] : 0) }
        return result
    }
    func isSubset(of other: VersionSet) -> Bool { subtracting(other).isEmpty }
    var isEmpty: Bool { words.allSatisfy { $0 == 0 } }
    /// The numbers in ascending order.
    var numbers: [Int] {
        var numbers: [Int] = []
        for i in words.indices {
            var word = words[i]
            while word != 0 {
                numbers.append(i << 6 + word.trailingZeroBitCount)
                word &= word - 1
            }
        }
        return numbers
    }
    static func == (a: VersionSet, b: VersionSet) -> Bool { a.isSubset(of: b) && b.isSubset(of: a) }
}
