/// Which versions are kept whole: the member `keep` of a policy (docs/format.md, "Retention").
struct KeepPolicy: Equatable {
    /// How long values are kept.
    struct Rule: Equatable {
        private var numbers = [UInt64](repeating: 0, count: names.count)
        private static let names: [StaticString] = ["count", "daily", "days", "monthly", "weekly"]
        private static let places = (count: 0, daily: 1, days: 2, monthly: 3, weekly: 4)
        /// How many values of each id are kept.
        var count: UInt64 { numbers[Rule.places.count] }
        /// Days since the arrival of a version.
        var days: UInt64 { numbers[Rule.places.days] }
        /// How many days, weeks and months have a kept version.
        var daily: UInt64 { numbers[Rule.places.daily] }
        var weekly: UInt64 { numbers[Rule.places.weekly] }
        var monthly: UInt64 { numbers[Rule.places.monthly] }

        /// Reads a member. Returns false if it is none of a rule.
        /// - Parameter seen: the members that were read, by their places.
        fileprivate mutating func read(_ key: JSONReader.Text, _ reader: inout JSONReader, _ seen: inout Set<Int>) throws -> Bool {
            for (i, name) in Rule.names.enumerated() where try reader.equals(key, name) {
                guard seen.insert(i).inserted else { throw KeepPolicy.unknown(try reader.string(key)) }
                numbers[i] = try reader.unsigned()
                guard numbers[i] <= KeepPolicy.mostNumber else {
                    throw KeepPolicy.invalid("has the number \(numbers[i]); at most \(KeepPolicy.mostNumber) is allowed")
                }
                return true
            }
            return false
        }
        fileprivate static func haveDays(_ seen: Set<Int>) -> Bool { seen.contains(places.days) }
        /// The members, without braces. `days` is always among them.
        fileprivate var members: [String] {
            Rule.names.indices.compactMap { numbers[$0] > 0 || $0 == Rule.places.days ? "\"\(Rule.names[$0])\":\(numbers[$0])" : nil }
        }
    }
    /// A rule for the ids with a prefix.
    struct Group: Equatable {
        var prefix: [UInt8], rule: Rule
    }

    /// For all ids for which there is no group.
    var rule = Rule()
    /// For ids with prefixes. The longest prefix counts.
    var groups: [Group] = []
    /// The branches whose heads are kept: names, or beginnings of names followed by `*`. The name of no branch is empty.
    var branches: [[UInt8]] = [[UInt8(ascii: "*")]]

    static let mostNumber: UInt64 = 100_000, mostGroups = 64, mostBranches = 64

    /// The longest of all `days`.
    var mostDays: UInt64 { groups.reduce(rule.days) { max($0, $1.rule.days) } }

    /// - Parameter key: `BranchName.key`; empty for no branch.
    func keeps(branch key: [UInt8]) -> Bool {
        branches.contains { pattern in
            // The beginning of a long name is not known.
            pattern.last == UInt8(ascii: "*")
                ? key.starts(with: pattern.dropLast()) || BranchName.isDigest(key)
                : BranchName(String(decoding: pattern, as: UTF8.self)).key == key
        }
    }
    /// Returns the index of the group for an id; nil if there is none.
    func group(of id: UnsafeRawBufferPointer) -> Int? {
        var best: Int?
        for (i, group) in groups.enumerated()
        where id.starts(with: group.prefix) && best.map({ groups[$0].prefix.count < group.prefix.count }) ?? true {
            best = i
        }
        return best
    }

    var json: [UInt8] {
        var members: [(String, [UInt8])] = rule.members.map { ($0, Array($0.utf8)) }
        func quoted(_ text: [UInt8]) -> [UInt8] {
            var out: [UInt8] = []
            text.withUnsafeBytes { JSONString.append($0, to: &out) }
            return out
        }
        func list(_ items: [[UInt8]]) -> [UInt8] { Array(items.joined(separator: [UInt8(ascii: ",")])) }
        if branches != KeepPolicy().branches {
            members.append(("\"branches", Array("\"branches\":[".utf8) + list(branches.map(quoted)) + [UInt8(ascii: "]")]))
        }
        if !groups.isEmpty {
            let texts = groups.map { quoted($0.prefix) + Array(":{\($0.rule.members.joined(separator: ","))}".utf8) }
            members.append(("\"ids", Array("\"ids\":{".utf8) + list(texts) + [UInt8(ascii: "}")]))
        }
        members.sort { $0.0 < $1.0 }
        return [UInt8(ascii: "{")] + list(members.map(\.1)) + [UInt8(ascii: "}")]
    }

    init() {}

    /// Reads the value of the member `keep`.
    /// - Throws: `.invalidArgument`, `.unsupported`, `JSONReader.Failure`.
    init(_ reader: inout JSONReader) throws {
        var seen: Set<Int> = [], hasBranches = false, hasGroups = false
        try reader.beginObject()
        while let key = try reader.nextMember() {
            if try rule.read(key, &reader, &seen) { continue }
            if try reader.equals(key, "bytes") {
                guard try reader.unsigned() == 0 else {
                    throw StoreError(
                        .unsupported, "A policy has a number of \"bytes\" to keep, which this library does not know yet. Leave it out.")
                }
            } else if try !hasBranches && reader.equals(key, "branches") {
                hasBranches = true
                branches = []
                try reader.beginArray()
                while try reader.nextElement() {
                    branches.append(try reader.string())
                    guard branches.count <= KeepPolicy.mostBranches else {
                        throw KeepPolicy.invalid("has more than \(KeepPolicy.mostBranches) branches")
                    }
                }
            } else if try !hasGroups && reader.equals(key, "ids") {
                hasGroups = true
                try readGroups(&reader)
            } else {
                throw KeepPolicy.unknown(try reader.string(key))
            }
        }
        guard Rule.haveDays(seen) else { throw KeepPolicy.invalid("has no \"days\" to keep all values that come to the device") }
    }

    private mutating func readGroups(_ reader: inout JSONReader) throws {
        try reader.beginObject()
        while let key = try reader.nextMember() {
            var group = Group(prefix: try reader.string(key), rule: Rule()), seen: Set<Int> = []
            guard !group.prefix.isEmpty, group.prefix.count <= Limits.valueIDSize,
                !groups.contains(where: { $0.prefix == group.prefix })
            else {
                throw KeepPolicy.invalid("has an empty or too long prefix among \"ids\", or one twice")
            }
            try reader.beginObject()
            while let key = try reader.nextMember() {
                guard try group.rule.read(key, &reader, &seen) else { throw KeepPolicy.unknown(try reader.string(key)) }
            }
            guard Rule.haveDays(seen) else { throw KeepPolicy.invalid("has no \"days\" for a prefix of ids") }
            groups.append(group)
            guard groups.count <= KeepPolicy.mostGroups else {
                throw KeepPolicy.invalid("has rules for more than \(KeepPolicy.mostGroups) prefixes of ids")
            }
        }
        groups.sort { Bytes.compare($0.prefix, $1.prefix) < 0 }
    }

    private static func invalid(_ what: String) -> StoreError {
        StoreError(.invalidArgument, "The policy of what is kept \(what). An example: {\"keep\":{\"days\":30,\"daily\":90}}.")
    }
    private static func unknown(_ name: [UInt8]) -> StoreError {
        let text = PrintableText.escaping(String(decoding: name.prefix(100), as: UTF8.self))
        return invalid("has the member \"\(text)\", which is unknown, or there for the second time")
    }
}
