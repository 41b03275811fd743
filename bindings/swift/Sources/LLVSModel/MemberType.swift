#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a member is in JSON.
enum JSONShape: String {
    case string = "a string", number = "a number", bool = "a boolean", array = "an array", object = "an object"
}

/// What goes by the type of a member.
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

    /// What a type is in JSON; nil where its coding alone knows.
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

/// Types that are no objects in JSON.
private protocol PlainMember { static var shape: JSONShape { get } }
private protocol TextMember: PlainMember {}
extension TextMember { static var shape: JSONShape { .string } }
private protocol NumberMember: PlainMember {}
extension NumberMember { static var shape: JSONShape { .number } }

extension String: TextMember {}
extension Date: TextMember {}
extension Data: TextMember {}
extension UUID: TextMember {}
extension URL: TextMember {}
extension Bool: PlainMember { fileprivate static var shape: JSONShape { .bool } }
extension Int: NumberMember {}
extension Int8: NumberMember {}
extension Int16: NumberMember {}
extension Int32: NumberMember {}
extension Int64: NumberMember {}
extension UInt: NumberMember {}
extension UInt8: NumberMember {}
extension UInt16: NumberMember {}
extension UInt32: NumberMember {}
extension UInt64: NumberMember {}
extension Float: NumberMember {}
extension Double: NumberMember {}
extension Decimal: NumberMember {}

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
