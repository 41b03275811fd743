#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A rule and the place that it is for: a JSON pointer below the value, in which "*" stands for any member or element.
public struct MergePattern: Sendable, Hashable {
    let pointer: String
    /// JSON text by name.
    var rule: [String: String]

    /// The patterns of a member, from its type and what `@Merge` says of it. Called by what `@Model` makes.
    /// - Parameter initial: its default, with which a counter begins.
    public static func member<Member>(_ name: String, _ type: Member.Type, _ rules: [MergeRule], from initial: Member?) -> [MergePattern] {
        var own = Implied.rule(of: type)
        for rule in rules { own.merge(rule.members) { $1 } }
        if own["key"] != nil, own["as"] == nil { own["as"] = "\"list\"" }
        if own["as"] == "\"counter\"", own["from"] == nil, let text = initial.flatMap({ Implied.number($0) }) { own["from"] = text }
        let pointer = "/" + (name == "*" ? "~2" : JSONText.segment(name))
        let inside = own["as"] == "\"register\"" ? [] : Implied.inside(type)
        return (own.isEmpty ? [] : [MergePattern(pointer: pointer, rule: own)])
            + inside.map { MergePattern(pointer: pointer + $0.pointer, rule: $0.rule) }
    }

    /// The type of a default. Called by what `@Model` makes.
    public static func type<Member>(of initial: @autoclosure () -> Member) -> Member.Type { Member.self }
}

/// What goes by the type of a member.
private enum Implied {
    /// The rule of a member of this type; empty for `auto`.
    static func rule(of type: Any.Type) -> [String: String] {
        if let optional = type as? any OptionalMember.Type { return rule(of: optional.wrapped) }
        if let collection = type as? any CollectionMember.Type {
            if collection.isSet { return ["as": "\"set\""] }
            return collection.element is any Identifiable.Type ? ["as": "\"list\"", "key": "[\"/id\"]"] : [:]
        }
        let isPlain = type is any ModelPart.Type || type is any PlainMember.Type || type is any NamedMembers.Type
        return isPlain ? [:] : ["as": "\"register\""]
    }

    /// The patterns below a member of this type.
    static func inside(_ type: Any.Type) -> [MergePattern] {
        if let optional = type as? any OptionalMember.Type { return inside(optional.wrapped) }
        if let part = type as? any ModelPart.Type { return part.mergePatterns }
        var element: Any.Type?
        if let collection = type as? any CollectionMember.Type { element = collection.element }
        if let members = type as? any NamedMembers.Type { element = members.element }
        guard let element else { return [] }
        let own = rule(of: element)
        return (own.isEmpty ? [] : [MergePattern(pointer: "/*", rule: own)])
            + inside(element).map { MergePattern(pointer: "/*" + $0.pointer, rule: $0.rule) }
    }

    /// A number other than 0 as text.
    static func number(_ value: Any) -> String? {
        switch value {
        case let number as any BinaryInteger: isZero(number) ? nil : "\(number)"
        case let number as Double: number == 0 || !number.isFinite ? nil : "\(number)"
        default: nil
        }
    }

    private static func isZero(_ number: some BinaryInteger) -> Bool { number == 0 }
}

/// Types that are no objects in JSON.
private protocol PlainMember {}
extension String: PlainMember {}
extension Bool: PlainMember {}
extension Int: PlainMember {}
extension Int8: PlainMember {}
extension Int16: PlainMember {}
extension Int32: PlainMember {}
extension Int64: PlainMember {}
extension UInt: PlainMember {}
extension UInt8: PlainMember {}
extension UInt16: PlainMember {}
extension UInt32: PlainMember {}
extension UInt64: PlainMember {}
extension Float: PlainMember {}
extension Double: PlainMember {}
extension Date: PlainMember {}
extension Data: PlainMember {}
extension UUID: PlainMember {}
extension URL: PlainMember {}
extension Decimal: PlainMember {}

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
