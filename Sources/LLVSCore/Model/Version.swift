/// One save: immutable, with up to two predecessors.
public struct Version: Hashable, Sendable {
    /// The name of the version, the same in every store.
    public var id: VersionID
    /// 0 to 2. The state at a version is the state at the first with the version's own changes applied.
    public var predecessors: [VersionID]
    /// Orders versions: seconds since 2001-01-01 UTC, exactly as made or received, and later than those of the ancestors, however wrong
    /// their makers' clocks were. `madeAt` is when the version was made.
    public var timestamp: Double
    /// When it was made, as far as this device knows: seconds since 2001-01-01 UTC. It is the time of the maker's clock, not before any of
    /// its ancestors, and at most a minute after this device received it (docs/convergence.md, "Wrong clocks"). Not part of the version's
    /// identity: equality ignores it.
    public internal(set) var madeAt: Double
    /// Bytes of the values that this version stored.
    public var valueDataSize: UInt64
    /// The metadata that it carries beside its changes.
    public var metadata: Metadata

    /// A description of a version; creating one stores nothing.
    public init(id: VersionID, predecessors: [VersionID], timestamp: Double, valueDataSize: UInt64, metadata: Metadata) {
        self.id = id; self.predecessors = predecessors; self.timestamp = timestamp; madeAt = timestamp
        self.valueDataSize = valueDataSize; self.metadata = metadata
    }

    /// Seconds from 1970-01-01 to 2001-01-01 UTC.
    public static let secondsFrom1970To2001 = Clock.secondsFrom1970To2001

    /// Returns whether `a` is earlier than `b` by (timestamp, id). "Later" means later in this order everywhere.
    public static func canonicalOrder(_ a: Version, _ b: Version) -> Bool {
        a.timestamp != b.timestamp ? a.timestamp < b.timestamp : a.id < b.id
    }
    /// The branch in its metadata.
    public var branch: String? { metadata.branch }

    /// Whether the two are equal; ignores `madeAt`.
    public static func == (a: Version, b: Version) -> Bool {
        a.id == b.id && a.predecessors == b.predecessors && a.timestamp == b.timestamp && a.valueDataSize == b.valueDataSize
            && a.metadata == b.metadata
    }
    /// Hashes the id alone, which is equal in equal versions.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

/// The metadata of a version: string keys, values of any bytes (JSON documents, by convention).
///
/// Keys are compared by bytes; entries are sorted by key; if a key is set twice, the last value counts.
public struct Metadata: Hashable, Sendable {
    /// One key and its value.
    public struct Entry: Hashable, Sendable {
        /// UTF-8.
        public let key: [UInt8]
        /// Any bytes; a JSON document by convention.
        public let value: [UInt8]
    }
    /// All entries, sorted by the bytes of their keys, each key once.
    public private(set) var entries: [Entry] = []
    /// The key of the branch name, a JSON string.
    public static let branchKey = Array("__llvs_branch".utf8)
    /// The key of the name of the device that saved the version, a JSON string.
    package static let deviceKey = Array("__llvs_device".utf8)

    /// No entries.
    public init() {}

    /// Accepts what any version may carry; `checkMade` checks the stricter rules for versions made here.
    /// - Throws: `.invalidMetadata` if a key is too long or not UTF-8, or if all is over 16 MiB.
    public init(_ pairs: [(key: [UInt8], value: [UInt8])]) throws { try self.init(pairs, looking: {}) }

    /// - Parameter look: called now and then if there are many; an error that it throws ends the work.
    init(_ pairs: [(key: [UInt8], value: [UInt8])], looking look: () throws -> Void) throws {
        var size = 0
        for (i, (key, value)) in pairs.enumerated() {
            if i & 0xFFFF == 0xFFFF { try look() }
            guard key.count <= Limits.metadataKeySize, key.withUnsafeBytes(Bytes.isValidUTF8) else {
                throw StoreError(.invalidMetadata, "A metadata key must be at most \(Limits.metadataKeySize) bytes of valid UTF-8.")
            }
            size += key.count + min(value.count, Limits.metadataSize + 1)
            guard size <= Limits.metadataSize else {
                throw StoreError(
                    .invalidMetadata,
                    "The metadata of one version may hold \(Limits.metadataSize) bytes in all; store larger data in values.")
            }
        }
        // Sort first, so that the cost per key stays low for many keys. The sort is stable, so the last of several equal keys stays last.
        func isBefore(_ a: Int, _ b: Int) -> Bool {
            let order = Bytes.compare(pairs[a].key, pairs[b].key)
            return order != 0 ? order < 0 : a < b
        }
        let order = try pairs.count < 0xFFFF ? pairs.indices.sorted(by: isBefore) : Array(pairs.indices).sorted(by: isBefore, looking: look)
        entries.reserveCapacity(order.count)
        for i in order {
            if entries.count & 0xFFFF == 0xFFFF { try look() }
            let entry = Entry(key: pairs[i].key, value: pairs[i].value)
            if let last = entries.last, Bytes.equal(last.key, entry.key) {
                entries[entries.count - 1] = entry
            } else {
                entries.append(entry)
            }
        }
    }

    /// Throws if a version that is made here may not carry this: too many keys, an empty key, a branch that is no JSON string (which ends
    /// other implementations' processes), or a branch name longer than 1 KiB. Versions from elsewhere are accepted with the last three.
    /// - Throws: `.invalidMetadata`.
    package func checkMade() throws {
        if entries.count > Limits.metadataKeys {
            throw StoreError(
                .invalidMetadata, "The metadata has \(entries.count) keys; at most \(Limits.metadataKeys) are allowed. Use values for more."
            )
        }
        if entries.first?.key.isEmpty ?? false {
            throw StoreError(.invalidMetadata, "A metadata key is empty. Give it at least one character.")
        }
        if self[Metadata.branchKey] != nil, branch == nil {
            throw StoreError(
                .invalidMetadata,
                "The metadata under __llvs_branch is not a JSON string, which the name of a branch must be: \"draft\", with its quotes. "
                    + "Write it in this form, or pass the branch by its own parameter."
            )
        }
        if let branch, branch.utf8.count > Limits.branchNameSize {
            throw StoreError(
                .invalidMetadata,
                "The name of a branch has \(branch.utf8.count) bytes; at most \(Limits.branchNameSize) are allowed. Give a shorter one.")
        }
    }

    /// The value under a key in UTF-8; nil if there is none. Setting nil removes it. O(log n), setting O(n).
    public subscript(key: [UInt8]) -> [UInt8]? {
        get {
            let i = position(of: key)
            return i < entries.count && Bytes.equal(entries[i].key, key) ? entries[i].value : nil
        }
        set {
            let i = position(of: key)
            let present = i < entries.count && Bytes.equal(entries[i].key, key)
            switch (newValue, present) {
            case (let value?, true): entries[i] = Entry(key: key, value: value)
            case (let value?, false): entries.insert(Entry(key: key, value: value), at: i)
            case (nil, true): entries.remove(at: i)
            case (nil, false): break
            }
        }
    }
    /// The value under a key, given as a string.
    public subscript(key: String) -> [UInt8]? {
        get { self[Array(key.utf8)] }
        set { self[Array(key.utf8)] = newValue }
    }
    /// Whether there are no entries.
    public var isEmpty: Bool { entries.isEmpty }

    /// About how many bytes of memory it takes.
    package var memorySize: Int { entries.reduce(0) { $0 + $1.key.count + $1.value.count + 100 } }

    private func position(of key: [UInt8]) -> Int {
        var low = 0, high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if Bytes.compare(entries[middle].key, key) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
