/// Strings and arrays of bytes for what the engine accepts as pointers.

extension Value {
    /// The bytes as text: invalid UTF-8 is replaced.
    public var text: String { String(decoding: data, as: UTF8.self) }
}

extension Value.Change {
    /// Inserts a text.
    public static func insert(_ id: ValueID, text: String) -> Value.Change { .insert(id, data: Array(text.utf8)) }
    /// Sets a text.
    public static func update(_ id: ValueID, text: String) -> Value.Change { .update(id, data: Array(text.utf8)) }
}

extension RemoteKeys {
    /// Keys from a passphrase.
    /// - Parameters:
    ///   - passphrase: 1 to 1,024 bytes of UTF-8.
    ///   - recipients: public keys that can also open a place that is made now.
    /// - Throws: `.invalidArgument` for an invalid passphrase or recipient.
    public init(passphrase: String, recipients: [String] = []) throws {
        self = try Array(passphrase.utf8).withUnsafeBytes { try RemoteKeys(passphrase: $0, identities: [], recipients: recipients) }
    }

    /// Keys from identities, the secret keys of this device or person.
    /// - Parameters:
    ///   - identities: secret keys of age.
    ///   - recipients: public keys that can also open a place that is made now.
    /// - Throws: `.invalidArgument` for an invalid identity or recipient.
    public init(identities: [String], recipients: [String] = []) throws {
        self = try withBytes(of: identities) { try RemoteKeys(passphrase: nil, identities: $0, recipients: recipients) }
    }
}

extension PackRecipients {
    /// Encrypts with a passphrase.
    /// - Throws: `.invalidArgument` for an invalid passphrase.
    public init(passphrase: String) throws {
        self = try Array(passphrase.utf8).withUnsafeBytes { try PackRecipients(passphrase: $0) }
    }
}

extension PackUnlocking {
    /// Decrypts with a passphrase.
    /// - Throws: `.invalidArgument` for an invalid passphrase.
    public init(passphrase: String) throws {
        self = try Array(passphrase.utf8).withUnsafeBytes { try PackUnlocking(passphrase: $0) }
    }
    /// Decrypts with identities, secret keys of age.
    /// - Throws: `.invalidArgument` for an invalid identity.
    public init(identities: [String]) throws { self = try withBytes(of: identities) { try PackUnlocking($0) } }
}

extension Exchange {
    /// Sets another passphrase for an encrypted place.
    /// - Parameters:
    ///   - new: 1 to 1,024 bytes of UTF-8.
    ///   - hasLeaked: whether others may know the old passphrase: then the place gets new keys.
    ///   - control: as for `retrieve`.
    /// - Throws: as the function with a pointer.
    public func changePassphrase(to new: String, hasLeaked: Bool = false, control: OperationControl = OperationControl()) throws {
        try Array(new.utf8).withUnsafeBytes { try changePassphrase(to: $0, hasLeaked: hasLeaked, control: control) }
    }
}

extension Pairing {
    /// A pairing from its bytes.
    /// - Throws: `.invalidArgument` if they are not those of a pairing.
    public init(_ bytes: [UInt8]) throws { self = try bytes.withUnsafeBytes { try Pairing($0) } }
}

extension IndexDefinition {
    /// A definition as JSON text (docs/index-keys.md).
    /// - Throws: as the initializer with a pointer.
    public init(_ json: String) throws { self = try Array(json.utf8).withUnsafeBytes { try IndexDefinition($0) } }
    /// A definition as bytes of JSON.
    /// - Throws: as the initializer with a pointer.
    public init(_ json: [UInt8]) throws { self = try json.withUnsafeBytes { try IndexDefinition($0) } }
}

extension ProjectionDefinition {
    /// A definition as JSON text (docs/finding.md).
    /// - Throws: as the initializer with a pointer.
    public init(_ json: String) throws { self = try Array(json.utf8).withUnsafeBytes { try ProjectionDefinition($0) } }
    /// A definition as bytes of JSON.
    /// - Throws: as the initializer with a pointer.
    public init(_ json: [UInt8]) throws { self = try json.withUnsafeBytes { try ProjectionDefinition($0) } }
}

extension StoreCoordinator {
    /// Adds rules as JSON text to those of the store.
    /// - Throws: as the function with bytes.
    @discardableResult
    public func register(_ rules: String) throws -> Registered { try register(Array(rules.utf8)) }
}

