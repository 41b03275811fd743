extension Exchange {
    /// The credentials for a server. For services with signed requests: a key's id, the secret key, and a session's token.
    public struct Credentials: Sendable, Equatable {
        /// The user; in S3 the access key.
        public var user: String?
        /// The password of the user; in S3 the secret key.
        public var password: String?
        /// A bearer token instead of a user; in S3 the token of a session, in addition to the keys.
        public var token: String?
        /// Creates credentials; without arguments they are empty.
        public init(user: String? = nil, password: String? = nil, token: String? = nil) {
            self.user = user; self.password = password; self.token = token
        }
        package var isEmpty: Bool { user == nil && password == nil && token == nil }

        /// - Parameter who: their source, for the message: "The callback for credentials".
        /// - Throws: `.invalidArgument` for text with a line end, which would break a request. The message does not contain the text.
        package func check(_ who: String) throws {
            for (name, text) in [("user", user), ("password", password), ("token", token)] {
                try Credentials.check(text, name, who)
            }
        }

        /// Refuses a text with a control character.
        static func check(_ text: String?, _ name: String, _ who: String) throws {
            guard let text, text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return }
            throw StoreError(.invalidArgument, "\(who) set a \(name) with a control character. Set it without line ends.")
        }
    }
}
