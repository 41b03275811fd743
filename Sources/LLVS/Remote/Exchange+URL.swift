/// Exchanges with places that are named by URL.
extension Exchange {
    /// Who asks a server.
    public typealias Credentials = HTTPCredentials

    /// How versions lie at a place.
    public enum Layout: Sendable {
        /// What the place has.
        case automatic
        /// Two files for each version, which other implementations read: docs/interchange.md.
        case interchange
        /// Many versions to a file, for few requests: docs/pack-format.md.
        case packed
        /// Both, so that devices with packs and other implementations meet: for an empty place, or one with single files. Not encrypted.
        case bridged
    }

    /// What the URL of an exchange cannot say.
    public struct URLOptions: Sendable {
        /// For a folder: what a power cut may take of what was sent.
        public var durability = Durability.full
        /// Whether the place must be there already; else it is made.
        public var mustExist = false
        /// How versions lie there, where the URL does not say so (`?layout=packed`).
        public var layout = Layout.automatic
        /// What is encrypted there, and how it is opened; nil: nothing is. Then the layout is packed.
        public var keys: RemoteKeys?
        /// What this device is called, for people who look at who writes to a place in packs (`RemoteStatus`): 1 to 128 bytes without
        /// control characters and marks of direction. Who can read the place can read it. Nil: it says nothing.
        public var deviceName: String?
        /// How a server is reached.
        package var http = HTTPSettings()

        /// A durable folder, which is made when it is not there; a server that asks for no credentials.
        public init() {}

        /// For a server: who asks, in S3 the access key. Never a part of the URL, and in no message.
        public var user: String? {
            get { http.credentials.user }
            set { http.credentials.user = newValue }
        }
        /// The password of `user`, in S3 the secret key.
        public var password: String? {
            get { http.credentials.password }
            set { http.credentials.password = newValue }
        }
        /// For a server: a bearer token, instead of a user; in S3 the token of a session, beside the keys.
        public var token: String? {
            get { http.credentials.token }
            set { http.credentials.token = newValue }
        }

        /// In the place of the three above, so that credentials can stay in a key store: asked before the first request, and once more when
        /// what it gave was refused (`again`). It gets the address, and is called on the thread of the exchange's call, which ends with
        /// what it throws. Empty credentials: there are none, and the exchange goes on without.
        public var askForCredentials: (@Sendable (_ place: String, _ again: Bool) throws -> Credentials)? {
            get { http.askForCredentials }
            set { http.askForCredentials = newValue }
        }
        /// For a cloud drive: the path of a file with OAuth tokens, which are renewed there when they are refused (docs/cloud-drives.md).
        public var tokenFile: String?
        /// In the place of `tokenFile`: the host keeps the tokens, and the library renews them there.
        public var tokens: HostTokens?
        /// Who keeps tokens, where somebody does.
        var keeper: (any TokenKeeper)? { tokenFile.map { TokenFile($0) } ?? tokens.map { HostTokenKeeper(host: $0) } }
        /// The path of a file with certificates (PEM) of the authorities that are trusted, in the place of the system's.
        public var certificateAuthorities: String? {
            get { http.certificateAuthorities }
            set { http.certificateAuthorities = newValue }
        }
        /// For SFTP: the path of the file with the user's private key, which `password` opens if need be. Without a key and a
        /// password those of the ssh-agent are offered.
        public var keyFile: String? {
            get { http.keyFile }
            set { http.keyFile = newValue }
        }
        /// For SFTP: the path of the file with the keys of hosts that are trusted, in the place of ~/.ssh/known_hosts.
        public var knownHosts: String? {
            get { http.knownHosts }
            set { http.knownHosts = newValue }
        }
        /// The URL of a proxy; nil: as the environment says (https_proxy, http_proxy, no_proxy), and none for this machine.
        public var proxy: String? {
            get { http.proxy }
            set { http.proxy = newValue }
        }
        /// Seconds without a byte after which a transfer is given up, in whole ones; at most a day, and at least one.
        public var timeout: Double {
            get { Double(http.stall) }
            set { http.stall = newValue > 1 ? Int(min(newValue, 86_400).rounded(.up)) : 1 }
        }

        /// - Throws: `.invalidArgument` for credentials that are given twice, and for what would end the line of a request.
        package func check() throws {
            try http.check()
            if let deviceName, DeviceName.text(Array(deviceName.utf8)) == nil {
                throw StoreError(
                    .invalidArgument,
                    "The name of a device has 1 to \(DeviceName.limit) bytes, and no control characters or marks of direction.")
            }
            guard let tokenFile else { return }
            guard tokens == nil else {
                throw StoreError(.invalidArgument, "Both a token_file and a callback for tokens are given. Give one of them.")
            }
            guard !tokenFile.isEmpty, !tokenFile.utf8.contains(0) else {
                throw StoreError(.invalidArgument, "Who opened the exchange gave a token_file that is no path. Give one.")
            }
        }
    }

    /// An exchange between a store and the place of a URL: `file:///path` is a folder, `memory:name` an area of this process,
    /// `https+webdav://host/path` a folder on a server, and so is `sftp://host/path`; `s3:` is for buckets, `gdrive:` for Google Drive
    /// (docs/sync.md).
    /// - Parameters:
    ///   - store: the store on this side, which stays the caller's.
    ///   - url: the place. A path is absolute and percent-encoded; credentials are in `place`.
    ///   - place: what the URL cannot say.
    ///   - options: how the exchange goes about it.
    /// - Throws: `.invalidArgument` for what is no URL of its scheme, `.unsupported` for an unknown scheme, and for a folder
    ///   `.notFound`, `.notADirectory`, `.permission`. A server is not asked before the first call.
    public convenience init(store: Store, url: String, place: URLOptions = URLOptions(), options: Options = Options()) throws {
        try self.init(store: store, transport: ExchangeURL.transport(url, place, apartFrom: store.path), options: options)
    }
}
