/// Opens the places that URLs name: folders and areas in memory, and those of the linked services (`RemoteService`).
package enum ExchangeURL {
    private enum Place {
        case folder(String)
        case memory(String)
        case service(RemoteService.Accepts, RemoteService.Opening)

        /// The options that the place accepts.
        var accepts: RemoteService.Accepts { if case .service(let accepted, _) = self { accepted } else { [] } }
    }

    /// - Throws: `.invalidArgument` if it is not a URL of its scheme, `.unsupported` for an unknown scheme.
    package static func transport(
        _ url: String, _ settings: Exchange.URLOptions, apartFrom store: String? = nil
    ) throws -> any ExchangeTransport {
        let (place, named) = try place(url)
        try settings.check()
        let layout = named ?? settings.layout
        guard (settings.tokenFile == nil && settings.tokens == nil) || place.accepts.contains(.tokens) else {
            let what = settings.tokenFile == nil ? "A callback for tokens" : "A token_file"
            throw StoreError(.invalidArgument, "\(what) is for cloud drives; \"\(shown(url))\" is not one. Leave it out.")
        }
        guard (settings.keyFile == nil && settings.knownHosts == nil) || place.accepts.contains(.keyFiles) else {
            throw StoreError(.invalidArgument, "A key_file or known_hosts is for sftp:; \"\(shown(url))\" is not one. Leave it out.")
        }
        let keys = try settings.keys.map(PackedKeys.init)
        if keys != nil, layout == .interchange || layout == .bridged { throw inClear("\"\(shown(url))\"", layout) }
        switch place {
        case .folder(let path) where layout == .packed || layout == .bridged || keys != nil:
            let files = try FolderRemoteFiles(folder(path, settings, store), isDurable: settings.durability == .full)
            return PackedTransport(
                files, settings: PackedSettings(deviceName: settings.deviceName), keys: keys, isBridged: layout == .bridged)
        case .folder(let path):
            let transport = try folder(path, settings, store)
            try RemoteKeyDirectory.refuseKeys(FolderRemoteFiles(transport, isDurable: true)) {}
            return transport
        case .memory(let name):
            guard layout != .packed, layout != .bridged, keys == nil else {
                throw invalid(url, "an area in memory holds single versions, and no packs")
            }
            return MemoryTransport(name: name)
        case .service(_, let open): return transport(try open(settings), layout, keys, settings)
        }
    }

    /// Returns the files of a place, for tests.
    /// - Throws: the same as `transport`, and `.invalidArgument` for a place without files.
    package static func files(_ url: String, _ settings: Exchange.URLOptions) throws -> any RemoteFiles {
        let (place, _) = try place(url)
        try settings.check()
        switch place {
        case .folder(let path):
            return try FolderRemoteFiles(folder(path, settings, nil), isDurable: settings.durability == .full)
        case .memory: throw invalid(url, "an area in memory holds single versions, and no files")
        case .service(_, let open): return try open(settings)
        }
    }

    /// Returns a transport over files that the caller has opened. Of the settings, it uses the layout and the keys.
    package static func transport(over files: any RemoteFiles, _ settings: Exchange.URLOptions) throws -> any ExchangeTransport {
        let keys = try settings.keys.map(PackedKeys.init)
        if keys != nil, settings.layout == .interchange || settings.layout == .bridged { throw inClear(files.description, settings.layout) }
        return transport(files, settings.layout, keys, settings)
    }

    private static func inClear(_ place: String, _ layout: Exchange.Layout) -> StoreError {
        StoreError(
            .invalidArgument,
            "Keys are given for \(place) with the layout \(layout == .bridged ? "bridged" : "interchange"), in which files lie in clear. "
                + "Leave one out.")
    }

    private static func transport(
        _ files: any RemoteFiles, _ layout: Exchange.Layout, _ keys: PackedKeys?, _ options: Exchange.URLOptions
    ) -> any ExchangeTransport {
        let settings = PackedSettings(deviceName: options.deviceName)
        return switch layout {
        case .automatic: AutomaticTransport(files, settings: settings, keys: keys)
        case .interchange: RemoteTransport(files)
        case .packed: PackedTransport(files, settings: settings, keys: keys)
        case .bridged: PackedTransport(files, settings: settings, isBridged: true)
        }
    }

    private static func folder(_ path: String, _ settings: Exchange.URLOptions, _ store: String?) throws -> FolderTransport {
        var options = FolderTransport.Options()
        options.durability = settings.durability
        options.create = !settings.mustExist
        options.store = store
        options.look = { try RemoteKeyDirectory.refuseKeys(FolderRemoteFiles($0, isDurable: true), $1) }
        return try FolderTransport(path: path, options: options)
    }

    /// Throws what `transport` would throw for a fault in the URL itself.
    package static func check(_ url: String) throws { _ = try place(url) }

    /// Returns the place, and the layout if the URL names one.
    private static func place(_ whole: String) throws -> (Place, Exchange.Layout?) {
        let (url, layout) = try withoutLayout(whole)
        return (try placeAlone(url), layout)
    }

    /// Splits `layout=packed`, `layout=interchange` or `layout=bridged` from the query. The name of an area in memory has no query.
    private static func withoutLayout(_ url: String) throws -> (String, Exchange.Layout?) {
        let bytes = Array(url.utf8), key = Array("layout=".utf8)
        guard !bytes.starts(with: "memory:".utf8), let mark = bytes.lastIndex(of: UInt8(ascii: "?")) else { return (url, nil) }
        let parts = bytes[(mark + 1)...].split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        let named = parts.filter { $0.starts(with: key) }
        guard let first = named.first else { return (url, nil) }
        let others = parts.filter { !$0.starts(with: key) }
        let layout: Exchange.Layout
        switch String(decoding: first.dropFirst(key.count), as: UTF8.self) {
        case "packed": layout = .packed
        case "bridged": layout = .bridged
        case "interchange": layout = .interchange
        default: throw invalid(url, "its layout is not packed, interchange or bridged")
        }
        guard named.count == 1 else { throw invalid(url, "it names a layout twice") }
        let rest = bytes[..<mark] + (others.isEmpty ? [] : [UInt8(ascii: "?")] + others.joined(separator: [UInt8(ascii: "&")]))
        return (String(decoding: rest, as: UTF8.self), layout)
    }

    private static func placeAlone(_ url: String) throws -> Place {
        guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")), colon != url.startIndex else {
            throw invalid(url, "it has no scheme")
        }
        let rest = String(url[url.index(after: colon)...]), scheme = url[..<colon].lowercased()
        if !["file", "memory"].contains(scheme), rest.utf8.contains(UInt8(ascii: "#")) {
            throw invalid(url, URLRefusal.fragment)
        }
        switch scheme {
        case "file": return .folder(try path(rest, of: url))
        case "memory":
            guard !rest.isEmpty else { throw invalid(url, "it names no place") }
            return .memory(rest)
        default:
            let services = RemoteService.linked
            guard let service = services.first(where: { $0.scheme == scheme }) else { throw unknown(url, services) }
            do throws(URLRefusal) { return .service(service.accepts, try service.place(rest)) } catch { throw invalid(url, error.why) }
        }
    }

    private static func unknown(_ url: String, _ services: [RemoteService]) -> StoreError {
        let schemes = (["file", "memory"] + services.filter(\.isListed).map(\.scheme)).map { "\($0):" }.joined(separator: ", ")
        let reason =
            services.isEmpty
            ? " This program has no servers and cloud drives: it was built with LLVS_NETWORK=OFF, or without the trait Network." : ""
        return StoreError(
            .unsupported,
            "The scheme of \"\(shown(url))\" is not built in; \(schemes) are.\(reason) Others go through a transport of the host.")
    }

    /// Returns the path of a URL by RFC 8089: absolute, with an empty authority or localhost, percent-encoded.
    private static func path(_ rest: String, of url: String) throws -> String {
        var encoded = Array(rest.utf8)[...]
        let slashes = Array("//".utf8), local = Array("localhost/".utf8)
        if encoded.starts(with: slashes) {
            encoded = encoded.dropFirst(2)
            if encoded.starts(with: local) { encoded = encoded.dropFirst(local.count - 1) }
        }
        guard !encoded.contains(UInt8(ascii: "?")) else {
            throw invalid(url, "\(URLRefusal.onlyLayout); write %3F for a ? in its path")
        }
        guard encoded.first == UInt8(ascii: "/") else { throw invalid(url, "its path is not absolute; write file:///path") }
        guard let path = PercentCoding.decode(encoded) else { throw invalid(url, "a % in it is not followed by two hexadecimal digits") }
        guard !path.contains(0) else { throw invalid(url, "its path holds a NUL") }
        guard let text = String(validating: path, as: UTF8.self) else { throw invalid(url, "its path is not UTF-8") }
        return text
    }

    /// Returns the URL for messages, without its user, password and query, which may be secrets that do not belong there.
    package static func shown(_ url: String) -> String {
        let bytes = Array(url.utf8)
        let end = bytes.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
        var text = bytes[..<end]
        if let slashes = text.indices.first(where: { text[$0...].starts(with: "//".utf8) }) {
            let start = slashes + 2
            if let at = text[start...].lastIndex(of: UInt8(ascii: "@")), !text[..<slashes].elementsEqual("file:".utf8) {
                text = text[..<start] + Array("…".utf8) + text[at...]
            }
        }
        return String(decoding: text, as: UTF8.self) + (end < bytes.endIndex ? "…" : "")
    }

    private static func invalid(_ url: String, _ why: String) -> StoreError {
        StoreError(.invalidArgument, "\"\(shown(url))\" is not the URL of an exchange: \(why).")
    }

    /// Returns the name under which a coordinator stores the state of the exchange with a URL: its FNV-1a hash, since names must be short.
    package static func name(_ url: String) -> String {
        let hash = url.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
        let digits = String(hash, radix: 16)
        return "url-" + String(repeating: "0", count: max(0, 16 - digits.count)) + digits
    }
}
