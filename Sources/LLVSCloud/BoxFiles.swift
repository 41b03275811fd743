/// Files below a folder of Box (version 2.0 of its interface).
///
/// Files and folders are addressed by ids from listings. Each opened exchange resolves the path to the place once; afterwards the account's
/// events report changes to it. Names in a folder that differ only in case are not allowed.
package final class BoxFiles: RemoteFiles, @unchecked Sendable {
    // Sendable: `lock` guards the mutable state; `names` and the account have locks of their own.
    static let service = CloudFolder.Service(
        name: "Box", scheme: "box", endpoint: "https://api.box.com/", tokens: "https://api.box.com/oauth2/token",
        tokenPath: "oauth2/token", rate: 12, uploadRate: 3, uploads: "https://upload.box.com/")
    static let fields = "name,size,sha1,parent"
    private static let pageSize = 1_000

    let account: CloudAccount
    let names = CloudNames()
    private let lock = Lock(.leaf)
    /// Guarded by the lock.
    private var known = BoxKnowledge()

    var place: CloudFolder { account.place }
    var client: HTTPClient { account.client }
    package var description: String { place.description }
    package var usualDescription: @Sendable () -> String { { [place] in place.usualDescription } }
    package var capabilities: RemoteCapabilities {
        var found = RemoteCapabilities(requestsToPublish: 1, isExclusive: true, hasRanges: account.hasRanges, hasFeed: true)
        found.tellsDigests = true
        found.sessionsAbove = BoxFiles.sessionSize - 1
        return found
    }
    package var counts: RemoteCounts { account.counts }
    package func account(_ check: Check?) throws -> String? { account.user }

    /// - Parameters:
    ///   - tokens: provides tokens instead of the credentials in the settings.
    ///   - mustExist: whether a missing place is an error instead of being created.
    init(_ place: CloudFolder, tokens: (any TokenKeeper)?, settings: HTTPSettings, mustExist: Bool) {
        account = CloudAccount(
            place, tokens: tokens, settings: settings, mustExist: mustExist, judge: BoxFiles.judge, failure: BoxFiles.error)
    }
    package func close() {
        forget()
        account.close()
    }

    // MARK: Entries

    static func entry(_ item: CloudAnswer) -> CloudEntry? {
        guard let id = item["id"]?.string, let name = item["name"]?.string, BoxFiles.isID(id) else { return nil }
        return CloudEntry(
            id: id, name: name, parents: [item["parent"]?["id"]?.string].compactMap { $0 }, size: item["size"]?.count,
            isFolder: item["type"]?.string == "folder", made: "", digest: item["sha1"]?.string)
    }
    /// Returns whether it is an id that can be part of an address.
    static func isID(_ id: String) -> Bool { RemoteName.isComponent(id) }

    /// Returns all items of a folder, page by page; nil if it is gone.
    private func items(_ folder: String, _ doing: String, _ check: Check) throws -> [CloudEntry]? {
        var found: [CloudEntry] = [], marker: String?, pages = CloudPages()
        while true {
            var query = [("usemarker", "true"), ("limit", "\(BoxFiles.pageSize)"), ("fields", BoxFiles.fields)]
            if let marker { query.append(("marker", marker)) }
            let request = account.request(.get, place.address("2.0/folders/\(folder)/items", query), doing)
            guard let page = try account.ask(request, check) else { return nil }
            guard let entries = page["entries"] else { throw account.unusable(request.what, "holds no list") }
            for item in entries.elements {
                guard let entry = BoxFiles.entry(item) else { continue }
                try Memory.grow(&found, "A listing")
                found.append(entry)
            }
            guard let next = page["next_marker"]?.string, !next.isEmpty else { return found }
            guard pages.goOn(to: next, behind: entries.elements.count) else {
                throw account.unusable(request.what, "is a list that does not end")
            }
            marker = next
        }
    }

    // MARK: Folders

    /// Discards all knowledge that may be outdated.
    func forget() {
        lock.withLock { known.forget() }
        names.forgetAll()
    }

    /// Returns the id of a directory; nil if it is missing. Folders that differ only in case are one.
    func folder(_ directory: String, _ check: Check) throws -> String? { try walk(directory, check).last ?? nil }

    /// Returns the ids along the path to a directory; nil where it ends.
    private func walk(_ directory: String, _ check: Check) throws -> [String?] {
        var ids: [String?] = ["0"]
        for name in place.way(to: directory) {
            guard let parent = ids.last ?? nil else { break }
            if let inner = lock.withLock({ known.inner(parent, name) }) { ids.append(inner); continue }
            guard !lock.withLock({ known.isListed(parent) }) else { ids.append(nil); break }
            guard let items = try items(parent, "Finding a folder", check) else { ids.append(nil); break }
            lock.withLock { known.list(parent, items) }
            ids.append(lock.withLock { known.inner(parent, name) })
        }
        return ids
    }

    /// Creates the missing folders on the path to a directory. Returns its id.
    func make(_ directory: String, _ check: Check) throws -> String? {
        let components = place.way(to: directory)
        let there = try walk(directory, check).compactMap { $0 }
        guard var parent = there.last else { return nil }
        for depth in components.indices.dropFirst(there.count - 1) {
            guard depth >= place.path.count || !account.mustExist else { throw account.missing() }
            let body = CloudJSON.object([("name", .text(components[depth])), ("parent", .object([("id", .text(parent))]))])
            let request = account.request(.post, place.address("2.0/folders", [("fields", BoxFiles.fields)]), "Making a folder", body)
            let response = try client.perform(request, check)
            if response.status == 404 { return nil }
            var made: CloudEntry?
            if response.isSuccess { made = BoxFiles.entry(try account.json(response, request.what)) }
            // Lists do not show it yet, another device was faster, or a response was lost.
            if response.status == 409 { made = BoxFiles.conflict(response) }
            guard let made else { throw BoxFiles.error(response, request.what) }
            guard made.isFolder else { throw account.noFolder(components[depth]) }
            lock.withLock { known.add(parent, components[depth], made.id) }
            parent = made.id
        }
        return parent
    }

    // MARK: Listing

    package func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        try follow(check)
        if let files = names.directory(directory), files.token != nil { return files.entries }
        for isAnew in [false, true] {
            if isAnew { forget() }
            guard let id = try folder(directory, check) else {
                if account.mustExist, try folder("", check) == nil { throw account.missing() }
                // Next time the missing folder is looked up again.
                lock.withLock { known.lookAgain() }
                return nil
            }
            guard let items = try items(id, "Listing \(directory)/", check) else { continue }
            return take(directory, id, items).entries
        }
        return nil
    }

    private func take(_ directory: String, _ id: String, _ items: [CloudEntry]) -> CloudDirectory {
        let files = CloudDirectory(items, in: [id], token: "")
        lock.withLock {
            known.list(id, items)
            known.directories[directory] = id
            for item in items { known.shown(item.id, in: directory) }
        }
        names.set(directory, files)
        return files
    }

    /// Reads the account's events since the last call. They are only hints: directories that they touch are listed again.
    private func follow(_ check: Check) throws {
        guard let since = lock.withLock({ known.position }) else {
            forget()
            let begin = try events("now", check)
            lock.withLock { known.position = begin?.next }
            return
        }
        var position = since
        for _ in 0..<100 {
            guard let page = try events(position, check) else { break }
            for event in page.entries { take(event) }
            lock.withLock { known.position = page.next }
            if page.entries.isEmpty || page.next == position {
                for directory in lock.withLock({ known.awaited() }) { names.forget(directory) }
                return
            }
            position = page.next
        }
        // The service does not know the position, or reports too many events: all is listed.
        forget()
    }

    /// Returns a page of events; nil if the service does not know the position.
    private func events(_ position: String, _ check: Check) throws -> (entries: [CloudAnswer], next: String)? {
        let query = [("stream_type", "changes"), ("stream_position", position), ("limit", "500")]
        let request = account.request(.get, place.address("2.0/events", query), "Asking for changes")
        let response = try client.perform(request, check)
        if [400, 404, 410].contains(response.status), position != "now" { return nil }
        guard response.isSuccess else { throw BoxFiles.error(response, request.what) }
        let page = try account.json(response, request.what)
        let next = page["next_stream_position"]
        guard let next = next?.string ?? next?.count.map(String.init), !next.isEmpty else {
            throw account.unusable(request.what, "does not say where the events continue")
        }
        return (page["entries"]?.elements ?? [], next)
    }

    private func take(_ event: CloudAnswer) {
        guard let source = event["source"], let id = source["id"]?.string else { return }
        let entry = BoxFiles.entry(source), parent = entry?.parents.first, type = event["event_type"]?.string
        let isGone = parent == nil || type == "ITEM_TRASH" || source["item_status"]?.string.map { $0 != "active" } ?? false
        if lock.withLock({ known.isOnTheWay(id) && (isGone || !known.isKnown(entry)) }) { return forget() }
        // The entry may be a folder that was looked up before.
        if entry?.isFolder ?? false { lock.withLock { if !known.isKnown(entry) { known.unlist(parent) } } }
        for (directory, folder) in lock.withLock({ known.directories }) {
            let files = names.directory(directory), wasThere = files?.contains(id) ?? false
            let isThere = !isGone && parent == folder
            // The change is this exchange's own, or was already known.
            if isThere, wasThere, let entry, files?.entry(entry.name)?.digest == entry.digest { continue }
            if wasThere || isThere { names.forget(directory) }
            lock.withLock { if isThere { known.expect(id, in: directory) } else { known.shown(id, in: directory) } }
        }
    }

    // MARK: Ids of files

    /// Returns for each name its file; nil if it is missing.
    /// - Parameter looked: directories already listed in this call, which are not listed again.
    func entries(_ names: [String], _ looked: inout Set<String>, isAnew: Bool = false, _ check: Check) throws -> [CloudEntry?] {
        for directory in Set(names.map { RemoteName.split($0).directory }) where !looked.contains(directory) {
            if !isAnew, self.names.directory(directory)?.token != nil { continue }
            if !isAnew, names.allSatisfy({ RemoteName.split($0).directory != directory || self.names.entry($0) != nil }) { continue }
            looked.insert(directory)
            for isAgain in [false, true] {
                if isAnew || isAgain { lock.withLock { known.lookAgain() } }
                guard let id = try folder(directory, check) else { self.names.forget(directory); break }
                guard let items = try items(id, "Finding files in \(directory)/", check) else { continue }
                _ = take(directory, id, items)
                break
            }
        }
        return names.map { self.names.entry($0) }
    }

    // MARK: Reading

    package func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents] {
        var contents: [RemoteContents] = files.map { _ in .missing }
        var left = Array(files.indices), looked: Set<String> = [], trouble = ServiceTrouble()
        for isAnew in [false, true] where !left.isEmpty {
            var asked: [(index: Int, request: HTTPRequest)] = []
            for (i, entry) in zip(left, try entries(left.map { files[$0].name }, &looked, isAnew: isAnew, check)) {
                guard let entry, !entry.isFolder else { continue }
                // Redirects to another host, which does not get the token.
                var request = account.request(.get, place.address("2.0/files/\(entry.id)/content"), "Reading \(files[i].name)")
                request.sink = .kept(limit: files[i].limit)
                request.range = files[i].range
                asked.append((i, request))
            }
            for ((i, request), outcome) in zip(asked, try client.perform(asked.map(\.request), check)) {
                contents[i] = try trouble.reading { try account.contents(request, outcome) }
            }
            // A deleted file may have been created again by another device, under another id.
            left = left.filter { i in
                guard case .missing = contents[i] else { return false }
                return !looked.contains(RemoteName.split(files[i].name).directory)
            }
        }
        try trouble.end(reading: contents) { try look(files.first?.name, check) }
        return contents
    }

    // MARK: Deleting

    package func delete(_ names: [String], _ check: Check) throws {
        var looked: Set<String> = []
        let there = zip(names, try entries(names, &looked, check)).compactMap { name, entry in entry.map { (name, $0) } }
        let requests = there.map { name, entry in
            account.request(.delete, place.address("2.0/\(entry.isFolder ? "folders" : "files")/\(entry.id)"), "Deleting \(name)")
        }
        for ((name, _), (request, outcome)) in zip(there, zip(requests, try client.perform(requests, check))) {
            let response = try outcome.get()
            guard response.isSuccess || response.status == 404 else { throw BoxFiles.error(response, request.what) }
            self.names.forgetFile(name)
        }
    }

    // MARK: Responses

    static func code(_ response: HTTPResponse) -> String? { try? CloudAnswer(response)?["code"]?.string }

    /// Returns the item that has the name already, from the response to creating another.
    static func conflict(_ response: HTTPResponse) -> CloudEntry? {
        guard let conflicts = try? CloudAnswer(response)?["context_info"]?["conflicts"] else { return nil }
        return (conflicts.isObject ? conflicts : conflicts.elements.first).flatMap(BoxFiles.entry)
    }

    private static let judge: @Sendable (HTTPResponse, HTTPRequest) -> HTTPVerdict = { response, request in
        switch response.status {
        // The file is not ready yet; Retry-After says when it will be.
        case 202: .passing
        case 409 where ["name_temporarily_reserved", "operation_blocked_temporary"].contains(code(response)): .passing
        // Bytes damaged in transit, or a failing service.
        case 412, 500: request.repeats == true ? .passing : .plain
        default: .plain
        }
    }

    static let error: CloudAccount.Failure = { response, what in
        switch (response.status, code(response)) {
        case (403, "storage_limit_exceeded"?): return CloudAccount.failure(response, what, .full)
        case (403, "file_size_limit_exceeded"?), (413, _): return CloudAccount.failure(response, what, .tooLarge)
        case (202, _), (409, _): return CloudAccount.failure(response, what, .passing)
        case (403, _):
            let advice = "the token may not do this. Sign in with an app that may read and write all files and folders (root_readwrite)."
            return CloudAccount.failure(response, what, .mayNot(advice))
        default: return CloudAccount.failure(response, what, nil)
        }
    }
}
