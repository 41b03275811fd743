#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The ids and dates of a value that are spelled in another way than a model writes them, such as a UUID in capital letters.
///
/// A merge compares texts. If the same id were spelled differently, an element of a list would not be found by its key, and an element of a
/// set would occur twice. So a save keeps the spelling of an id or a date in the stored value.
struct Spellings {
    /// For each place, the stored text by the text that a model would write. Indices in a place are "*".
    private var found: [[String]: [[UInt8]: [UInt8]]] = [:]

    /// Returns nil if all are spelled as a model writes them.
    init?(_ bytes: [UInt8]) {
        guard Self.mayHaveSome(bytes), let value = try? ModelCoding.decoder().decode(JSONValue.self, from: Data(bytes)) else { return nil }
        collect(value, [])
        if found.isEmpty { return nil }
    }

    /// Returns whether a string in JSON text is an id or a date in another spelling.
    private static func mayHaveSome(_ bytes: [UInt8]) -> Bool {
        bytes.split(separator: UInt8(ascii: "\"")).contains { text in
            (17...64).contains(text.count) && canonical(String(decoding: text, as: UTF8.self)) != nil
        }
    }

    /// Returns the text that a model writes for an id or a date; nil for other texts, and if it is the same.
    private static func canonical(_ text: String) -> String? {
        guard let second = text.utf8.dropFirst(4).first, text.utf8.first.map({ $0 < 0x80 }) == true else { return nil }
        if text.utf8.count == 36, second != UInt8(ascii: "-"), let id = UUID(uuidString: text) {
            return id.uuidString.lowercased() == text ? nil : id.uuidString.lowercased()
        }
        guard second == UInt8(ascii: "-"), let date = Moment.date(text), let written = try? Moment.text(date) else { return nil }
        return written == text || (try? Moment.text(date, isSortable: true)) == text ? nil : written
    }

    private mutating func collect(_ value: JSONValue, _ place: [String]) {
        switch value {
        case .string(let text):
            guard let canonical = Self.canonical(text) else { return }
            let key = Array(JSONText.string(canonical).utf8)
            if found[place]?[key] == nil { found[place, default: [:]][key] = Array(JSONText.string(text).utf8) }
        case .array(let elements): for element in elements { collect(element, place + ["*"]) }
        case .object(let members): for (name, member) in members { collect(member, place + [name]) }
        default: break
        }
    }

    /// Replaces the ids and dates of a model by their spellings in the value.
    func apply(to node: EncodedNode, at place: [String] = []) -> EncodedNode {
        switch node.content {
        case .scalar(let text):
            guard node.isIDOrDate, let there = found[place]?[text] else { return node }
            return EncodedNode(.scalar(there))
        case .array(let elements): return EncodedNode(.array(elements.map { apply(to: $0, at: place + ["*"]) }))
        case .object(let members):
            let made = members.map { name, member in (name, apply(to: member, at: place + [name])) }
            return EncodedNode(.object(Dictionary(made) { $1 }))
        }
    }
}

extension EncodedNode {
    /// Whether it is the text of a `UUID` or a `Date`, not another string.
    fileprivate var isIDOrDate: Bool { value is UUID || value is Date }
}
