/// Files below a folder of OneDrive, by Microsoft Graph 1.0. Files are addressed by their paths. Names in a folder that differ only in case
/// are not allowed.
package final class OneDriveFiles: RemoteFiles, @unchecked Sendable {
    // Sendable: `names`, `feeds` and the account have locks of their own.
    static let service = CloudFolder.Service(
        name: "OneDrive", scheme: "onedrive", endpoint: "https://graph.microsoft.com/",
        tokens: "https://login.microsoftonline.com/common/oauth2/v2.0/token", tokenPath: "common/oauth2/v2.0/token", rate: 20,
        spaces: ["approot"])
    /// Smaller files are sent in one request.
    private static let wholeSize = 4_000_000
    /// The bytes of a part of a session: a multiple of 320 KiB.
    private static let partSize = 32 * 320 << 10

    private let account: CloudAccount
    private let names = CloudNames()
    /// For each directory whose changes are read from the drive's feed: the ids of the top and of all folders on the path, itself the last.
    private let feeds = Guarded<[String: [String]]>([:])

    private var place: CloudFolder { account.place }
    private var client: HTTPClient { account.client }
    package var description: String { place.description }
    package var usualDescription: @Sendable () -> String { { [place] in place.usualDescription } }
    package var capabilities: RemoteCapabilities {
        var found = RemoteCapabilities(requestsToPublish: 1, isExclusive: true, hasRanges: account.hasRanges, hasFeed: true)
        // An interrupted part is sent again, so smaller files gain nothing from a session.
        found.sessionsAbove = OneDriveFiles.partSize
        return found
    }
    package var counts: RemoteCounts { account.counts }
    package func account(_ check: Check?) throws -> String? { account.user }

    /// - Parameters:
    ///   - tokens: provides tokens instead of the credentials in the settings.
    ///   - mustExist: whether a missing place is an error instead of being created.
    init(_ place: CloudFolder, tokens: (any TokenKeeper)?, settings: HTTPSettings, mustExist: Bool) {
        account = CloudAccount(
            place, tokens: tokens, settings: settings, mustExist: mustExist, judge: OneDriveFiles.judge, failure: OneDriveFiles.error)
    }
    package func close() {
        names.forgetAll()
        account.close()
    }

    // MARK: Requests

    private var top: String { "v1.0/me/drive/" + (place.space == nil ? "root" : "special/approot") }

    /// Returns the address of an item with that name in the place.
    private func address(of name: String, _ action: String = "", _ query: [(String, String)] = []) -> HTTPAddress {
        address(place.way(to: name), action, query)
    }
    /// Returns the address of an item at a path below the top, or of an action on it.
    private func address(_ path: [String], _ action: String = "", _ query: [(String, String)] = []) -> HTTPAddress {
        let way = path.map { PercentCoding.encode($0) }.joined(separator: "/")
        return place.address(top + (path.isEmpty ? "" : ":/\(way):") + (action.isEmpty ? "" : "/\(action)"), query)
    }

    private static func entry(_ item: CloudAnswer) -> CloudEntry? {
        guard let id = item["id"]?.string, let name = item["name"]?.string else { return nil }
        return CloudEntry(
            id: id, name: name, parents: [item["parentReference"]?["id"]?.string].compactMap { $0 }, size: item["size"]?.count,
            isFolder: item["folder"] != nil, made: "", link: item[OneDriveFiles.link]?.string)
    }

    /// Checks the address of a further page, or of a feed, which the service returns complete.
    private func link(_ text: String, _ what: String) throws -> HTTPAddress {
        guard let address = try? HTTPAddress(text), address.origin == place.endpoint.origin else {
            throw StoreError(.transport, "\(what) failed: the list continues at another server. Check the endpoint.")
        }
        return address
    }

    // MARK: Listing

    private static let fields = "id,name,size,folder,parentReference"
    private static let link = "@microsoft.graph.downloadUrl"
    /// Returns whether files of a directory are read once and never rewritten: then a listing also requests the addresses of their bytes.
    private static func hasLinks(_ directory: String) -> Bool { directory.utf8.starts(with: "pack1".utf8) }

    package func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        if let entries = try listByFeed(directory, check) { return entries }
        let fields = OneDriveFiles.fields + (OneDriveFiles.hasLinks(directory) ? ",\(OneDriveFiles.link)" : "")
        let query = [("$top", "1000"), ("$select", fields)]
        var found: [CloudEntry] = [], start: String?
        var next = account.request(.get, address(of: directory, "children", query), "Listing \(directory)/")
        var pages = CloudPages()
        while true {
            guard let page = try account.ask(next, check) else {
                names.forget(directory)
                if account.mustExist { try requirePlace(check) }
                return nil
            }
            guard let items = page["value"] else {
                throw account.unusable(next.what, "holds no list")
            }
            let token = page["@odata.nextLink"]?.string, more = try token.map { try link($0, next.what) }
            if more != nil, start == nil {
                // The feed must begin before the list, so the list starts again.
                start = try beginFeed(directory, check)
                if start != nil { continue }
            }
            for item in items.elements {
                guard var entry = OneDriveFiles.entry(item) else { continue }
                if !OneDriveFiles.hasLinks(directory) { entry.link = nil }
                try Memory.grow(&found, "A listing")
                found.append(entry)
            }
            guard let token, let more else { break }
            guard pages.goOn(to: token, behind: items.elements.count) else {
                throw account.unusable(next.what, "is a list that does not end")
            }
            next.address = more
        }
        let files = CloudDirectory(found, in: [], token: start)
        names.set(directory, files)
        return files.entries
    }

    private func requirePlace(_ check: Check) throws {
        guard try account.ask(account.request(.get, address(place.path), "Checking a folder"), check) == nil else { return }
        throw account.missing()
    }

    /// Returns the present position of the feed; nil if the folders on the path are unknown.
    private func beginFeed(_ directory: String, _ check: Check) throws -> String? {
        let feed = account.request(.get, place.address(top + "/delta", [("token", "latest")]), "Asking for changes")
        guard let link = try account.ask(feed, check)?["@odata.deltaLink"]?.string else { return nil }
        var way: [String] = []
        let components = place.way(to: directory)
        for depth in 0...components.count {
            let look = account.request(.get, address(Array(components[..<depth]), "", [("$select", "id")]), "Checking a folder")
            guard let id = try account.ask(look, check)?["id"]?.string else { return nil }
            way.append(id)
        }
        feeds.withLock { $0[directory] = way }
        return link
    }

    /// Returns a recent long listing, updated by the changes since; nil if the directory must be listed.
    private func listByFeed(_ directory: String, _ check: Check) throws -> [RemoteEntry]? {
        guard var files = names.directory(directory), var token = files.token else { return nil }
        guard let way = feeds.withLock({ $0[directory] }) else { return nil }
        let called = Set(place.way(to: directory).map { $0.lowercased() })
        for _ in 0..<100 {
            let what = "Asking for changes in \(place.description)"
            let response = try client.perform(account.request(.get, link(token, what), "Asking for changes"), check)
            // The service no longer knows the position: all is listed.
            if [400, 404, 410].contains(response.status) { break }
            guard response.isSuccess else { throw OneDriveFiles.error(response, what) }
            let page = try account.json(response, what)
            var isInDoubt = false
            // An item may occur twice: the last one counts.
            for item in page["value"]?.elements ?? [] {
                guard let id = item["id"]?.string, id != way.first else { continue }
                let entry = item["deleted"] == nil ? OneDriveFiles.entry(item) : nil
                let mayBeOnTheWay = entry?.isFolder ?? false && called.contains(entry?.name.lowercased() ?? "")
                if let at = way.firstIndex(of: id) {
                    // Folders on the path are reported whenever their contents changed. Checks that name and parent are unchanged.
                    if !mayBeOnTheWay || entry?.parents != [way[at - 1]] { isInDoubt = true }
                } else if mayBeOnTheWay {
                    isInDoubt = true
                } else if var entry, entry.parents.first == way.last {
                    if !OneDriveFiles.hasLinks(directory) { entry.link = nil }
                    try files.add(entry)
                } else {
                    files.remove(id)
                }
            }
            if isInDoubt { break }
            if let last = page["@odata.deltaLink"]?.string {
                files.token = last
                names.set(directory, files)
                return files.entries
            }
            guard let next = page["@odata.nextLink"]?.string, next != token else { break }
            token = next
        }
        names.forget(directory)
        return nil
    }

    // MARK: Reading

    package func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents] {
        func request(_ file: RemoteRead, _ address: HTTPAddress) -> HTTPRequest {
            var request = account.request(.get, address, "Reading \(file.name)")
            request.sink = .kept(limit: file.limit)
            request.range = file.range
            return request
        }
        var contents: [RemoteContents?] = files.map { _ in nil }
        let linked = files.indices.compactMap { i in link(to: files[i].name).map { (index: i, address: $0) } }
        let direct = linked.map { i, address in
            var request = request(files[i], address)
            // The address itself is secret, and allows no further authentication.
            (request.isAnonymous, request.isSecret) = (true, true)
            return request
        }
        for ((i, _), (request, outcome)) in zip(linked, zip(direct, try client.perform(direct, check))) {
            // An address is valid for about an hour; then the file is requested by path.
            guard case .success(let response) = outcome, response.isSuccess || response.status == 416 else { continue }
            contents[i] = try account.contents(request, outcome)
        }
        let left = files.indices.filter { contents[$0] == nil }
        let requests = left.map { request(files[$0], address(of: files[$0].name, "content")) }
        var trouble = ServiceTrouble()
        for (i, (request, outcome)) in zip(left, zip(requests, try client.perform(requests, check))) {
            contents[i] = try trouble.reading { try account.contents(request, outcome) }
        }
        let found = contents.map { $0 ?? .missing }
        try trouble.end(reading: found) { try look(files.first?.name, check) }
        return found
    }
    /// Returns the address of a file's bytes from a listing.
    private func link(to name: String) -> HTTPAddress? {
        names.entry(name)?.link.flatMap { try? HTTPAddress($0) }.flatMap { $0.keepsSecrets ? $0 : nil }
    }

    // MARK: Publishing

    package func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        let uploads = try files.map { file in
            var upload = try CloudUpload(id: "", name: file.name, isNew: !file.replaces, parent: "", file.data, check)
            upload.session = file.session
            return upload
        }
        var published: [RemotePublished?] = files.map { _ in nil }, trouble = ServiceTrouble()
        for isAnew in [false, true] {
            let left = uploads.indices.filter { published[$0] == nil }
            if isAnew { for directory in Set(left.map { RemoteName.split(files[$0].name).directory }) { try make(directory, check) } }
            let small = left.filter { uploads[$0].size <= OneDriveFiles.wholeSize }
            let requests = try small.map { i in
                let conflict = ("@microsoft.graph.conflictBehavior", uploads[i].isNew ? "fail" : "replace")
                var request = account.request(.put, address(of: uploads[i].name, "content", [conflict]), "Writing \(uploads[i].name)")
                request.body = .bytes(try files[i].data.bytes())
                request.headers = [("Content-Type", "application/octet-stream")]
                return request
            }
            for (i, (request, outcome)) in zip(small, zip(requests, try client.perform(requests, check))) {
                published[i] = try trouble.publishing { try settle(uploads[i], outcome.get(), request.what, check) }
            }
            for i in left where uploads[i].size > OneDriveFiles.wholeSize {
                published[i] = try trouble.publishing { try putLarge(uploads[i], check) }
            }
        }
        try trouble.end(of: files.count) { try look(files.first?.name, check) }
        return try account.published(published)
    }

    /// Returns the outcome of an upload. Nil: a folder is missing.
    private func settle(_ upload: CloudUpload, _ response: HTTPResponse, _ what: String, _ check: Check) throws -> RemotePublished? {
        switch response.status {
        case 200, 201:
            let answer = try account.json(response, what)
            guard let entry = OneDriveFiles.entry(answer), entry.size == upload.size else {
                throw account.otherBytes(what)
            }
            return entry.name == RemoteName.split(upload.name).name ? .published : .refused(account.taken(upload.name, by: entry.name))
        case 404: return nil
        case 409:
            // The existing file may have a name that differs in case: another file, which is neither read nor overwritten.
            let look = account.request(.get, address(of: upload.name, "", [("$select", OneDriveFiles.fields)]), "Checking \(upload.name)")
            guard let entry = try account.ask(look, check).flatMap(OneDriveFiles.entry) else { return nil }
            if entry.name != RemoteName.split(upload.name).name { return .refused(account.taken(upload.name, by: entry.name)) }
            return entry.isFolder
                ? .refused(StoreError(.foreignFile, "a folder has its name"))
                : try isSame(upload, entry, check) ? .published : .exists
        default: throw OneDriveFiles.error(response, what)
        }
    }
    /// Returns whether the existing file is the one sent, by a request whose response was lost.
    private func isSame(_ upload: CloudUpload, _ entry: CloudEntry, _ check: Check) throws -> Bool {
        guard entry.size == upload.size else { return false }
        var sent = SHA256()
        try upload.forEachPiece { sent.update($0) }
        let there = try read([RemoteRead(name: upload.name, limit: upload.size + 1)], check).first
        if case .unreadable(let error) = there, error.code == .transport { throw error }
        return try there?.sha256(check) == Array(sent.finish())
    }

    /// Creates a directory, and the missing folders on the path.
    private func make(_ directory: String, _ check: Check) throws {
        if account.mustExist { try requirePlace(check) }
        let components = place.way(to: directory)
        for depth in components.indices {
            let body = CloudJSON.object([
                ("folder", .object([])), ("@microsoft.graph.conflictBehavior", .text("fail")), ("name", .text(components[depth])),
            ])
            let make = account.request(.post, address(Array(components[..<depth]), "children"), "Making a folder", body)
            let response = try client.perform(make, check)
            guard response.isSuccess || response.status == 409 else { throw OneDriveFiles.error(response, make.what) }
        }
    }

    // MARK: Large files

    /// Uploads in a session, part by part, which can be resumed.
    private func putLarge(_ upload: CloudUpload, _ check: Check) throws -> RemotePublished? {
        let conflict = CloudJSON.object([("@microsoft.graph.conflictBehavior", .text(upload.isNew ? "fail" : "replace"))])
        let address = address(of: upload.name, "createUploadSession")
        let begin = account.request(.post, address, "Writing \(upload.name)", .object([("item", conflict)]))
        if let kept = upload.session?.kept.flatMap({ try? HTTPAddress($0) }), kept.keepsSecrets,
            let last = try send(upload, to: kept, goesOn: true, check)
        {
            let outcome = try settle(upload, last, begin.what, check)
            guard case .published? = outcome else { return outcome }
            if try isAtItsPlace(upload, last, check) { return outcome }
        }
        for _ in 0..<3 {
            let response = try client.perform(begin, check)
            guard response.isSuccess else { return try settle(upload, response, begin.what, check) }
            let answer = try account.json(response, begin.what)
            guard let address = answer["uploadUrl"]?.string.flatMap({ try? HTTPAddress($0) }), address.keepsSecrets else {
                throw account.unusable(begin.what, "does not say where the bytes go")
            }
            upload.session?.keep(address.text)
            if let last = try send(upload, to: address, check) { return try settle(upload, last, begin.what, check) }
        }
        throw account.lostUpload(begin.what)
    }

    /// Returns whether the file made by a session is found at its path. A session needs no token, so it also continues in the drive of an
    /// account used before, or in a folder that was moved away.
    private func isAtItsPlace(_ upload: CloudUpload, _ response: HTTPResponse, _ check: Check) throws -> Bool {
        let look = account.request(.get, address(of: upload.name, "", [("$select", OneDriveFiles.fields)]), "Checking \(upload.name)")
        let there = try account.ask(look, check).flatMap(OneDriveFiles.entry)
        return try there?.id == CloudAnswer(response).flatMap(OneDriveFiles.entry)?.id && there?.size == upload.size
    }

    /// Sends the parts. Returns the last response; nil if the service no longer knows the session. Its address itself is secret, and allows
    /// no further authentication.
    /// - Parameter goesOn: whether another process began it.
    private func send(_ upload: CloudUpload, to address: HTTPAddress, goesOn: Bool = false, _ check: Check) throws -> HTTPResponse? {
        var start = 0, furthest = 0, stuck = 0, asksFirst = goesOn
        func request(_ method: HTTPRequest.Method) -> HTTPRequest {
            var request = account.request(method, address, "Writing \(upload.name)")
            (request.isAnonymous, request.isSecret) = (true, true)
            return request
        }
        while true {
            if !asksFirst {
                let end = min(upload.size, start + OneDriveFiles.partSize)
                var put = request(.put)
                put.repeats = false
                put.body = upload.body(from: start, size: end - start)
                put.headers = [("Content-Range", "bytes \(start)-\(end - 1)/\(upload.size)")]
                let outcome = try client.perform([put], check).first ?? .failure(StoreError(.internal, "A request was not made."))
                switch outcome {
                case .success(let answer) where answer.status == 202 && end < upload.size:
                    if end > furthest { (furthest, stuck) = (end, 0) }
                    start = end
                    continue
                case .success(let answer) where answer.status == 404: return try lost(upload, check)
                case .success(let answer) where answer.status < 500 && answer.status != 416: return answer
                case .success(let answer): if stuck >= HTTPFailure.mostTries { throw OneDriveFiles.error(answer, put.what) }
                case .failure(let error): if stuck >= HTTPFailure.mostTries || error.code != .transport { throw error }
                }
            }
            asksFirst = false
            // Asks how many bytes were received.
            let asking = request(.get), answer = try client.perform(asking, check)
            if [404, 410].contains(answer.status) { return try lost(upload, check) }
            guard answer.isSuccess else { throw OneDriveFiles.error(answer, asking.what) }
            let due = try account.json(answer, asking.what)["nextExpectedRanges"]?.elements.first?.string
            guard let there = due?.split(separator: "-").first.flatMap({ Int($0) }), there < upload.size else { return nil }
            // Requires progress beyond the maximum so far; otherwise it might never end.
            stuck = there > furthest ? 0 : stuck + 1
            furthest = max(furthest, there)
            start = there
            if stuck > 0 { try client.pause(stuck, check) }
        }
    }

    /// Looks for the file of a session that ended: it ends when the file is complete, and the last response may have been lost.
    private func lost(_ upload: CloudUpload, _ check: Check) throws -> HTTPResponse? {
        // For a replaced file, old and new cannot be distinguished.
        guard upload.isNew else { return nil }
        let look = account.request(.get, address(of: upload.name, "", [("$select", OneDriveFiles.fields)]), "Checking \(upload.name)")
        let response = try client.perform(look, check)
        guard response.isSuccess, let entry = try CloudAnswer(response).flatMap(OneDriveFiles.entry) else { return nil }
        return try isSame(upload, entry, check) ? response : nil
    }

    // MARK: Deleting

    package func delete(_ names: [String], _ check: Check) throws {
        let requests = names.map { account.request(.delete, address(of: $0), "Deleting \($0)") }
        for (request, outcome) in zip(requests, try client.perform(requests, check)) {
            let response = try outcome.get()
            guard response.isSuccess || response.status == 404 else { throw OneDriveFiles.error(response, request.what) }
        }
    }

    // MARK: Responses

    private static let judge: @Sendable (HTTPResponse, HTTPRequest) -> HTTPVerdict = { response, request in
        switch response.status {
        case 429, 509: .tooMany
        case 500: request.repeats ?? request.method.isRepeatable ? .passing : .plain
        default: .plain
        }
    }

    private static let error: CloudAccount.Failure = { response, what in
        let kind: CloudAccount.Kind? =
            switch (response.status, try? CloudAnswer(response)?["error"]?["code"]?.string) {
            case (507, _), (_, "quotaLimitReached"?): .full
            case (403, _):
                .mayNot(
                    "the token may not do this. Sign in with the scope Files.ReadWrite, or with Files.ReadWrite.AppFolder for "
                        + "space=approot.")
            case (429, _), (509, _): .tooMany
            default: nil
            }
        return CloudAccount.failure(response, what, kind)
    }
}
