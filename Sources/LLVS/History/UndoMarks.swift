/// What versions say in their metadata so that a device finds what to undo, in whatever process, and whatever came by sync.
enum UndoMarks {
    /// The device that saved: a JSON string.
    static let deviceKey = Metadata.deviceKey
    /// Saves of one group, one after the other, count as one: a JSON string.
    static let groupKey = Array("__llvs_group".utf8)
    /// What the save did, for a person: a JSON string.
    static let descriptionKey = Array("__llvs_description".utf8)
    /// The versions that this one undoes: a JSON array of ids, newest first.
    static let undoKey = Array("__llvs_undo".utf8)
    /// The undo that this one takes back: a JSON string, its id.
    static let redoKey = Array("__llvs_redo".utf8)

    /// What a history notes of a version with this metadata.
    static func traits(_ metadata: Metadata) -> History.Traits {
        metadata.isEmpty || metadata[undoKey] == nil && metadata[redoKey] == nil ? [] : .undoes
    }

    static func json(_ text: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        text.withUnsafeBytes { CanonicalText.append($0, to: &out) }
        return out
    }

    static func json(_ ids: [VersionID]) -> [UInt8] {
        Array("[\(ids.map { "\"\($0)\"" }.joined(separator: ","))]".utf8)
    }

    /// A JSON string; nil where it is something else.
    /// - Throws: what the control throws.
    static func string(_ bytes: [UInt8]?, _ control: PacedControl) throws -> String? {
        guard let bytes else { return nil }
        // A string alone is no document.
        let whole = [UInt8(ascii: "[")] + bytes + [UInt8(ascii: "]")]
        let found = try? whole.withUnsafeBytes { raw -> String? in
            guard let text = try JSONTreeParser.parse(raw, work: DocumentControl(control.look)) else { return nil }
            // The tree lies in the text.
            defer { withExtendedLifetime(text) {} }
            guard let top = text.tree.children(of: 0).first, text.tree.kind(top) == .string else { return nil }
            return String(decoding: text.tree.text(top), as: UTF8.self)
        }
        try control.throwIfEnded()
        return found ?? nil
    }

    /// What stands between quotation marks and can be the id of a version: of a JSON array of ids, or of one alone, all of them. No more is
    /// kept of what others write there, however much it is.
    /// - Throws: what the control throws.
    static func forEachID(_ bytes: [UInt8]?, _ control: PacedControl, _ body: (VersionID) -> Void) throws {
        guard let bytes else { return }
        try bytes.withUnsafeBytes { raw in
            var at = 0, opened: Int?
            while at < raw.count, let quote = raw[at...].firstIndex(of: UInt8(ascii: "\"")) {
                try control.step(0, bytes: quote - at)
                if let from = opened, let id = VersionID(validating: UnsafeRawBufferPointer(rebasing: raw[from..<quote])) { body(id) }
                opened = opened == nil ? quote + 1 : nil
                at = quote + 1
            }
        }
    }
}
