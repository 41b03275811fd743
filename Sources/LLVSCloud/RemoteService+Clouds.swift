/// The cloud drives, by the schemes of their URLs. A new one is added by one line here and a type that conforms to `RemoteFiles`.
extension RemoteService {
    package static let clouds = [
        drive(DriveFiles.service) { DriveFiles($0, tokens: $1, settings: $2, mustExist: $3) },
        drive(OneDriveFiles.service) { OneDriveFiles($0, tokens: $1, settings: $2, mustExist: $3) },
        drive(BoxFiles.service) { BoxFiles($0, tokens: $1, settings: $2, mustExist: $3) },
        drive(PCloudFiles.service) { PCloudFiles($0, tokens: $1, settings: $2, mustExist: $3) },
        RemoteService(scheme: CloudKitPlace.scheme, accepts: .tokens) { (rest) throws(URLRefusal) in
            let place = try CloudKitPlace(rest)
            return { options in
                guard let tokens = options.keeper, options.credentials.isEmpty, options.askForCredentials == nil else {
                    throw StoreError(
                        .invalidArgument,
                        "Access to \(place.description) is by keys or tokens. Give token_file or tokens, and no other credentials.")
                }
                return CloudKitFiles(place, tokens: tokens, settings: HTTPSettings(options), mustExist: options.mustExist)
            }
        },
    ]

    private static func drive(
        _ service: CloudFolder.Service,
        _ open: @escaping @Sendable (CloudFolder, (any TokenKeeper)?, HTTPSettings, _ mustExist: Bool) -> any RemoteFiles
    ) -> RemoteService {
        RemoteService(scheme: service.scheme, accepts: .tokens) { (rest) throws(URLRefusal) in
            let place = try CloudFolder(rest, service)
            return { options in
                try options.check(for: place)
                return open(place, options.keeper, HTTPSettings(options), options.mustExist)
            }
        }
    }
}

extension Exchange.URLOptions {
    /// Returns the keeper of the tokens, if there is one.
    var keeper: (any TokenKeeper)? { tokenFile.map { TokenFile($0) } ?? tokens.map { HostTokenKeeper(host: $0) } }

    /// Checks the credentials for a cloud drive, which accepts only tokens, from one source.
    fileprivate func check(for place: CloudFolder) throws {
        guard user == nil, password == nil else {
            throw StoreError(
                .invalidArgument,
                "A user or a password is given for \(place.description), which accepts tokens only. "
                    + "Give a token_file, tokens, a token, or credentials."
            )
        }
        guard keeper == nil || (credentials.isEmpty && askForCredentials == nil) else {
            throw StoreError(
                .invalidArgument,
                "Both tokens to be renewed and a token, or credentials, are given for \(place.description). Give one of them.")
        }
    }
}
