/// How another implementation derives file names from ids.
package enum ForeignFileNames {
    package static func split(_ name: String, _ length: Int) -> String {
        let first = name.prefix(length)
        return first.endIndex == name.endIndex ? name : first + "/" + name[first.endIndex...]
    }
    package static func escaped(_ id: String) -> String {
        var out: [UInt8] = []
        for b in id.utf8 {
            switch b {
            case UInt8(ascii: "/"): out += Array("LLVSSLASH".utf8)
            case UInt8(ascii: ":"): out += Array("LLVSCOLON".utf8)
            default: out.append(b)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
    /// Escapes after splitting. The known examples do not show which order is meant for ids with a slash or colon among their first two
    /// characters.
    package static func escapedAfterSplitting(_ id: String) -> String {
        let first = id.prefix(2)
        return first.endIndex == id.endIndex ? escaped(id) : escaped(String(first)) + "/" + escaped(String(id[first.endIndex...]))
    }
}
