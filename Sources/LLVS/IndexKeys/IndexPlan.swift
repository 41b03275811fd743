/// Where in documents the parts of an index are, and what its conditions look at: names that lead from one object to the next.
final class IndexPlan: Sendable {
    /// A name that is wanted in an object.
    struct Name: Sendable {
        /// What it begins with, as `Bytes.word` has it.
        let word: UInt64
        /// Where it is in `text`.
        let start: Int, count: Int
        /// The node that its value is.
        let node: Int
    }
    /// A value that is wanted, or in which one is.
    struct Node: Sendable {
        /// The names that are wanted in it.
        let names: Range<Int>
        /// What is remembered of it; negative: nothing.
        let slot: Int
    }

    let nodes: [Node]
    let names: [Name]
    let text: [UInt8]
    let slots: Int
    /// The slot of each part, and of what each condition looks at.
    let parts: [Int], conditions: [Int]
    private static let mostNodes = 64

    /// Nil where something is to be chosen, and where much is looked at.
    init?(_ stars: IndexStars, _ conditions: [IndexDefinition.Condition]) {
        guard stars.stars.isEmpty, !stars.parts.isEmpty else { return nil }
        let paths = stars.parts.map(\.path) + conditions.map(\.path)
        // The nodes, each by the path to it.
        var places: [[[UInt8]]] = [[]], nodes: [Node] = [], names: [Name] = [], text: [UInt8] = [], slots = 0, next = 0
        while next < places.count {
            let place = places[next], first = names.count, isWanted = paths.contains(place)
            for path in paths where path.count > place.count && Array(path[..<place.count]) == place {
                let below = Array(path[...place.count]), name = path[place.count]
                guard !places.contains(below) else { continue }
                guard places.count < IndexPlan.mostNodes else { return nil }
                let word = name.withUnsafeBytes { Bytes.word($0, at: 0) }
                names.append(Name(word: word, start: text.count, count: name.count, node: places.count))
                text += name
                places.append(below)
            }
            nodes.append(Node(names: first..<names.count, slot: isWanted ? slots : -1))
            if isWanted { slots += 1 }
            next += 1
        }
        func slot(_ path: [[UInt8]]) -> Int { places.firstIndex(of: path).map { nodes[$0].slot } ?? -1 }
        (self.nodes, self.names, self.text, self.slots) = (nodes, names, text, slots)
        parts = stars.parts.map { slot($0.path) }
        self.conditions = conditions.map { slot($0.path) }
    }
}
