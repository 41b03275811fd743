/// Creates exchanges with places that are named by URL.
extension Exchange {
    /// Options that are not part of an exchange's URL.
    public struct URLOptions: Sendable {
        /// For a folder: what a power cut may take of what was sent.
        public var durability = Durability.full
        /// Whether the place must exist. If not, it is created.
        public var mustExist = false
        /// The layout of the place, if the URL does not have one (`?layout=packed`).
        public var layout = Layout.automatic
        /// The keys for encryption at the place; nil for none. With keys, the layout is packed.
        public var keys: RemoteKeys?
        /// The name of this device for people who inspect the writers of a place in packs (`RemoteStatus`): 1 to 128 bytes without
        /// control characters and direction marks. Every reader of the place can read it. Nil for no name.
        public var deviceName: String?
        /// How versions are exchanged with the place.
        public var exchange = Exchange.Options()
        /// The user, the password and the token.
        package var credentials = Credentials()
        /// Seconds without a byte after which a transfer ends.
        package private(set) var stall = 30

        /// Options for a durable folder, which is created if it does not exist, or a server without credentials.
        public init() {}

        /// For a server: the user, in S3 the access key. It is never part of the URL, and in no message.
        public var user: String? {
            get { credentials.user }
            set { credentials.user = newValue }
        }
        /// The password of `user`, in S3 the secret key.
        public var password: String? {
            get { credentials.password }
            set { credentials.password = newValue }
        }
        /// For a server: a bearer token, instead of a user; in S3 the session token, in addition to the keys.
        public var token: String? {
            get { credentials.token }
            set { credentials.token = newValue }
        }

        /// Returns the credentials, instead of the three properties above, so that they can stay in a key store. It is called before the
        /// first request, and once more if its credentials were refused (`again`). It gets the address, and is called on the thread of
        /// the exchange's call, which fails with its error. Empty credentials mean that there are none, and the exchange continues
        /// without.
        public var askForCredentials: (@Sendable (_ place: String, _ again: Bool) throws -> Credentials)?
        /// For a cloud drive: the path of a file with OAuth tokens. If they are refused, they are renewed in the file
        /// (docs/cloud-drives.md).
        public var tokenFile: String?
        /// Instead of `tokenFile`: the host stores the tokens, and the library renews them there.
        public var tokens: HostTokens?
        /// The path of a file with trusted certificate authorities (PEM), instead of the system's.
        public var certificateAuthorities: String?
        /// For SFTP: the path of the user's private key, which `password` decrypts if needed. Without a key and a password, those of the
        /// ssh-agent are tried.
        public var keyFile: String?
        /// For SFTP: the path of the file with the keys of trusted hosts, instead of ~/.ssh/known_hosts.
        public var knownHosts: String?
        /// The URL of a proxy; nil for that of the environment (https_proxy, http_proxy, no_proxy), and none for this machine.
        public var proxy: String?
        /// Seconds without a byte after which a transfer fails, rounded to whole seconds, from one second to a day.
        public var timeout: Double {
            get { Double(stall) }
            set { stall = newValue > 1 ? Int(min(newValue, 86_400).rounded(.up)) : 1 }
        }

        /// - Throws: `.invalidArgument` for credentials that are given twice, or contain characters that would end a request's line.
        package func check() throws {
            guard credentials.isEmpty || askForCredentials == nil else {
                throw StoreError(
                    .invalidArgument, "Both credentials (user, password or token) and a callback for them are given. Give one of them.")
            }
            let who = "The opener of the exchange"
            try credentials.check(who)
            let files = [("ca_file", certificateAuthorities), ("key_file", keyFile), ("known_hosts", knownHosts)]
            for (name, text) in files + [("proxy", proxy)] { try Credentials.check(text, name, who) }
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
                throw StoreError(.invalidArgument, "The token_file that was given is not a path. Give a path.")
            }
        }
    }

    /// Creates an exchange between a store and the place of a URL: `file:///path` is a folder, `memory:name` an area of this process,
    /// `https+webdav://host/path` and `sftp://host/path` are folders on a server; `s3:` is for buckets, `gdrive:` for Google Drive
    /// (docs/sync.md).
    /// - Parameters:
    ///   - store: the store on this side, which the caller owns.
    ///   - url: the place. A path is absolute and percent-encoded; credentials are in `options`.
    ///   - options: what is not part of the URL, and how to exchange.
    /// - Throws: `.invalidArgument` if it is not a URL of its scheme, `.unsupported` for an unknown scheme, and for a folder `.notFound`,
    ///   `.notADirectory`, `.permission`. A server is not contacted before the first call.
    @available(*, noasync, message: "It may wait for the place. Import LLVSAsync, and await Exchange.open(store:url:options:).")
    public convenience init(store: Store, url: String, options: URLOptions = URLOptions()) throws {
        try self.init(store: store, transport: ExchangeURL.transport(url, options, apartFrom: store.path), options: options.exchange)
    }
}
