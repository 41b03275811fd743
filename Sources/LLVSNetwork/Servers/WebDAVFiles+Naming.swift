/// Publishes uploaded files under their names: by MOVE, unless the server does not support it.
extension WebDAVFiles {
    /// How files get their names at a server.
    enum Naming: Equatable {
        /// By MOVE, with a destination of this form.
        case move(HTTPRequest.Destination.Form)
        /// The server does not support MOVE: a file is uploaded under its name.
        case upload
    }

    /// Publishes uploaded files under their names.
    func move(_ files: [RemoteUpload], _ staged: [String], _ check: Check) throws -> [RemotePublished] {
        let moves = zip(files, staged).map { file, name in (from: name, to: file.name, replaces: file.replaces) }
        var moved = try move(moves, check)
        // The destination's folder may be missing: 409 by the standard, 403, 404 or 500 by some servers.
        let again = moved.indices.filter { [403, 404, 409, 500].contains(moved[$0].status) }
        if !again.isEmpty {
            for directory in Set(again.map { Paths.parent(of: files[$0].name) }) { try make(directory, check) }
            for (i, one) in zip(again, try move(again.map { moves[$0] }, check)) { moved[i] = one }
        }
        return try moved.indices.map { i in
            if files[i].isNamedByContent, WebDAVFiles.doesNotMove.contains(moved[i].status) {
                let published = try putInPlace(files[i], check)
                naming = .upload
                discard([staged[i]], check)
                return published
            }
            return try settle(files[i], moved[i], check)
        }
    }

    typealias Move = (from: String, to: String, replaces: Bool)
    /// A MOVE, and its result.
    struct Moved {
        let request: HTTPRequest
        let outcome: HTTPClient.Outcome
        /// 0 if there was no answer.
        var status: Int { (try? outcome.get())?.status ?? 0 }
        /// Whether the server understood the form of the destination. 409 means that its folder is missing.
        var isSettled: Bool { [200, 201, 204, 409, 412].contains(status) }
        /// Whether the server may accept another form of the destination.
        var isOfDestination: Bool { [400, 502].contains(status) }
    }
    /// Statuses of servers that do not support MOVE, or not to this destination.
    private static let doesNotMove: Set<Int> = [400, 405, 501, 502]

    /// Moves files, with the form of the destination that the server accepts. If TLS ends at a proxy, the server receives HTTP and
    /// refuses a destination with https. Most servers then accept the path alone; Apache requires an address with http.
    func move(_ moves: [Move], _ check: Check) throws -> [Moved] {
        // Find out the form with one file first, so that not all of them are refused.
        if naming == nil, moves.count > 1 {
            return try moveAll(Array(moves.prefix(1)), check) + moveAll(Array(moves.dropFirst()), check)
        }
        return try moveAll(moves, check)
    }
    private func moveAll(_ moves: [Move], _ check: Check) throws -> [Moved] {
        var forms: [HTTPRequest.Destination.Form] = base.origin.scheme == "https" ? [.address, .path, .plainAddress] : [.address, .path]
        if case .move(let known) = naming { forms = [known] + forms.filter { $0 != known } }
        var moved: [Moved] = [], left = Array(moves.indices)
        for form in forms {
            let requests = left.map { i in
                var request = HTTPRequest(method: .move, address: address(moves[i].from), doing: "Publishing")
                request.headers = [("Overwrite", moves[i].replaces ? "T" : "F")]
                request.destination = HTTPRequest.Destination(address: address(moves[i].to), form: form)
                // Another form will be tried. After the last one, 502 is a failure that may pass.
                if form != forms.last { request.finalStatuses = [502] }
                return request
            }
            let found = zip(requests, try client.perform(requests, check)).map { Moved(request: $0, outcome: $1) }
            if moved.isEmpty { moved = found }
            for (i, one) in zip(left, found) { moved[i] = one }
            if found.contains(where: \.isSettled) { naming = .move(form) }
            left = left.filter { moved[$0].isOfDestination }
            if left.isEmpty { break }
        }
        return moved
    }

    /// Uploads a file under its final name, for servers without MOVE. If the upload is cut off, a partial file has that name. So this is
    /// for names with a digest of the bytes: a file of such a name always has the same content, and is replaced.
    func putInPlace(_ file: RemoteUpload, _ check: Check) throws -> RemotePublished {
        let directories = [Paths.parent(of: file.name)]
        try performAll([put(file.name, file.data, check)], making: directories, isMissing: { [403, 404, 409, 500].contains($0) }, check)
        return .published
    }

    private func settle(_ file: RemoteUpload, _ moved: Moved, _ check: Check) throws -> RemotePublished {
        let what = "Publishing \(address(file.name).shown)"
        switch moved.outcome {
        case .success(let response):
            switch response.status {
            case 200, 201, 204: return .published
            case 412 where !file.replaces: return .exists
            case 404, 412, 500...599: if try isThere(file, check) { return .published }
            case 409, 423: return .refused(HTTPFailure.error(response, what))
            default: break
            }
            throw WebDAVFiles.error(response, what)
        case .failure(let error):
            // It is unknown whether the server carried out the request.
            guard error.code == .transport, try isThere(file, check) else { throw error }
            return .published
        }
    }

    private static func error(_ response: HTTPResponse, _ what: String) -> StoreError {
        var error = HTTPFailure.error(response, what)
        switch response.status {
        case 400, 502:
            error.message =
                "\(what) failed: the server answers \(response.status) to MOVE. If a proxy in front of it ends TLS, the proxy must pass "
                + "the header Destination on with http: instead of https: (Apache: RequestHeader edit Destination ^https: http: early; "
                + "nginx: proxy_set_header Destination). Otherwise ask the server's operator, or use packs (layout=packed)."
        case 405, 501:
            error.message =
                "\(what) failed: the server answers \(response.status): it does not know MOVE, by which files get their names there. "
                + "Use packs (layout=packed), which need no MOVE, or another server."
        default: break
        }
        return error
    }
}
