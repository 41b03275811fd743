/// An address for HTTP or SFTP: `scheme://host[:port]/path[?query]`.
///
/// It never holds credentials: an address with a user before the host is refused.
package struct HTTPAddress: Sendable, Hashable {
    /// The parts that must be equal for credentials to be sent to a redirected address.
    package struct Origin: Sendable, Hashable {
        /// "http", "https" or "sftp".
        package var scheme: String
        /// In lower case; an IPv6 address with its brackets.
        package var host: String
        package var port: UInt16
    }
    package var origin: Origin
    /// The path, percent-encoded, with its leading slash.
    package var path: String
    /// The query with its question mark; empty if there is none.
    package var query: String

    package typealias Refusal = URLRefusal

    /// The default ports of the schemes.
    private static let ports: [String: UInt16] = ["http": 80, "https": 443, "sftp": 22]

    /// - Parameters:
    ///   - text: the address. Its scheme may be in any case.
    ///   - schemes: the allowed schemes, in lower case.
    package init(_ text: String, schemes: [String] = ["http", "https"]) throws(Refusal) {
        let bytes = Array(text.utf8)
        guard bytes.count <= 8_192 else { throw Refusal(why: "it has more than 8192 bytes") }
        // Control characters and spaces would end the line of a request.
        guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw Refusal(why: "it holds a space, a control character or one beyond ASCII; percent-encode them")
        }
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { throw Refusal(why: "it has no scheme") }
        let scheme = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
        guard schemes.contains(scheme), let usual = HTTPAddress.ports[scheme] else {
            throw Refusal(why: "its scheme is not \(schemes.joined(separator: " or "))")
        }
        let rest = bytes[(colon + 1)...]
        guard rest.starts(with: "//".utf8) else { throw Refusal(why: "two slashes are missing after its scheme") }
        let start = rest.startIndex + 2
        let end = bytes[start...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
        let authority = bytes[start..<end]
        guard !authority.contains(UInt8(ascii: "@")) else {
            throw Refusal(why: "it holds a user or a password, and addresses are written to logs; give both as options (user, password)")
        }
        let hostEnd: Int
        if authority.first == UInt8(ascii: "[") {
            guard let bracket = authority.firstIndex(of: UInt8(ascii: "]")) else { throw Refusal(why: "a ] is missing in its host") }
            hostEnd = bracket + 1
        } else {
            hostEnd = authority.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
        }
        let host = authority[..<hostEnd]
        guard HTTPAddress.isHost(host) else { throw Refusal(why: "its host is not valid") }
        var port = usual
        if hostEnd < authority.endIndex {
            let digits = String(decoding: authority[(hostEnd + 1)...], as: UTF8.self)
            guard authority[hostEnd] == UInt8(ascii: ":"), digits.utf8.allSatisfy(HTTPAddress.isDigit),
                let given = UInt16(digits), given > 0
            else {
                throw Refusal(why: "its port is not a number from 1 to 65535")
            }
            port = given
        }
        origin = Origin(scheme: scheme, host: String(decoding: host, as: UTF8.self).lowercased(), port: port)
        let beyond = bytes[end...], fragment = beyond.firstIndex(of: UInt8(ascii: "#")) ?? beyond.endIndex
        let question = beyond[..<fragment].firstIndex(of: UInt8(ascii: "?")) ?? fragment
        let path = String(decoding: beyond[..<question], as: UTF8.self)
        self.path = path.isEmpty ? "/" : path
        query = String(decoding: beyond[question..<fragment], as: UTF8.self)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// Returns whether bytes are a valid host: a name, an IPv4 address, or an IPv6 address in brackets with an optional zone. A name may
    /// not have percent-encoding or empty labels. A dot at its end makes it absolute.
    private static func isHost(_ host: ArraySlice<UInt8>) -> Bool {
        guard let first = host.first, host.count <= 255 else { return false }
        guard first == UInt8(ascii: "[") else {
            let labels = (host.last == UInt8(ascii: ".") ? host.dropLast() : host).split(
                separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            return labels.allSatisfy { !$0.isEmpty && $0.allSatisfy(isOfLabel) }
        }
        let inner = host.dropFirst().dropLast()
        let zone = inner.firstIndex(of: UInt8(ascii: "%")) ?? inner.endIndex
        let number = inner[..<zone]
        return number.contains(UInt8(ascii: ":"))
            && number.allSatisfy { isDigit($0) || (0x61...0x66).contains($0 | 0x20) || ":.".utf8.contains($0) }
            && inner[zone...].dropFirst().allSatisfy { isOfLabel($0) || ".%~".utf8.contains($0) }
    }
    private static func isOfLabel(_ byte: UInt8) -> Bool {
        isDigit(byte) || (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    /// The value of the header "Host": the host, and the port if it is not the default of the scheme.
    package var authority: String {
        origin.port == HTTPAddress.ports[origin.scheme] ? origin.host : "\(origin.host):\(origin.port)"
    }
    /// The whole address, for libcurl.
    package var text: String { shown + query }
    /// The address without its query, for messages: services put signatures into the query.
    package var shown: String { "\(origin.scheme)://\(authority)\(path)" }
    /// The address without its path, for messages about addresses whose path is a secret.
    package var shownServer: String { "\(origin.scheme)://\(authority)/" }

    /// The normalized address, which leads to the same place (RFC 3986, section 6.2).
    ///
    /// In the path, only the characters that need it are encoded. Empty parts and `.` are removed, `..` is resolved, and a slash is
    /// appended. In the host, a dot at the end is removed.
    package var usual: HTTPAddress {
        var usual = self
        if usual.origin.host.utf8.last == UInt8(ascii: "."), usual.origin.host.utf8.count > 1 { usual.origin.host.removeLast() }
        var parts: [String] = []
        for part in path.utf8.split(separator: UInt8(ascii: "/")) {
            guard let name = PercentCoding.decode(part) else { return usual }
            switch name {
            case Array(".".utf8): break
            case Array("..".utf8): _ = parts.popLast()
            default: parts.append(PercentCoding.encode(bytes: name))
            }
        }
        usual.path = "/" + parts.map { $0 + "/" }.joined()
        return usual
    }

    /// Returns the address of an item below a path that ends with a slash. Encodes the components of its name.
    package func appending(_ name: String) -> HTTPAddress {
        var below = self
        below.path += PercentCoding.encode(name, keeping: "/")
        below.query = ""
        return below
    }

    /// Returns the address that a redirection leads to. The location is an absolute address, or relative to this one (RFC 3986, section 5).
    /// The server resolves `.` and `..`.
    package func resolving(_ location: String) throws(Refusal) -> HTTPAddress {
        let bytes = Array(location.utf8)
        let base = "\(origin.scheme)://\(origin.host):\(origin.port)"
        if bytes.starts(with: "//".utf8) { return try HTTPAddress(origin.scheme + ":" + location) }
        if bytes.first == UInt8(ascii: "/") { return try HTTPAddress(base + location) }
        let end = bytes.firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
        if bytes[..<end].contains(UInt8(ascii: ":")) { return try HTTPAddress(location) }
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.utf8.startIndex
        let folder = String(decoding: path.utf8.prefix(through: slash), as: UTF8.self)
        return try HTTPAddress(base + (bytes.first == UInt8(ascii: "?") ? path : folder) + location)
    }

    /// Returns whether the host is this machine. An IPv4 address counts only in its usual form: some programs read a number that begins
    /// with 0 as octal, and connect to another machine.
    package var isLoopback: Bool {
        let host = origin.host
        if host == "localhost" || host == "[::1]" { return true }
        let numbers = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return numbers.count == 4 && numbers.first.map { $0.elementsEqual("127".utf8) } ?? false
            && numbers.allSatisfy { digits in
                let isUsual = !digits.isEmpty && digits.allSatisfy(HTTPAddress.isDigit) && (digits.count == 1 || digits.first != 0x30)
                return isUsual && UInt8(String(decoding: digits, as: UTF8.self)) != nil
            }
    }
    /// Returns whether credentials may be sent to the address.
    package var keepsSecrets: Bool { origin.scheme == "https" || isLoopback }
}
