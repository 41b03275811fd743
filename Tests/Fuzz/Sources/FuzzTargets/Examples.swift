import LLVS

/// Small real histories from which the seeds are made. They are the same each time.
enum Examples {
    /// A root, two heads on it and their merge, with all kinds of changes, metadata, ids of both forms, and compressible values.
    static func history() throws -> [(version: Version, changes: [Value.Change])] {
        func id(_ text: String) throws -> ValueID { try ValueID(text) }
        let root = try VersionID("3F2504E0-4F89-41D3-9A0C-0305E82C3301")
        let ours = try VersionID("6BA7B810-9DAD-41D1-80B4-00C04FD430C8"), theirs = try VersionID("theirs_1"),
            merged = try VersionID("6BA7B811-9DAD-41D1-80B4-00C04FD430C8")
        let text = Array(String(repeating: "all work and no play ", count: 30).utf8)
        let metadata = try Metadata([(Array("__llvs_branch".utf8), Array("\"main\"".utf8)), (Array("note".utf8), [0, 1, 2])])
        let many = try (100..<240).map { Value.Change.insert(try id("Contact/\($0)"), data: [UInt8($0)]) }
        func version(
            _ id: VersionID, _ predecessors: [VersionID], _ timestamp: Double, _ changes: [Value.Change], _ metadata: Metadata = Metadata()
        ) -> (Version, [Value.Change]) {
            (
                Version(
                    id: id, predecessors: predecessors, timestamp: timestamp, valueDataSize: InterchangeOrder.valueDataSize(changes),
                    metadata: metadata), changes
            )
        }
        return [
            version(
                root, [], 1,
                [
                    .insert(try id("a"), data: [1, 2, 3]), .insert(try id("b"), data: []), .insert(try id("text"), data: text),
                    .insert(try id("å/ß"), data: [0xFF]),
                ]),
            version(ours, [root], 700_000_000.25, [.update(try id("a"), data: [4]), .remove(try id("b"))], metadata),
            version(theirs, [root], 700_000_001, many + [.remove(try id("text"))]),
            version(
                merged, [theirs, ours], 700_000_001.000001,
                [.preserve(.init(id: try id("a"), version: ours)), .preserveRemoval(try id("b"))]),
        ]
    }

    /// Adds the history to a store.
    static func fill(_ store: Store) throws {
        for (version, changes) in try history() {
            for case .problem(let error) in try store.add([.init(version: version, changes: changes)]) { throw error }
        }
    }
}
