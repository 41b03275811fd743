/// Collects bytes as they arrive: in memory, and from 1 MiB on in an unnamed file.
package struct Spool {
    /// A larger body is stored in a file.
    private static let wholeSize = 1 << 20
    /// The number of bytes that arrived.
    package private(set) var size = 0
    package private(set) var bytes: [UInt8] = []
    package private(set) var file: TemporaryFile?

    package init() {}

    /// - Parameter what: the action, for messages.
    package mutating func append(_ part: UnsafeRawBufferPointer, _ what: String) throws {
        if let file {
            try file.write(part, at: size)
        } else if size + part.count <= Spool.wholeSize {
            try Memory.grow(&bytes, by: part.count, what)
            bytes.append(contentsOf: part)
        } else {
            let file = try TemporaryFile()
            try bytes.withUnsafeBytes { try file.write($0, at: 0) }
            try file.write(part, at: size)
            bytes = []
            self.file = file
        }
        size += part.count
    }

    /// The bytes so far, as the content of a whole file.
    package var contents: RemoteContents {
        if let file { .large(TemporaryFileReader(file, size: size)) } else { .bytes(bytes, isWhole: true) }
    }
}
