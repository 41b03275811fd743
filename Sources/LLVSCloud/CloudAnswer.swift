/// A JSON response of a service, decoded on demand. A missing member, or one of another type than requested, is nil: services add members
/// at any time.
package struct CloudAnswer {
    private let text: JSONText
    private let node: UInt32
    /// The most bytes of a response; a page of a listing has less than a tenth of it.
    static let largest = 32 << 20

    private init(_ text: JSONText, _ node: UInt32) { self.text = text; self.node = node }

    /// Nil if the bytes are no JSON.
    init?(_ bytes: [UInt8]) throws {
        let text = try bytes.withUnsafeBytes { try JSONTreeParser.parse($0, copying: true, work: DocumentControl()) }
        guard let text else { return nil }
        self.init(text, 0)
    }

    /// Nil for a response that is no JSON object, such as the sign-in page of a network.
    init?(_ response: HTTPResponse) throws {
        switch response.body {
        case .bytes(let bytes): try self.init(bytes)
        case .file(let file, let size):
            var bytes: [UInt8] = []
            try Memory.grow(&bytes, by: size, "Reading an answer")
            bytes.append(contentsOf: repeatElement(0, count: size))
            var at = 0
            while at < size {
                let got = try bytes.withUnsafeMutableBytes {
                    try file.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[at...]), at: at)
                }
                guard got > 0 else { return nil }
                at += got
            }
            try self.init(bytes)
        case .read: return nil
        }
        guard text.tree.kind(node) == .object else { return nil }
    }

    /// Returns the member of that name.
    subscript(name: String) -> CloudAnswer? {
        Array(name.utf8).withUnsafeBytes { text.tree.member($0, of: node) }.map { CloudAnswer(text, $0) }
    }

    var string: String? { text.tree.kind(node) == .string ? String(decoding: text.tree.text(node), as: UTF8.self) : nil }
    var bool: Bool? { text.tree.kind(node) == .bool ? text.tree.bool(node) : nil }
    /// A non-negative integer, also in quotes, as some services write large ones.
    var count: Int? {
        guard [.number, .string].contains(text.tree.kind(node)) else { return nil }
        return Int(String(decoding: text.tree.text(node), as: UTF8.self)).flatMap { $0 >= 0 ? $0 : nil }
    }
    /// Seconds, at most a day.
    var seconds: Double? {
        guard let number, let seconds = Double(number), seconds >= 0 else { return nil }
        return min(seconds.rounded(.up), 86_400)
    }
    /// A number as written, of any size.
    var number: String? { text.tree.kind(node) == .number ? String(decoding: text.tree.text(node), as: UTF8.self) : nil }
    /// The elements of an array; none for other types.
    var elements: [CloudAnswer] {
        text.tree.kind(node) == .array ? text.tree.children(of: node).map { CloudAnswer(text, $0) } : []
    }
    var isObject: Bool { text.tree.kind(node) == .object }

    /// The members of an object, each with its JSON.
    var members: [(name: String, json: [UInt8])] {
        guard isObject else { return [] }
        return text.tree.children(of: node).map { value in
            let name = String(decoding: text.tree.name(of: value), as: UTF8.self), bytes = text.tree.text(value)
            guard text.tree.kind(value) == .string else { return (name, Array(bytes)) }
            var json: [UInt8] = []
            JSONString.append(bytes, to: &json)
            return (name, json)
        }
    }
}

/// JSON to send.
enum CloudJSON {
    case text(String), number(Int), bool(Bool), list([String]), array([CloudJSON]), object([(String, CloudJSON)]), null

    var bytes: [UInt8] {
        switch self {
        case .text(let text): return JSONString.encode(text)
        case .number(let number): return Array(String(number).utf8)
        case .bool(let bool): return Array((bool ? "true" : "false").utf8)
        case .null: return Array("null".utf8)
        case .array(let values):
            return [UInt8(ascii: "[")] + values.map(\.bytes).joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
        case .list(let texts):
            return [UInt8(ascii: "[")] + texts.map(JSONString.encode).joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
        case .object(let members):
            let inner = members.map { name, value in JSONString.encode(name) + [UInt8(ascii: ":")] + value.bytes }
            return [UInt8(ascii: "{")] + inner.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
        }
    }
}
