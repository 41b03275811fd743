import LLVS

/// The transports that are named by URL. A new one is one case here.
enum ExchangeURL {
    private enum Place {
        case folder(String)
        case memory(String)
    }

    /// - Throws: `.invalidArgument` for what is no URL of its scheme, `.unsupported` for an unknown scheme.
    static func transport(_ url: String, _ durability: Durability, mustExist: Bool = false, apartFrom store: String? = nil) throws -> any ExchangeTransport {
        switch try place(url) {
        case .folder(let path):
            var options = FolderTransport.Options()
            options.durability = durability
            options.create = !mustExist
            options.store = store
            return try FolderTransport(path: path, options: options)
        case .memory(let name): return MemoryTransport(name: name)
        }
    }

    /// Throws what `transport` would, as far as the URL itself is to blame.
    static func check(_ url: String) throws { _ = try place(url) }

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
        default:
            throw StoreError(.unsupported, "The scheme of \"\(url)\" is not built in; file: and memory: are. Others go through a transport of the host.")
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
        var path: [UInt8] = []
        var i = encoded.startIndex
        while i < encoded.endIndex {
            if encoded[i] == UInt8(ascii: "%") {
                guard encoded.endIndex - i > 2, let high = hex(encoded[i + 1]), let low = hex(encoded[i + 2]) else {
                    throw invalid(url, "a % in it is not followed by two hexadecimal digits")
                }
                path.append(high << 4 | low)
                i += 3
            } else {
                path.append(encoded[i])
                i += 1
            }
        }
        guard !path.contains(0) else { throw invalid(url, "its path holds a NUL") }
        guard let text = String(validating: path, as: UTF8.self) else { throw invalid(url, "its path is not UTF-8") }
        return text
    }

    private static func hex(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    private static func invalid(_ url: String, _ why: String) -> StoreError {
        StoreError(.invalidArgument, "\"\(url)\" is not the URL of an exchange: \(why).")
    }

    /// Under which a coordinator keeps the state of the exchange with a URL: FNV-1a of it, for names must be short.
    static func name(_ url: String) -> String {
        let hash = url.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
        let digits = String(hash, radix: 16)
        return "url-" + String(repeating: "0", count: max(0, 16 - digits.count)) + digits
    }
}
