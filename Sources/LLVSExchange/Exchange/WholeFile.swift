/// Whether a file of an exchange is complete, and of the form that all implementations read, judged without knowing its content.
///
/// A JSON document that is cut short anywhere is invalid, so a small file is parsed. Of a large one only the end is checked: no complete
/// file ends otherwise, though a file cut short may, rarely, end the same way.
package enum WholeFile: Sendable {
    case version, changes

    /// Files of up to this many bytes are parsed.
    package static let readSize = 64 << 10
    /// How many bytes are checked at the end of larger ones.
    static let tailSize = 64

    /// The condition of a file.
    package enum Condition: Sendable {
        case whole, cutShort
        /// Complete, but other implementations cannot read it: the digest is beside the version, as earlier versions of this library wrote
        /// it.
        case oldForm
    }

    package func isWhole(_ bytes: UnsafeRawBufferPointer, of size: Int) -> Bool { condition(bytes, of: size) == .whole }

    /// - Parameters:
    ///   - bytes: the whole file, or its end.
    ///   - size: the size of the file.
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
