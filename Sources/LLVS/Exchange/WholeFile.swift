/// Whether a file of an exchange is all there, without knowing what should be in it.
///
/// A JSON document that is cut short is none any more, wherever it was cut: so a file is read and passed over. Of a large one only
/// the end is looked at, where no file that is whole ends otherwise; the converse does not hold, but nearly.
package enum WholeFile: Sendable {
    case version, changes

    /// Files of up to so many bytes are read.
    package static let readSize = 64 << 10
    /// Of larger ones so many bytes at the end.
    static let tailSize = 64

    /// - Parameters:
    ///   - bytes: all of the file, or its last ones.
    ///   - size: of the file.
    package func isWhole(_ bytes: UnsafeRawBufferPointer, of size: Int) -> Bool {
        if bytes.count < size {
            let last = bytes.reversed().filter { !JSONString.isSpace($0) }.prefix(2)
            // Last of a version's file is its digest, or the version where no digest is told.
            return self == .version ? last.elementsEqual("}\"".utf8) || last.elementsEqual("}}".utf8) : last.elementsEqual("]}".utf8)
        }
        var reader = JSONReader(bytes)
        do {
            guard try reader.kind() == (self == .version ? .object : .array) else { return false }
            try reader.skip()
            try reader.end()
            return true
        } catch { return false }
    }
}
