/// The document that the histories edit, spelled as merges spell it.
struct RulesDocument {
    var list: [String] = []
    var members: [Int]
    var number = 0
    var set: [String] = []
    var lines: [String] = []
    var values: [String] = []
    /// The number of the last edit; each edit sets it.
    var last = 0

    init(members: [Int]) { self.members = members }

    var text: String {
        let elements = list.map { "{\"id\":\"\($0)\"}" }.joined(separator: ",")
        let numbers = members.enumerated().map { "\"\($0)\":\($1)" }.joined(separator: ",")
        func array(_ strings: [String]) -> String { "[\(strings.map { "\"\($0)\"" }.joined(separator: ","))]" }
        return "{\"list\":[\(elements)],\"m\":{\(numbers)},\"n\":\(number),\"set\":\(array(set))"
            + ",\"text\":\"\(lines.map { $0 + "\\n" }.joined())\",\"values\":\(array(values)),\"z\":\(last)}"
    }

    /// Reads what `text` writes. Returns nil for anything else.
    init?(_ text: String) {
        func between(_ start: String, _ end: String) -> Substring? {
            var rest = text[...]
            while !rest.isEmpty, !rest.hasPrefix(start) { rest = rest.dropFirst() }
            guard rest.hasPrefix(start) else { return nil }
            let inner = rest.dropFirst(start.count)
            var length = inner.startIndex
            while length < inner.endIndex, !inner[length...].hasPrefix(end) { length = inner.index(after: length) }
            return inner[..<length]
        }
        func words(_ text: Substring) -> [String] {
            text.split(whereSeparator: { "{}\":,".contains($0) }).map(String.init).filter { $0 != "id" }
        }
        guard let list = between("\"list\":[", "]"), let members = between("\"m\":{", "}"), let number = between("\"n\":", ","),
            let set = between("\"set\":[", "]"), let lines = between("\"text\":\"", "\""),
            let values = between("\"values\":[", "]"), let last = between("\"z\":", "}").flatMap({ Int($0) }),
            let value = Int(number)
        else { return nil }
        self.list = words(list)
        self.set = words(set)
        self.values = words(values)
        // Each line is followed by `
        // `. Names contain neither character.
        self.lines = lines.split(whereSeparator: { $0 == "\\" || $0 == "n" }).map(String.init)
        self.number = value
        self.last = last
        let pairs = words(members).compactMap { Int($0) }
        self.members = stride(from: 1, to: pairs.count, by: 2).map { pairs[$0] }
        guard self.text == text else { return nil }
    }
}
