/// Deleting objects: many with one request, where the service knows that.
extension S3Files {
    /// What one request takes.
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

    /// - Returns: false where the service does not know how.
    private func deleteMany(_ names: [String], _ check: Check) throws -> Bool {
        let expat = try library()
        // Quiet: what is deleted is not told, only what is not.
        let objects = names.map { "<Object><Key>\(S3Files.escaped(place.prefix + $0))</Key></Object>" }.joined()
        let text = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>\(objects)</Delete>"
        let body = Array(text.utf8)
        var request = HTTPRequest(method: .post, address: place.bucketAddress([("delete", "")]), doing: "Deleting files in")
        request.headers = [("Content-Type", "application/xml"), S3Files.checksum(of: body)]
        request.body = .bytes(body)
        // Made twice it does what it does once.
        request.repeats = true
        let what = "What became of deleting files in \(description)"
        request.sink = .read { try S3Deletion(what, expat: expat) }
        let response = try client.perform(request, check)
        // Some services know single deletes alone, and say so in one of these ways.
        if [400, 404, 405, 411, 501].contains(response.status), !S3Files.isNoBucket(response) { return false }
        guard response.isSuccess else { throw S3Files.error(response, request.what) }
        guard case .read(let reader) = response.body, let deletion = reader as? S3Deletion else {
            throw StoreError(.internal, "The body of an answer went elsewhere.")
        }
        // No list of failures, or none that can be read: asked for one by one, each says what became of it.
        do { try deletion.finish() } catch let error as StoreError where error.code == .transport { return false }
        guard let failure = deletion.failures.first(where: { $0.code != "NoSuchKey" }) else { return true }
        func shown(_ text: String) -> String { String(String.UnicodeScalarView(text.unicodeScalars.prefix(200).filter { $0.value >= 32 })) }
        let why = failure.message.isEmpty ? shown(failure.code) : "\(shown(failure.code)): \(shown(failure.message))"
        let isRefused = failure.code == "AccessDenied"
        throw StoreError(
            isRefused ? .permission : S3Files.isSlowDown(failure.code) ? .busy : .transport,
            "Deleting \(shown(failure.key)) in \(description) failed: the service says \(why). "
                + (isRefused ? "The key may not do this there: ask whoever runs the service for that right." : "Try again later."))
    }

    /// A list of what is to be deleted is not taken without one. All services know MD5, which libcrypto has unless it is missing, or the
    /// system forbids it; Amazon's takes others in its place.
    private static func checksum(of body: [UInt8]) -> (name: String, value: String) {
        func text(_ digest: [UInt8]) -> String { String(decoding: Base64.encode(digest), as: UTF8.self) }
        if let digest = (try? Crypto(for: "a list of what is to be deleted"))?.md5(body) { return ("Content-MD5", text(digest)) }
        return ("x-amz-checksum-sha256", text(body.withUnsafeBytes { Array(SHA256.digest($0)) }))
    }

    private static func escaped(_ text: String) -> String {
        var out: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "&"): out += Array("&amp;".utf8)
            case UInt8(ascii: "<"): out += Array("&lt;".utf8)
            case UInt8(ascii: ">"): out += Array("&gt;".utf8)
            // A carriage return, say, would become a line feed.
            case 0..<0x20: out += Array("&#\(byte);".utf8)
            default: out.append(byte)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}

/// What a bucket answers to DeleteObjects: the objects that it did not delete.
final class S3Deletion: XMLReader.Handler, HTTPBodyReader {
    private static let mostText = 16 << 10, mostFailures = 1_000
    /// One that is there still.
    struct Failure { var key = "", code = "", message = "" }

    private let what: String
    private var reader: XMLReader?
    private var depth = 0
    private var text: [UInt8]?
    private var failure: Failure?
    private(set) var failures: [Failure] = []

    init(_ what: String, expat: Expat) throws {
        self.what = what
        reader = try XMLReader(what, expat: expat, handler: self)
    }

    func take(_ bytes: UnsafeRawBufferPointer) throws { try reader?.take(bytes) }
    /// The document must be whole.
    func finish() throws {
        try reader?.finish()
        reader = nil
    }

    func begin(_ element: String) throws {
        let name = S3Listing.local(element)
        if depth == 0, name != "DeleteResult" {
            throw StoreError(
                .transport,
                "\(what) cannot be read: it begins with \"\(name.prefix(64))\". Check that the address is that of an S3 service.")
        }
        depth += 1
        if depth == 2, name == "Error" { failure = Failure() }
        if depth == 3, failure != nil { text = [] }
    }

    func text(_ bytes: UnsafeRawBufferPointer) throws {
        guard let count = text?.count else { return }
        guard bytes.count + count <= S3Deletion.mostText else {
            throw StoreError(.transport, "\(what) cannot be read: a text in it has more than \(S3Deletion.mostText) bytes. Try again.")
        }
        text?.append(contentsOf: bytes)
    }

    func end(_ element: String) throws {
        let said = String(decoding: text ?? [], as: UTF8.self)
        switch (depth, S3Listing.local(element)) {
        case (3, "Key"): failure?.key = said
        case (3, "Code"): failure?.code = said
        case (3, "Message"): failure?.message = said
        case (2, "Error"):
            if let failure, failures.count < S3Deletion.mostFailures { failures.append(failure) }
            failure = nil
        default: break
        }
        text = nil
        depth -= 1
    }
}
