/// The limits on sizes and names of snapshot files. Files from elsewhere are checked against them.
package enum SnapshotLimits {
    /// The format that this implementation writes: its name in manifests, and that of its folder.
    package static let format = "llvs-v1"
    /// The format of a snapshot in which values lack their bytes. Earlier releases do not read it.
    package static let hollowFormat = "llvs-v1-hollow"
    /// The member of a manifest that names the orders to erase whose bytes a snapshot lacks.
    package static let ordersName: StaticString = "orders"
    /// Added to the kind of a change without bytes.
    package static let hollow: UInt8 = 128
    /// The most bytes of a chunk file: 5 MB.
    static let chunkSize = 5_000_000
    /// The most bytes of another implementation's chunk: 8 MiB. It writes chunks of 5,000,000 bytes.
    package static let foreignChunkSize = 8 << 20
    /// The most bytes of the stream in one chunk, before compression.
    package static let payloadSize = 4 << 20
    /// The most bytes that are read of any snapshot file.
    package static let fileSize = 128 << 20
    package static let chunkCount = 1_000_000
    /// The most bytes of a manifest: a digest with its quotes and a comma for each chunk, and as much again for the rest.
    package static let manifestSize = 67 * chunkCount + 64 << 10
    /// The bytes of a snapshot's id: an upper-case UUID.
    package static let idSize = 36
    /// The bytes before the payload of a chunk: id, encoding, size.
    package static let headerSize = idSize + 1 + 4
    /// The most bytes of the version file in an entry: enough for the largest metadata. Its 16 MiB may consist of control characters in
    /// keys, with six bytes each in JSON. Fewer than 5 million keys fit into it, each with 15 bytes around it and its value.
    package static let versionFileSize = 192 << 20

    /// Returns whether it is one or two components of letters, digits, `.`, `_` and `-` that do not begin with a dot.
    package static func isFileName(_ name: String) -> Bool {
        let components = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard components.count <= 2 else { return false }
        return components.allSatisfy { component in
            !component.isEmpty && component.count <= 100 && component.first != UInt8(ascii: ".")
                && component.allSatisfy { b in
                    switch b {
                    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"): true
                    default: false
                    }
                }
        }
    }

    package static func chunkName(_ index: Int) -> String {
        let digits = String(index)
        return "chunk-" + String(repeating: "0", count: max(0, 3 - digits.utf8.count)) + digits
    }
}
