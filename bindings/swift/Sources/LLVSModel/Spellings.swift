#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The ids and dates of a value that are written otherwise than a model writes them, such as a UUID in capital letters.
///
/// A merge compares texts. An element of a list would not be found by its key if the key were another text for the same id, and an element
/// of a set would be there twice. So a save writes an id or a date as it stands in the value already.
struct Spellings {
    /// The text that stands there, by what a model would write, for each place. The indices of a place are "*".
    private var found: [[String]: [[UInt8]: [UInt8]]] = [:]

    /// nil when all is written as a model writes it.
    init?(_ bytes: [UInt8]) {
        guard Self.mayHaveSome(bytes), let value = try? ModelCoding.decoder().decode(JSONValue.self, from: Data(bytes)) else { return nil }
        collect(value, [])
        if found.isEmpty { return nil }
    }

    /// Whether a string in JSON text is an id or a date of another spelling.
    private static func mayHaveSome(_ bytes: [UInt8]) -> Bool {
        bytes.split(separator: UInt8(ascii: "\"")).contains { text in
            (17...64).contains(text.count) && canonical(String(decoding: text, as: UTF8.self)) != nil
        }
    }

    /// What a model writes for an id or a date; nil for other texts, and for what is written so already.
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

    /// Writes ids and dates of a model as they stand in the value.
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
    /// Whether it is the text of a `UUID` or a `Date`, and no other string.
    fileprivate var isIDOrDate: Bool { value is UUID || value is Date }
}
