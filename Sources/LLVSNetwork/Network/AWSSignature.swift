/// Signs requests for services to which the credentials themselves are not sent.
package protocol RequestSignature: Sendable {
    /// Returns the headers to add to a request.
    /// - Parameter now: seconds since 1970.
    func headers(for request: HTTPRequest, to address: HTTPAddress, _ credentials: HTTPCredentials, now: Int64) throws -> [(
        name: String, value: String
    )]
}

/// Signs requests as Amazon's services require (Signature Version 4): the secret key is never sent.
package struct AWSSignature: RequestSignature {
    var region: String
    var service = "s3"

    package func headers(for request: HTTPRequest, to address: HTTPAddress, _ credentials: HTTPCredentials, now: Int64) throws -> [(
        name: String, value: String
    )] {
        let time = AWSSignature.time(now), digest = try AWSSignature.digest(request.body)
        var headers = request.headers + [("x-amz-content-sha256", digest), ("x-amz-date", time)]
        if let token = credentials.token { headers.append(("x-amz-security-token", token)) }
        let signed = (headers + [("host", address.authority)]).map { (name: $0.name.lowercased(), value: $0.value) }.sorted {
            $0.name < $1.name
        }
        let names = signed.map(\.name).joined(separator: ";")
        let canonical = [
            request.method.rawValue, address.path, AWSSignature.canonicalQuery(address.query),
            signed.map { "\($0.name):\($0.value)\n" }.joined(), names, digest,
        ].joined(separator: "\n")
        let scope = "\(time.prefix(8))/\(region)/\(service)/aws4_request"
        let text = "AWS4-HMAC-SHA256\n\(time)\n\(scope)\n\(Hex.text(of: AWSSignature.sha256(Array(canonical.utf8))))"
        var key = Array("AWS4\(credentials.password ?? "")".utf8)
        for part in [String(time.prefix(8)), region, service, "aws4_request", text] { key = HMAC.of(Array(part.utf8), key: key) }
        let authorization =
            "AWS4-HMAC-SHA256 Credential=\(credentials.user ?? "")/\(scope), SignedHeaders=\(names), Signature=\(Hex.text(of: key))"
        return Array(headers.dropFirst(request.headers.count)) + [("Authorization", authorization)]
    }

    /// Returns encoded parameters in canonical form: sorted, each with its "=".
    private static func canonicalQuery(_ query: String) -> String {
        query.dropFirst().split(separator: "&").map { $0.contains("=") ? String($0) : "\($0)=" }.sorted {
            Bytes.compare(Array($0.utf8), Array($1.utf8)) < 0
        }.joined(separator: "&")
    }

    /// Returns a time such as "20130524T000000Z".
    package static func time(_ now: Int64) -> String {
        var seconds = time_t(now), parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ value: Int32, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        return digits(parts.tm_year + 1900, 4) + digits(parts.tm_mon + 1, 2) + digits(parts.tm_mday, 2) + "T"
            + digits(parts.tm_hour, 2) + digits(parts.tm_min, 2) + digits(parts.tm_sec, 2) + "Z"
    }

    private static func digest(_ body: HTTPRequest.Body) throws -> String {
        var digest = SHA256()
        switch body {
        case .none: break
        case .bytes(let bytes): digest.update(bytes)
        case .file(let file, let start, let size):
            var piece = [UInt8](repeating: 0, count: 256 << 10), at = 0
            while at < size {
                let got = try piece.withUnsafeMutableBytes { try file.read(into: $0, at: start + at) }
                if got == 0 { break }
                digest.update(Array(piece.prefix(min(got, size - at))))
                at += got
            }
        }
        return Hex.text(of: digest.finish())
    }

    private static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var digest = SHA256()
        digest.update(bytes)
        return digest.finish()
    }
}
