import CNetwork

/// Files in a folder on an SSH server (SFTP version 3). They are written under another name and renamed, which does not replace.
package final class SFTPFiles: RemoteFiles, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// The address of the folder, with its slash.
    private let base: HTTPAddress
    /// The folder's path in commands: from the root, or from the user's own folder.
    private let path: String
    private let client: SFTPClient
    private let mustExist: Bool
    private let lock = Lock(.leaf)
    /// Folders that were missing when they were last listed.
    private var missing: Set<String> = []
    /// Days after which files of interrupted uploads are removed: one, and one more because listings do not contain the time zone.
    private static let daysOfLeftovers: Int64 = 2

    package var description: String { "the SFTP folder \(base.shown)" }
    package var usualDescription: @Sendable () -> String { { [base] in "the SFTP folder \(base.usual.shown)" } }
    package var capabilities: RemoteCapabilities {
        RemoteCapabilities(requestsToPublish: 2, isExclusive: true, hasRanges: true, hasFeed: false)
    }
    package var counts: RemoteCounts {
        let counts = client.counts
        return RemoteCounts(requests: counts.requests, bytesUp: counts.bytesUp, bytesDown: counts.bytesDown)
    }

    /// - Parameters:
    ///   - place: the URL behind "sftp:", divided. A path that begins with `/~/` is one below the user's own folder.
    ///   - mustExist: whether a missing folder is an error. Otherwise it is created.
    package init(_ place: Place, settings: HTTPSettings, mustExist: Bool) {
        base = place.address
        path = place.path
        self.mustExist = mustExist
        client = SFTPClient(settings, place: base.shown)
    }

    /// An address: `sftp://host[:port]/path`.
    package struct Place: Sendable {
        let address: HTTPAddress
        let path: String

        /// - Parameter rest: the part of the URL after "sftp:".
        package init(_ rest: String) throws(HTTPAddress.Refusal) {
            var address = try HTTPAddress("sftp:" + rest, schemes: ["sftp"])
            guard address.query.isEmpty else { throw HTTPAddress.Refusal(why: HTTPAddress.Refusal.onlyLayout) }
            if address.path.utf8.last != UInt8(ascii: "/") { address.path += "/" }
            guard let bytes = PercentCoding.decode(address.path.utf8), let path = String(validating: bytes, as: UTF8.self),
                !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F })
            else {
                throw HTTPAddress.Refusal(why: "its path is not percent-encoded text")
            }
            self.address = address
            self.path = path.utf8.starts(with: "/~/".utf8) ? String(decoding: Array(path.utf8.dropFirst(3)), as: UTF8.self) : path
        }
    }

    package func close() { client.close() }
    package func account(_ check: Check?) throws -> String? { try client.user(check) ?? (check == nil ? nil : "") }

    private func address(_ name: String) -> HTTPAddress { base.appending(name) }
    private func folder(_ name: String) -> HTTPAddress { name.isEmpty ? base : base.appending(name + "/") }

    /// Returns a path in the form for commands.
    private func quoted(_ name: String) -> String { SFTPFiles.quoted(path + name) }
    private static func quoted(_ path: String) -> String {
        var text = Array("\"".utf8)
        for byte in path.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { text.append(UInt8(ascii: "\\")) }
            text.append(byte)
        }
        return String(decoding: text, as: UTF8.self) + "\""
    }
    private func request(_ method: HTTPRequest.Method, _ address: HTTPAddress, _ doing: String) -> SFTPClient.Request {
        SFTPClient.Request(transfer: HTTPRequest(method: method, address: address, doing: doing))
    }
    /// - Parameter doing: the beginning of messages, before the address of the place: "Deleting versions/A in".
    private func commands(_ commands: [String], _ doing: String) -> SFTPClient.Request {
        var request = request(.post, base, doing)
        request.commands = commands
        request.repeats = false
        return request
    }

    // MARK: Listing

    package func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        guard let lines = try lines(directory, check) else {
            lock.withLock { _ = missing.insert(directory) }
            if !directory.isEmpty, mustExist, try lines("", check) == nil {
                throw StoreError(.notFound, "\(description) does not exist. Check the address, or let the exchange create it (must_exist).")
            }
            return nil
        }
        lock.withLock { _ = missing.remove(directory) }
        let now = Int64(Clock.now() + Clock.secondsFrom1970To2001)
        return lines.map { line in
            let age = withTimes ? SFTPListing.age(line.date, now: now) : nil
            return RemoteEntry(name: line.name, isDirectory: line.isDirectory, size: line.size, age: age)
        }
    }

    /// Lists a directory; nil if there is none.
    private func lines(_ directory: String, _ check: Check) throws -> [SFTPListing.Line]? {
        var request = request(.get, folder(directory), "Listing")
        let what = "The list of \(request.transfer.address.shown)"
        request.transfer.sink = .read { SFTPListing(what) }
        switch try client.perform(request, check) {
        case .success(.read(let reader)):
            guard let listing = reader as? SFTPListing else { throw StoreError(.internal, "The body of a response was not received.") }
            return try listing.lines()
        case .success: throw StoreError(.internal, "The body of a response was not received.")
        case .failure(let failure) where failure.result == CURLE_REMOTE_FILE_NOT_FOUND: return nil
        case .failure(let failure): throw failure.error
        }
    }

    // MARK: Reading

    package func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents] {
        let requests = files.map { file in
            var request = request(.get, address(file.name), "Reading")
            request.transfer.sink = .kept(limit: file.limit)
            request.transfer.range = file.range
            // Names of packs are digests, which the reader checks.
            request.isNamedByContent = file.name.utf8.starts(with: "pack1/".utf8)
            return request
        }
        return try zip(files, client.perform(requests, check)).map { file, outcome in
            switch outcome {
            case .success(.bytes(let bytes)): return .bytes(bytes, isWhole: file.range == nil)
            case .success(.file(let kept, let size)): return .large(TemporaryFileReader(kept, size: size))
            case .success(.read): throw StoreError(.internal, "The body of a response was not received.")
            case .failure(let failure):
                switch failure.result {
                case CURLE_REMOTE_FILE_NOT_FOUND: return .missing
                // The range is beyond the end of the file.
                case CURLE_BAD_DOWNLOAD_RESUME: return .bytes([], isWhole: false)
                // CURLE_SSH: a folder has the name, for example. If the connection is lost for good, the next attempt reports it.
                case CURLE_REMOTE_ACCESS_DENIED, CURLE_SSH: return .unreadable(failure.error)
                default:
                    guard failure.error.code == .tooLarge else { throw failure.error }
                    return .unreadable(failure.error)
                }
            }
        }
    }

    // MARK: Publishing

    package func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        for directory in Set(files.map { Paths.parent(of: $0.name) }) where lock.withLock({ missing.contains(directory) }) {
            try make(directory, check)
        }
        let staged = try files.map { _ in
            "tmp/\(try posix("Naming a file in", base.shown) { () throws(Errno) in try RandomName.random().hex })"
        }
        let uploads = try zip(files, staged).map { file, name in
            var request = request(.put, address(name), "Writing")
            request.transfer.body = try HTTPRequest.Body(file.data, check)
            request.after = renaming(name, file)
            request.repeats = false
            return request
        }
        var outcomes = try client.perform(uploads, check)
        // The target folder is missing.
        let again = outcomes.indices.filter { SFTPFiles.isMissing(outcomes[$0]) }
        if !again.isEmpty {
            for directory in Set(again.map { Paths.parent(of: files[$0].name) }) { try make(directory, check) }
            let renames = again.map { commands(renaming(staged[$0], files[$0]), "Publishing \(files[$0].name) in") }
            for (i, outcome) in zip(again, try client.perform(renames, check)) { outcomes[i] = outcome }
        }
        let published = try outcomes.indices.map { try settle(files[$0], outcomes[$0], check) }
        let left = published.indices.filter { if case .published = published[$0] { false } else { true } }
        try delete(left.map { staged[$0] }, check)
        return published
    }

    /// Returns the commands that rename an upload. A rename does not replace: an existing file is removed first, and is missing in between.
    private func renaming(_ name: String, _ file: RemoteUpload) -> [String] {
        (file.replaces ? ["*rm \(quoted(file.name))"] : []) + ["rename \(quoted(name)) \(quoted(file.name))"]
    }

    /// Returns whether a command failed because of a missing file.
    private static func isMissing(_ outcome: SFTPClient.Outcome) -> Bool {
        guard case .failure(let failure) = outcome else { return false }
        return failure.result == CURLE_QUOTE_ERROR && failure.said.contains(text: "No such file")
    }

    private func settle(_ file: RemoteUpload, _ outcome: SFTPClient.Outcome, _ check: Check) throws -> RemotePublished {
        guard case .failure(let failure) = outcome else { return .published }
        let parent = Paths.parent(of: file.name), name = RemoteName.split(file.name).name
        let isRename = failure.result == CURLE_QUOTE_ERROR
        guard isRename || failure.error.code == .transport, !failure.isOfPlace else { throw failure.error }
        guard let found = try lines(parent, check)?.first(where: { $0.name == name }) else { throw failure.error }
        if found.isDirectory {
            return .refused(StoreError(.foreignFile, "\(address(file.name).shown) is not a file. Move it away, and send again."))
        }
        // After a rename it is unknown whether the file is this one or another device's.
        if !isRename, found.size == file.data.size { return .published }
        if isRename, !file.replaces { return .exists }
        throw failure.error
    }

    /// Creates a folder, and missing ones above it.
    private func make(_ directory: String, _ check: Check) throws {
        var whole = "", all: [String] = []
        if !mustExist {
            if path.utf8.first == UInt8(ascii: "/") { whole = "/" }
            for component in path.split(separator: "/") {
                whole += component
                all.append("*mkdir \(SFTPFiles.quoted(whole))")
                whole += "/"
            }
        }
        whole = ""
        for component in directory.split(separator: "/") {
            whole += component
            all.append("*mkdir \(quoted(whole))")
            whole += "/"
        }
        if case .failure(let failure) = try client.perform(commands(all, "Making the folder \(directory) in"), check) {
            throw failure.error
        }
        guard try lines(directory, check) != nil else {
            throw StoreError(
                .permission,
                "Making the folder \(folder(directory).shown) failed: the server does not let the user create it. "
                    + "Ask its operator for that right, or use another address."
            )
        }
        lock.withLock { _ = missing.remove(directory) }
    }

    // MARK: Deleting

    package func delete(_ names: [String], _ check: Check) throws {
        let requests = names.map { commands(["rm \(quoted($0))"], "Deleting \($0) in") }
        for outcome in try client.perform(requests, check) {
            // A missing file counts as deleted.
            if case .failure(let failure) = outcome, !SFTPFiles.isMissing(outcome) { throw failure.error }
        }
    }

    package func prepareUploads(_ check: Check) throws {
        guard let there = try list("tmp", withTimes: true, check) else { return try make("tmp", check) }
        let old = there.filter {
            !$0.isDirectory && RemoteName.isComponent($0.name) && ($0.age ?? 0) > SFTPFiles.daysOfLeftovers * 86_400
        }
        try removeLeftovers(old.prefix(ExchangeLimits.batchCount).map { "tmp/\($0.name)" }, check)
    }
}
