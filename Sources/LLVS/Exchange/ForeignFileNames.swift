/// How another implementation makes the names of files of ids.
enum ForeignFileNames {
    static func split(_ name: String, _ length: Int) -> String {
        let first = name.prefix(length)
        return first.endIndex == name.endIndex ? name : first + "/" + name[first.endIndex...]
    }
    static func escaped(_ id: String) -> String {
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
    /// The other order of the two steps; the examples at hand do not tell which is meant for ids that
    /// have a slash or colon among their first two characters.
    static func escapedAfterSplitting(_ id: String) -> String {
        let first = id.prefix(2)
        return first.endIndex == id.endIndex ? escaped(id) : escaped(String(first)) + "/" + escaped(String(id[first.endIndex...]))
    }
}
