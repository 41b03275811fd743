/// A value as JSON, with the Swift values that its parts were made of.
final class EncodedNode {
    enum Content {
        /// The text of a number or a string, `true`, `false`, or `null`.
        case scalar([UInt8])
        case array([EncodedNode])
        case object([String: EncodedNode])
    }

    var content: Content
    /// The Swift value that was encoded as this array or object, or as the text of a `UUID` or `Date`; nil for other scalars, and for
    /// nested containers.
    var value: (any Encodable)?

    init(_ content: Content = .object([:]), of value: (any Encodable)? = nil) { (self.content, self.value) = (content, value) }

    /// The JSON text: without white space, the members of objects in the order of their names.
    var bytes: [UInt8] {
        var made: [UInt8] = []
        write(into: &made)
        return made
    }

    private func write(into made: inout [UInt8]) {
        switch content {
        case .scalar(let text): made += text
        case .array(let elements):
            made.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { made.append(UInt8(ascii: ",")) }
                element.write(into: &made)
            }
            made.append(UInt8(ascii: "]"))
        case .object(let members):
            made.append(UInt8(ascii: "{"))
            let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            for (index, member) in sorted.enumerated() {
                if index > 0 { made.append(UInt8(ascii: ",")) }
                made += JSONText.string(member.key).utf8
                made.append(UInt8(ascii: ":"))
                member.value.write(into: &made)
            }
            made.append(UInt8(ascii: "}"))
        }
    }

    /// Returns whether both are the same JSON text.
    func isWritten(as other: EncodedNode) -> Bool {
        if self === other { return true }
        switch (content, other.content) {
        case (.scalar(let one), .scalar(let two)): return one == two
        case (.array(let one), .array(let two)): return one.count == two.count && zip(one, two).allSatisfy { $0.isWritten(as: $1) }
        case (.object(let one), .object(let two)):
            return one.count == two.count && one.allSatisfy { name, node in two[name].map { node.isWritten(as: $0) } ?? false }
        default: return false
        }
    }
}
