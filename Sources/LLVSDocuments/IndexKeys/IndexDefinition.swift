/// Why the definition of an index is invalid.
public struct InvalidIndex: Error, Sendable, Equatable {
    /// An RFC 6901 pointer into the definition, or into the rules that contain it.
    public let pointer: String
    /// A sentence without its full stop.
    public let reason: String

    package init(_ pointer: [UInt8], _ reason: String) {
        self.pointer = String(decoding: pointer, as: UTF8.self)
        self.reason = reason
    }

    /// The problem as an error of the store, with the pointer as its path.
    public var storeError: StoreError {
        StoreError(
            .invalidArgument, "The definition of an index cannot be used: at \"\(pointer)\", \(reason). Correct it there.", path: pointer)
    }

    /// The problem as one of the rules that contain the definition.
    var asRules: InvalidRules { InvalidRules(Array(pointer.utf8), reason) }
}

/// Defines which values are in an index, and under which keys: docs/index-keys.md, *The definition of an index*. Immutable.
public struct IndexDefinition: Sendable {
    /// A segment of a pointer.
    package enum IndexSegment: Hashable, Sendable {
        case name([UInt8])
        /// `*`: each element of an array, or the value of each member of an object.
        case each
    }

    /// A condition that a value must satisfy to be in the index.
    struct Condition: Sendable {
        enum Wanted: Sendable {
            case null
            case bool(Bool)
            case number(JSONDecimal)
            case string([UInt8])
            case present(Bool)
        }
        let path: [[UInt8]]
        let wanted: Wanted
    }

    static let mostParts = 8, mostKeys = 10_000, mostSegments = 128
    /// The limit of the bytes of the keys of a value whose stars multiply: a minimum, and a number for each byte of the value and its id.
    /// Each key counts with the id and the overhead.
    static let leastRoom = 16 << 10, roomForEachByte = 64, keyOverhead = 32
    static func room(_ size: Int, _ idSize: Int) -> Int { leastRoom + roomForEachByte * (size + idSize) }
    /// The prefix of ids of the library's own values.
    package static let reserved = Array("__llvs_".utf8)

    /// The prefix of the ids of its values.
    public let prefix: [UInt8]
    /// The pointers to the parts of a key.
    let on: [[IndexSegment]]
    /// Whether strings are folded.
    public let folds: Bool
    let conditions: [Condition]
    /// The definition as canonical JSON.
    public let text: [UInt8]
    /// SHA-256 that identifies the index. Equal for two definitions of one index.
    public let digest: [UInt8]
    /// The structure of the stars of `on`.
    let stars: IndexStars
    /// The callback that computes the keys, instead of pointers.
    package let callback: IndexCallback?

    /// The number of parts of a key.
    public var parts: Int { callback?.parts ?? on.count }
    /// Whether equal digests mean one index in every process.
    package var isLasting: Bool { callback?.isLasting ?? true }
    /// Whether a value may have more than one key.
    package var mayRepeat: Bool { callback != nil || !stars.stars.isEmpty }

    /// - Parameter json: the definition.
    /// - Throws: `InvalidIndex`, `.outOfMemory`.
    public init(_ json: UnsafeRawBufferPointer) throws {
        guard let text = try JSONTreeParser.parse(json, work: DocumentControl()) else {
            throw InvalidIndex([], "JSON is expected: UTF-8, no name twice in one object, at most 64 MiB and 128 levels")
        }
        try self.init(0, in: text, at: [])
    }

    /// Checks the definition, and throws an error of the store.
    /// - Throws: `.invalidArgument` with the pointer to the problem as its path, `.outOfMemory`.
    package init(checking json: UnsafeRawBufferPointer) throws {
        do { try self.init(json) } catch let problem as InvalidIndex { throw problem.storeError }
    }

    /// - Parameters:
    ///   - node: the node of the definition in `text`.
    ///   - pointer: the pointer to it, for messages.
    init(_ node: UInt32, in text: JSONText, at pointer: [UInt8]) throws {
        let reader = IndexDefinitionReader(text, node, pointer)
        (prefix, on, folds, conditions) = (try reader.prefix(), try reader.on(), try reader.folds(), try reader.conditions())
        self.text = try reader.canonical(folds: folds, hasConditions: !conditions.isEmpty)
        digest = (Array("llvs-index 1\n".utf8) + self.text).withUnsafeBytes { Array(SHA256.digest($0)) }
        stars = IndexStars(on)
        callback = nil
    }
}

/// Reads a definition. Reports the first problem and where it is.
private struct IndexDefinitionReader {
    private let text: JSONText
    private var tree: JSONTree { text.tree }
    private let node: UInt32
    private let pointer: [UInt8]

    init(_ text: JSONText, _ node: UInt32, _ pointer: [UInt8]) {
        self.text = text
        self.node = node
        self.pointer = pointer
    }

