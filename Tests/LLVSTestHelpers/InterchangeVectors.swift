import LLVSCore

/// The data of another implementation, with the states that it computed.
package struct InterchangeVectors {
    package static let path = Repository.vectors + "/interchange"
    package var heads: [String] = []
    package var mostRecentHead = ""
    package var versions: [String] = []
    /// By version, for each value id: "<base64 data>@<stored version id>".
    package var states: [String: [ValueID: String]] = [:]

    package init() throws {
        let bytes = try readFile(InterchangeVectors.path + "/expected.json")
        func text(_ reader: inout JSONReader) throws -> String { String(decoding: try reader.string(), as: UTF8.self) }
        func list(_ reader: inout JSONReader) throws -> [String] {
            var list: [String] = []
            try reader.beginArray()
            while try reader.nextElement() { list.append(try text(&reader)) }
            return list
        }
        try bytes.withUnsafeBytes { raw in
            var reader = JSONReader(raw)
            try reader.beginObject()
            while let member = try reader.nextMember() {
                if try reader.equals(member, "heads") {
                    heads = try list(&reader)
                } else if try reader.equals(member, "mostRecentHead") {
                    mostRecentHead = try text(&reader)
                } else if try reader.equals(member, "versions") {
                    versions = try list(&reader)
                } else if try reader.equals(member, "states") {
                    try reader.beginObject()
                    while let version = try reader.nextMember() {
                        let id = String(decoding: try reader.string(version), as: UTF8.self)
                        states[id] = [:]
                        try reader.beginObject()
                        while let value = try reader.nextMember() {
                            let key = try ValueID(utf8: try reader.string(value))
                            states[id]?[key] = try text(&reader)
                        }
                    }
                } else {
                    try reader.skip()
                }
            }
            try reader.end()
        }
    }

    /// The state at a version, in the form of `states`.
    package static func state(of store: Store, at id: VersionID) throws -> [ValueID: String] {
        var state: [ValueID: String] = [:]
        for value in try store.values(at: id, in: .all, after: nil, limit: 1_000_000) {
            state[value.id] = String(decoding: Base64.encode(value.data), as: UTF8.self) + "@\(value.storedVersion)"
        }
        return state
    }

    /// The differences between the store and the expected states; empty if there are none.
    package func differences(from store: Store) throws -> [String] {
        var differences: [String] = []
        if try Set(store.heads().map(\.id.description)) != Set(heads) { differences.append("heads") }
        if try store.mostRecentHead()?.id.description != mostRecentHead { differences.append("most recent head") }
        if try Set(store.allVersionIDs().map(\.description)) != Set(versions) { differences.append("versions") }
        for (id, expected) in states {
            if try InterchangeVectors.state(of: store, at: VersionID(id)) != expected { differences.append("state at \(id)") }
        }
        return differences
    }
}
