/// Files on a WebDAV server (RFC 4918). Locks are not used: files are put under another name and moved.
package final class WebDAVFiles: RemoteFiles, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// The address of the collection, with its slash.
    let base: HTTPAddress
    let client: HTTPClient
    private let mustExist: Bool
    private let lock = Lock(.leaf)
    private var hasRanges: Bool?
    /// Folders that were missing when they were last listed.
    private var missing: Set<String> = []
    private var expat: Expat?
    /// How files get their names; nil: not known yet.
    var naming: Naming? {
        get { lock.withLock { knownNaming } }
        set { lock.withLock { knownNaming = newValue } }
    }
    private var knownNaming: Naming?

    package var description: String { "the WebDAV folder \(base.shown)" }
    package var usualDescription: @Sendable () -> String { { [base] in "the WebDAV folder \(base.usual.shown)" } }
    package var capabilities: RemoteCapabilities {
        RemoteCapabilities(requestsToPublish: 2, isExclusive: true, hasRanges: lock.withLock { hasRanges }, hasFeed: false)
    }
    package var counts: RemoteCounts {
        let counts = client.counts
        return RemoteCounts(requests: counts.requests, bytesUp: counts.bytesUp, bytesDown: counts.bytesDown)
    }

    /// - Parameter address: the address of the collection; a missing slash at its end is added.
    /// - Parameter mustExist: whether a missing collection is an error. Otherwise it is created.
    package init(_ address: HTTPAddress, settings: HTTPSettings, mustExist: Bool = false) {
        var base = address
        if base.path.utf8.last != UInt8(ascii: "/") { base.path += "/" }
        base.query = ""
        self.base = base
        self.mustExist = mustExist
        client = HTTPClient(settings.sharingPace(with: base), place: base.shown)
    }

    package func close() { client.close() }
    package func account(_ check: Check?) throws -> String? { try client.user(check) ?? (check == nil ? nil : "") }

    func address(_ name: String) -> HTTPAddress { base.appending(name) }
    private func collection(_ name: String) -> HTTPAddress { name.isEmpty ? base : base.appending(name + "/") }

    // MARK: Listing

    private static let wanted =
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><D:propfind xmlns:D=\"DAV:\"><D:prop><D:getcontentlength/><D:resourcetype/>"
    private static func question(withTimes: Bool) -> [UInt8] {
        Array((wanted + (withTimes ? "<D:getlastmodified/>" : "") + "</D:prop></D:propfind>").utf8)
    }

    package func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        let address = collection(directory)
        let listing = try find(address, depth: "1", withTimes: withTimes, check)
        guard let listing else {
            lock.withLock { _ = missing.insert(directory) }
            if !directory.isEmpty, mustExist, try find(base, depth: "0", withTimes: false, check) == nil {
                throw StoreError(.notFound, "\(description) does not exist. Check the address, or let the exchange create it (must_exist).")
            }
            return nil
        }
        return listing
    }

    /// Returns the entries at an address; nil if there is nothing.
    private func find(_ address: HTTPAddress, depth: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        let expat = try self.expat ?? NetworkLibraries.expat(for: base.shown)
        self.expat = expat
        var request = HTTPRequest(method: .propfind, address: address, doing: "Listing")
        request.headers = [("Depth", depth), ("Content-Type", "application/xml; charset=utf-8")]
        request.body = .bytes(WebDAVFiles.question(withTimes: withTimes))
        request.sink = .read { try WebDAVListing(of: address, expat: expat) }
        let response = try client.perform(request, check)
        if response.status == 404 || response.status == 410 { return nil }
        guard response.isSuccess else { throw HTTPFailure.error(response, request.what) }
        guard response.status == 207, case .read(let reader) = response.body, let listing = reader as? WebDAVListing else {
            throw StoreError(
                .transport,
                "\(request.what) failed: the server answers \(response.status) instead of a list. "
                    + "Check that the address is that of a WebDAV server."
            )
        }
        return try listing.entries(at: response.date)
    }

    // MARK: Reading

    package func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents] {
        let requests = files.map { file in
            var request = HTTPRequest(method: .get, address: address(file.name), doing: "Reading")
            request.sink = .kept(limit: file.limit)
            request.range = file.range
            return request
        }
        return try client.read(
            requests, nothingAt: address("tmp/nothing"), error: HTTPFailure.error,
            hasRanges: { isObeyed in
                lock.withLock { hasRanges = isObeyed }
            }, check)
    }

    // MARK: Publishing

    package func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        // Some servers close the connection if a folder is missing, so folders that are known to be missing are created first.
        for directory in Set(files.map { Paths.parent(of: $0.name) }) where lock.withLock({ missing.contains(directory) }) {
            try make(directory, check)
        }
        if naming == .upload, files.allSatisfy(\.isNamedByContent) { return try files.map { try putInPlace($0, check) } }
        let staged = try files.map { _ in try stage() }
        do {
            try put(files, staged, check)
            let published = try move(files, staged, check)
            try delete(published.indices.filter { if case .published = published[$0] { false } else { true } }.map { staged[$0] }, check)
            return published
        } catch let error as StoreError {
            // Delete the useless partial uploads. Those that cannot be deleted now are removed a day later.
            if error.httpStatus != 0 { discard(staged, check) }
            throw error
        }
    }

    private func stage() throws -> String {
        "tmp/\(try posix("Naming a file in", base.shown) { () throws(Errno) in try RandomName.random().hex })"
    }

    func put(_ name: String, _ data: OutgoingFile, _ check: Check) throws -> HTTPRequest {
        var request = HTTPRequest(method: .put, address: address(name), doing: "Writing")
        request.body = try HTTPRequest.Body(data, check)
        request.headers = [("Content-Type", "application/octet-stream")]
        return request
    }

    /// Uploads files under their temporary names.
    private func put(_ files: [RemoteUpload], _ staged: [String], _ check: Check) throws {
        let requests = try zip(files, staged).map { file, name in try put(name, file.data, check) }
        do { try performAll(requests, making: ["tmp"], isMissing: { [404, 409, 500].contains($0) }, check) } catch let error as StoreError {
            // Apache answers 500 if its disk is full. The disk is full if the server accepts only empty files.
            guard error.httpStatus == 500, try takes(0, check) else { throw error }
            do { try performAll(requests, making: [], isMissing: { _ in false }, check) } catch let error as StoreError {
                guard error.httpStatus == 500 else { throw error }
                // If other bytes of the same size fit, the server refuses the contents of the file.
                let most = files.reduce(0) { max($0, $1.data.size) }
                if most <= ExchangeLimits.wholeFileSize, try takes(most, check) {
                    var error = error
                    error.circumstance = .oneFile
                    throw error
                }
                var full = StoreError(
                    .noSpace,
                    "Writing to \(description) failed: the server answers 500, and accepts only empty files. Its disk, or the user's "
                        + "quota, is full: make room there, and exchange again.")
                full.httpStatus = 500
                throw full
            }
        }
    }
    /// Returns whether the server accepts a file of this size.
    private func takes(_ size: Int, _ check: Check) throws -> Bool {
        let name = try stage()
        let bytes = try posix("Making a file for", base.shown) { () throws(Errno) in try System.random(size) }
        let response = try client.perform(put(name, OutgoingFile(bytes), check), check)
        discard([name], check)
        return response.isSuccess
    }
    package func takesAnother(_ check: Check) throws -> Bool {
        let one = try stage(), other = try stage()
        defer { discard([one, other], check) }
        guard try client.perform(put(one, OutgoingFile([0]), check), check).isSuccess else { return false }
        if naming == .upload { return true }
        return try move([(from: one, to: other, replaces: false)], check).first?.outcome.get().isSuccess ?? false
    }

    /// Deletes files, ignoring errors.
    func discard(_ names: [String], _ check: Check) {
        _ = try? client.perform(names.map { HTTPRequest(method: .delete, address: address($0), doing: "Deleting") }, check)
    }

    /// Returns whether a file with the right size exists.
    func isThere(_ file: RemoteUpload, _ check: Check) throws -> Bool {
        let response = try client.perform(HTTPRequest(method: .head, address: address(file.name), doing: "Examining"), check)
        return response.status == 200 && response.length == file.data.size
    }

    /// - Parameter isMissing: the statuses that may mean a missing directory. It is then created, and the request repeated.
    func performAll(_ requests: [HTTPRequest], making directories: [String], isMissing: (Int) -> Bool, _ check: Check) throws {
        var left = requests, hasMade = false
        while true {
            var again: [HTTPRequest] = []
            for (request, outcome) in zip(left, try client.perform(left, check)) {
                let response = try outcome.get()
                if response.isSuccess { continue }
                guard !hasMade, isMissing(response.status) else { throw HTTPFailure.error(response, request.what) }
                again.append(request)
            }
            if again.isEmpty { return }
            for directory in directories { try make(directory, check) }
            hasMade = true
            left = again
        }
    }

    /// Creates a collection, and missing ones above it.
    func make(_ directory: String, _ check: Check) throws {
        var missing: [HTTPAddress] = [], next: HTTPAddress? = collection(directory)
        var last: HTTPResponse?
        while let address = next {
            let response = try makeOne(address, check)
            last = response
            // 405: it exists. Some servers report that differently; a later request shows whether it does.
            if response.isSuccess || response.status == 405 { break }
            guard response.status == 404 || response.status == 409, !mustExist || address != base else {
                throw HTTPFailure.error(response, "Making the folder \(address.shown)")
            }
            missing.append(address)
            next = WebDAVFiles.parent(of: address)
        }
        lock.withLock { _ = self.missing.remove(directory) }
        if next == nil, let last { throw HTTPFailure.error(last, "Making the folder \(collection(directory).shown)") }
        for address in missing.reversed() {
            let response = try makeOne(address, check)
            guard response.isSuccess || response.status == 405 else {
                throw HTTPFailure.error(response, "Making the folder \(address.shown)")
            }
        }
    }
    /// Creates one collection. If two devices create it at once, servers refuse one of them, report a lock, or fail (Apache, rclone and
    /// wsgidav, in this order). A second request then shows that it exists.
    private func makeOne(_ address: HTTPAddress, _ check: Check) throws -> HTTPResponse {
        let request = HTTPRequest(method: .makeCollection, address: address, doing: "Making the folder")
        let response = try client.perform(request, check)
        guard [403, 423, 500].contains(response.status) else { return response }
        let again = try client.perform(request, check)
        return again.isSuccess || again.status == 405 ? again : response
    }

    private static func parent(of address: HTTPAddress) -> HTTPAddress? {
        var above = address
        let inner = address.path.utf8.dropLast()
        guard let slash = inner.lastIndex(of: UInt8(ascii: "/")), slash < inner.endIndex, inner.count > 1 else { return nil }
        above.path = String(decoding: inner[...slash], as: UTF8.self)
        return above
    }

    // MARK: Deleting

    package func delete(_ names: [String], _ check: Check) throws {
        let requests = names.map { HTTPRequest(method: .delete, address: address($0), doing: "Deleting") }
        for (request, outcome) in zip(requests, try client.perform(requests, check)) {
            let response = try outcome.get()
            guard response.isSuccess || [404, 410].contains(response.status) else { throw HTTPFailure.error(response, request.what) }
        }
    }

    package func prepareUploads(_ check: Check) throws {
        // Create the folder before uploading instead of after a 409.
        guard let there = try list("tmp", withTimes: true, check) else { return try make("tmp", check) }
        let old = there.filter { !$0.isDirectory && RemoteName.isComponent($0.name) && ($0.age ?? 0) > 86_400 }
        try removeLeftovers(old.prefix(ExchangeLimits.batchCount).map { "tmp/\($0.name)" }, check)
    }
}
