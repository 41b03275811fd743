extension PackedState.Root {
    /// Reads a root.
    /// - Throws: `PackFault`.
    init(_ name: PackName, _ bytes: [UInt8], _ sealing: PackSealing = .none) throws {
        let file = try PackFile(name, bytes, stores: [], sealing: sealing)
        guard let store = PackID(file.index.header[16..<32]) else { throw PackFault.damaged("it is not a root") }
        let said = try RootText(file)
        guard said.format == 1 else { throw PackFault.newer("its format is another than 1") }
        guard said.store == store.description else { throw PackFault.damaged("it names another store than its header") }
        guard said.layout == RootText.packed || (said.layout == RootText.bridged && !said.isEncrypted) else {
            throw PackFault.newer("its layout is \"\(said.layout)\"")
        }
        guard said.isEncrypted == sealing.isEncrypted else {
            throw PackFault.damaged("it contradicts the packs about encryption")
        }
        self.init(name: name, store: store, bytes: bytes)
    }
}

/// The JSON of a root.
struct RootText {
    private(set) var format = 0, store = "", layout = "", isEncrypted = false, hasDifferences = false
    static let packed = "packed", bridged = "bridged"

    /// - Throws: `PackFault`.
    init(_ name: PackName, _ bytes: [UInt8], _ sealing: PackSealing) throws {
        try self.init(PackFile(name, bytes, stores: [], sealing: sealing))
    }
    /// - Throws: `PackFault`.
    init(_ file: PackFile) throws {
        var text: [UInt8] = []
        try file.forEachBlock { text.append(contentsOf: $0) }
        do { self = try text.withUnsafeBytes(RootText.init) } catch { throw PackFault.damaged("its content is not JSON") }
    }
    private init(_ bytes: UnsafeRawBufferPointer) throws {
        var json = JSONReader(bytes)
        func text() throws -> String { String(decoding: try json.string(), as: UTF8.self) }
        try json.beginObject()
        while let member = try json.nextMember() {
            if try json.equals(member, "format") {
                format = Int(clamping: try json.unsigned())
            } else if try json.equals(member, "store") {
                store = try text()
            } else if try json.equals(member, "layout") {
                layout = try text()
            } else if try json.equals(member, "encrypted") {
                isEncrypted = try json.bool()
            } else if try json.equals(member, "differences") {
                hasDifferences = try json.unsigned() == 1
            } else {
                try json.skip()
            }
        }
        try json.end()
    }
}
