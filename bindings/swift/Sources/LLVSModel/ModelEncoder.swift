#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Encodes `Encodable` values as JSON, so that equal sets and dictionaries are equal JSON at every depth: as members, in structures and
/// payloads of enumerations, nested in each other, and as keys.
///
/// `JSONEncoder` writes the elements of a set, and the pairs of a dictionary whose keys are not strings, in an order that differs between
/// equal values. Then an unchanged member would count as a change.
struct ModelEncoder: Encoder {
    let codingPath: [any CodingKey]
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private let node: EncodedNode
    /// The maximum depth of merged values (docs/merging-internals.md).
    private static let depthMax = 128

    /// Returns the JSON of a value.
    /// - Throws: `EncodingError` for values that JSON cannot represent: numbers and dates that are infinite or not a number; and what the
    ///   coding of the value throws.
    static func node<Value: Encodable>(of value: Value, at path: [any CodingKey] = []) throws -> EncodedNode {
        guard path.count <= depthMax else {
            let why = "It is nested deeper than \(depthMax) levels, which cannot be merged."
            throw EncodingError.invalidValue(value, .init(codingPath: path, debugDescription: why))
        }
        if let plain = value as? any PlainMember {
            return EncodedNode(.scalar(Array(try plain.json(at: path).utf8)), of: plain.hasSpellings ? value : nil)
        }
        let node = EncodedNode(of: value)
        try value.encode(to: ModelEncoder(codingPath: path, node: node))
        if let type = Value.self as? any UnorderedCoding.Type, case .array(let parts) = node.content {
            node.content = .array(ordered(parts, by: type.partCount))
        }
        return node
    }

    /// The parts of a collection in the order of their texts.
    /// - Parameter count: the number of consecutive parts that belong together: 2 for pairs of a key and a value.
    private static func ordered(_ parts: [EncodedNode], by count: Int) -> [EncodedNode] {
        let groups = stride(from: 0, to: parts.count, by: count).map { Array(parts[$0..<min($0 + count, parts.count)]) }
        let sorted = groups.map { (text: $0.flatMap(\.bytes), parts: $0) }.sorted { $0.text.lexicographicallyPrecedes($1.text) }
        return sorted.flatMap(\.parts)
    }

    private init(codingPath: [any CodingKey], node: EncodedNode) { (self.codingPath, self.node) = (codingPath, node) }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(KeyedNodes<Key>(node, codingPath))
    }
    func unkeyedContainer() -> any UnkeyedEncodingContainer { UnkeyedNodes(node, codingPath) }
    func singleValueContainer() -> any SingleValueEncodingContainer { SingleNode(node: node, codingPath: codingPath) }

    /// The members of an object.
    private struct KeyedNodes<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let node: EncodedNode
        let codingPath: [any CodingKey]

        init(_ node: EncodedNode, _ codingPath: [any CodingKey]) {
            (self.node, self.codingPath) = (node, codingPath)
            if case .object = node.content { return }
            node.content = .object([:])
        }

        private func put(_ member: EncodedNode, _ key: any CodingKey) {
            guard case .object(var members) = node.content else { return }
            // (Removed from the node for the change, so that it is not copied for each member.)
            node.content = .scalar([])
            members[key.stringValue] = member
            node.content = .object(members)
        }
        private func nested(_ key: any CodingKey) -> (EncodedNode, [any CodingKey]) {
            let inside = EncodedNode()
            put(inside, key)
            return (inside, codingPath + [key])
        }

        mutating func encodeNil(forKey key: Key) { put(.null, key) }
        mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
            put(try ModelEncoder.node(of: value, at: codingPath + [key]), key)
        }
        mutating func nestedContainer<Inner: CodingKey>(keyedBy: Inner.Type, forKey key: Key) -> KeyedEncodingContainer<Inner> {
            let (inside, path) = nested(key)
            return KeyedEncodingContainer(KeyedNodes<Inner>(inside, path))
        }
        mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            let (inside, path) = nested(key)
            return UnkeyedNodes(inside, path)
        }
        mutating func superEncoder() -> any Encoder {
            let (inside, path) = nested(PlaceKey.superclass)
            return ModelEncoder(codingPath: path, node: inside)
        }
        mutating func superEncoder(forKey key: Key) -> any Encoder {
            let (inside, path) = nested(key)
            return ModelEncoder(codingPath: path, node: inside)
        }
    }

    /// The elements of an array.
    private struct UnkeyedNodes: UnkeyedEncodingContainer {
        let node: EncodedNode
        let codingPath: [any CodingKey]

        init(_ node: EncodedNode, _ codingPath: [any CodingKey]) {
            (self.node, self.codingPath) = (node, codingPath)
            if case .array = node.content { return }
            node.content = .array([])
        }

        var count: Int { if case .array(let elements) = node.content { elements.count } else { 0 } }
        private func put(_ element: EncodedNode) {
            guard case .array(var elements) = node.content else { return }
            node.content = .scalar([])
            elements.append(element)
            node.content = .array(elements)
        }
        private func nested() -> (EncodedNode, [any CodingKey]) {
            let inside = EncodedNode(), path = codingPath + [PlaceKey(intValue: count)]
            put(inside)
            return (inside, path)
        }

        mutating func encodeNil() { put(.null) }
        mutating func encode<Value: Encodable>(_ value: Value) throws {
            put(try ModelEncoder.node(of: value, at: codingPath + [PlaceKey(intValue: count)]))
        }
        mutating func nestedContainer<Inner: CodingKey>(keyedBy: Inner.Type) -> KeyedEncodingContainer<Inner> {
            let (inside, path) = nested()
            return KeyedEncodingContainer(KeyedNodes<Inner>(inside, path))
        }
        mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
            let (inside, path) = nested()
            return UnkeyedNodes(inside, path)
        }
        mutating func superEncoder() -> any Encoder {
            let (inside, path) = nested()
            return ModelEncoder(codingPath: path, node: inside)
        }
    }

    /// A value that is coded as a single other value.
    private struct SingleNode: SingleValueEncodingContainer {
        let node: EncodedNode
        let codingPath: [any CodingKey]

        mutating func encodeNil() { node.content = EncodedNode.null.content }
        mutating func encode<Value: Encodable>(_ value: Value) throws {
            let inside = try ModelEncoder.node(of: value, at: codingPath)
            node.content = inside.content
            // (If the value wraps a date, note the date as the encoded value.)
            if case .scalar = inside.content { node.value = inside.value }
        }
    }
}

extension EncodedNode {
    fileprivate static var null: EncodedNode { EncodedNode(.scalar(Array("null".utf8))) }
}

/// A place that has no key of its own: an index, or the superclass.
private struct PlaceKey: CodingKey {
    static let superclass = PlaceKey(stringValue: "super")
    let stringValue: String
    let intValue: Int?
    init(stringValue: String) { (self.stringValue, intValue) = (stringValue, nil) }
    init(intValue: Int) { (stringValue, self.intValue) = ("\(intValue)", intValue) }
}

/// Collections without an order, whose own coding writes them in any order.
private protocol UnorderedCoding {
    /// The number of consecutive parts of the coding that belong together.
    static var partCount: Int { get }
}
extension Set: UnorderedCoding { fileprivate static var partCount: Int { 1 } }
extension Dictionary: UnorderedCoding { fileprivate static var partCount: Int { 2 } }
