/// Who keeps the tokens or keys of an account, which are JSON: a file, or the host.
protocol TokenKeeper: Sendable {
    /// For messages, in the middle of a sentence.
    var name: String { get }
    /// The same at the beginning of one.
    var title: String { get }
    /// Of the file, if it is one: whose the account is, as far as that can be told from others.
    var path: String? { get }
    /// - Throws: `.notFound` when there are none, `.invalidArgument` for what is no JSON object.
    func read() throws -> CloudAnswer
    /// All of it or nothing, and for good before it returns.
    func keep(_ json: [UInt8]) throws
    /// Keeps out all others who renew these tokens, of all threads and processes.
    func withLock<R>(_ check: () throws -> Void, _ body: () throws -> R) throws -> R
}

extension TokenKeeper {
    func unusable(_ why: String) -> StoreError {
        StoreError(.invalidArgument, "\(title) cannot be used: it \(why). Sign in again, or mend it.", path: path)
    }

    /// - Parameter changes: members that are put in the place of those of the same name.
    func write(_ known: [(name: String, json: [UInt8])], _ changes: [(name: String, text: String)]) throws {
        var members = known
        for (name, text) in changes {
            let json = JSONString.encode(text)
            if let at = members.firstIndex(where: { $0.name == name }) { members[at].json = json } else { members.append((name, json)) }
        }
        let inner = members.map { JSONString.encode($0.name) + Array(": ".utf8) + $0.json }.joined(separator: Array(",\n  ".utf8))
        try keep(Array("{\n  ".utf8) + inner + Array("\n}\n".utf8))
    }
}

/// How the host keeps the tokens or keys of an account, in a key store say, in the place of a file (docs/cloud-drives.md). All are called
/// on the thread of the exchange's call, which ends with what they throw.
public struct HostTokens: Sendable {
    /// Gives them: JSON, with the members that the file would have.
    public var read: @Sendable () throws -> [UInt8]
    /// Keeps what is given in their place, for good before it returns: only then is it used.
    public var keep: @Sendable ([UInt8]) throws -> Void
    /// Begins a renewal, unless another thread or process that has the same tokens is within one: then false, and it is asked again soon.
    public var lock: @Sendable () throws -> Bool
    /// Ends it.
    public var unlock: @Sendable () -> Void

    /// - Parameters:
    ///   - read: gives the JSON.
    ///   - keep: keeps another.
    ///   - lock: begins a renewal.
    ///   - unlock: ends it.
    public init(
        read: @escaping @Sendable () throws -> [UInt8], keep: @escaping @Sendable ([UInt8]) throws -> Void,
        lock: @escaping @Sendable () throws -> Bool, unlock: @escaping @Sendable () -> Void
    ) {
        self.read = read; self.keep = keep; self.lock = lock; self.unlock = unlock
    }
}

struct HostTokenKeeper: TokenKeeper {
    let host: HostTokens
    var name: String { "the app's own store of tokens" }
    var title: String { "What the callback for tokens gave" }
    var path: String? { nil }

    func read() throws -> CloudAnswer {
        let bytes = try host.read()
        guard !bytes.isEmpty else {
            throw StoreError(.notFound, "The callback for tokens gave none. Sign in.")
        }
        guard bytes.count <= TokenFile.largest, let found = try CloudAnswer(bytes), found.isObject else {
            throw unusable("is no JSON object of at most \(TokenFile.largest >> 10) KiB")
        }
        return found
    }
    func keep(_ json: [UInt8]) throws { try host.keep(json) }
    func withLock<R>(_ check: () throws -> Void, _ body: () throws -> R) throws -> R {
        let begun = Clock.steady()
        while try !host.lock() {
            try check()
            guard Clock.steady() - begun < TokenFile.patience else {
                throw StoreError(
                    .busy, "Another has held the lock of the app's tokens for \(Int(TokenFile.patience)) seconds. End it, and try again.")
            }
            usleep(20_000)
        }
        defer { host.unlock() }
        return try body()
    }
}
