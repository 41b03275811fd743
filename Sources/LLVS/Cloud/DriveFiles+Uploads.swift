// Publishing: small files with their names in one request, large ones in sessions.

extension DriveFiles {
    package func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        var published: [RemotePublished?] = files.map { _ in nil }
        for isAnew in [false, true] {
            let left = files.indices.filter { published[$0] == nil }
            if left.isEmpty { break }
            if isAnew { forget() }
            for (i, outcome) in zip(left, try put(left.map { files[$0] }, isAnew: isAnew, check)) { published[i] = outcome }
        }
        return try published.map { outcome in
            guard let outcome else {
                throw StoreError(.notFound, "Writing to \(place.description) failed: its folders go away all the time. Exchange again.")
            }
            return outcome
        }
    }

    /// Nil where a folder is gone that was there.
    private func put(_ files: [RemoteUpload], isAnew: Bool, _ check: Check) throws -> [RemotePublished?] {
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
            guard let id = old[i] ?? new.popFirst() else { throw StoreError(.internal, "There are too few ids for what is written.") }
            let parent = folders[RemoteName.split(files[i].name).directory] ?? top
            let upload = try CloudUpload(id: id, name: files[i].name, isNew: old[i] == nil, parent: parent, files[i].data, check)
            if upload.size <= DriveFiles.wholeSize { small.append((i, upload)) } else { outcomes[i] = try putLarge(upload, check) }
        }
        let requests = try small.map { try multipart($0.upload) }
        for ((i, upload), (request, outcome)) in zip(small, zip(requests, try client.perform(requests, check))) {
            outcomes[i] = try settle(upload, outcome.get(), request.what, check)
        }
        return outcomes
    }

    /// Name and bytes in one request.
    private func multipart(_ upload: CloudUpload) throws -> HTTPRequest {
        let query = [("uploadType", "multipart"), ("fields", "\(DriveFiles.fields),sha256Checksum")]
        var request = request(
            upload.isNew ? .post : .patch, "upload/drive/v3/files" + (upload.isNew ? "" : "/\(upload.id)"), query, "Writing \(upload.name)")
        // Neither can end in a line that the other begins with.
        let mark = "llvs-\(try posix("Naming a part for", place.description) { () throws(Errno) in try RandomName.random().hex })"
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

    /// What came of an upload, whose id tells whether an earlier try went through. Nil: the folder is gone.
    private func settle(_ upload: CloudUpload, _ response: HTTPResponse, _ what: String, _ check: Check) throws -> RemotePublished? {
        if response.isSuccess {
            let answer = try client.json(response, what, DriveFiles.service.name)
            return try judged(upload, answer, what, check)
        }
        switch response.status {
        case 404: return nil
        case 409 where upload.isNew && DriveFiles.reason(response) == "fileIdInUse":
            let query = [("fields", "\(DriveFiles.fields),sha256Checksum,trashed")]
            let look = request(.get, "drive/v3/files/\(upload.id)", query, "Looking at \(upload.name)")
            guard let there = try ask(look, check) else { return nil }
            return try judged(upload, there, what, check)
        default: throw DriveFiles.error(response, what)
        }
    }

    /// The service says what it keeps.
    private func judged(_ upload: CloudUpload, _ answer: CloudAnswer, _ what: String, _ check: Check) throws -> RemotePublished {
        let entry = DriveFiles.entry(answer), digest = answer["sha256Checksum"]?.string
        let isOther = digest != nil && upload.digest != nil && digest != upload.digest
        guard let entry, entry.id == upload.id, entry.size == upload.size, !isOther else {
            if upload.isNew, entry?.id == upload.id { try? remove([upload.id], upload.name, check) }
            let kept = entry?.size.map(String.init) ?? "no"
            throw StoreError(.transport, "\(what) failed: the service keeps \(kept) bytes of \(upload.size), or others. Try again.")
        }
        names.addFile(upload.name, entry)
        return .published
    }

    // MARK: Large files

    /// In a session, which goes on where it was cut.
    private func putLarge(_ upload: CloudUpload, _ check: Check) throws -> RemotePublished? {
        let query = [("uploadType", "resumable"), ("fields", "\(DriveFiles.fields),sha256Checksum")]
        let path = "upload/drive/v3/files" + (upload.isNew ? "" : "/\(upload.id)")
        var begin = request(upload.isNew ? .post : .patch, path, query, "Writing \(upload.name)")
        begin.body = .bytes(upload.metadata)
        begin.headers = [("Content-Type", "application/json; charset=UTF-8"), ("X-Upload-Content-Length", "\(upload.size)"),
                         ("X-Upload-Content-Type", "application/octet-stream")]
        // A session that nobody goes on with is forgotten by itself.
        begin.repeats = true
        for _ in 0..<3 {
            let response = try client.perform(begin, check)
            guard response.isSuccess else { return try settle(upload, response, begin.what, check) }
            let location = response.header("location")
            guard let address = location.flatMap({ try? begin.address.resolving($0) }), address.keepsSecrets else {
                throw StoreError(.transport, "\(begin.what) failed: the service does not say where the bytes go. Check the endpoint.")
            }
            if let last = try send(upload, to: address, check) { return try settle(upload, last, begin.what, check) }
        }
        throw StoreError(.transport, "\(begin.what) failed: the service loses the upload again and again. Exchange again later.")
    }

    /// The session's last answer; nil when the service has forgotten it.
    private func send(_ upload: CloudUpload, to address: HTTPAddress, _ check: Check) throws -> HTTPResponse? {
        var start = 0, stuck = 0
        while true {
            var put = HTTPRequest(method: .put, address: address, doing: "Writing \(upload.name) in \(place.description) by")
            put.isAnonymous = address.origin != place.endpoint.origin
            put.sink = .kept(limit: CloudAnswer.largest)
            put.repeats = false
            put.body = upload.body(from: start)
            put.headers = [("Content-Type", "application/octet-stream"),
                           ("Content-Range", "bytes \(start)-\(upload.size - 1)/\(upload.size)")]
            let outcome = try client.perform([put], check).first ?? .failure(StoreError(.internal, "A request was not made."))
            var response: HTTPResponse?
            switch outcome {
            case .success(let answer) where answer.status < 500 && answer.status != 308 && answer.status != 429: response = answer
            case .success(let answer): if stuck >= HTTPFailure.mostTries { throw DriveFiles.error(answer, put.what) }
            case .failure(let error): if stuck >= HTTPFailure.mostTries || error.code != .transport { throw error }
            }
            if response == nil {
                // How far did it come?
                var ask = put
                ask.body = .bytes([])
                ask.headers = [("Content-Range", "bytes */\(upload.size)")]
                ask.repeats = true
                let answer = try client.perform(ask, check)
                if answer.status == 308 {
                    // Range: bytes=0-262143; none: nothing is there.
                    let last = answer.header("range")?.split(separator: "-").last.flatMap { Int($0) }
                    let there = last.map { $0 < upload.size ? $0 + 1 : upload.size } ?? 0
                    stuck = there > start ? 0 : stuck + 1
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

/// A file on its way to a service.
struct CloudUpload {
    let id: String, name: String, isNew: Bool, size: Int
    /// The id of the folder that it goes to.
    let parent: String
    /// Its SHA-256, where all of it is in memory.
    let digest: String?
    /// Name, folder and id, or nothing for new bytes of an old file.
    let metadata: [UInt8]
    private let contents: HTTPRequest.Body

    init(id: String, name: String, isNew: Bool, parent: String, _ data: OutgoingFile, _ check: () throws -> Void) throws {
        self.id = id
        self.name = name
        self.isNew = isNew
        self.parent = parent
        size = data.size
        contents = try HTTPRequest.Body(data, check)
        digest = if case .bytes(let bytes) = contents { AWSSignature.hex(bytes.withUnsafeBytes { SHA256.digest($0) }) } else { nil }
        let members: [(String, CloudJSON)] = [("id", .text(id)), ("name", .text(RemoteName.split(name).name)), ("parents", .list([parent]))]
        metadata = isNew ? CloudJSON.object(members).bytes : Array("{}".utf8)
    }

    func append(to bytes: inout [UInt8]) throws { try forEachPiece { bytes += $0 } }

    /// All of its bytes, in order.
    func forEachPiece(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        switch contents {
        case .none: break
        case .bytes(let own): try own.withUnsafeBytes { try body($0) }
        case .file(let file, let start, let size):
            var piece = [UInt8](repeating: 0, count: 256 << 10), at = 0
            while at < size {
                let got = try piece.withUnsafeMutableBytes { try file.read(into: $0, at: start + at) }
                guard got > 0 else { throw StoreError(.io, "A temporary file is shorter than what was written to it.") }
                try piece.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0.prefix(min(got, size - at)))) }
                at += got
            }
        }
    }

    /// The SHA-1 of all of it, and of each part of that size.
    func sha1(partSize: Int = .max, _ check: () throws -> Void) throws -> (whole: [UInt8], parts: [[UInt8]]) {
        var whole = SHA1(), part = SHA1(), filled = 0, parts: [[UInt8]] = []
        try forEachPiece { piece in
            try check()
            whole.update(piece)
            var rest = piece[...]
            while !rest.isEmpty {
                let some = rest.prefix(partSize - filled)
                part.update(UnsafeRawBufferPointer(rebasing: some))
                filled += some.count
                rest = rest.dropFirst(some.count)
                guard filled == partSize else { continue }
                parts.append(part.finish())
                (part, filled) = (SHA1(), 0)
            }
        }
        if filled > 0 { parts.append(part.finish()) }
        return (whole.finish(), parts)
    }

    /// A part of it; all behind its beginning where no size is given.
    func body(from start: Int, size: Int? = nil) -> HTTPRequest.Body {
        let count = max(0, size ?? self.size - start)
        switch contents {
        case .none: return .none
        case .bytes(let bytes): return .bytes(Array(bytes.dropFirst(start).prefix(count)))
        case .file(let file, let first, _): return .file(file, from: first + start, size: count)
        }
    }
}
