/// A folder of an account at a cloud service: `gdrive:///path/to/folder?endpoint=https://host/&rate=20` (docs/cloud-drives.md).
package struct CloudFolder: Sendable {
    /// The properties of a service that are known without a request.
    package struct Service: Sendable {
        /// For messages: "Google Drive".
        var name: String
        /// The scheme of the URL, "gdrive".
        package var scheme: String
        /// The address of requests, ending with a slash.
        var endpoint: String
        /// Where tokens are renewed; below `endpoint` if the URL gives another.
        var tokens: String
        var tokenPath: String
        /// Requests per second.
        var rate: Double
        /// Uploads per second, if the service limits them separately.
        var uploadRate: Double?
        /// The allowed values of `space=`.
        var spaces: [String] = []
        /// The allowed values of `region=`, each with its endpoint.
        var regions: [String: String] = [:]
        /// The address of uploads, if it is another host; `endpoint` if the URL gives another.
        var uploads: String?
    }

    let service: Service
    /// The decoded folders of the path to the place; empty for the top of the account.
    let path: [String]
    private(set) var endpoint: HTTPAddress
    let tokenAddress: HTTPAddress
    private let uploads: HTTPAddress
    let space: String?
    let rate: Double
    /// Uploads per second, scaled if another rate is given; nil: limited like requests.
    var uploadRate: Double? { service.uploadRate.map { $0 * rate / service.rate } }

    /// The name of the place in messages and in notes.
    package var description: String { description(isElsewhere ? endpoint.shown : nil) }
    /// The name by the usual spelling of the address.
    var usualDescription: String {
        let there = endpoint.usual, own = try? HTTPAddress(service.endpoint)
        return description(isElsewhere && there != own?.usual ? there.shown : nil)
    }
    private func description(_ server: String?) -> String {
        let shown = PercentCoding.encode(path.joined(separator: "/"), keeping: "/ ")
        let whose = server.map { " at \($0)" } ?? ""
        return "the folder /\(shown) of \(service.name)\(space.map { " (\($0))" } ?? "")\(whose)"
    }
    private let isElsewhere: Bool
    /// Whether the tokens determine the account's region, since the URL does not.
    let leavesRegion: Bool

    /// - Parameter rest: the part of the URL after the scheme and its colon.
    package init(_ rest: String, _ service: Service) throws(HTTPAddress.Refusal) {
        let bytes = Array(rest.utf8)
        guard bytes.count <= 8_192 else { throw HTTPAddress.Refusal(why: "it has more than 8192 bytes") }
        guard !bytes.contains(UInt8(ascii: "#")) else { throw HTTPAddress.Refusal(why: "a # in it has to be written as %23") }
        let end = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.endIndex
        var named = bytes[..<end]
        if named.starts(with: "//".utf8) {
            named = named.dropFirst(2)
            guard named.first == UInt8(ascii: "/") || named.isEmpty else {
                throw HTTPAddress.Refusal(why: "it must not have a host; write \(service.scheme):///path")
            }
        }
        var path: [String] = []
        for part in named.split(separator: UInt8(ascii: "/")) {
            guard let decoded = PercentCoding.decode(part), let name = String(validating: decoded, as: UTF8.self),
                !name.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "/") }), name != ".", name != ".."
            else { throw HTTPAddress.Refusal(why: "its path is not percent-encoded text, or has a name in it that no folder has") }
            path.append(name)
        }
        guard path.count <= 64 else { throw HTTPAddress.Refusal(why: "it leads through more than 64 folders") }

        let known = ["endpoint", "rate"] + (service.spaces.isEmpty ? [] : ["space"]) + (service.regions.isEmpty ? [] : ["region"])
        var options: [String: String] = [:]
        for part in bytes[end...].dropFirst().split(separator: UInt8(ascii: "&")) {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let key = pair.first.map { String(decoding: $0, as: UTF8.self) } ?? ""
            guard pair.count == 2, known.contains(key),
                let value = PercentCoding.decode(pair[1])
            else {
                let names = known.map { "\($0)=" }.joined(separator: ", ")
                throw HTTPAddress.Refusal(why: "after its question mark only \(names) and layout= are allowed; tokens are options")
            }
            options[key] = String(decoding: value, as: UTF8.self)
        }
        var usual = service.endpoint
        if let region = options["region"] {
            guard let there = service.regions[region] else {
                throw HTTPAddress.Refusal(why: "its region is not one of \(service.regions.keys.sorted().joined(separator: ", "))")
            }
            usual = there
        }
        var endpoint = try HTTPAddress(options["endpoint"] ?? usual)
        guard endpoint.keepsSecrets else { throw HTTPAddress.Refusal(why: "its endpoint is not encrypted (https)") }
        guard endpoint.query.isEmpty else { throw HTTPAddress.Refusal(why: "its endpoint has a query") }
        if endpoint.path.utf8.last != UInt8(ascii: "/") { endpoint.path += "/" }
        if let space = options["space"] {
            guard service.spaces.contains(space) else {
                throw HTTPAddress.Refusal(why: "its space is not one of \(service.spaces.joined(separator: ", "))")
            }
        }
        var rate = service.rate
        if let given = options["rate"] {
            guard let number = Int(given), (1...100_000).contains(number) else {
                throw HTTPAddress.Refusal(why: "its rate is not a number of requests a second from 1 to 100000")
            }
            rate = Double(number)
        }
        self.service = service
        self.path = path
        self.endpoint = endpoint
        self.rate = rate
        space = options["space"]
        isElsewhere = options["endpoint"] != nil
        leavesRegion = !service.regions.isEmpty && options["region"] == nil && !isElsewhere
        if let text = service.uploads, !isElsewhere { uploads = try HTTPAddress(text) } else { uploads = endpoint }
        tokenAddress = isElsewhere ? endpoint.appending(service.tokenPath) : try HTTPAddress(service.tokens)
    }

    /// Returns the place in the region of its tokens, if the URL names none. Accepts only known hosts.
    func inRegion(ofTokensAt address: HTTPAddress?) -> CloudFolder {
        guard leavesRegion, let address else { return self }
        for text in service.regions.values {
            guard let there = try? HTTPAddress(text), there.origin == address.origin else { continue }
            var place = self
            place.endpoint = there
            return place
        }
        return self
    }

    /// Returns the folders from the top of the account to a directory of the place.
    func way(to directory: String) -> [String] { path + directory.split(separator: "/").map(String.init) }

    /// Returns an address below the endpoint.
    func address(_ path: String, _ query: [(String, String)] = []) -> HTTPAddress { CloudFolder.address(endpoint, path, query) }
    /// Returns an address for uploads.
    func uploadAddress(_ path: String, _ query: [(String, String)] = []) -> HTTPAddress { CloudFolder.address(uploads, path, query) }

    private static func address(_ top: HTTPAddress, _ path: String, _ query: [(String, String)]) -> HTTPAddress {
        var address = top
        address.path += path
        if !query.isEmpty { address.query = "?" + query.map { "\($0)=\(PercentCoding.encode($1))" }.joined(separator: "&") }
        return address
    }
}
