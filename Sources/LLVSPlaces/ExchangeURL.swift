/// The transports that are named by URL. A new one is one case here.
package enum ExchangeURL {
    private enum Place {
        case folder(String)
        case memory(String)
        case webdav(HTTPAddress)
        case s3(S3Location)
        case sftp(SFTPFiles.Place)
        case cloud(CloudFolder, CloudService)
        case cloudKit(CloudKitPlace)
    }

    /// - Throws: `.invalidArgument` if it is not a URL of its scheme, `.unsupported` for an unknown scheme.
    package static func transport(
        _ url: String, _ settings: Exchange.URLOptions, apartFrom store: String? = nil
    ) throws -> any ExchangeTransport {
        let (place, named) = try place(url)
        try settings.check()
        let layout = named ?? settings.layout
        guard settings.keeper == nil || isCloud(place) else {
            let what = settings.tokenFile == nil ? "A callback for tokens" : "A token_file"
            throw StoreError(.invalidArgument, "\(what) is for cloud drives; \"\(shown(url))\" is not one. Leave it out.")
        }
        if settings.keyFile != nil || settings.knownHosts != nil {
            guard case .sftp = place else {
                throw StoreError(
                    .invalidArgument, "A key_file or known_hosts is for sftp:; \"\(shown(url))\" is not one. Leave it out.")
            }
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
        case .webdav, .s3, .sftp, .cloud, .cloudKit: return transport(try server(place, url, settings), layout, keys, settings)
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
        case .webdav, .s3, .sftp, .cloud, .cloudKit: return try server(place, url, settings)
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

    private static func server(_ place: Place, _ url: String, _ settings: Exchange.URLOptions) throws -> any RemoteFiles {
        switch place {
        case .folder, .memory: throw StoreError(.internal, "\"\(shown(url))\" is no server.")
        case .webdav(let address):
            guard settings.http.credentials.token == nil || settings.http.credentials.user == nil else {
                throw StoreError(.invalidArgument, "Both a user and a token are given for \(address.shown). Give one of them.")
            }
            return WebDAVFiles(address, settings: settings.http, mustExist: settings.mustExist)
        case .s3(let place): return S3Files(place, settings: settings.http)
        case .sftp(let place):
            let hasUser = settings.user != nil || settings.askForCredentials != nil
            guard hasUser, settings.token == nil else {
                throw StoreError(
                    .invalidArgument,
                    "\"\(shown(url))\" accepts a user, and a key_file, a password or an ssh-agent; no token. Give the option user.")
            }
            return SFTPFiles(place, settings: settings.http, mustExist: settings.mustExist)
        case .cloud(let place, let service):
            try checkCloud(settings, place)
            return service.open(place, settings.keeper, settings.http, settings.mustExist)
        case .cloudKit(let place):
            guard let tokens = settings.keeper, settings.http.credentials.isEmpty, settings.http.askForCredentials == nil else {
                throw StoreError(
                    .invalidArgument,
                    "Access to \(place.description) is by keys or tokens. Give token_file or tokens, and no other credentials.")
            }
            return CloudKitFiles(place, tokens: tokens, settings: settings.http, mustExist: settings.mustExist)
        }
    }

    private static func isCloud(_ place: Place) -> Bool {
        switch place {
        case .cloud, .cloudKit: true
        case .folder, .memory, .webdav, .s3, .sftp: false
        }
    }

    /// Checks the credentials for a cloud drive, which accepts only tokens, from one source.
    private static func checkCloud(_ settings: Exchange.URLOptions, _ place: CloudFolder) throws {
        let http = settings.http
        guard http.credentials.user == nil, http.credentials.password == nil else {
            throw StoreError(
                .invalidArgument,
                "A user or a password is given for \(place.description), which accepts tokens only. "
                    + "Give a token_file, tokens, a token, or credentials."
            )
        }
        guard settings.keeper == nil || (http.credentials.isEmpty && http.askForCredentials == nil) else {
            throw StoreError(
                .invalidArgument,
                "Both tokens to be renewed and a token, or credentials, are given for \(place.description). Give one of them.")
        }
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

    /// Refuses parts of a path that are `.` or `..`: libcurl removes them from addresses, but not from headers that name a path.
    private static func withoutDots(_ address: HTTPAddress, _ url: String) throws -> HTTPAddress {
        let parts = (PercentCoding.decode(address.path.utf8) ?? []).split(separator: UInt8(ascii: "/"))
        guard !parts.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) else {
            throw invalid(url, "its path has a part that is . or ..")
        }
        return address
    }

    private static func placeAlone(_ url: String) throws -> Place {
        guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")), colon != url.startIndex else {
            throw invalid(url, "it has no scheme")
        }
        let rest = String(url[url.index(after: colon)...]), scheme = url[..<colon].lowercased()
        if !["file", "memory"].contains(scheme), rest.utf8.contains(UInt8(ascii: "#")) {
            throw invalid(url, HTTPAddress.Refusal.fragment)
        }
        switch scheme {
        case "file": return .folder(try path(rest, of: url))
        case "memory":
            guard !rest.isEmpty else { throw invalid(url, "it names no place") }
            return .memory(rest)
        case "https+webdav": return .webdav(try withoutDots(address("https:" + rest, of: url), url))
        case "http+webdav":
            let address = try address("http:" + rest, of: url)
            guard address.isLoopback else { throw invalid(url, "over a network nothing is sent unencrypted; write https+webdav:") }
            return .webdav(try withoutDots(address, url))
        case "s3":
            do throws(HTTPAddress.Refusal) { return .s3(try S3Location(rest)) } catch { throw invalid(url, error.why) }
        case "sftp":
            do throws(HTTPAddress.Refusal) { return .sftp(try SFTPFiles.Place(rest)) } catch { throw invalid(url, error.why) }
        case CloudKitPlace.scheme:
            do throws(HTTPAddress.Refusal) { return .cloudKit(try CloudKitPlace(rest)) } catch { throw invalid(url, error.why) }
        case let scheme:
            if let service = CloudService.all.first(where: { $0.about.scheme == scheme }) {
                do throws(HTTPAddress.Refusal) { return .cloud(try CloudFolder(rest, service.about), service) } catch {
                    throw invalid(url, error.why)
                }
            }
            let drives = CloudService.all.map { "\($0.about.scheme):" }.joined(separator: ", ")
            throw StoreError(
                .unsupported,
                "The scheme of \"\(shown(url))\" is not built in; file:, memory:, https+webdav:, s3:, sftp:, \(drives), cloudkit: are. "
                    + "Others go through a transport of the host."
            )
        }
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
            throw invalid(url, "\(HTTPAddress.Refusal.onlyLayout); write %3F for a ? in its path")
        }
        guard encoded.first == UInt8(ascii: "/") else { throw invalid(url, "its path is not absolute; write file:///path") }
        guard let path = PercentCoding.decode(encoded) else { throw invalid(url, "a % in it is not followed by two hexadecimal digits") }
        guard !path.contains(0) else { throw invalid(url, "its path holds a NUL") }
        guard let text = String(validating: path, as: UTF8.self) else { throw invalid(url, "its path is not UTF-8") }
        return text
    }

    private static func address(_ text: String, of url: String) throws -> HTTPAddress {
        let address: HTTPAddress
        do throws(HTTPAddress.Refusal) { address = try HTTPAddress(text) } catch { throw invalid(url, error.why) }
        guard address.query.isEmpty else { throw invalid(url, HTTPAddress.Refusal.onlyLayout) }
        return address
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
