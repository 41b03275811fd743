/// The place of objects: `s3://bucket/prefix?endpoint=https://host&region=eu-west-1&addressing=path`.
package struct S3Location: Sendable {
    package let bucket: String
    /// Empty, or with a slash at its end.
    package let prefix: String
    package let region: String
    /// The address of the service, with its slash.
    package let endpoint: HTTPAddress
    /// Whether the bucket is a part of the host's name, and not of the path.
    private let isVirtual: Bool

    /// - Parameter rest: the part of the URL after "s3:".
    package init(_ rest: String) throws(HTTPAddress.Refusal) {
        // The form of an HTTP address, with the bucket instead of the host.
        let address = try HTTPAddress("https:" + rest)
        guard address.origin.port == 443 else {
            throw HTTPAddress.Refusal(why: "it has a port; give that with the endpoint (?endpoint=https://host:port)")
        }
        let bucket = address.origin.host
        guard (3...63).contains(bucket.utf8.count), !bucket.utf8.contains(UInt8(ascii: "[")), !bucket.utf8.contains(UInt8(ascii: "%"))
        else {
            throw HTTPAddress.Refusal(why: "it names no bucket")
        }
        let decoded = PercentCoding.decode(address.path.utf8.drop { $0 == UInt8(ascii: "/") }).map { String(decoding: $0, as: UTF8.self) }
        guard let decoded, !decoded.utf8.contains(where: { $0 < 0x20 }) else {
            throw HTTPAddress.Refusal(why: "its path is not percent-encoded text")
        }
        // libcurl removes such parts after the request was signed.
        guard !decoded.split(separator: "/").contains(where: { $0 == "." || $0 == ".." }) else {
            throw HTTPAddress.Refusal(why: "its path has a part that is . or ..")
        }
        var options: [String: String] = [:]
        for part in address.query.dropFirst().split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, ["endpoint", "region", "addressing"].contains(pair[0]), let value = PercentCoding.decode(pair[1].utf8)
            else {
                throw HTTPAddress.Refusal(
                    why: "after its question mark only endpoint=, region=, addressing= and layout= are allowed; keys are options")
            }
            options[String(pair[0])] = String(decoding: value, as: UTF8.self)
        }
        let region = options["region"] ?? Self.environment("AWS_REGION") ?? S3Location.environment("AWS_DEFAULT_REGION") ?? "us-east-1"
        guard RemoteName.isComponent(region) else { throw HTTPAddress.Refusal(why: "its region is not valid") }
        var endpoint = try HTTPAddress(options["endpoint"] ?? "https://s3.\(region).amazonaws.com/")
        guard endpoint.keepsSecrets else { throw HTTPAddress.Refusal(why: "its endpoint is not encrypted (https)") }
        guard endpoint.query.isEmpty else { throw HTTPAddress.Refusal(why: "its endpoint has a query") }
        if endpoint.path.utf8.last != UInt8(ascii: "/") { endpoint.path += "/" }
        switch options["addressing"] {
        case "path": isVirtual = false
        case "virtual": isVirtual = true
        case nil: isVirtual = options["endpoint"] == nil && !bucket.utf8.contains(UInt8(ascii: "."))
        default: throw HTTPAddress.Refusal(why: "its addressing is neither path nor virtual")
        }
        self.bucket = bucket
        self.region = region
        self.endpoint = endpoint
        prefix = decoded.isEmpty || decoded.utf8.last == UInt8(ascii: "/") ? decoded : decoded + "/"
    }

    func bucketAddress(_ query: [(String, String)]) -> HTTPAddress {
        var address = endpoint
        if isVirtual { address.origin.host = "\(bucket).\(endpoint.origin.host)" } else { address = endpoint.appending(bucket) }
        address.query = "?" + query.map { "\($0)=\(PercentCoding.encode($1))" }.joined(separator: "&")
        return address
    }
    func address(_ name: String, _ query: [(String, String)] = []) -> HTTPAddress {
        let bucket = bucketAddress(query)
        var address = bucket
        if address.path.utf8.last != UInt8(ascii: "/") { address.path += "/" }
        address = address.appending(prefix + name)
        if !query.isEmpty { address.query = bucket.query }
        return address
    }

    // MARK: Keys

    /// Returns the default credentials: those of the environment, or of the file that Amazon's programs share.
    package static func credentials() -> HTTPCredentials {
        if let key = environment("AWS_ACCESS_KEY_ID"), let secret = environment("AWS_SECRET_ACCESS_KEY") {
            return HTTPCredentials(user: key, password: secret, token: environment("AWS_SESSION_TOKEN"))
        }
        guard let path = environment("AWS_SHARED_CREDENTIALS_FILE") ?? environment("HOME").map({ $0 + "/.aws/credentials" }),
            let bytes = try? FolderFiles.read(DirectoryEntry(path), limit: 1 << 20)
        else { return HTTPCredentials() }
        return credentials(in: String(decoding: bytes, as: UTF8.self), profile: environment("AWS_PROFILE") ?? "default")
    }

    static func credentials(in file: String, profile: String) -> HTTPCredentials {
        var found = HTTPCredentials(), isOurs = false
        for line in file.split(whereSeparator: \.isNewline) {
            let text = trimmed(line)
            if text.utf8.first == UInt8(ascii: "[") { isOurs = text == "[\(profile)]"; continue }
            let pair = text.split(separator: "=", maxSplits: 1)
            guard isOurs, pair.count == 2 else { continue }
            switch trimmed(pair[0]) {
            case "aws_access_key_id": found.user = trimmed(pair[1])
            case "aws_secret_access_key": found.password = trimmed(pair[1])
            case "aws_session_token": found.token = trimmed(pair[1])
            default: break
            }
        }
        return found
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        let isSpace = { (byte: UInt8) in byte <= 0x20 }
        return String(decoding: Array(text.utf8.drop(while: isSpace).reversed().drop(while: isSpace).reversed()), as: UTF8.self)
    }
    private static func environment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
}
