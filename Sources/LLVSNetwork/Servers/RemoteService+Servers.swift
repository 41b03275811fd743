/// The servers, by the schemes of their URLs. A new one is added here.
extension RemoteService {
    package static let servers = [
        RemoteService(scheme: "https+webdav") { (rest) throws(URLRefusal) in
            let address = try folder("https:" + rest)
            return { try webDAV(address, $0) }
        },
        RemoteService(scheme: "http+webdav", isListed: false) { (rest) throws(URLRefusal) in
            let address = try folder("http:" + rest)
            guard address.isLoopback else {
                throw URLRefusal(why: "over a network nothing is sent unencrypted; write https+webdav:")
            }
            return { try webDAV(address, $0) }
        },
        RemoteService(scheme: "s3") { (rest) throws(URLRefusal) in
            let place = try S3Location(rest)
            return { S3Files(place, settings: HTTPSettings($0)) }
        },
        RemoteService(scheme: "sftp", accepts: .keyFiles) { (rest) throws(URLRefusal) in
            let place = try SFTPFiles.Place(rest)
            return { options in
                guard options.user != nil || options.askForCredentials != nil, options.token == nil else {
                    throw StoreError(
                        .invalidArgument,
                        "\"sftp:\(rest)\" accepts a user, and a key_file, a password or an ssh-agent; no token. Give the option user.")
                }
                return SFTPFiles(place, settings: HTTPSettings(options), mustExist: options.mustExist)
            }
        },
    ]

    private static func webDAV(_ address: HTTPAddress, _ options: Exchange.URLOptions) throws -> WebDAVFiles {
        guard options.token == nil || options.user == nil else {
            throw StoreError(.invalidArgument, "Both a user and a token are given for \(address.shown). Give one of them.")
        }
        return WebDAVFiles(address, settings: HTTPSettings(options), mustExist: options.mustExist)
    }

    /// Returns the address of a folder. Refuses parts of its path that are `.` or `..`: libcurl removes them from addresses, but not from
    /// headers that name a path.
    private static func folder(_ text: String) throws(URLRefusal) -> HTTPAddress {
        let address = try HTTPAddress(text)
        guard address.query.isEmpty else { throw URLRefusal(why: URLRefusal.onlyLayout) }
        let parts = (PercentCoding.decode(address.path.utf8) ?? []).split(separator: UInt8(ascii: "/"))
        guard !parts.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) else {
            throw URLRefusal(why: "its path has a part that is . or ..")
        }
        return address
    }
}
