/// Uploads large objects part by part. An interrupted upload is resumed with the missing parts. The object appears as a whole.
extension S3Files {
    /// The largest object that is sent in one request.
    static let wholeSize = 10 << 20
    /// Returns the size of parts. Services require at least 5 MiB, and at most 10,000 parts.
    private static func partSize(_ size: Int) -> Int { max(8 << 20, (((size / 9_000) >> 20) + 1) << 20) }
    /// Seconds after which an unfinished upload is aborted.
    private static let abandoned: Int64 = 7 * 86_400

    /// - Returns: nil if the service does not support parts.
    func putLarge(_ file: RemoteUpload, _ check: Check) throws -> RemotePublished? {
        var kept = file.session?.kept
        // The object may be ours: an earlier process may have ended before it received the answer.
        if let there = try there(file, check) { return there }
        let body = try HTTPRequest.Body(file.data, check)
        for _ in 0..<3 {
            let goesOn = kept != nil
            guard let upload = try kept ?? begin(file.name, check) else { return nil }
            kept = nil
            if !goesOn { file.session?.keep(upload) }
            if let published = try send(file, body, to: upload, goesOn: goesOn, check) { return published }
        }
        var error = StoreError(
            .transport,
            "Writing \(file.name) in \(description) failed: the service loses the upload again and again. Exchange again later.")
        error.httpStatus = 404
        throw error
    }

    /// Returns, for an object that must not be replaced, whether it has the same bytes. Nil if there is none.
    private func there(_ file: RemoteUpload, _ check: Check) throws -> RemotePublished? {
        guard !file.replaces else { return nil }
        let request = HTTPRequest(method: .head, address: place.address(file.name), doing: "Examining")
        let response = try client.perform(request, check)
        guard response.status < 500, response.status != 429 else { throw S3Files.error(response, request.what) }
        guard response.isSuccess else { return nil }
        guard response.length ?? file.data.size == file.data.size else { return .exists }
        var ours = SHA256()
        try file.data.forEachPiece { piece in
            try check()
            ours.update(piece)
        }
        let theirs = try read([RemoteRead(name: file.name, limit: file.data.size + 1)], check).first
        return try theirs?.sha256(check) == Array(ours.finish()) ? .published : .exists
    }

    private func ask(
        _ method: HTTPRequest.Method, _ address: HTTPAddress, _ root: String, each: String = "", _ check: Check
    ) throws -> HTTPResponse {
        let expat = try library(), what = "An answer of \(description)"
        var request = HTTPRequest(method: method, address: address, doing: "Writing")
        request.repeats = true
        request.isLong = true
        request.sink = .read { try S3Answer(what, root: root, each: each, expat: expat) }
        return try client.perform(request, check)
    }

    /// Begins an upload and returns its id.
    private func begin(_ name: String, _ check: Check) throws -> String? {
        abortOld(check)
        let response = try ask(.post, place.address(name, [("uploads", "")]), "InitiateMultipartUploadResult", check)
        if [400, 404, 405, 411, 501].contains(response.status), !S3Files.isNoBucket(response) { return nil }
        guard response.isSuccess else { throw S3Files.error(response, "Writing \(name) in \(description)") }
        let id = try S3Answer.whole(response).fields["UploadId"] ?? ""
        guard !id.isEmpty, id.utf8.count <= 2_048 else {
            throw StoreError(.transport, "Writing \(name) in \(description) failed: the answer names no upload. Check the address.")
        }
        return id
    }

    /// Sends parts. Returns nil if the service no longer knows the upload.
    private func send(
        _ file: RemoteUpload, _ body: HTTPRequest.Body, to id: String, goesOn: Bool, _ check: Check
    ) throws -> RemotePublished? {
        let size = file.data.size, partSize = S3Files.partSize(size)
        let starts = Array(stride(from: 0, to: size, by: partSize))
        var tags: [Int: String] = [:]
        if goesOn {
            guard let there = try parts(file.name, id, size, partSize, check) else { return nil }
            tags = there
        }
        let left = starts.indices.filter { tags[$0] == nil }
        let requests = left.map { i in
            let query = [("partNumber", "\(i + 1)"), ("uploadId", id)]
            var put = HTTPRequest(method: .put, address: place.address(file.name, query), doing: "Writing")
            put.body = body.part(from: starts[i], size: min(partSize, size - starts[i]))
            return put
        }
        for (i, (request, outcome)) in zip(left, zip(requests, try client.perform(requests, check))) {
            let response = try outcome.get()
            if response.status == 404, !S3Files.isNoBucket(response) { return nil }
            guard response.isSuccess, let tag = response.header("etag") else { throw S3Files.error(response, request.what) }
            tags[i] = tag
        }
        return try complete(file, id, starts.indices.map { tags[$0] ?? "" }, check)
    }

