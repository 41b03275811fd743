/// Stores the tokens or keys of an account, as JSON: a file, or the host.
package protocol TokenKeeper: Sendable {
    /// For messages, inside a sentence.
    var name: String { get }
    /// For messages, at the beginning of a sentence.
    var title: String { get }
    /// The path, if it is a file; identifies the account, as far as known.
    var path: String? { get }
    /// - Throws: `.notFound` if there are none, `.invalidArgument` for anything but a JSON object.
    func read() throws -> CloudAnswer
    /// Stores the JSON atomically, and durably before it returns.
    func keep(_ json: [UInt8]) throws
    /// Excludes all other threads and processes that renew these tokens.
    func withLock<R>(_ check: () throws -> Void, _ body: () throws -> R) throws -> R
}

extension TokenKeeper {
    func unusable(_ why: String) -> StoreError {
        StoreError(.invalidArgument, "\(title) cannot be used: it \(why). Sign in again, or correct it.", path: path)
    }

    /// - Parameter changes: members that replace those of the same name.
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

package struct HostTokenKeeper: TokenKeeper {
    package let host: HostTokens
    package init(host: HostTokens) { self.host = host }
    package var name: String { "the app's own store of tokens" }
    package var title: String { "The result of the callback for tokens" }
    package var path: String? { nil }

    package func read() throws -> CloudAnswer {
        let bytes = try host.read()
        guard !bytes.isEmpty else {
            throw StoreError(.notFound, "The callback for tokens returned none. Sign in.")
        }
        guard bytes.count <= TokenFile.largest, let found = try CloudAnswer(bytes), found.isObject else {
            throw unusable("is not a JSON object of at most \(TokenFile.largest >> 10) KiB")
        }
        return found
    }
    package func keep(_ json: [UInt8]) throws { try host.keep(json) }
    package func withLock<R>(_ check: () throws -> Void, _ body: () throws -> R) throws -> R {
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
