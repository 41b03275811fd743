/// The transports that are named by URL. A new one is one case here.
package enum ExchangeURL {
    private enum Place {
        case folder(String)
        case memory(String)
        case webdav(HTTPAddress)
        case s3(S3Place)
    }

    /// - Throws: `.invalidArgument` for what is no URL of its scheme, `.unsupported` for an unknown scheme.
    package static func transport(
        _ url: String, _ settings: Exchange.URLOptions, apartFrom store: String? = nil
    ) throws -> any ExchangeTransport {
        let place = try place(url)
        try settings.check()
        switch place {
        case .folder(let path):
            var options = FolderTransport.Options()
            options.durability = settings.durability
            options.create = !settings.mustExist
            options.store = store
            return try FolderTransport(path: path, options: options)
        case .memory(let name): return MemoryTransport(name: name)
        case .webdav(let address):
            guard settings.http.credentials.token == nil || settings.http.credentials.user == nil else {
                throw StoreError(.invalidArgument, "Both a user and a token are given for \(address.shown). Give one of them.")
            }
            return RemoteTransport(WebDAVFiles(address, settings: settings.http, mustExist: settings.mustExist))
        case .s3(let place): return RemoteTransport(S3Files(place, settings: settings.http))
        }
    }

    /// Throws what `transport` would, as far as the URL itself is to blame.
    package static func check(_ url: String) throws { _ = try place(url) }

    private static func place(_ url: String) throws -> Place {
        guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")), colon != url.startIndex else {
            throw invalid(url, "it has no scheme")
        }
        let rest = String(url[url.index(after: colon)...])
        switch url[..<colon].lowercased() {
        case "file": return .folder(try path(rest, of: url))
        case "memory":
            guard !rest.isEmpty else { throw invalid(url, "it names no place") }
            return .memory(rest)
        case "https+webdav": return .webdav(try address("https:" + rest, of: url))
        case "http+webdav":
            let address = try address("http:" + rest, of: url)
            guard address.isLoopback else { throw invalid(url, "over a network nothing is sent unencrypted; write https+webdav:") }
            return .webdav(address)
        case "s3":
            do throws(HTTPAddress.Refusal) { return .s3(try S3Place(rest)) } catch { throw invalid(url, error.why) }
        default:
            throw StoreError(
                .unsupported,
                "The scheme of \"\(shown(url))\" is not built in; file:, memory:, https+webdav: and s3: are. "
                    + "Others go through a transport of the host."
            )
        }
    }

    /// RFC 8089: an absolute path, with an empty authority or localhost, percent-encoded.
    private static func path(_ rest: String, of url: String) throws -> String {
        var encoded = Array(rest.utf8)[...]
        let slashes = Array("//".utf8), local = Array("localhost/".utf8)
        if encoded.starts(with: slashes) {
            encoded = encoded.dropFirst(2)
            if encoded.starts(with: local) { encoded = encoded.dropFirst(local.count - 1) }
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
        guard address.query.isEmpty else { throw invalid(url, "a query (?) means nothing there") }
        return address
    }

    /// For messages: a user, a password and a query may be secrets, and somebody may have put them there all the same.
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

    /// Under which a coordinator keeps the state of the exchange with a URL: FNV-1a of it, for names must be short.
    package static func name(_ url: String) -> String {
        let hash = url.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
        let digits = String(hash, radix: 16)
        return "url-" + String(repeating: "0", count: max(0, 16 - digits.count)) + digits
    }
}
