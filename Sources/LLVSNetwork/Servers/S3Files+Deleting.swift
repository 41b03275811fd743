/// Deletes objects: many with one request if the service supports that.
extension S3Files {
    /// The most objects in one request.
    static let mostAtOnce = 1_000

    package func delete(_ names: [String], _ check: Check) throws {
        var left = names[...]
        while left.count > 1, deletesMany {
            let some = left.prefix(S3Files.mostAtOnce)
            guard try deleteMany(Array(some), check) else { deletesMany = false; break }
            left = left.dropFirst(some.count)
        }
        try deleteEach(Array(left), check)
    }

    private func deleteEach(_ names: [String], _ check: Check) throws {
        let requests = names.map { HTTPRequest(method: .delete, address: place.address($0), doing: "Deleting") }
        for (request, outcome) in zip(requests, try client.perform(requests, check)) {
            let response = try outcome.get()
            guard response.isSuccess || response.status == 404 else { throw S3Files.error(response, request.what) }
        }
    }

    /// - Returns: false if the service does not support it.
    private func deleteMany(_ names: [String], _ check: Check) throws -> Bool {
        let expat = try library()
        // Quiet: the answer only lists failures.
        let objects = names.map { "<Object><Key>\(S3Files.escaped(place.prefix + $0))</Key></Object>" }.joined()
        let text = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>\(objects)</Delete>"
        let body = Array(text.utf8)
        var request = HTTPRequest(method: .post, address: place.bucketAddress([("delete", "")]), doing: "Deleting files in")
        request.headers = [("Content-Type", "application/xml"), S3Files.checksum(of: body)]
        request.body = .bytes(body)
        // Repeating it is harmless.
        request.repeats = true
        let what = "The result of deleting files in \(description)"
        request.sink = .read { try S3Answer(what, root: "DeleteResult", each: "Error", expat: expat) }
        let response = try client.perform(request, check)
        // Some services support only single deletes, and report that with one of these statuses.
        if [400, 404, 405, 411, 501].contains(response.status), !S3Files.isNoBucket(response) { return false }
        guard response.isSuccess else { throw S3Files.error(response, request.what) }
        // If the list of failures is missing or unreadable, delete one by one, so that each result is known.
        let failures: [[String: String]]
        do { failures = try S3Answer.whole(response).records } catch let error as StoreError where error.code == .transport { return false }
        guard let failure = failures.first(where: { $0["Code"] != "NoSuchKey" }) else { return true }
        func shown(_ member: String) -> String {
            String(String.UnicodeScalarView((failure[member] ?? "").unicodeScalars.prefix(200).filter { $0.value >= 32 }))
        }
        let code = failure["Code"] ?? "", why = shown("Message").isEmpty ? shown("Code") : "\(shown("Code")): \(shown("Message"))"
        let isRefused = code == "AccessDenied"
        throw StoreError(
            isRefused ? .permission : S3Files.isSlowDown(code) ? .busy : .transport,
            "Deleting \(shown("Key")) in \(description) failed: the service says \(why). "
                + (isRefused ? "The key may not do this there: ask the service's operator for that right." : "Try again later."))
    }

    /// Returns a checksum header, without which services refuse a list of deletions. All services support MD5, which libcrypto has unless
    /// it is missing or the system forbids it. Amazon's service also accepts others.
    private static func checksum(of body: [UInt8]) -> (name: String, value: String) {
        func text(_ digest: [UInt8]) -> String { String(decoding: Base64.encode(digest), as: UTF8.self) }
        if let digest = (try? Crypto(for: "a list of what is to be deleted"))?.md5(body) { return ("Content-MD5", text(digest)) }
        return ("x-amz-checksum-sha256", text(body.withUnsafeBytes { Array(SHA256.digest($0)) }))
    }

    static func escaped(_ text: String) -> String {
        var out: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "&"): out += Array("&amp;".utf8)
            case UInt8(ascii: "<"): out += Array("&lt;".utf8)
            case UInt8(ascii: ">"): out += Array("&gt;".utf8)
            // Escape control characters: in XML a carriage return, for example, would become a line feed.
            case 0..<0x20: out += Array("&#\(byte);".utf8)
            default: out.append(byte)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}