    /// Returns the tags of the stored parts, by their numbers from 0; nil if the upload is unknown.
    private func parts(_ name: String, _ id: String, _ size: Int, _ partSize: Int, _ check: Check) throws -> [Int: String]? {
        var tags: [Int: String] = [:], marker = 0
        while true {
            let query = [("part-number-marker", "\(marker)"), ("uploadId", id)]
            let response = try ask(.get, place.address(name, query), "ListParts", each: "Part", check)
            // Without the right to list parts, the upload starts over.
            guard response.isSuccess else {
                guard response.status < 500, response.status != 429, !S3Files.isNoBucket(response) else {
                    throw S3Files.error(response, "Examining an upload in \(description)")
                }
                return nil
            }
            let answer = try S3Answer.whole(response)
            for part in answer.records {
                guard let number = part["PartNumber"].flatMap({ Int($0) }), number > 0, number <= (size - 1) / partSize + 1,
                    let tag = part["ETag"], part["Size"] == "\(min(partSize, size - (number - 1) * partSize))"
                else { continue }
                tags[number - 1] = tag
            }
            guard answer.fields["IsTruncated"] == "true", let next = answer.fields["NextPartNumberMarker"].flatMap({ Int($0) }),
                next > marker
            else { return tags }
            marker = next
        }
    }

    private func complete(_ file: RemoteUpload, _ id: String, _ tags: [String], _ check: Check) throws -> RemotePublished? {
        let parts = tags.enumerated().map { "<Part><PartNumber>\($0 + 1)</PartNumber><ETag>\(S3Files.escaped($1))</ETag></Part>" }.joined()
        let namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
        var request = HTTPRequest(method: .post, address: place.address(file.name, [("uploadId", id)]), doing: "Writing")
        request.headers = [("Content-Type", "application/xml")]
        if !file.replaces, capabilities.isExclusive { request.headers.append(("If-None-Match", "*")) }
        request.body = .bytes(Array("<CompleteMultipartUpload xmlns=\"\(namespace)\">\(parts)</CompleteMultipartUpload>".utf8))
        var last: Int32 = 0
        for turn in 1...3 {
            // Check right before each request, since not all services respect the header.
            if let there = try there(file, check) {
                abort(file.name, id, check)
                return there
            }
            let isGuarded = file.replaces || request.headers.count > 1
            request.repeats = isGuarded
            let response = try client.perform(request, check)
            last = Int32(clamping: response.status)
            var body: [UInt8] = []
            if case .bytes(let bytes) = response.body { body = bytes }
            let code = S3Files.code(body)
            switch response.status {
            case 200...299 where code == nil:
                try requireResult(body)
                return .published
            // The request may fail after the status was sent.
            case 200...299 where code != "NoSuchUpload": continue
            case 501 where request.headers.count > 1: request.headers.removeLast()
            case 412, 409:
                abort(file.name, id, check)
                return try there(file, check) ?? .exists
            case 200...299,
                404 where !S3Files.isNoBucket(response):
                // An earlier request whose answer was lost made the object, or another device.
                return try there(file, check)
            case 500...599 where !isGuarded: try client.pause(turn, check)
            default: throw S3Files.error(response, request.what)
            }
        }
        var error = StoreError(
            .transport, "\(request.what) failed: the service does not combine the parts. Exchange again later.")
        error.httpStatus = last
        throw error
    }

    /// - Throws: an error if the answer does not confirm the object: a proxy may answer with a page, or with nothing.
    private func requireResult(_ body: [UInt8]) throws {
        let text = Array(body.drop { $0 <= 0x20 })
        let answer = try S3Answer("An answer of \(description)", root: "CompleteMultipartUploadResult", expat: library())
        try text.withUnsafeBytes { try answer.take($0) }
        try answer.finish()
    }

    // MARK: Abandoned uploads

    private func abort(_ name: String, _ id: String, _ check: Check) {
        _ = try? client.perform(
            HTTPRequest(method: .delete, address: place.address(name, [("uploadId", id)]), doing: "Ending an upload to"), check)
    }

    /// Returns whether only exchanges use such a name: other programs may have objects below the same prefix.
    private static func isOurs(_ name: String) -> Bool {
        let (directory, last) = RemoteName.split(name)
        return ["versions", "changes"].contains(directory) ? VersionID(validating: last) != nil : PackName(name) != nil
    }

    /// Aborts old uploads of exchanges, since their parts take room. Best effort.
    private func abortOld(_ check: Check) {
        let query = [("prefix", place.prefix), ("uploads", "")]
        guard let response = try? ask(.get, place.bucketAddress(query), "ListMultipartUploadsResult", each: "Upload", check),
            response.isSuccess, let date = response.date, let uploads = try? S3Answer.whole(response).records
        else { return }
        let before = UTCDate.text(max(0, date - S3Files.abandoned))
        for upload in uploads.prefix(100) {
            guard let key = upload["Key"], key.utf8.starts(with: place.prefix.utf8), let id = upload["UploadId"],
                !id.isEmpty, let begun = upload["Initiated"], !begun.isEmpty, begun < before,
                case let name = String(decoding: key.utf8.dropFirst(place.prefix.utf8.count), as: UTF8.self), S3Files.isOurs(name)
            else { continue }
            abort(name, id, check)
        }
    }
}
