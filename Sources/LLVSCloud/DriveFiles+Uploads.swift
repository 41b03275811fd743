// Publishing: small files with their names in one request, large ones in sessions.

extension DriveFiles {
    package func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        var published: [RemotePublished?] = files.map { _ in nil }, trouble = ServiceTrouble()
        for isAnew in [false, true] {
            let left = files.indices.filter { published[$0] == nil }
            if left.isEmpty { break }
            if isAnew { forget() }
            for (i, outcome) in zip(left, try put(left.map { files[$0] }, isAnew: isAnew, &trouble, check)) { published[i] = outcome }
        }
        try trouble.end(of: files.count) { try look(files.first?.name, check) }
        return try account.published(published)
    }

    /// Uploads files. Nil for a file whose folder is gone.
    private func put(
        _ files: [RemoteUpload], isAnew: Bool, _ trouble: inout ServiceTrouble, _ check: Check
    ) throws -> [RemotePublished?] {
        var folders: [String: String] = [:]
        for directory in Set(files.map { RemoteName.split($0.name).directory }) {
            folders[directory] = try folder(directory, check).first ?? make(directory, check).first
        }
        let replaced = files.indices.filter { files[$0].replaces }
        var old: [Int: String] = [:]
        for (i, ids) in zip(replaced, try ids(replaced.map { files[$0].name }, isAnew: isAnew, check)) { old[i] = ids.first }
        var new = try newIDs(files.count - old.count, check)[...]

        var small: [(index: Int, upload: CloudUpload)] = [], outcomes: [RemotePublished?] = files.map { _ in nil }
        for i in files.indices {
            let parent = folders[RemoteName.split(files[i].name).directory] ?? top
            // A session belongs to the id and folder for which it was begun.
            let kept = files[i].session?.kept.flatMap(DriveFiles.session)
            let begun = kept.flatMap { $0.isNew && $0.parent == parent ? $0.id : nil }
            guard let id = old[i] ?? begun ?? new.popFirst() else {
                throw StoreError(.internal, "There are too few ids for what is written.")
            }
            var upload = try CloudUpload(id: id, name: files[i].name, isNew: old[i] == nil, parent: parent, files[i].data, check)
            upload.session = files[i].session
            if upload.size <= DriveFiles.wholeSize { small.append((i, upload)); continue }
            outcomes[i] = try trouble.publishing { try putLarge(upload, check) }
        }
        let requests = try small.map { try multipart($0.upload) }
        for ((i, upload), (request, outcome)) in zip(small, zip(requests, try client.perform(requests, check))) {
            outcomes[i] = try trouble.publishing { try settle(upload, outcome.get(), request.what, check) }
        }
        return outcomes
    }

    /// Makes a request with name and bytes.
    private func multipart(_ upload: CloudUpload) throws -> HTTPRequest {
        let query = [("uploadType", "multipart"), ("fields", DriveFiles.fields)]
        var request = request(
            upload.isNew ? .post : .patch, "upload/drive/v3/files" + (upload.isNew ? "" : "/\(upload.id)"), query, "Writing \(upload.name)")
        let mark = try account.boundary()
        var body = Array("--\(mark)\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".utf8) + upload.metadata
        body += Array("\r\n--\(mark)\r\nContent-Type: application/octet-stream\r\n\r\n".utf8)
        try Memory.grow(&body, by: upload.size + 64, "Writing \(upload.name)")
        try upload.append(to: &body)
        body += Array("\r\n--\(mark)--\r\n".utf8)
        request.body = .bytes(body)
        request.headers = [("Content-Type", "multipart/related; boundary=\(mark)")]
        request.repeats = true
        return request
    }

    /// Returns the outcome of an upload. The file's id shows whether an earlier attempt succeeded. Nil: the folder is gone.
    private func settle(_ upload: CloudUpload, _ response: HTTPResponse, _ what: String, _ check: Check) throws -> RemotePublished? {
        if response.isSuccess {
            let answer = try account.json(response, what)
            return try judged(upload, answer, what, check)
        }
        switch response.status {
        case 404: return nil
        case 409 where upload.isNew && DriveFiles.reason(response) == "fileIdInUse":
            let query = [("fields", "\(DriveFiles.fields),trashed")]
            let look = request(.get, "drive/v3/files/\(upload.id)", query, "Checking \(upload.name)")
            guard let there = try account.ask(look, check) else { return nil }
            return try judged(upload, there, what, check)
        default: throw DriveFiles.error(response, what)
        }
    }

    /// Compares the stored file, as described in the response.
    private func judged(_ upload: CloudUpload, _ answer: CloudAnswer, _ what: String, _ check: Check) throws -> RemotePublished {
        let entry = DriveFiles.entry(answer), digest = entry?.digest
        let isOther = digest != nil && upload.digest != nil && digest != upload.digest
        guard let entry, entry.id == upload.id, entry.size == upload.size, !isOther else {
            if upload.isNew, entry?.id == upload.id { try? remove([upload.id], upload.name, check) }
            let kept = entry?.size.map(String.init) ?? "no"
            throw StoreError(.transport, "\(what) failed: the service stores \(kept) bytes of \(upload.size), or others. Try again.")
        }
        names.addFile(upload.name, entry)
        return .published
    }

    // MARK: Large files

    /// Uploads in a session, which can be resumed.
    private func putLarge(_ upload: CloudUpload, _ check: Check) throws -> RemotePublished? {
        let query = [("uploadType", "resumable"), ("fields", DriveFiles.fields)]
        let path = "upload/drive/v3/files" + (upload.isNew ? "" : "/\(upload.id)")
        var begin = request(upload.isNew ? .post : .patch, path, query, "Writing \(upload.name)")
        begin.body = .bytes(upload.metadata)
        begin.headers = [
            ("Content-Type", "application/json; charset=UTF-8"), ("X-Upload-Content-Length", "\(upload.size)"),
            ("X-Upload-Content-Type", "application/octet-stream"),
        ]
        // Safe to repeat, since an unused session expires.
        begin.repeats = true
        if let kept = upload.session?.kept.flatMap(DriveFiles.session), kept.id == upload.id, kept.isNew == upload.isNew,
            kept.parent == upload.parent, let last = try send(upload, to: kept.address, goesOn: true, check)
        {
            return try settle(upload, last, begin.what, check)
        }
        for _ in 0..<3 {
            let response = try client.perform(begin, check)
            guard response.isSuccess else { return try settle(upload, response, begin.what, check) }
            let location = response.header("location")
            guard let address = location.flatMap({ try? begin.address.resolving($0) }), address.keepsSecrets else {
                throw account.unusable(begin.what, "does not say where the bytes go")
            }
            upload.session?.keep("\(upload.id) \(upload.parent) \(upload.isNew ? "new" : "old") \(address.text)")
            if let last = try send(upload, to: address, check) { return try settle(upload, last, begin.what, check) }
        }
        throw account.lostUpload(begin.what)
    }

    /// Parses a saved session: the ids of file and folder, whether the file is new, and the address for the bytes.
    private static func session(_ kept: String) -> (id: String, parent: String, isNew: Bool, address: HTTPAddress)? {
        let words = kept.split(separator: " ").map(String.init)
        guard words.count == 4, isID(words[0]), let address = try? HTTPAddress(words[3]), address.keepsSecrets else { return nil }
        return (words[0], words[1], words[2] == "new", address)
    }

    /// Sends the bytes. Returns the session's last response; nil if the service no longer knows the session.
    /// - Parameter goesOn: whether another process began it.
    private func send(_ upload: CloudUpload, to address: HTTPAddress, goesOn: Bool = false, _ check: Check) throws -> HTTPResponse? {
        var start = 0, furthest = 0, stuck = 0, asksFirst = goesOn
        while true {
            var put = HTTPRequest(method: .put, address: address, doing: "Writing \(upload.name) in \(place.description) by")
            put.isAnonymous = address.origin != place.endpoint.origin
            put.isSecret = true
            put.sink = .kept(limit: CloudAnswer.largest)
            put.repeats = false
            put.body = upload.body(from: start)
            put.headers = [
                ("Content-Type", "application/octet-stream"),
                ("Content-Range", "bytes \(start)-\(upload.size - 1)/\(upload.size)"),
            ]
            var response: HTTPResponse?
            if !asksFirst {
                let outcome = try client.perform([put], check).first ?? .failure(StoreError(.internal, "A request was not made."))
                switch outcome {
                case .success(let answer) where answer.status < 500 && answer.status != 308 && answer.status != 429: response = answer
                case .success(let answer): if stuck >= HTTPFailure.mostTries { throw DriveFiles.error(answer, put.what) }
                case .failure(let error): if stuck >= HTTPFailure.mostTries || error.code != .transport { throw error }
                }
            }
            asksFirst = false
            if response == nil {
                // Asks how many bytes were received.
                var ask = put
                ask.body = .bytes([])
                ask.headers = [("Content-Range", "bytes */\(upload.size)")]
                ask.repeats = true
                let answer = try client.perform(ask, check)
                if answer.status == 308 {
                    // Range: bytes=0-262143; no header: none were received.
                    let last = answer.header("range")?.split(separator: "-").last.flatMap { Int($0) }
                    let there = last.map { $0 < upload.size ? $0 + 1 : upload.size } ?? 0
                    // Requires progress beyond the maximum so far; otherwise it might never end.
                    stuck = there > furthest ? 0 : stuck + 1
                    furthest = max(furthest, there)
                    start = max(0, there)
                    guard start < upload.size else { throw DriveFiles.error(answer, put.what) }
                    if stuck > 0 { try client.pause(stuck, check) }
                    continue
                }
                response = answer
            }
            guard let response else { continue }
            return [404, 410].contains(response.status) ? nil : response
        }
    }
}
