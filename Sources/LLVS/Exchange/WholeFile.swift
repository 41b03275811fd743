/// Whether a file of an exchange is all there, and of the form that all implementations read, without knowing what should be in it.
///
/// A JSON document that is cut short is none any more, wherever it was cut: so a file is read and passed over. Of a large one only
/// the end is looked at, where no file that is whole ends otherwise; the converse does not hold, but nearly.
package enum WholeFile: Sendable {
    case version, changes

    /// Files of up to so many bytes are read.
    package static let readSize = 64 << 10
    /// Of larger ones so many bytes at the end.
    static let tailSize = 64

    /// What a file looks like.
    package enum Condition: Sendable {
        case whole, cutShort
        /// All there, but other implementations cannot read it: the digest stands beside the version, as we wrote it before.
        case oldForm
    }

    package func isWhole(_ bytes: UnsafeRawBufferPointer, of size: Int) -> Bool { condition(bytes, of: size) == .whole }

    /// - Parameters:
    ///   - bytes: all of the file, or its last ones.
    ///   - size: of the file.
    package func condition(_ bytes: UnsafeRawBufferPointer, of size: Int) -> Condition {
        if bytes.count < size {
            let last = bytes.reversed().filter { !JSONString.isSpace($0) }.prefix(2)
            if self == .version, last.elementsEqual("}\"".utf8) { return .oldForm }
            return last.elementsEqual((self == .version ? "}}" : "]}").utf8) ? .whole : .cutShort
        }
        var isOldForm = false
        var reader = JSONReader(bytes)
        do {
            switch self {
            case .version:
                try reader.beginObject()
                while let member = try reader.nextMember() {
                    if try reader.equals(member, InterchangeDecoder.oldDigestMember) { isOldForm = true }
                    try reader.skip()
                }
            case .changes:
                guard try reader.kind() == .array else { return .cutShort }
                try reader.skip()
            }
            try reader.end()
            return isOldForm ? .oldForm : .whole
        } catch { return .cutShort }
    }
}
