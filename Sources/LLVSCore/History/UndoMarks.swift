/// The metadata by which a device finds the versions to undo, in any process, and whatever syncs brought.
package enum UndoMarks {
    /// The device that made the save: a JSON string.
    package static let deviceKey = Metadata.deviceKey
    /// The group of the save: a JSON string. Successive saves of one group are undone together.
    package static let groupKey = Array("__llvs_group".utf8)
    /// A description of the save for people: a JSON string.
    package static let descriptionKey = Array("__llvs_description".utf8)
    /// The versions that this one undoes: a JSON array of ids, newest first.
    package static let undoKey = Array("__llvs_undo".utf8)
    /// The id of the undo that this version reverts: a JSON string.
    package static let redoKey = Array("__llvs_redo".utf8)

    /// Returns the traits that a history records for a version with this metadata.
    static func traits(_ metadata: Metadata) -> History.Traits {
        metadata.isEmpty || metadata[undoKey] == nil && metadata[redoKey] == nil ? [] : .undoes
    }

    /// Calls a closure for each quoted text that is a valid version id, in a JSON array of ids or in a single JSON string. It buffers
    /// nothing, since a peer may have written metadata of any size.
    /// - Throws: what the control throws.
    package static func forEachID(_ bytes: [UInt8]?, _ control: PacedControl, _ body: (VersionID) -> Void) throws {
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
