#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The JSON type of a member.
enum JSONShape: String {
    case string = "a string", number = "a number", bool = "a boolean", array = "an array", object = "an object"
}

/// The properties of a member that follow from its type.
enum MemberType {
    /// The rule of a member of this type; empty for `auto`.
    static func rule(of type: Any.Type) -> [String: String] {
        if let optional = type as? any OptionalMember.Type { return rule(of: optional.wrapped) }
        if let collection = type as? any CollectionMember.Type {
            if collection.isSet { return ["as": "\"set\""] }
            return collection.element is any Identifiable.Type ? ["as": "\"list\"", "key": "[\"/id\"]"] : [:]
        }
        let isPlain = type is any ModelPart.Type || type is any NamedMembers.Type || shape(of: type) != nil
        return isPlain || type == JSONValue.self ? [:] : ["as": "\"register\""]
    }

    /// The patterns below a member of this type.
    static func inside(_ type: Any.Type) -> [MergePattern] {
        if let optional = type as? any OptionalMember.Type { return inside(optional.wrapped) }
        if let part = type as? any ModelPart.Type { return MergePattern.patterns(of: part) }
        var element: Any.Type?
        if let collection = type as? any CollectionMember.Type { element = collection.element }
        if let members = type as? any NamedMembers.Type { element = members.element }
        guard let element else { return [] }
        let own = rule(of: element)
        var pattern = MergePattern(pointer: "/*", rule: own)
        pattern.isByID = own["key"] != nil
        let isWhole = own["as"] == "\"register\"" || own["as"] == "\"set\""
        return (own.isEmpty ? [] : [pattern]) + (isWhole ? [] : inside(element).map { $0.below("/*") })
    }

    /// The JSON type of a type; nil if it depends on the type's own coding.
    static func shape(of type: Any.Type) -> JSONShape? {
        if let optional = type as? any OptionalMember.Type { return shape(of: optional.wrapped) }
        if type is any CollectionMember.Type { return .array }
        if type is any ModelPart.Type || type is any NamedMembers.Type { return .object }
        if let plain = type as? any PlainMember.Type { return plain.shape }
        // Enumerations of strings or numbers.
        if let raw = type as? any RawRepresentable.Type { return (rawValue(of: raw) as? any PlainMember.Type)?.shape }
        return nil
    }

    private static func rawValue<Raw: RawRepresentable>(of type: Raw.Type) -> Any.Type { Raw.RawValue.self }

    /// Whether it may be nil. A member that is nil is omitted.
    static func isOptional(_ type: Any.Type) -> Bool { type is any OptionalMember.Type }

    /// Whether it has parts that one side can remove and the other change: members by name, and elements that are objects.
    static func holdsParts(_ type: Any.Type) -> Bool {
        if type is any NamedMembers.Type { return true }
        return (type as? any CollectionMember.Type).map { shape(of: $0.element) == .object } ?? false
    }

    /// A value as it is written; nil if its type does not determine that: sets have any order, and dates one of two forms.
    static func written(_ value: Any) -> JSONValue? {
        if value is Date || (Swift.type(of: value) as? any CollectionMember.Type)?.isSet == true { return nil }
        return (value as? any Encodable).flatMap { encoded($0) }
    }
    private static func encoded<Value: Encodable>(_ value: Value) -> JSONValue? {
        (try? ModelEncoder.node(of: [value])).flatMap { JSONText.parsed(Data($0.bytes)) }
    }

    /// The JSON text as a value's type reads it; nil if it cannot read it, and for other types.
    static func read(_ text: String, as value: Any) -> Any? { (value as? any Decodable).flatMap { decoded(text, as: $0) } }
    private static func decoded<Value: Decodable>(_ text: String, as value: Value) -> Any? {
        (try? ModelCoding.decoder().decode([Value].self, from: Data("[\(text)]".utf8)))?.first
    }

    /// A number as text.
    static func number(_ value: Any) -> String? {
        switch value {
        case let number as any BinaryInteger: "\(number)"
        case let number as Double: number.isFinite ? "\(number)" : nil
        case let number as Float: number.isFinite ? "\(number)" : nil
        case let number as Decimal: number.isNaN ? nil : "\(number)"
        default: nil
        }
    }
}

/// Types that are not objects in JSON.
protocol PlainMember {
    static var shape: JSONShape { get }
    /// Whether other programs may write the same value as another text (`Spellings`).
    var hasSpellings: Bool { get }
    /// Returns the value as JSON text. Throws `EncodingError` if it has none.
    func json(at path: [any CodingKey]) throws -> String
}
extension PlainMember { var hasSpellings: Bool { self is UUID || self is Date } }
private protocol NumberMember: PlainMember {}
extension NumberMember {
    static var shape: JSONShape { .number }
    func json(at path: [any CodingKey]) throws -> String { "\(self)" }
}
private protocol FloatingMember: NumberMember, Encodable, BinaryFloatingPoint {}
extension FloatingMember {
    func json(at path: [any CodingKey]) throws -> String {
        guard isFinite else {
            throw EncodingError.invalidValue(self, .init(codingPath: path, debugDescription: "\(self) is no number of JSON"))
        }
        let text = "\(self)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
private protocol TextMember: PlainMember {
    func text(at path: [any CodingKey]) throws -> String
}
extension TextMember {
    static var shape: JSONShape { .string }
    func json(at path: [any CodingKey]) throws -> String { JSONText.string(try text(at: path)) }
}

extension String: TextMember { fileprivate func text(at path: [any CodingKey]) -> String { self } }
extension Date: TextMember { fileprivate func text(at path: [any CodingKey]) throws -> String { try Moment.text(self, at: path) } }
extension Data: TextMember { fileprivate func text(at path: [any CodingKey]) -> String { base64EncodedString() } }
// (In small letters, as RFC 9562 and Python have it: one id is one text in all languages.)
extension UUID: TextMember { fileprivate func text(at path: [any CodingKey]) -> String { uuidString.lowercased() } }
extension URL: TextMember { fileprivate func text(at path: [any CodingKey]) -> String { absoluteString } }
extension Bool: PlainMember {
    static var shape: JSONShape { .bool }
    func json(at path: [any CodingKey]) -> String { "\(self)" }
}
extension Int: NumberMember {}
extension Int8: NumberMember {}
extension Int16: NumberMember {}
extension Int32: NumberMember {}
extension Int64: NumberMember {}
extension Int128: NumberMember {}
extension UInt: NumberMember {}
extension UInt8: NumberMember {}
extension UInt16: NumberMember {}
extension UInt32: NumberMember {}
extension UInt64: NumberMember {}
extension UInt128: NumberMember {}
extension Float: FloatingMember {}
extension Double: FloatingMember {}
extension Decimal: NumberMember {
    func json(at path: [any CodingKey]) throws -> String {
        guard isFinite else {
            throw EncodingError.invalidValue(self, .init(codingPath: path, debugDescription: "\(self) is no number of JSON"))
        }
        return "\(self)"
    }
}

private protocol OptionalMember { static var wrapped: Any.Type { get } }
extension Optional: OptionalMember { static var wrapped: Any.Type { Wrapped.self } }

private protocol CollectionMember {
    static var element: Any.Type { get }
    static var isSet: Bool { get }
}
extension Array: CollectionMember {
    static var element: Any.Type { Element.self }
    static var isSet: Bool { false }
}
extension Set: CollectionMember {
    static var element: Any.Type { Element.self }
    static var isSet: Bool { true }
}

private protocol NamedMembers { static var element: Any.Type { get } }
extension Dictionary: NamedMembers where Key == String { static var element: Any.Type { Value.self } }
