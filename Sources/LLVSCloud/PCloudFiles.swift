/// Files below a folder of pCloud, by its HTTP interface. Files are addressed by their paths.
///
/// The status of every response is 200; `result` has the outcome.
package final class PCloudFiles: RemoteFiles, @unchecked Sendable {
    // Sendable: `names` and the account have locks of their own.
    static let service = CloudFolder.Service(
        name: "pCloud", scheme: "pcloud", endpoint: "https://api.pcloud.com/", tokens: "https://api.pcloud.com/oauth2_token",
        tokenPath: "oauth2_token", rate: 10, regions: ["us": "https://api.pcloud.com/", "eu": "https://eapi.pcloud.com/"])
    /// A longer listing is reused while the account's feed reports no changes to it.
    private static let longList = 1_000
    /// Files up to the first size are sent in one request; larger ones in parts of the second size.
    private static let wholeSize = 5_000_000, partSize = 4 << 20

    private let account: CloudAccount
    private let names = CloudNames()

    private var place: CloudFolder { account.place }
    private var client: HTTPClient { account.client }
    package var description: String { place.description }
    package var usualDescription: @Sendable () -> String { { [place] in place.usualDescription } }
    package var capabilities: RemoteCapabilities {
        var found = RemoteCapabilities(requestsToPublish: 1, isExclusive: true, hasRanges: account.hasRanges, hasFeed: true)
        found.sessionsAbove = PCloudFiles.wholeSize
        return found
    }
    package var counts: RemoteCounts { account.counts }
    package func account(_ check: Check?) throws -> String? { account.user }

    /// - Parameters:
    ///   - tokens: provides tokens instead of the credentials in the settings.
    ///   - mustExist: whether a missing place is an error instead of being created.
    init(_ place: CloudFolder, tokens: (any TokenKeeper)?, settings: HTTPSettings, mustExist: Bool) {
        account = CloudAccount(
            place, tokens: tokens, settings: settings, mustExist: mustExist, judge: PCloudFiles.judge, failure: PCloudFiles.error)
    }
    package func close() {
        names.forgetAll()
        account.close()
    }

    // MARK: Requests

    private func path(_ name: String) -> String { "/" + place.way(to: name).joined(separator: "/") }

    private func request(_ method: String, _ query: [(String, String)], _ doing: String) -> HTTPRequest {
        account.request(.get, account.home.address(method, query), doing)
    }

    /// Returns the JSON of a successful response; nil if there is no such file or folder.
    private func ask(_ request: HTTPRequest, _ check: Check) throws -> CloudAnswer? {
        try answer(client.perform(request, check), request.what)
    }
    private func answer(_ response: HTTPResponse, _ what: String) throws -> CloudAnswer? {
        guard response.isSuccess else { throw PCloudFiles.error(response, what) }
        let answer = try account.json(response, what)
        switch answer["result"]?.count {
        case 0: return answer
        case let result? where PCloudFiles.isMissing(result): return nil
        case _?: throw PCloudFiles.error(response, what)
        case nil: throw account.unusable(what, "has no result")
        }
    }

    private static func entry(_ item: CloudAnswer) -> CloudEntry? {
        let isFolder = item["isfolder"]?.bool ?? false
        guard let name = item["name"]?.string, let id = item[isFolder ? "folderid" : "fileid"]?.count else { return nil }
        return CloudEntry(
            id: "\(isFolder ? "d" : "f")\(id)", name: name, parents: [item["parentfolderid"]?.count].compactMap { $0.map { "d\($0)" } },
            size: item["size"]?.count, isFolder: isFolder, made: "", digest: item["hash"]?.number)
    }

    // MARK: Listing

    package func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        let old = names.directory(directory), told = try old.flatMap { try follow($0, check) }
        if let told, told.isSame, var old {
            old.token = told.next
            names.set(directory, old)
            return old.entries
        }
        var start = told?.next
        while true {
            let request = request("listfolder", [("path", path(directory))], "Listing \(directory)/")
            guard let folder = try ask(request, check)?["metadata"] else {
                names.forget(directory)
                if account.mustExist { try requirePlace(check) }
                return nil
            }
            guard let id = folder["folderid"]?.count, let contents = folder["contents"] else {
                throw account.unusable(request.what, "holds no list")
            }
            var found: [CloudEntry] = []
            for item in contents.elements {
                guard let entry = PCloudFiles.entry(item) else { continue }
                try Memory.grow(&found, "A listing")
                found.append(entry)
            }
            if found.count <= PCloudFiles.longList {
                start = nil
            } else if start == nil {
                // The feed must begin before the list, so the list is made again.
                start = try position(check)
                if start != nil { continue }
            }
            // If the feed reported files that the list does not show yet, the old position is used again.
            if let told, start != nil, !told.files.isSubset(of: found.map(\.id)) { start = old?.token }
            let files = CloudDirectory(found, in: ["d\(id)"], token: start)
            names.set(directory, files)
            return files.entries
        }
    }

    private func position(_ check: Check) throws -> String? {
        try ask(request("diff", [("last", "0")], "Asking for changes"), check)?["diffid"]?.count.map(String.init)
    }

    /// Reads the account's feed since a listing, as a hint. Nil if there is no position, or the service no longer knows it.
    private func follow(_ directory: CloudDirectory, _ check: Check) throws -> (isSame: Bool, files: Set<String>, next: String)? {
        guard var token = directory.token else { return nil }
        var isSame = true, files: Set<String> = []
        for _ in 0..<100 {
            let request = request("diff", [("diffid", token), ("limit", "1000")], "Asking for changes")
            guard let page = try ask(request, check), let next = page["diffid"]?.count.map(String.init) else { return nil }
            let entries = page["entries"]?.elements ?? []
            for event in entries {
                let kind = event["event"]?.string ?? "reset"
                if kind == "reset" { return nil }
                // The ids of the folders on the path are unknown, so any folder may be one of them.
                if kind.utf8.reversed().starts(with: "folder".utf8.reversed()) { isSame = false }
                guard let item = event["metadata"], let id = item["fileid"]?.count.map({ "f\($0)" }) else { continue }
                let entry = kind == "deletefile" ? nil : PCloudFiles.entry(item)
                if let entry, entry.parents == directory.folders {
                    files.insert(id)
                    let there = directory.entry(entry.name)
                    if there?.id != id || there?.digest != entry.digest || entry.digest == nil { isSame = false }
                } else {
                    files.remove(id)
                    if directory.contains(id) { isSame = false }
                }
            }
            if entries.isEmpty || next == token { return (isSame, files, next) }
            token = next
        }
        return nil
    }

    // MARK: Reading

    package func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents] {
        var contents: [RemoteContents] = files.map { _ in .missing }
        var left = Array(files.indices), trouble = ServiceTrouble()
        for _ in 0..<2 where !left.isEmpty {
            let links = left.map { request("getfilelink", [("path", path(files[$0].name))], "Reading \(files[$0].name)") }
            var asked: [(index: Int, request: HTTPRequest)] = []
            for (i, (link, outcome)) in zip(left, zip(links, try client.perform(links, check))) {
                let response = try outcome.get()
                if let result = PCloudFiles.result(response), PCloudFiles.isOfFile(result) {
                    var error = PCloudFiles.error(response, link.what)
                    // A rate limit concerns all files.
                    if error.retryAfter != nil { throw error }
                    if result >= 5000 { error = trouble.note(error) }
                    error.circumstance = .oneFile
                    contents[i] = .unreadable(error)
                    continue
                }
                contents[i] = try trouble.reading {
                    guard let answer = try answer(response, link.what) else { return .missing }
                    var request = account.request(.get, try address(answer, link.what), "Reading \(files[i].name)")
                    // The link itself is secret, and allows no further authentication.
                    (request.isAnonymous, request.isSecret) = (true, true)
                    request.sink = .kept(limit: files[i].limit)
                    request.range = files[i].range
                    asked.append((i, request))
                    return .missing
                }
            }
            for ((i, request), outcome) in zip(asked, try client.perform(asked.map(\.request), check)) {
                contents[i] = try trouble.reading { try account.contents(request, outcome) }
            }
            // A link is valid for some time only, and its file may have been replaced.
            left = asked.map(\.index).filter { if case .missing = contents[$0] { true } else { false } }
        }
        try trouble.end(reading: contents) { try look(files.first?.name, check) }
        return contents
    }

    private func address(_ link: CloudAnswer, _ what: String) throws -> HTTPAddress {
        guard let host = link["hosts"]?.elements.first?.string, let path = link["path"]?.string, path.utf8.first == UInt8(ascii: "/")
        else { throw account.unusable(what, "holds no link") }
        let endpoint = account.home.endpoint, scheme = host == endpoint.authority ? endpoint.origin.scheme : "https"
        guard let address = try? HTTPAddress("\(scheme)://\(host)\(path)") else { throw account.unusable(what, "holds no link") }
        return address
    }

    // MARK: Publishing

    package func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        let uploads = try files.map { file in
            var upload = try CloudUpload(id: "", name: file.name, isNew: !file.replaces, parent: "", file.data, check)
            upload.session = file.session
            return upload
        }
        let digests = try uploads.map { Hex.text(of: try $0.sha1(check).whole) }
        var published: [RemotePublished?] = files.map { _ in nil }, trouble = ServiceTrouble()
        for isAnew in [false, true] {
            let left = uploads.indices.filter { published[$0] == nil }
            if isAnew { for directory in Set(left.map { RemoteName.split(files[$0].name).directory }) { try make(directory, check) } }
            let small = left.filter { uploads[$0].size <= PCloudFiles.wholeSize }
            let requests = try small.map { try put(uploads[$0]) }
            for (i, (request, outcome)) in zip(small, zip(requests, try client.perform(requests, check))) {
                published[i] = try trouble.publishing { try settle(uploads[i], digests[i], outcome.get(), request.what, check) }
            }
            for i in left where uploads[i].size > PCloudFiles.wholeSize {
                published[i] = try trouble.publishing { try putLarge(uploads[i], digests[i], check) }
            }
        }
        try trouble.end(of: files.count) { try look(files.first?.name, check) }
        return try account.published(published)
    }

    /// Returns a request that uploads a file atomically. If the name of a new file is taken, the service chooses another.
    private func put(_ upload: CloudUpload) throws -> HTTPRequest {
        let (directory, name) = RemoteName.split(upload.name)
        let query = [("path", path(directory)), ("filename", name), ("nopartial", "1")] + (upload.isNew ? [("renameifexists", "1")] : [])
        var request = request("uploadfile", query, "Writing \(upload.name)")
        request.method = .put
        request.body = upload.body(from: 0)
        request.headers = [("Content-Type", "application/octet-stream")]
        request.repeats = true
        guard upload.size == 0 else { return request }
        // An empty body is not accepted that way.
        let mark = try account.boundary()
        let part = "--\(mark)\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\(name)\"\r\n\r\n\r\n--\(mark)--\r\n"
        request.method = .post
        request.body = .bytes(Array(part.utf8))
        request.headers = [("Content-Type", "multipart/form-data; boundary=\(mark)")]
        return request
    }

    /// Returns the outcome of an upload. Nil: a folder is missing.
    private func settle(
        _ upload: CloudUpload, _ digest: String, _ response: HTTPResponse, _ what: String, _ check: Check
    ) throws -> RemotePublished? {
        if PCloudFiles.result(response) == 2004 { return .refused(StoreError(.foreignFile, "a folder has its name")) }
        guard let answer = try answer(response, what) else { return nil }
        let found = answer["metadata"], kept = answer["checksums"]?.elements.first
        let entry = (found?.isObject == true ? found : found?.elements.first).flatMap(PCloudFiles.entry)
        guard let entry, entry.size == upload.size, kept?["sha1"]?.string.map({ $0 == digest }) ?? true else {
            // Remove the file: lists show only its size, so it might count as complete.
            if upload.isNew, let entry { try? remove(entry, upload.name, check) }
            throw account.otherBytes(what)
        }
        guard entry.name != RemoteName.split(upload.name).name else {
            names.addFile(upload.name, entry)
            return .published
        }
        // The name was taken, and the service chose another, so the copy is removed.
        try remove(entry, upload.name, check)
        guard let there = try sha1(of: upload.name, check) else {
            let stat = request("listfolder", [("path", path(upload.name)), ("nofiles", "1")], "Checking \(upload.name)")
            return try ask(stat, check) == nil ? nil : .refused(StoreError(.foreignFile, "a folder has its name"))
        }
        // An equal file is this upload's own: the response to an earlier request was lost.
        return there == digest ? .published : .exists
    }
    private func sha1(of name: String, _ check: Check) throws -> String? {
        try ask(request("checksumfile", [("path", path(name))], "Checking \(name)"), check).map { $0["sha1"]?.string ?? "" }
    }

    // MARK: Large files

    /// Uploads in a session, part by part, which can be resumed.
    private func putLarge(_ upload: CloudUpload, _ digest: String, _ check: Check) throws -> RemotePublished? {
        let (directory, name) = RemoteName.split(upload.name), doing = "Writing \(upload.name)"
        // A session is saved into a folder by its id.
        let look = request("listfolder", [("path", path(directory)), ("nofiles", "1")], "Checking a folder")
        guard let folder = try ask(look, check)?["metadata"]?["folderid"]?.count else { return nil }
        var kept = upload.session?.kept.flatMap { Int($0) }
        for _ in 0..<3 {
            let begin = request("upload_create", [("filesize", "\(upload.size)")], doing), goesOn = kept != nil
            guard let id = try kept ?? ask(begin, check)?["uploadid"]?.count else { throw account.unusable(begin.what, "opens no session") }
            kept = nil
            if !goesOn { upload.session?.keep("\(id)") }
            do {
                guard try send(upload, digest, to: id, goesOn: goesOn, check) else { continue }
            } catch let error as StoreError where goesOn && !RemoteSession.outlives(error) {
                // A new session may work.
                continue
            }
            let query = [("uploadid", "\(id)"), ("folderid", "\(folder)"), ("name", name)]
            let save = request("upload_save", query + (upload.isNew ? [("renameifexists", "1")] : []), doing)
            let response = try client.perform(save, check)
            guard PCloudFiles.result(response) == PCloudFiles.noSession else {
                return try settle(upload, digest, response, save.what, check)
            }
            // An earlier request made it, and its response was lost.
            if try sha1(of: upload.name, check) == digest { return .published }
        }
        throw account.lostUpload("\(doing) in \(place.description)")
    }

    /// Sends the bytes. Returns whether all were received; false if the service no longer knows the session, or has other bytes.
    /// - Parameter goesOn: whether another process began it.
    private func send(_ upload: CloudUpload, _ digest: String, to id: Int, goesOn: Bool, _ check: Check) throws -> Bool {
        let session = [("uploadid", "\(id)")]
        var start = 0, furthest = 0, stuck = 0, asksFirst = goesOn
        while true {
            if !asksFirst, start < upload.size {
                let size = min(PCloudFiles.partSize, upload.size - start)
                var put = request("upload_write", session + [("uploadoffset", "\(start)")], "Writing \(upload.name)")
                put.method = .put
                put.repeats = false
                put.body = upload.body(from: start, size: size)
                put.headers = [("Content-Type", "application/octet-stream")]
                do {
                    let response = try client.perform(put, check), result = PCloudFiles.result(response)
                    if result == PCloudFiles.noSession { return false }
                    if result != PCloudFiles.notWritten, try answer(response, put.what) != nil {
                        start += size
                        continue
                    }
                } catch let error as StoreError where error.code == .transport && stuck < HTTPFailure.mostTries {}
            }
            asksFirst = false
            // Asks how many bytes were received.
            let ask = request("upload_info", session, "Checking an upload"), response = try client.perform(ask, check)
            if PCloudFiles.result(response) == PCloudFiles.noSession { return false }
            let info = try answer(response, ask.what)
            guard let there = info?["size"]?.count else { throw account.unusable(ask.what, "has no size") }
            if there == upload.size, info?["sha1"]?.string == digest { return true }
            guard there < upload.size else {
                _ = try client.perform(request("upload_delete", session, "Deleting an upload"), check)
                return false
            }
            // Requires progress beyond the maximum so far; otherwise it might never end.
            stuck = there > furthest ? 0 : stuck + 1
            guard stuck <= HTTPFailure.mostTries else { throw account.lostUpload(ask.what) }
            furthest = max(furthest, there)
            start = there
            if stuck > 0 { try client.pause(stuck, check) }
        }
    }

    /// Removes an unwanted result of an upload.
    private func remove(_ entry: CloudEntry, _ name: String, _ check: Check) throws {
        _ = try ask(request("deletefile", [("fileid", String(entry.id.dropFirst()))], "Deleting a copy of \(name)"), check)
    }

    /// Creates a directory, and the missing folders on the path.
    private func make(_ directory: String, _ check: Check) throws {
        if account.mustExist { try requirePlace(check) }
        let components = place.way(to: directory)
        for depth in components.indices.dropFirst(account.mustExist ? place.path.count : 0) {
            let way = "/" + components[...depth].joined(separator: "/")
            let request = request("createfolderifnotexists", [("path", way)], "Making a folder")
            let response = try client.perform(request, check)
            guard PCloudFiles.result(response) != 2004 else { throw account.noFolder(components[depth]) }
            _ = try answer(response, request.what)
        }
    }

    private func requirePlace(_ check: Check) throws {
        let look = request("listfolder", [("path", path("")), ("nofiles", "1")], "Checking a folder")
        guard try ask(look, check) == nil else { return }
        throw account.missing()
    }

    // MARK: Deleting

    package func delete(_ names: [String], _ check: Check) throws {
        let requests = names.map { request("deletefile", [("path", path($0))], "Deleting \($0)") }
        for (name, (request, outcome)) in zip(names, zip(requests, try client.perform(requests, check))) {
            _ = try answer(outcome.get(), request.what)
            self.names.forgetFile(name)
        }
    }

    // MARK: Responses

    private static func result(_ response: HTTPResponse) -> Int? { try? CloudAnswer(response)?["result"]?.count }

    /// The results for an unknown session, and for bytes that could not be written.
    private static let noSession = 2067, notWritten = 2068
    /// A component of the path, the folder, or the file is missing.
    private static func isMissing(_ result: Int) -> Bool { [2002, 2005, 2009].contains(result) }

    /// Returns whether a failure concerns only the requested file. Failures of all are: authentication, rate limits, lack of space.
    private static func isOfFile(_ result: Int) -> Bool {
        switch result {
        case 0, 1000, 2000, 2094, 2008, 4000...4999: false
        default: !isMissing(result)
        }
    }

    private static let judge: @Sendable (HTTPResponse, HTTPRequest) -> HTTPVerdict = { response, request in
        // Links return files instead of JSON.
        guard !request.isAnonymous, response.status == 200, let result = result(response) else { return .plain }
        return switch result {
        case 1000, 2000, 2094: .refused
        case 4000...4999: .tooMany
        case 5000...5999: .passing
        default: .plain
        }
    }

    private static let error: CloudAccount.Failure = { response, what in
        guard response.status == 200, let result = result(response) else { return CloudAccount.failure(response, what, nil) }
        switch result {
        case 1000, 2000, 2094:
            let advice = "the service refuses the token, or needs one. Sign in, and check the region: accounts in Europe need region=eu."
            return CloudAccount.failure(response, what, .mayNot(advice))
        case 2003:
            return CloudAccount.failure(response, what, .mayNot("the token may not do this. Sign in with an app that may write."))
        case 2008: return CloudAccount.failure(response, what, .full)
        case 4000...4999: return CloudAccount.failure(response, what, .tooMany)
        case 5000...5999:
            var error = CloudAccount.failure(response, what, .passing)
            error.isFailureOfService = true
            return error
        default:
            var error = StoreError(.transport, "\(what) failed: the service answers with the result \(result). Check the address.")
            error.httpStatus = Int32(clamping: response.status)
            return error
        }
    }
}
