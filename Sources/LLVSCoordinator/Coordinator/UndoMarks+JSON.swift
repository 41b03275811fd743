/// Reads and writes the values of the metadata, which are JSON.
extension UndoMarks {
    static func json(_ text: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        text.withUnsafeBytes { CanonicalText.append($0, to: &out) }
        return out
    }

    static func json(_ ids: [VersionID]) -> [UInt8] {
        Array("[\(ids.map { "\"\($0)\"" }.joined(separator: ","))]".utf8)
    }

    /// Returns the text of a JSON string; nil if the bytes are anything else.
    /// - Throws: what the control throws.
    static func string(_ bytes: [UInt8]?, _ control: PacedControl) throws -> String? {
        guard let bytes else { return nil }
        // The parser reads only documents, and a single string is no document.
        let whole = [UInt8(ascii: "[")] + bytes + [UInt8(ascii: "]")]
        let found = try? whole.withUnsafeBytes { raw -> String? in
            guard let text = try JSONTreeParser.parse(raw, work: DocumentControl(control.look)) else { return nil }
            // The tree points into the text.
            defer { withExtendedLifetime(text) {} }
            guard let top = text.tree.children(of: 0).first, text.tree.kind(top) == .string else { return nil }
            return String(decoding: text.tree.text(top), as: UTF8.self)
        }
        try control.throwIfEnded()
        return found ?? nil
    }
}
