/// Sizes and names of snapshot files; those that come from elsewhere are held against them.
package enum SnapshotLimits {
    /// The format that this implementation writes: its name in manifests, and that of its folder.
    package static let format = "llvs-v1"
    /// Bytes in a chunk file at most: 5 MB.
    static let chunkSize = 5_000_000
    /// Bytes in a chunk of another implementation's, which makes them of 5,000,000: 8 MiB.
    package static let foreignChunkSize = 8 << 20
    /// Bytes of the stream in one chunk at most, before compression.
    package static let payloadSize = 4 << 20
    /// Bytes that are read of any snapshot file at most.
    package static let fileSize = 128 << 20
    package static let chunkCount = 1_000_000
    /// Bytes of a manifest: a digest with its quotes and a comma for each chunk, and as much again as all else can need.
    package static let manifestSize = 67 * chunkCount + 64 << 10
    /// Bytes of a snapshot's id: an upper-case UUID.
    package static let idSize = 36
    /// Bytes before the payload of a chunk: id, encoding, size.
    package static let headerSize = idSize + 1 + 4
    /// Bytes of the version file in an entry: what the largest metadata can take. Of 16 MiB all may be control characters of keys,
    /// six bytes each in JSON, and there are fewer than 5 million keys in so much, each with 15 bytes around it and its value.
    package static let versionFileSize = 192 << 20

    /// One or two components of letters, digits, `.`, `_` and `-` that do not begin with a dot.
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