    private func at(_ rest: String) -> [UInt8] { pointer + Array(rest.utf8) }
    private func member(_ name: StaticString) -> UInt32? {
        tree.member(UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), of: node)
    }
    private func string(_ node: UInt32) -> String { String(decoding: tree.text(node), as: UTF8.self) }

    /// Called first: also checks that the definition is an object with known members.
    func prefix() throws -> [UInt8] {
        guard tree.kind(node) == .object else { throw InvalidIndex(pointer, "an index is an object") }
        for value in tree.children(of: node) where !["prefix", "on", "text", "where"].contains(string(tree.nameNode(of: value))) {
            throw InvalidIndex(
                pointer + [UInt8(ascii: "/")] + JSONPointer.escaped(tree.name(of: value)), "an index has no member of that name")
        }
        guard let prefix = member("prefix"), tree.kind(prefix) == .string else {
            throw InvalidIndex(at("/prefix"), "a string is needed, which may be empty: what the ids of the values begin with")
        }
        return Array(tree.text(prefix))
    }

    func on() throws -> [[IndexDefinition.IndexSegment]] {
        let why = "an array of 1 to \(IndexDefinition.mostParts) pointers is needed"
        guard let on = member("on"), tree.kind(on) == .array else { throw InvalidIndex(at("/on"), why) }
        let items = tree.children(of: on)
        guard (1...IndexDefinition.mostParts).contains(items.count) else { throw InvalidIndex(at("/on"), why) }
        var paths: [[IndexDefinition.IndexSegment]] = []
        for (i, item) in items.enumerated() {
            guard tree.kind(item) == .string else { throw InvalidIndex(at("/on/\(i)"), "a pointer is a string") }
            let path = try IndexDefinition.segments(tree.text(item), at("/on/\(i)"))
            guard !paths.contains(path) else { throw InvalidIndex(at("/on/\(i)"), "the same pointer occurs twice") }
            paths.append(path)
        }
        return paths
    }

    func folds() throws -> Bool {
        guard let text = member("text") else { return false }
        guard tree.kind(text) == .string, ["bytes", "fold"].contains(string(text)) else {
            throw InvalidIndex(at("/text"), "\"bytes\" or \"fold\" is needed")
        }
        return string(text) == "fold"
    }

    func conditions() throws -> [IndexDefinition.Condition] {
        guard let wanted = member("where") else { return [] }
        guard tree.kind(wanted) == .object else { throw InvalidIndex(at("/where"), "an object is needed, from pointers to conditions") }
        var conditions: [IndexDefinition.Condition] = []
        for value in tree.children(of: wanted) {
            let place = at("/where/") + JSONPointer.escaped(tree.name(of: value))
            let path = try IndexDefinition.segments(tree.name(of: value), place).map { segment -> [UInt8] in
                guard case .name(let name) = segment else { throw InvalidIndex(place, "\"*\" is allowed in \"on\" only") }
                return name
            }
            conditions.removeAll { $0.path == path }
            conditions.append(IndexDefinition.Condition(path: path, wanted: try wants(value, place)))
        }
        return conditions
    }

    private func wants(_ node: UInt32, _ place: [UInt8]) throws -> IndexDefinition.Condition.Wanted {
        switch tree.kind(node) {
        case .null: return .null
        case .bool: return .bool(tree.bool(node))
        case .number:
            guard IndexNumber.isWithinLimits(tree.text(node)) else {
                throw InvalidIndex(place, "a number of at most 400 digits, and with an exponent of at most 9999, is needed")
            }
            return .number(tree.decimal(node))
        case .string: return .string(Array(tree.text(node)))
        case .object:
            let members = tree.children(of: node)
            if members.count == 1, string(tree.nameNode(of: members[0])) == "present", tree.kind(members[0]) == .bool {
                return .present(tree.bool(members[0]))
            }
        default: break
        }
        throw InvalidIndex(place, "a scalar is needed, or {\"present\": true} or {\"present\": false}")
    }

    func canonical(folds: Bool, hasConditions: Bool) throws -> [UInt8] {
        let values = DocumentValues([text], work: DocumentControl())
        func written(_ name: StaticString) throws -> [UInt8] {
            try member(name).map { try CanonicalWriter.bytes(of: ValueRef(tree: 0, node: $0), in: values, normalises: true) } ?? []
        }
        return try Array("{\"on\":".utf8) + written("on") + Array(",\"prefix\":".utf8) + written("prefix")
            + (folds ? Array(",\"text\":\"fold\"".utf8) : [])
            + (hasConditions ? Array(",\"where\":".utf8) + written("where") : []) + [UInt8(ascii: "}")]
    }
}

extension IndexDefinition {
    /// Splits a pointer of a definition into its segments.
    /// - Parameter place: where the pointer is, for messages.
    /// - Throws: `InvalidIndex`.
    package static func segments(_ text: UnsafeRawBufferPointer, _ place: [UInt8]) throws -> [IndexSegment] {
        guard let first = text.first else { return [] }
        guard first == UInt8(ascii: "/") else { throw InvalidIndex(place, "a pointer is empty or begins with \"/\"") }
        let written = text.dropFirst().split(separator: UInt8(ascii: "/"), maxSplits: .max, omittingEmptySubsequences: false)
        return try written.enumerated().map {
            guard $0 < mostSegments else {
                throw InvalidIndex(place, "a pointer has at most \(mostSegments) segments")
            }
            if $1.elementsEqual("*".utf8) { return .each }
            if $1.elementsEqual("**".utf8) { throw InvalidIndex(place, "\"**\" is not supported") }
            return .name(try name($1, place))
        }
    }

    /// Returns a segment without its escapes: `~0`, `~1`, and `~2` for `*`.
    private static func name(_ written: Slice<UnsafeRawBufferPointer>, _ place: [UInt8]) throws -> [UInt8] {
        var out: [UInt8] = [], isEscape = false
        for byte in written {
            if isEscape {
                guard let i = [0x30, 0x31, 0x32].firstIndex(of: byte) else { break }
                out.append([UInt8(ascii: "~"), UInt8(ascii: "/"), UInt8(ascii: "*")][i])
                isEscape = false
            } else if byte == UInt8(ascii: "~") {
                isEscape = true
            } else {
                out.append(byte)
            }
        }
        guard !isEscape else { throw InvalidIndex(place, "\"~\" is followed by something other than 0, 1 or 2") }
        return out
    }
}
