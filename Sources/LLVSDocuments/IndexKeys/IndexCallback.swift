/// The host's callback that computes the keys of an index, instead of pointers into JSON.
package struct IndexCallback: Sendable {
    let parts: Int
    /// Whether its keys mean the same in another process.
    let isLasting: Bool
    let keys: IndexDefinition.Keys

    /// The most bytes that the keys of one value have as text.
    fileprivate static let mostText = 64 << 20

    /// Returns the keys of a value.
    /// - Throws: errors of the callback; `.invalidArgument` for an invalid key, even if the callback ignores that error.
    fileprivate func tuples(of id: [UInt8], _ data: UnsafeRawBufferPointer) throws -> [IndexQuestion.Tuple] {
        let given = IndexKeys(of: id, parts: parts)
        try id.withUnsafeBytes { try keys($0, data, given) }
        if let failure = given.failure { throw failure }
        return given.tuples
    }
}

/// Receives the keys that a callback computes for one value. Used by the callback's thread while it runs.
public final class IndexKeys {
    private let id: [UInt8]
    private let parts: Int
    private var size = 0
    fileprivate private(set) var tuples: [IndexQuestion.Tuple] = []
    fileprivate private(set) var failure: StoreError?

    fileprivate init(of id: [UInt8], parts: Int) {
        self.id = id
        self.parts = parts
    }

    /// Adds a key. Duplicates count once.
    /// - Parameter tuple: a JSON array with as many scalars as the index has parts; `{}` is a missing part, which the first cannot be.
    /// - Throws: `.invalidArgument` for an invalid key, and for the 10,001st; the query fails then as well. `.outOfMemory`.
    public func add(_ tuple: UnsafeRawBufferPointer) throws {
        do { try check(tuple) } catch let error as StoreError {
            failure = failure ?? error
            throw error
        }
    }

    private func check(_ json: UnsafeRawBufferPointer) throws {
        func wrong(_ why: String) -> StoreError {
            let name = String(decoding: id, as: UTF8.self)
            var error = StoreError(.invalidArgument, "The callback of an index returned an invalid key for the value \"\(name)\": \(why).")
            error.valueIDBytes = id
            return error
        }
        guard tuples.count < IndexDefinition.mostKeys else {
            throw wrong("it is the \(IndexDefinition.mostKeys + 1)st, and a value has \(IndexDefinition.mostKeys) at most")
        }
        guard json.count <= IndexCallback.mostText - size else { throw wrong("together with those before it has more than 64 MiB") }
        let tuple = try IndexQuestion.Tuple(json, orThrow: wrong)
        guard tuple.count == parts else { throw wrong("it has \(tuple.count) parts, and the keys of the index have \(parts)") }
        guard tuple.withParts({ $0.first?.isMissing == false }) else { throw wrong("its first part is missing") }
        try Memory.grow(&tuples, "The keys of a value")
        size += json.count
        tuples.append(tuple)
    }
}

extension IndexDefinition {
    /// Computes the keys of a value, and passes each to `IndexKeys.add`: any number, in any order.
    ///
    /// It must depend on the id and the bytes alone, and yield the same keys each time. It is called on the thread that queries or prepares
    /// the index, concurrently if several threads do, with no lock held. A query of the index that is being built throws `.busy`. If it
    /// throws, the query throws that error and discards the unfinished index. Both pointers are valid during the call.
    public typealias Keys = @Sendable (_ id: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer, _ keys: IndexKeys) throws -> Void

    private static let numbers = Guarded<UInt64>(0)

    /// An index whose keys a callback computes, for values of any kind.
    /// - Parameters:
    ///   - prefix: the beginning of the ids of its values, UTF-8; may be empty.
    ///   - parts: the number of parts of a key, 1 to 8.
    ///   - name: with a version other than 0, identifies the callback: the store then caches the index, and any definition with the same
    ///     name, version, prefix and number of parts uses it. At most 128 bytes.
    ///   - version: must be raised when the callback computes other keys than before; 0: the callback has no identity, and its index is not
    ///     cached on disk.
    ///   - keys: computes the keys of a value.
    /// - Throws: `.invalidArgument`, `.invalidUTF8`.
    public init(prefix: [UInt8], parts: Int = 1, name: String = "", version: UInt32 = 0, keys: @escaping Keys) throws {
        guard (1...IndexDefinition.mostParts).contains(parts) else {
            throw StoreError(.invalidArgument, "The keys of an index have 1 to \(IndexDefinition.mostParts) parts, not \(parts).")
        }
        guard name.utf8.count <= IndexDeclarations.mostName else {
            throw StoreError(
                .invalidArgument,
                "The name of an index has at most \(IndexDeclarations.mostName) bytes, not \(name.utf8.count). Give a shorter one.")
        }
        guard prefix.withUnsafeBytes({ Bytes.isValidUTF8($0) }) else {
            throw StoreError(.invalidUTF8, "The prefix of an index is not valid UTF-8, as ids are. Give it in that encoding.")
        }
        func quoted(_ text: [UInt8]) -> [UInt8] {
            var out: [UInt8] = []
            text.withUnsafeBytes { CanonicalText.append($0, to: &out) }
            return out
        }
        let isLasting = !name.isEmpty && version != 0
        let text =
            Array("{\"callback\":".utf8) + quoted(Array(name.utf8)) + Array(",\"parts\":\(parts),\"prefix\":".utf8) + quoted(prefix)
            + Array(",\"version\":\(version)}".utf8)
        // Without an identity two callbacks cannot be known to be the same.
        let own: [UInt8] =
            isLasting
            ? []
            : IndexDefinition.numbers.withLock { number in
                number += 1
                return Array("\n\(number)".utf8)
            }
        digest = (Array("llvs-index-callback 1\n".utf8) + text + own).withUnsafeBytes { Array(SHA256.digest($0)) }
        (self.prefix, self.text, on, folds, conditions, stars) = (prefix, text, [], false, [], IndexStars([]))
        callback = IndexCallback(parts: parts, isLasting: isLasting, keys: keys)
    }

    /// Calls `body` with each tuple of a value that may be in the index. Borrowed bytes are valid during the call.
    /// - Returns: why there is none; nil if there are some.
    /// - Throws: errors of `work`, a callback and `body`, and `.outOfMemory`.
    package func forEachTuple(
        of id: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer, _ work: DocumentControl, _ body: ([IndexPart]) throws -> Void
    ) throws -> IndexTuples.Absence? {
        guard let callback else { return try IndexTuples.forEach(data, idSize: id.count, self, work, body) }
        let tuples = try callback.tuples(of: Array(id), data)
        for tuple in tuples { try tuple.withParts(body) }
        return tuples.isEmpty ? .noKeys : nil
    }

    /// Calls `body` with all tuples at once.
    package func withTuples(of id: [UInt8], _ data: UnsafeRawBufferPointer, _ body: ([[IndexPart]]) throws -> Void) throws {
        guard let callback else { return try IndexTuples.withAll(data, idSize: id.count, self, body) }
        let tuples = try callback.tuples(of: id, data)
        // The texts do not move while the tuples are alive.
        try withExtendedLifetime(tuples) { try body(tuples.map { tuple in tuple.withParts { $0 } }) }
    }
}
