// Publishing: small files with their names in one request, large ones part by part.

extension BoxFiles {
    /// The service refuses a session for a smaller file.
    static let sessionSize = 20_000_000

    package func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        var published: [RemotePublished?] = files.map { _ in nil }, trouble = ServiceTrouble()
        for isAnew in [false, true] {
            let left = files.indices.filter { published[$0] == nil }
            if left.isEmpty { break }
            if isAnew { forget() }
            for (i, outcome) in zip(left, try put(left.map { files[$0] }, &trouble, check)) { published[i] = outcome }
        }
        try trouble.end(of: files.count) { try look(files.first?.name, check) }
        return try account.published(published)
    }

    /// Uploads files. Nil for a file whose folder is gone.
    private func put(_ files: [RemoteUpload], _ trouble: inout ServiceTrouble, _ check: Check) throws -> [RemotePublished?] {
        var folders: [String: String] = [:], looked: Set<String> = []
        for directory in Set(files.map { RemoteName.split($0.name).directory }) {
            folders[directory] = try folder(directory, check) ?? make(directory, check)
        }
        let replaced = files.indices.filter { files[$0].replaces }
        var old: [Int: String] = [:]
        for (i, entry) in zip(replaced, try entries(replaced.map { files[$0].name }, &looked, check)) { old[i] = entry?.id }

        var small: [(index: Int, upload: CloudUpload, digest: String)] = [], outcomes: [RemotePublished?] = files.map { _ in nil }
        for i in files.indices {
            guard let parent = folders[RemoteName.split(files[i].name).directory] else { continue }
            var upload = try CloudUpload(
                id: old[i] ?? "", name: files[i].name, isNew: old[i] == nil, parent: parent, files[i].data, check)
            upload.session = files[i].session
            if upload.size < BoxFiles.sessionSize {
                small.append((i, upload, Hex.text(of: try upload.sha1(check).whole)))
            } else {
                outcomes[i] = try trouble.publishing { try putLarge(upload, replacing: upload.id, files[i].replaces, check) }
            }
        }
        let requests = try small.map { try multipart($0.upload, replacing: $0.upload.id, $0.digest) }
        for ((i, upload, digest), (request, outcome)) in zip(small, zip(requests, try client.perform(requests, check))) {
            outcomes[i] = try trouble.publishing {
                let made = try settle(upload, digest, outcome.get(), request.what)
                guard case .conflict(let id) = made, files[i].replaces, upload.isNew else { return made.published }
                // Lists do not show the file to replace yet.
                let again = try multipart(upload, replacing: id, digest)
                return try settle(upload, digest, client.perform(again, check), again.what).published
            }
        }
        return outcomes
    }

    /// Makes a request with name and bytes.
    private func multipart(_ upload: CloudUpload, replacing id: String, _ digest: String) throws -> HTTPRequest {
        let query = [("fields", BoxFiles.fields)]
        let address = place.uploadAddress("api/2.0/files/" + (id.isEmpty ? "content" : "\(id)/content"), query)
        var request = account.request(.post, address, "Writing \(upload.name)")
        let name = RemoteName.split(upload.name).name
        var attributes: [(String, CloudJSON)] = [("name", .text(name))]
        if id.isEmpty { attributes.append(("parent", .object([("id", .text(upload.parent))]))) }
        let mark = try account.boundary()
        var body = Array("--\(mark)\r\nContent-Disposition: form-data; name=\"attributes\"\r\n\r\n".utf8)
        body += CloudJSON.object(attributes).bytes
        body += Array("\r\n--\(mark)\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\(name)\"\r\n".utf8)
        body += Array("Content-Type: application/octet-stream\r\n\r\n".utf8)
        try Memory.grow(&body, by: upload.size + 64, "Writing \(upload.name)")
        try upload.append(to: &body)
        body += Array("\r\n--\(mark)--\r\n".utf8)
        request.body = .bytes(body)
        // Despite the name of the header, Box expects a SHA-1.
        request.headers = [("Content-Type", "multipart/form-data; boundary=\(mark)"), ("Content-MD5", digest)]
        // The request is safe to repeat: the second one returns the file of the first.
        request.repeats = true
        request.isUpload = true
        return request
    }

    private enum Made {
        case done(RemotePublished)
        /// Another file has the name.
        case conflict(String)
        /// A folder is gone.
        case gone
        var published: RemotePublished? {
            switch self {
            case .done(let published): published
            case .conflict: .exists
            case .gone: nil
            }
        }
    }

    /// Returns the outcome of an upload, after comparing the stored file as described in the response.
    private func settle(_ upload: CloudUpload, _ digest: String, _ response: HTTPResponse, _ what: String) throws -> Made {
        let name = RemoteName.split(upload.name).name
        if response.isSuccess, response.status != 202 {
            let entry = try account.json(response, what)["entries"]?.elements.first.flatMap(BoxFiles.entry)
            guard let entry, entry.size == upload.size, entry.digest == digest else {
                throw account.otherBytes(what)
            }
            if entry.name != name { return .done(.refused(account.taken(upload.name, by: entry.name))) }
            names.addFile(upload.name, entry)
            return .done(.published)
        }
        switch response.status {
        case 404, 410: return .gone
        case 409:
            guard var there = BoxFiles.conflict(response) else { throw BoxFiles.error(response, what) }
            if there.name != name { return .done(.refused(account.taken(upload.name, by: there.name))) }
            if there.isFolder { return .done(.refused(StoreError(.foreignFile, "a folder has its name"))) }
            // An equal file is this upload's own: the response to an earlier request was lost.
            guard there.digest == digest else { return .conflict(there.id) }
            there.size = upload.size
            names.addFile(upload.name, there)
            return .done(.published)
        default: throw BoxFiles.error(response, what)
        }
    }

    // MARK: Large files

    /// Uploads in a session, part by part; resumes with the missing parts.
    private func putLarge(_ upload: CloudUpload, replacing old: String, _ replaces: Bool, _ check: Check) throws -> RemotePublished? {
        var id = old
        let digest = Hex.text(of: try upload.sha1(check).whole)
        if let kept = upload.session?.kept?.split(separator: " "), kept.count == 4, BoxFiles.isID(String(kept[0])),
            // Only a session for the same folder or file can be resumed.
            kept[2] == upload.parent, kept[3] == BoxFiles.mark(old), let partSize = Int(kept[1]), BoxFiles.partSizes.contains(partSize),
            let last = try send(upload, String(kept[0]), partSize, goesOn: true, check)
        {
            return try settle(upload, digest, last, "Writing \(upload.name) in \(place.description)").published
        }
        for _ in 0..<3 {
            var members: [(String, CloudJSON)] = [
                ("file_size", .number(upload.size)), ("file_name", .text(RemoteName.split(upload.name).name)),
            ]
            if id.isEmpty { members.append(("folder_id", .text(upload.parent))) }
            let address = place.uploadAddress("api/2.0/files/" + (id.isEmpty ? "" : "\(id)/") + "upload_sessions")
            let begin = account.request(.post, address, "Writing \(upload.name)", .object(members))
            let response = try client.perform(begin, check)
            guard response.isSuccess else {
                let made = try settle(upload, digest, response, begin.what)
                guard case .conflict(let other) = made, replaces, id.isEmpty else { return made.published }
                id = other
                continue
            }
            let answer = try account.json(response, begin.what)
            guard let session = answer["id"]?.string, BoxFiles.isID(session), let partSize = answer["part_size"]?.count,
                BoxFiles.partSizes.contains(partSize)
            else { throw account.unusable(begin.what, "opens no session") }
            upload.session?.keep("\(session) \(partSize) \(upload.parent) \(BoxFiles.mark(id))")
            if let last = try send(upload, session, partSize, check) { return try settle(upload, digest, last, begin.what).published }
            guard !id.isEmpty else { continue }
            // A session ends when its file is complete: the last response may have been lost.
            let look = account.request(.get, place.address("2.0/files/\(id)", [("fields", BoxFiles.fields)]), "Checking \(upload.name)")
            guard let entry = try account.ask(look, check).flatMap(BoxFiles.entry) else { return nil }
            guard entry.digest == digest else { continue }
            names.addFile(upload.name, entry)
            return .published
        }
        throw account.lostUpload("Writing \(upload.name) in \(place.description)")
    }

    /// Returns the id of the replaced file, or a word for none.
    private static func mark(_ old: String) -> String { old.isEmpty ? "new" : old }
    private static let partSizes = 64 << 10...1 << 30

    /// Sends the parts. Returns the session's last response; nil if the service no longer knows the session.
    /// - Parameter goesOn: whether another process began it.
    private func send(
        _ upload: CloudUpload, _ session: String, _ partSize: Int, goesOn: Bool = false, _ check: Check
    ) throws -> HTTPResponse? {
        let digests = try upload.sha1(partSize: partSize, check)
        let address = place.uploadAddress("api/2.0/files/upload_sessions/\(session)")
        func digest(_ bytes: [UInt8]) -> (name: String, value: String) {
            ("Digest", "sha=" + String(decoding: Base64.encode(bytes), as: UTF8.self))
        }
        var starts = Array(stride(from: 0, to: upload.size, by: partSize))
        if goesOn {
            guard let there = try parts(address, digests.parts, check) else { return nil }
            starts.removeAll { there[$0] != nil }
        }
        let requests = starts.map { start in
            let end = min(upload.size, start + partSize)
            var put = account.request(.put, address, "Writing \(upload.name)")
            put.body = upload.body(from: start, size: end - start)
            put.headers = [
                ("Content-Type", "application/octet-stream"), ("Content-Range", "bytes \(start)-\(end - 1)/\(upload.size)"),
                digest(digests.parts[start / partSize]),
            ]
            put.repeats = true
            return put
        }
        for (request, outcome) in zip(requests, try client.perform(requests, check)) {
            let response = try outcome.get()
            if [404, 410].contains(response.status) { return nil }
            // If the part was stored already, by a request whose response was lost, the list of parts has it.
            guard response.isSuccess || [409, 416].contains(response.status) else { throw BoxFiles.error(response, request.what) }
        }
        guard let parts = try parts(address, digests.parts, check), parts.count == digests.parts.count else { return nil }
        let body = CloudJSON.object([("parts", .array(parts.sorted { $0.key < $1.key }.map(\.value)))])
        var commit = account.request(.post, address.appending("/commit"), "Writing \(upload.name)", body)
        commit.headers.append(digest(digests.whole))
        let response = try client.perform(commit, check)
        return [404, 410].contains(response.status) ? nil : response
    }

    /// Returns the parts that the service has, by offset, in the JSON that it expects; nil if it no longer knows the session.
    private func parts(_ address: HTTPAddress, _ digests: [[UInt8]], _ check: Check) throws -> [Int: CloudJSON]? {
        var parts: [Int: CloudJSON] = [:], listed = 0
        let wanted = Set(digests.map(Hex.text))
        while true {
            var page = address.appending("/parts")
            page.query = "?limit=1000&offset=\(listed)"
            guard let answer = try account.ask(account.request(.get, page, "Checking an upload"), check) else { return nil }
            let entries = answer["entries"]?.elements ?? []
            for part in entries {
                guard let id = part["part_id"]?.string, let offset = part["offset"]?.count, let size = part["size"]?.count,
                    let sha1 = part["sha1"]?.string, wanted.contains(sha1)
                else { continue }
                let json = CloudJSON.object([("part_id", .text(id)), ("offset", .number(offset)), ("size", .number(size))])
                parts[offset] = json
            }
            listed += entries.count
            // Bounded by the possible number of parts, since a list might never end.
            if entries.isEmpty || listed >= min(answer["total_count"]?.count ?? 0, 2 * digests.count) { break }
        }
        return parts
    }
}
