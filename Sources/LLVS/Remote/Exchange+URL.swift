/// Exchanges with places that are named by URL.
extension Exchange {
    /// What the URL of an exchange cannot say.
    public struct URLOptions: Sendable {
        /// For a folder: what a power cut may take of what was sent.
        public var durability = Durability.full
        /// Whether the place must be there already; else it is made.
        public var mustExist = false
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

        /// - Throws: `.invalidArgument` for what would end the line of a request.
        func check() throws {
            let texts = [user, password, token, http.certificateAuthorities, http.proxy].compactMap { $0 }
            if texts.contains(where: { $0.utf8.contains { $0 < 0x20 || $0 == 0x7F } }) {
                throw StoreError(
                    .invalidArgument,
                    "What is given to reach the server of an exchange holds a control character. Give it without line ends.")
            }
        }
    }

    /// An exchange between a store and the place of a URL: `file:///path` is a folder, `memory:name` an area of this process,
    /// `https+webdav://host/path` a folder on a server; `s3:` is for buckets (docs/sync.md).
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
