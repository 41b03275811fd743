/// Bytes that are kept as they come: in memory, and from 1 MiB on in a file without a name.
package struct Spool {
    /// A body of more bytes than this goes to a file.
    private static let wholeSize = 1 << 20
    /// Bytes that came.
    package private(set) var size = 0
    private(set) var bytes: [UInt8] = []
    private(set) var file: TemporaryFile?

    package init() {}

    /// - Parameter what: is done, for messages.
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
}
