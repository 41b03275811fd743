/// The indexes that rules declare, in their member `indexes`. An invalid one affects neither another index nor a rule for merging, since
/// devices with an older library ignore that member.
public struct IndexDeclarations: Sendable {
    package static let mostIndexes = 64, mostName = 128

    /// The valid declarations, by name.
    public private(set) var indexes: [[UInt8]: IndexDefinition] = [:]
    /// The problems of the others, with pointers from the top of the rules.
    public private(set) var problems: [InvalidIndex] = []

    /// No declarations.
    package init() {}

    /// - Parameter rules: the rules as stored under `__llvs_schema`. If they are no JSON, nothing is declared.
    /// - Throws: `.outOfMemory`.
    public init(_ rules: UnsafeRawBufferPointer) throws {
        guard let text = try JSONTreeParser.parse(rules, work: DocumentControl()) else {
            problems = [InvalidIndex([], "JSON is expected")]
            return
        }
        let tree = text.tree, name: StaticString = "indexes"
        let member = tree.member(UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), of: 0)
        guard let section = member else { return }
        let place = Array("/indexes".utf8)
        guard tree.kind(section) == .object else {
            problems = [InvalidIndex(place, "an object is expected: names of indexes, and their definitions")]
            return
        }
        for value in tree.children(of: section).sorted(by: { Bytes.compare(tree.name(of: $0), tree.name(of: $1)) < 0 }) {
            let name = Array(tree.name(of: value)), pointer = place + [UInt8(ascii: "/")] + JSONPointer.escaped(tree.name(of: value))
            do {
                guard (1...Self.mostName).contains(name.count) else {
                    throw InvalidIndex(pointer, "the name of an index has 1 to \(Self.mostName) bytes")
                }
                guard indexes.count < Self.mostIndexes else {
                    throw InvalidIndex(pointer, "there are more than \(Self.mostIndexes) indexes")
                }
                indexes[name] = try IndexDefinition(value, in: text, at: pointer)
            } catch let problem as InvalidIndex { problems.append(problem) }
        }
    }

    /// Checks the declarations in rules that a caller passes in.
    /// - Throws: `InvalidRules` for the first invalid index; `.outOfMemory`.
    public static func check(_ rules: UnsafeRawBufferPointer) throws {
        if let problem = try IndexDeclarations(rules).problems.first { throw problem.asRules }
    }
}
