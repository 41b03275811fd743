#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// JSON and JSON pointers as text.
enum JSONText {
    static func string(_ text: String) -> String {
        var made = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": made += "\\\""
            case "\\": made += "\\\\"
            case "\n": made += "\\n"
            case "\r": made += "\\r"
            case "\t": made += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                made += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: made.unicodeScalars.append(scalar)
            }
        }
        return made + "\""
    }

    /// A name as a segment of a JSON pointer.
    static func segment(_ name: String) -> String {
        var made = ""
        for scalar in name.unicodeScalars {
            switch scalar {
            case "~": made += "~0"
            case "/": made += "~1"
            default: made.unicodeScalars.append(scalar)
            }
        }
        return made
    }

    /// A name as a segment of a pattern, in which "*" alone means any.
    static func patternSegment(_ name: String) -> String { name == "*" ? "~2" : segment(name) }

    /// A name as a pointer; a pointer is returned unchanged; "" is the whole value.
    static func pointer(_ name: String) -> String { name.hasPrefix("/") || name.isEmpty ? name : "/" + segment(name) }

    static func array(_ elements: [String]) -> String { "[" + elements.joined(separator: ",") + "]" }

    /// An object, its members in the order of their names.
    static func object(_ members: [String: String]) -> String {
        "{" + members.sorted { $0.key < $1.key }.map { "\(string($0.key)):\($0.value)" }.joined(separator: ",") + "}"
    }

    /// Parses a text; nil if it is not JSON.
    static func parsed(_ text: String) -> JSONValue? { parsed(Data("[\(text)]".utf8)) }
    /// Returns the only element of an array.
    static func parsed(_ array: Data) -> JSONValue? { (try? ModelCoding.decoder().decode([JSONValue].self, from: array))?.first }

    static func value(_ value: JSONValue) -> String {
        switch value {
        case .null: "null"
        case .bool(let bool): "\(bool)"
        case .int(let number): "\(number)"
        case .double(let number): "\(number)"
        case .string(let text): string(text)
        case .array(let elements): array(elements.map(Self.value))
        case .object(let members): object(members.mapValues(Self.value))
        }
    }
}