/// A part of an index's keys in a question: `IndexQuestion(equal: ["Smith", 3])`.
public enum IndexValue: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral
{
    /// The member is missing.
    case missing
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A whole number.
    case int(Int)
    /// A number; infinite ones and NaN are `null`.
    case double(Double)
    /// A string.
    case string(String)

    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A whole number.
    public init(integerLiteral value: Int) { self = .int(value) }
    /// A number.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    var json: String {
        switch self {
        case .missing: "{}"
        case .null: "null"
        case .bool(let value): "\(value)"
        case .int(let value): "\(value)"
        case .double(let value): value.isFinite ? "\(value)" : "null"
        case .string(let text): String(decoding: JSONString.encode(text), as: UTF8.self)
        }
    }
}

extension IndexQuestion {
    /// A question by the parts of keys, in the order of the index.
    /// - Parameters:
    ///   - equal: the first parts.
    ///   - low: the least next parts; nil: no lower bound. With one bound only, values of other types are found as well.
    ///   - high: the greatest next parts; nil: no upper bound.
    ///   - beginning: the beginning of the next part, a string; nil: any. Not together with bounds.
    public init(equal: [IndexValue], low: [IndexValue]? = nil, high: [IndexValue]? = nil, beginning: String? = nil) {
        self.init()
        func bytes(_ parts: [IndexValue]) -> [UInt8] { Array("[\(parts.map(\.json).joined(separator: ","))]".utf8) }
        if !equal.isEmpty { self.equal = bytes(equal) }
        if let low { self.low = bytes(low) }
        if let high { self.high = bytes(high) }
        self.beginning = beginning.map { Array($0.utf8) }
    }
}

extension ValueReader {
    /// Returns bytes of the value.
    /// - Parameters:
    ///   - offset: the first byte.
    ///   - count: the most bytes to return.
    /// - Returns: fewer bytes only at the end of the value, and none beyond it.
    /// - Throws: as the function with a buffer; `.invalidArgument` for a negative count.
    public func read(at offset: Int, count: Int) throws -> [UInt8] {
        guard count >= 0 else {
            throw StoreError(
                .invalidArgument, "Reading \(count) bytes of the value of \"\(id)\" is not possible. Give 0 or more.", valueID: id)
        }
        let most = max(0, min(count, size - min(size, max(0, offset))))
        return try [UInt8](unsafeUninitializedCapacity: most) { buffer, filled in
            filled = try read(at: offset, into: UnsafeMutableRawBufferPointer(buffer))
        }
    }
}

extension IndexPage {
    /// The ids of the values that were found, in the order of the index.
    public var valueIDs: [ValueID] { ids.texts.map { ValueID(unchecked: $0) } }
}

/// Limits as durations.
extension Syncer.Options {
    /// Options with delays other than the default ones.
    /// - Parameters:
    ///   - afterSave: the delay between the last save and its sending.
    ///   - afterSaves: the longest delay between the first of several saves and their sending.
    ///   - poll: the interval between polls, if versions were received or sent in the last 5 minutes.
    ///   - longestPoll: the longest interval between polls, if no versions move.
    ///   - longestPause: the longest pause after failures.
    public init(
        afterSave: Duration? = nil, afterSaves: Duration? = nil, poll: Duration? = nil, longestPoll: Duration? = nil,
        longestPause: Duration? = nil
    ) {
        self.init()
        func set(_ member: WritableKeyPath<Self, Double>, _ limit: Duration?) {
            if let limit { self[keyPath: member] = limit / .seconds(1) }
        }
        set(\.afterSave, afterSave)
        set(\.afterSaves, afterSaves)
        set(\.poll, poll)
        set(\.longestPoll, longestPoll)
        set(\.longestPause, longestPause)
    }
}

/// Calls the closure with the UTF-8 of texts, which is valid during the call.
private func withBytes<R>(of texts: [String], _ body: ([UnsafeRawBufferPointer]) throws -> R) rethrows -> R {
    let bytes = texts.map { Array($0.utf8) }
    var pointers: [UnsafeRawBufferPointer] = []
    func next(_ index: Int) throws -> R {
        guard index < bytes.count else { return try body(pointers) }
        return try bytes[index].withUnsafeBytes {
            pointers.append($0)
            return try next(index + 1)
        }
    }
    return try next(0)
}
