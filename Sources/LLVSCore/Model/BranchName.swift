/// The name of a branch as a history holds it: the name itself if it is short, otherwise a digest, so that no name from elsewhere takes
/// much memory. The record of a version has the name itself.
package struct BranchName: Hashable, Sendable {
    /// Longer names are represented by their digests.
    private static let longest = 64
    /// Begins a digest; not a byte of UTF-8.
    private static let digestMark: UInt8 = 0xFF
    /// UTF-8, or the mark and 32 bytes.
    let key: [UInt8]

    init(_ name: String) {
        let bytes = Array(name.utf8)
        key = bytes.count <= BranchName.longest ? bytes : [BranchName.digestMark] + bytes.withUnsafeBytes { SHA256.digest($0) }
    }

    /// Returns whether a key is the digest of a long name.
    static func isDigest(_ key: [UInt8]) -> Bool { key.first == digestMark }

    /// Reads a name from a cache; nil if the bytes are invalid.
    init?(key: UnsafeRawBufferPointer) {
        let isDigest = key.first == BranchName.digestMark && key.count == 33
        guard isDigest || (key.count <= BranchName.longest && Bytes.isValidUTF8(key)) else { return nil }
        self.key = Array(key)
    }
}

extension Metadata {
    var branchName: BranchName? { branch.map { BranchName($0) } }
}
