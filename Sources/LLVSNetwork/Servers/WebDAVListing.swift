/// Parses the answer to a PROPFIND of depth 1: the entries of a collection, without the collection itself.
///
/// Servers write absolute addresses or paths, behind proxies with another prefix than requested, with or without slashes, in any order.
final class WebDAVListing: XMLReader.Handler, HTTPBodyReader {
    static let mostEntries = 1_000_000
    private static let mostText = 16 << 10
    /// The root element of a list. A document with another root is not from WebDAV.
    private static let root = "DAV: multistatus"

    /// The decoded path of the collection, without its trailing slash.
    private let own: [UInt8]
    private let what: String
    private var reader: XMLReader?
    private var path: [String] = []
    private var text: [UInt8]?
    // The fields of the response that is being parsed.
    private var href: [UInt8]?, size: Int?, modified: Int64?, isDirectory = false
    /// Whether the response has a status that means that the entry does not exist.
    private var isGone = false
    /// Whether the server says that the list is truncated.
    private var isCut = false

    private var listed: [(entry: RemoteEntry, modified: Int64?)] = []
    private var hasSeenOwn = false
    /// Entries whose path is not in the collection, with the path of their parent.
    private var elsewhere: [(entry: RemoteEntry, modified: Int64?, parent: [UInt8])] = []

    /// - Parameter address: the collection, with its trailing slash.
    init(of address: HTTPAddress, expat: Expat) throws {
        own = WebDAVListing.withoutSlashes(PercentCoding.decode(address.path.utf8) ?? Array(address.path.utf8))
        what = "The list of \(address.shown)"
        reader = try XMLReader(what, expat: expat, handler: self)
    }

    func take(_ bytes: UnsafeRawBufferPointer) throws { try reader?.take(bytes) }

    /// Returns the entries. Throws unless the document is complete.
    /// - Parameter date: the server's time.
    func entries(at date: Int64?) throws -> [RemoteEntry] {
        try reader?.finish()
        reader = nil // it retains this object
        guard !isCut else {
            throw StoreError(
                .transport,
                "\(what) is incomplete: after \(listed.count + elsewhere.count) entries the server answers 507, since it lists no more at "
                    + "once. Nothing was exchanged. Raise the server's limit, or use packs (layout=packed) at an empty address, which are "
                    + "few files.")
        }
        if !hasSeenOwn, listed.isEmpty, let longest = elsewhere.map(\.parent).max(by: { $0.count < $1.count }) {
            // The server may be behind a proxy that shows it under another path.
            listed = elsewhere.filter { $0.parent == longest && longest + [slash] + Array($0.entry.name.utf8) != longest }.map {
                ($0.entry, $0.modified)
            }
            if elsewhere.count == 1, elsewhere[0].entry.isDirectory { listed = [] }
        }
        return listed.map { entry, modified in
            var entry = entry
            entry.age = modified.flatMap { modified in date.map { max(0, $0 - modified) } }
            return entry
        }
    }

    // MARK: The document

    func begin(_ element: String) throws {
        if path.isEmpty, element != WebDAVListing.root {
            throw StoreError(
                .transport,
                "\(what) cannot be read: it is not an answer of WebDAV, but begins with \"\(element.suffix(64))\". "
                    + "Check that the address is that of a WebDAV server."
            )
        }
        path.append(element)
        switch element {
        case "DAV: response": (href, size, modified, isDirectory, isGone) = (nil, nil, nil, false, false)
        case "DAV: href" where path.dropLast().last == "DAV: response", "DAV: getcontentlength", "DAV: getlastmodified": text = []
        case "DAV: status" where path.dropLast().last == "DAV: response": text = []
        case "DAV: collection" where path.dropLast().last == "DAV: resourcetype": isDirectory = true
        default: break
        }
    }

    func text(_ bytes: UnsafeRawBufferPointer) throws {
        guard text != nil else { return }
        guard bytes.count + (text?.count ?? 0) <= WebDAVListing.mostText else {
            throw StoreError(
                .transport, "\(what) cannot be read: a name in it has more than \(WebDAVListing.mostText) bytes. Move that file away.")
        }
        text?.append(contentsOf: bytes)
    }

    func end(_ element: String) throws {
        if path.last == element { path.removeLast() }
        switch element {
        case "DAV: href" where path.last == "DAV: response": href = href ?? text
        // A server may also list a property of a file that it does not have, without a value: then the earlier value stays.
        case "DAV: getcontentlength":
            size = text.flatMap { Int(String(decoding: $0, as: UTF8.self)) }.flatMap { $0 >= 0 ? $0 : nil } ?? size
        case "DAV: getlastmodified": modified = text.flatMap { HTTPDate.seconds(String(decoding: $0, as: UTF8.self)) } ?? modified
        case "DAV: status" where path.last == "DAV: response":
            let words = (text ?? []).split(separator: UInt8(ascii: " "))
            let status = words.count > 1 ? String(decoding: words[1], as: UTF8.self) : ""
            isGone = ["404", "410", "507"].contains(status)
            // RFC 5323, 5.9.1, and RFC 6578, 3.6: it is about the collection itself.
            if status == "507" { isCut = true }
        case "DAV: response": if !isGone { try add() }
        default: return
        }
        text = nil
    }

    private var slash: UInt8 { UInt8(ascii: "/") }

    private func add() throws {
        guard let href else { return }
        let full = WebDAVListing.withoutSlashes(WebDAVListing.path(href))
        guard full != own else { hasSeenOwn = true; return }
        let cut = full.lastIndex(of: slash) ?? full.startIndex
        let name = full[cut...].drop { $0 == slash }, parent = full[..<cut]
        guard !name.isEmpty else { return }
        let entry = RemoteEntry(name: String(decoding: name, as: UTF8.self), isDirectory: isDirectory, size: size, age: nil)
        guard listed.count + elsewhere.count < WebDAVListing.mostEntries else {
            throw StoreError(
                .transport,
                "\(what) cannot be read: it has more than \(WebDAVListing.mostEntries) entries. "
                    + "Check that the address is that of an exchange."
            )
        }
        if parent.elementsEqual(own) {
            try Memory.grow(&listed, "A listing")
            listed.append((entry, modified))
        } else {
            try Memory.grow(&elsewhere, "A listing")
            elsewhere.append((entry, modified, Array(parent)))
        }
    }

    /// Returns the decoded path of an address or of a path.
    private static func path(_ href: [UInt8]) -> [UInt8] {
        var text = href.filter { $0 > 0x20 }[...]
        if let first = text.firstIndex(of: UInt8(ascii: ":")), text[(first + 1)...].starts(with: "//".utf8),
            !text[..<first].contains(UInt8(ascii: "/"))
        {
            let host = text[(first + 3)...]
            text = host.firstIndex(of: UInt8(ascii: "/")).map { host[$0...] } ?? []
        }
        return PercentCoding.decode(text) ?? Array(text)
    }
    private static func withoutSlashes(_ path: [UInt8]) -> [UInt8] {
        var path = path
        while path.last == UInt8(ascii: "/") { path.removeLast() }
        return path
    }
}
