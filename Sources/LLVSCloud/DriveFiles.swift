/// Files below a folder of Google Drive (version 3 of its interface).
///
/// Names are not unique there. Folders of one name are read as one, and written to the oldest; of files of one name the oldest counts. New
/// items get their ids in advance, so that a creation whose response was lost can be repeated without a duplicate.
package final class DriveFiles: RemoteFiles, @unchecked Sendable {
    // Sendable: `names`, `known` and the account have locks of their own.
    static let service = CloudFolder.Service(
        name: "Google Drive", scheme: "gdrive", endpoint: "https://www.googleapis.com/", tokens: "https://oauth2.googleapis.com/token",
        tokenPath: "token", rate: 20, spaces: ["appdata"])
    private static let folderType = "application/vnd.google-apps.folder"
    /// Smaller files are sent with their names in one request.
    static let wholeSize = 5_000_000
    private static let pageSize = 1_000, namesAtOnce = 40

    let account: CloudAccount
    let known: DriveKnowledge
    let names = CloudNames()

    var place: CloudFolder { account.place }
    var client: HTTPClient { account.client }
    package var description: String { place.description }
    package var usualDescription: @Sendable () -> String { { [place] in place.usualDescription } }
    package var capabilities: RemoteCapabilities {
        var found = RemoteCapabilities(requestsToPublish: 1, isExclusive: false, hasRanges: account.hasRanges, hasFeed: true)
        found.tellsDigests = true
        found.sessionsAbove = DriveFiles.wholeSize
        return found
    }
    package var counts: RemoteCounts { account.counts }
    package func account(_ check: Check?) throws -> String? { account.user }

    /// - Parameters:
    ///   - tokens: provides tokens instead of the credentials in the settings.
    ///   - mustExist: whether a missing place is an error instead of being created.
    init(_ place: CloudFolder, tokens: (any TokenKeeper)?, settings: HTTPSettings, mustExist: Bool) {
        account = CloudAccount(
            place, tokens: tokens, settings: settings, mustExist: mustExist, judge: DriveFiles.judge, failure: DriveFiles.error)
        known = .shared(of: place, account: account.name)
    }
    package func close() {
        names.forgetAll()
        account.close()
    }

    // MARK: Requests

    var top: String { place.space == nil ? "root" : "appDataFolder" }
    /// The parameter `spaces` of queries.
    private var spaces: [(String, String)] { place.space == nil ? [] : [("spaces", "appDataFolder")] }
    static let fields = "id,name,parents,size,mimeType,createdTime,sha256Checksum"

    func request(_ method: HTTPRequest.Method, _ path: String, _ query: [(String, String)], _ doing: String) -> HTTPRequest {
        account.request(method, place.address(path, query), doing)
    }

    private static func literal(_ text: String) -> String {
        var quoted = Array("'".utf8)
        for byte in text.utf8 {
            if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\\") { quoted.append(UInt8(ascii: "\\")) }
            quoted.append(byte)
        }
        return String(decoding: quoted + "'".utf8, as: UTF8.self)
    }
    private static func any(_ terms: [String]) -> String { "(" + terms.joined(separator: " or ") + ")" }

    static func entry(_ file: CloudAnswer) -> CloudEntry? {
        guard let id = file["id"]?.string, let name = file["name"]?.string, DriveFiles.isID(id) else { return nil }
        return CloudEntry(
            id: id, name: name, parents: file["parents"]?.elements.compactMap(\.string) ?? [], size: file["size"]?.count,
            isFolder: file["mimeType"]?.string == folderType, made: file["createdTime"]?.string ?? "",
            digest: file["sha256Checksum"]?.string)
    }
    /// Returns whether it is an id that can be part of an address.
    static func isID(_ id: String) -> Bool { RemoteName.isComponent(id) }

    /// Returns all results of a query, page by page; nil if a folder that it names is gone.
    /// - Parameter onMore: called once if the first page is not the last; true: the query is repeated.
    private func search(_ query: String, _ doing: String, _ check: Check, onMore: () throws -> Bool = { false }) throws -> [CloudEntry]? {
        var found: [CloudEntry] = [], token: String?, pages = CloudPages(), hasTold = false
        while true {
            var parameters =
                [
                    ("q", query), ("pageSize", "\(DriveFiles.pageSize)"),
                    ("fields", "nextPageToken,incompleteSearch,files(\(DriveFiles.fields))"),
                ] + spaces
            if let token { parameters.append(("pageToken", token)) }
            let request = request(.get, "drive/v3/files", parameters, doing)
            guard let page = try account.ask(request, check) else { return nil }
            guard page["incompleteSearch"]?.bool != true else {
                throw account.unusable(request.what, "is incomplete, according to the service")
            }
            guard let files = page["files"] else { throw account.unusable(request.what, "holds no list") }
            let next = page["nextPageToken"]?.string
            if next != nil, !hasTold {
                hasTold = true
                if try onMore() { continue }
            }
            for file in files.elements {
                guard let entry = DriveFiles.entry(file) else { continue }
                try Memory.grow(&found, "A listing")
                found.append(entry)
            }
            guard let next else { return found }
            guard pages.goOn(to: next, behind: files.elements.count) else {
                throw account.unusable(request.what, "is a list that does not end")
            }
            token = next
        }
    }

    // MARK: Folders

    /// Returns the clause of a query that finds all folders on the path to a directory.
    private func folders(_ components: [String]) -> String {
        let isFolder = "mimeType = \(DriveFiles.literal(DriveFiles.folderType))"
        guard let first = components.first else { return "" }
        let rest = components.dropFirst().map { "name = \(DriveFiles.literal($0))" }
        let atTop = "(\(DriveFiles.literal(top)) in parents and name = \(DriveFiles.literal(first)))"
        return "(\(isFolder) and \(DriveFiles.any([atTop] + rest)))"
    }

    /// Returns for each step of a path its folders, oldest first. Includes folders just created, even if lists do not show them yet.
    private func resolve(_ components: [String], _ check: Check) throws -> [[String]] {
        guard let first = components.first else { return [] }
        let isFolder = "mimeType = \(DriveFiles.literal(DriveFiles.folderType))"
        if known.root == nil, components.dropFirst().contains(first) {
            // Without this query, a folder of that name at the top could not be distinguished from one further down.
            let query = "\(DriveFiles.literal(top)) in parents and name = \(DriveFiles.literal(first)) and \(isFolder) and trashed = false"
            if let root = try search(query, "Finding a folder", check)?.first?.parents.first { known.root = root }
        }
        let found = try search("\(folders(components)) and trashed = false", "Finding a folder", check) ?? []
        if known.root == nil, !components.dropFirst().contains(first) { known.root = found.first { $0.name == first }?.parents.first }
        return try chain(components, found, check)
    }

    /// As `DriveKnowledge.chain`, but includes folders just created that lists do not show yet; these are looked up by id.
    private func chain(_ components: [String], _ found: [CloudEntry], _ check: Check) throws -> [[String]] {
        var found = found
        for made in known.unseen(components, found) {
            let query = [("fields", "\(DriveFiles.fields),trashed")]
            let there = try account.ask(request(.get, "drive/v3/files/\(made.id)", query, "Checking a folder"), check)
            guard let there, there["trashed"]?.bool != true, let entry = DriveFiles.entry(there) else {
                known.forgetMade(made.id)
                continue
            }
            found.append(entry)
        }
        return known.chain(components, found)
    }

    func folder(_ directory: String, _ check: Check) throws -> [String] {
        if place.path.isEmpty, directory.isEmpty { return [top] }
        if let ids = known.folder(directory), !ids.isEmpty { return ids }
        let ids = try resolve(place.way(to: directory), check).last ?? []
        known.setFolder(directory, ids)
        return ids
    }

    /// Creates the missing folders on the path to a directory.
    func make(_ directory: String, _ check: Check) throws -> [String] {
        let components = place.way(to: directory)
        var parent = top
        for (depth, (name, there)) in zip(components, try resolve(components, check)).enumerated() {
            if let first = there.first { parent = first; continue }
            guard depth >= place.path.count || !account.mustExist else { throw account.missing() }
            guard let id = try newIDs(1, check).first else { break }
            let body = CloudJSON.object([
                ("id", .text(id)), ("name", .text(name)), ("mimeType", .text(DriveFiles.folderType)), ("parents", .list([parent])),
            ])
            let address = place.address("drive/v3/files", [("fields", DriveFiles.fields)])
            let request = account.request(.post, address, "Making a folder", body)
            let response = try client.perform(request, check)
            guard response.isSuccess || response.status == 409 else { throw DriveFiles.error(response, request.what) }
            let answer = try CloudAnswer(response).flatMap(DriveFiles.entry)
            if depth == 0, let root = answer?.parents.first { known.root = root }
            known.made(
                CloudEntry(
                    id: id, name: name, parents: answer?.parents ?? [parent], size: nil, isFolder: true, made: answer?.made ?? "~"))
            parent = id
        }
        known.setFolder(directory, [parent])
        return [parent]
    }

    /// Discards all knowledge that may be outdated.
    func forget() {
        known.forgetFolders()
        names.forgetAll()
    }

    /// Returns ids that the service assigns in advance.
    func newIDs(_ count: Int, _ check: Check) throws -> [String] {
        while true {
            if let ids = known.takeIDs(count) { return ids }
            let wanted = min(1_000, max(count, DriveKnowledge.idsAtOnce))
            let space = [("space", place.space == nil ? "drive" : "appDataFolder")]
            let request = request(.get, "drive/v3/files/generateIds", [("count", "\(wanted)")] + space, "Asking for ids")
            let ids = try account.ask(request, check)?["ids"]?.elements.compactMap(\.string).filter(DriveFiles.isID) ?? []
            guard ids.count >= min(count, wanted), !ids.isEmpty else {
                throw account.unusable(request.what, "holds too few of them")
            }
            known.addIDs(ids)
        }
    }

    // MARK: Listing

    package func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        if let entries = try listByFeed(directory, check) { return entries }
        let components = place.way(to: directory), isTop = components.isEmpty
        for _ in 0..<3 {
            let ids = try folder(directory, check)
            guard !ids.isEmpty else {
                if account.mustExist, try folder("", check).isEmpty { throw account.missing() }
                names.forget(directory)
                return nil
            }
            let inside = DriveFiles.any(ids.map { "\(DriveFiles.literal($0)) in parents" })
            let query = (isTop ? inside : "(\(inside) or \(folders(components)))") + " and trashed = false"
            var start: String?
            let found = try search(query, "Listing \(directory)/", check) {
                start = try startToken(check)
                return true
            }
            guard let found else { forget(); continue }
            // The query also returns the folders on the path: one that was moved, renamed or deleted is no longer this directory.
            let now = isTop ? ids : try chain(components, found, check).last ?? []
            guard Set(now) == Set(ids) else {
                known.setFolder(directory, now)
                continue
            }
            let parents = Set(ids)
            let inner = isTop ? found : found.filter { !parents.isDisjoint(with: $0.parents) }
            let files = CloudDirectory(inner, in: ids, token: start)
            names.set(directory, files)
            return files.entries
        }
        throw account.changesAllTheTime("Listing \(directory)/")
    }

    private func startToken(_ check: Check) throws -> String {
        let request = request(.get, "drive/v3/changes/startPageToken", [], "Asking for changes")
        guard let token = try account.ask(request, check)?["startPageToken"]?.string, !token.isEmpty else {
            throw account.unusable(request.what, "holds no token")
        }
        return token
    }

    /// Returns a recent long listing, updated by the changes since; nil if the directory must be listed.
    private func listByFeed(_ directory: String, _ check: Check) throws -> [RemoteEntry]? {
        guard var files = names.directory(directory), var token = files.token else { return nil }
        guard let ids = known.folder(directory), ids == files.folders else { return nil }
        let way = Set(place.way(to: directory)), parents = Set(ids)
        for _ in 0..<100 {
            let fields = "nextPageToken,newStartPageToken,changes(fileId,removed,file(\(DriveFiles.fields),trashed))"
            let begin = [("pageToken", token), ("pageSize", "\(DriveFiles.pageSize)")]
            let query = begin + [("includeRemoved", "true"), ("fields", fields)] + spaces
            let request = request(.get, "drive/v3/changes", query, "Asking for changes"), response = try client.perform(request, check)
            // If the service rejects the token for any reason, all is listed.
            if [400, 404, 410].contains(response.status) { break }
            guard response.isSuccess else { throw DriveFiles.error(response, request.what) }
            let page = try account.json(response, request.what)
            guard page["changes"] != nil else { break }
            for change in page["changes"]?.elements ?? [] {
                guard let id = change["fileId"]?.string else { continue }
                let entry = change["removed"]?.bool == true ? nil : change["file"].flatMap(DriveFiles.entry)
                // The folder is, or may now be, on the path: the listing is no longer reliable.
                if known.isOnTheWay(id) || (entry?.isFolder ?? false && way.contains(entry?.name ?? "")) {
                    names.forget(directory)
                    return nil
                }
                let isThere = entry.map { !parents.isDisjoint(with: $0.parents) } ?? false && change["file"]?["trashed"]?.bool != true
                if isThere, let entry { try files.add(entry) } else { files.remove(id) }
            }
            if let last = page["newStartPageToken"]?.string {
                files.token = last
                names.set(directory, files)
                return files.entries
            }
            guard let next = page["nextPageToken"]?.string, next != token else { break }
            token = next
        }
        names.forget(directory)
        return nil
    }

    // MARK: Ids of files

    /// Returns for each name all ids, oldest first; none if there is no such file.
    /// - Parameter isAnew: ignores cached ids.
    func ids(_ names: [String], isAnew: Bool = false, _ check: Check) throws -> [[String]] {
        var found: [String: [String]] = [:], unknown: [String: [String]] = [:]
        for name in names {
            if !isAnew, let ids = self.names.file(name) { found[name] = ids; continue }
            unknown[RemoteName.split(name).directory, default: []].append(name)
        }
        for (directory, names) in unknown {
            var folders = try folder(directory, check)
            var at = 0, gone = 0
            while at < names.count, !folders.isEmpty {
                let some = Array(names[at...].prefix(DriveFiles.namesAtOnce))
                let inside = DriveFiles.any(folders.map { "\(DriveFiles.literal($0)) in parents" })
                let called = DriveFiles.any(some.map { "name = \(DriveFiles.literal(RemoteName.split($0).name))" })
                let query = "\(inside) and \(called) and trashed = false"
                guard let entries = try search(query, "Finding files in \(directory)/", check) else {
                    gone += 1
                    guard gone < 3 else { throw account.changesAllTheTime("Finding files in \(directory)/") }
                    forget()
                    folders = try folder(directory, check)
                    continue
                }
                for entry in entries.sorted(by: CloudEntry.isOlder) where !entry.isFolder {
                    found[directory.isEmpty ? entry.name : "\(directory)/\(entry.name)", default: []].append(entry.id)
                }
                at += some.count
            }
        }
        return names.map { found[$0] ?? [] }
    }

    // MARK: Reading

    package func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents] {
        var contents: [RemoteContents] = files.map { _ in .missing }
        var left = Array(files.indices), trouble = ServiceTrouble()
        for isAnew in [false, true] where !left.isEmpty {
            let isGuess = left.map { !isAnew && names.file(files[$0].name) != nil }
            var asked: [(index: Int, request: HTTPRequest)] = []
            for (i, ids) in zip(left, try ids(left.map { files[$0].name }, isAnew: isAnew, check)) {
                guard let id = ids.first else { continue }
                var request = request(.get, "drive/v3/files/\(id)", [("alt", "media")], "Reading \(files[i].name)")
                request.sink = .kept(limit: files[i].limit)
                request.range = files[i].range
                asked.append((i, request))
            }
            for ((i, request), outcome) in zip(asked, try client.perform(asked.map(\.request), check)) {
                contents[i] = try trouble.reading { try account.contents(request, outcome) }
            }
            // A deleted file may have been created again by another device, under another id.
            left = zip(left, isGuess).filter { i, isGuess in if case .missing = contents[i] { isGuess } else { false } }.map(\.0)
            for i in left { names.forgetFile(files[i].name) }
        }
        try trouble.end(reading: contents) { try look(files.first?.name, check) }
        return contents
    }

    // MARK: Deleting

    package func delete(_ names: [String], _ check: Check) throws {
        for (name, ids) in zip(names, try ids(names, check)) {
            try remove(ids, name, check)
            self.names.forgetFile(name)
        }
    }

    func remove(_ ids: [String], _ name: String, _ check: Check) throws {
        let requests = ids.map { request(.delete, "drive/v3/files/\($0)", [], "Deleting \(name)") }
        for (request, outcome) in zip(requests, try client.perform(requests, check)) {
            let response = try outcome.get()
            guard response.isSuccess || response.status == 404 else { throw DriveFiles.error(response, request.what) }
        }
    }

    // MARK: Responses

    static func reason(_ response: HTTPResponse) -> String? {
        guard let error = try? CloudAnswer(response)?["error"] else { return nil }
        return error["errors"]?.elements.first?["reason"]?.string ?? error["status"]?.string
    }

    /// Reasons for which waiting suffices.
    private static let rateLimits: Set = ["userRateLimitExceeded", "rateLimitExceeded", "sharingRateLimitExceeded"]

    private static let judge: @Sendable (HTTPResponse, HTTPRequest) -> HTTPVerdict = { response, request in
        switch response.status {
        case 403:
            rateLimits.contains(reason(response) ?? "") ? .tooMany : .plain
        case 500 where request.repeats == true: .passing
        default: .plain
        }
    }

    static let error: CloudAccount.Failure = { response, what in
        let kind: CloudAccount.Kind? =
            switch (response.status, reason(response)) {
            case (_, "storageQuotaExceeded"?), (_, "teamDriveFileLimitExceeded"?), (_, "activeItemCreationLimitExceeded"?): .full
            case (403, "dailyLimitExceeded"?), (403, "quotaExceeded"?): .tooMany
            case (403, let reason?) where rateLimits.contains(reason): .tooMany
            case (403, "accessNotConfigured"?):
                .mayNot("the app's project has no access to the service. Ask the maker of the app for it.")
            case (403, "insufficientPermissions"?), (403, "ACCESS_TOKEN_SCOPE_INSUFFICIENT"?):
                .mayNot("the token is not for files. Sign in with the scope drive.file, drive.appdata or drive.")
            default: nil
            }
        return CloudAccount.failure(response, what, kind)
    }
}
