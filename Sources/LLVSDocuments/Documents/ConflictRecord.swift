/// A decision of a merge about a part that both sides had changed, recorded for a person to review. It is never a failure.
public struct ConflictRecord: Sendable, Equatable {
    /// The subject of the conflict. The raw values are those of `llvs_conflict_kind`.
    public enum Kind: UInt32, Sendable, CaseIterable {
        /// Both sides changed a value that is not merged inside: one side's value wins.
        case pick = 1
        /// One side removed what the other changed: a value, or lines of a text.
        case deleteEdit
        /// The sides have different types, or a type that the rule is not for.
        case type
        /// The value of a side is not JSON that can be merged.
        case notJSON
        /// Both sides changed the same lines of a text differently.
        case overlap
        /// Both sides moved an element, to different places.
        case moveMove
        /// The sides hold two values between which an earlier merge had to choose.
        case contested
        /// A counter is outside of its bounds.
        case bound
        /// A cap was reached: a text was compared less finely, or a counter has too many digits.
        case limit
        /// Both sides changed a place that the rules leave to an arbiter of the host.
        case arbiter

        /// The name of the kind in records.
        public var name: String {
            switch self {
            case .pick: "pick"
            case .deleteEdit: "delete-edit"
            case .type: "type"
            case .notJSON: "not-json"
            case .overlap: "overlap"
            case .moveMove: "move-move"
            case .contested: "contested"
            case .bound: "bound"
            case .limit: "limit"
            case .arbiter: "arbiter"
            }
        }
    }

    /// The subject of the conflict.
    public let kind: Kind
    /// The path of the value: a JSON array of names, `{"key":…}` and `{"index":n}`.
    public let path: [UInt8]
    /// The base's value as JSON, or nil if the base has none.
    public let base: [UInt8]?
    /// The newer side's value.
    public let newer: [UInt8]?
    /// The older side's value.
    public let older: [UInt8]?
    /// The resulting value.
    public let result: [UInt8]?
    /// The prefix and the pattern of the rule for this value, or nil for the default.
    public let rule: (prefix: [UInt8], pattern: [UInt8])?

    public static func == (a: ConflictRecord, b: ConflictRecord) -> Bool { a.json(id: []) == b.json(id: []) }

    /// Whether the record is about lines of a text. (If a whole value was removed, the record lacks the side that removed it.)
    package var isOfText: Bool { kind == .overlap || kind == .deleteEdit && newer != nil && older != nil }

    /// The approximate size of a record as JSON without its parts, in bytes.
    static let ownSize = 64

    /// The approximate size of the record as JSON, in bytes.
    var size: Int {
        var sum = path.count + Self.ownSize
        for value in [base, newer, older, result, rule?.prefix, rule?.pattern] { sum += value?.count ?? 0 }
        return sum
    }

    /// The record as canonical JSON.
    public func json(id: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        Self.append(
            Self.string(id), kind, path: path, base: base, newer: newer, older: older, result: result, rule: rule, to: &out)
        return out
    }

    /// Appends a record as canonical JSON.
    /// - Parameters:
    ///   - id: the value's id, as JSON.
    ///   - takingLarge: called with each large part. Returns whether it consumed the part, which is then not appended.
    static func append<Part: Collection<UInt8>>(
        _ id: [UInt8], _ kind: Kind, path: Part, base: Part?, newer: Part?, older: Part?, result: Part?,
        rule: (prefix: [UInt8], pattern: [UInt8])?, to out: inout [UInt8], takingLarge: (inout [UInt8], Part) -> Bool = { _, _ in false }
    ) {
        func text(_ text: StaticString) {
            out.append(contentsOf: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        }
        func member(_ name: StaticString, _ value: Part?) {
            guard let value else { return }
            text(name)
            if value.count < 1 << 14 || !takingLarge(&out, value) { out.append(contentsOf: value) }
        }
        text("{\"id\":")
        out.append(contentsOf: id)
        text(",\"kind\":\"")
        out.append(contentsOf: kind.name.utf8)
        text("\"")
        member(",\"o\":", base)
        member(",\"path\":", path)
        member(",\"result\":", result)
        if let rule {
            text(",\"rule\":[")
            rule.prefix.withUnsafeBytes { CanonicalText.append($0, to: &out) }
            text(",")
            rule.pattern.withUnsafeBytes { CanonicalText.append($0, to: &out) }
            text("]")
        }
        member(",\"x\":", newer)
        member(",\"y\":", older)
        text("}")
    }

    /// Creates a record of the given parts.
    public init(
        kind: Kind, path: [UInt8], base: [UInt8]?, newer: [UInt8]?, older: [UInt8]?, result: [UInt8]?,
        rule: (prefix: [UInt8], pattern: [UInt8])?
    ) {
        self.kind = kind; self.path = path; self.base = base; self.newer = newer; self.older = older; self.result = result
        self.rule = rule
    }

    /// Returns the record with its path in canonical form. The caller may have stored the path in another form.
    /// - Throws: `.invalidArgument` if the path is not a JSON array.
    public func canonical() throws -> ConflictRecord {
        let written = try path.withUnsafeBytes { bytes -> [UInt8]? in
            let work = DocumentControl()
            guard let text = try JSONTreeParser.parse(bytes, work: work), text.tree.kind(0) == .array else { return nil }
            return try CanonicalWriter.bytes(of: ValueRef(tree: 0, node: 0), in: DocumentValues([text], work: work), normalises: true)
        }
        guard let written else {
            throw StoreError(.invalidArgument, "A conflict names its place as a JSON array; pass the conflict as it was reported.")
        }
        return ConflictRecord(kind: kind, path: written, base: base, newer: newer, older: older, result: result, rule: rule)
    }

    /// Returns the SHA-256, in hexadecimal, of the records of several values as one JSON array.
    public static func digest(_ records: some Sequence<(id: [UInt8], record: ConflictRecord)>) -> String {
        var hash = ConflictDigest()
        for (id, record) in records {
            hash.add(
                id: id, record.kind, path: record.path, base: record.base, newer: record.newer, older: record.older, result: record.result,
                rule: record.rule)
        }
        return hash.finish()
    }

    /// Returns a text as a JSON string.
    static func string(_ text: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        text.withUnsafeBytes { CanonicalText.append($0, to: &out) }
        return out
    }
}

/// Limits the size of a merge's records and result. Each record holds its whole path, and the result may hold a rule's `absent` value
/// many times, so both could grow with the square of the inputs.
struct ConflictRecordBudget {
    struct Full: Error {}
    private var left: Int

    /// - Parameter inputs: the bytes of the three values. Equal inputs have the same budget on every device.
    init(inputs: Int) { left = 4 * inputs + 1 << 20 }

    /// Returns whether records of at least `size` bytes exceed the budget.
    func isExceeded(by size: Int) -> Bool { size > left }

    /// - Throws: `Full` if all records together exceed the budget; `.outOfMemory`.
    mutating func take(_ record: ConflictRecord) throws { try take(record.size) }

    /// - Parameter size: the size of a record.
    mutating func take(_ size: Int) throws {
        try Memory.check()
        left -= size
        if left < 0 { throw Full() }
    }

    /// Returns the most bytes that the merged value may have.
    static func result(of inputs: Int) -> Int { 8 * inputs + 1 << 16 }
}

/// A record during the merge.
struct RecordDraft {
    struct Inputs {
        var o: ValueRef
        var x: ValueRef
        var y: ValueRef
        var state: Int32

        init(o: ValueRef, x: ValueRef, y: ValueRef, state: Int) {
            (self.o, self.x, self.y, self.state) = (o, x, y, Int32(truncatingIfNeeded: state))
        }
    }

    var kind: ConflictRecord.Kind
    var inputs: Inputs
    var result: ValueRef
    /// The number of its place in `KeptPlaces`.
    var place: UInt32

    /// Returns one of the four values of the record: the base's, the newer side's, the older side's and the result.
    @inline(__always)
    func part(_ i: Int) -> ValueRef { i == 0 ? inputs.o : i == 1 ? inputs.x : i == 2 ? inputs.y : result }
}

/// Paths of places in a value.
enum RecordPath {
    enum Step {
        case name(ValueRef)
        case index(Int)
        /// An element by its key, of one value or several, and the number of elements before it that have the same key.
        case key([ValueRef], occurrence: Int)
        /// In the result of a merge: an element by its place, or a removed element by the place of the element before it.
        case at(Int)
        indirect case gone(Step, after: Int?)
    }

    /// Returns the steps from the whole value down to the place.
    static func steps(_ place: UInt32, _ places: KeptPlaces, _ values: DocumentValues, inResult: Bool = false) throws -> [Step] {
        var steps: [Step] = [], place = place
        while place != KeptPlaces.whole {
            steps += try last(place, places, values, inResult).reversed()
            place = places.parent(of: place)
        }
        return steps.reversed()
    }

    /// Returns the steps from a place's container to the place.
    private static func last(_ place: UInt32, _ places: KeptPlaces, _ values: DocumentValues, _ inResult: Bool) throws -> [Step] {
        if let name = places.name(of: place) { return [.name(name)] }
        if let known = places.element(of: place) { return [step(to: known)] }
        guard let (frame, child) = places.holder(of: place) else { return [] }
        return switch frame.shape {
        case .object, .elements: []
        case .tuple: [.index(child)]
        case .chain(let chain):
            try chain.steps(of: frame.inputs, values).map { step in
                switch step {
                case .name(let name): .name(name)
                case .element(let known): Self.step(to: known)
                }
            }
        case .list(let plan) where inResult:
            [plan.outcome(child).at.map { .at($0) } ?? .gone(plan.step(child), after: plan.outcome(child).after)]
        case .list(let plan): [plan.step(child)]
        case .set(let plan): [plan.step(child)]
        }
    }

    private static func step(to known: ShortLists.Known) -> Step {
        switch known {
        case .value(_, let place): .index(place)
        case .id(let id, let occurrence): .key([id], occurrence: occurrence)
        }
    }

    static func json(_ place: UInt32, _ places: KeptPlaces, _ values: DocumentValues) throws -> [UInt8] {
        var writer = Writer(places, values), path: [UInt8] = []
        _ = try writer.write(place) { path = Array($0) }
        return path
    }

    /// Writes the paths of many records. Consecutive records are often in one container.
    struct Writer {
        private let places: KeptPlaces
        private let values: DocumentValues
        /// Whether the paths are those in the result of the merge instead of in the base.
        private let inResult: Bool
        private var path: CanonicalWriter
        /// The container of the last path, and how many bytes of that path lead to the container.
        private var container: UInt32?
        private var size = 0

        init(_ places: KeptPlaces, _ values: DocumentValues, inResult: Bool = false) {
            self.inResult = inResult
            self.places = places
            self.values = values
            path = CanonicalWriter(values)
        }

        /// - Returns: the number of bytes of the path.
        mutating func write(_ place: UInt32, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Int {
            let parent = places.parent(of: place)
            if parent == container {
                path.cut(to: size)
            } else {
                path.clear()
                path.append("[")
                container = parent
                for step in try RecordPath.steps(parent, places, values, inResult: inResult) { try write(step) }
                size = path.bytes.count
            }
            if let name = places.name(of: place) {
                if path.bytes.count > 1 { path.append(",") }
                try path.write(name)
            } else {
                for step in try RecordPath.last(place, places, values, inResult) { try write(step) }
            }
            path.append("]")
            try path.bytes.withUnsafeBytes(body)
            return path.bytes.count
        }

        private mutating func write(_ step: Step, after: Int? = nil) throws {
            if case .gone(let step, let after) = step { return try write(step, after: after) }
            if path.bytes.count > 1 { path.append(",") }
            switch step {
            case .gone: break
            case .name(let name): try path.write(name)
            case .at(let place):
                path.append("{\"at\":")
                path.append(decimal: place)
                path.append("}")
            case .index(let index):
                path.append("{\"index\":")
                path.append(decimal: index)
                write(after: after)
                path.append("}")
            case .key(let parts, let occurrence):
                path.append(parts.count == 1 ? "{\"key\":" : "{\"key\":[")
                for (i, part) in parts.enumerated() {
                    if i > 0 { path.append(",") }
                    if let bytes = values.normalised(part) {
                        path.append(bytes)
                    } else {
                        path.append(try CanonicalWriter.bytes(of: part, in: values, normalises: true))
                    }
                }
                if parts.count != 1 { path.append("]") }
                if occurrence > 0 {
                    path.append(",\"occurrence\":")
                    path.append(decimal: occurrence)
                }
                write(after: after)
                path.append("}")
            }
        }

        private mutating func write(after: Int?) {
            guard let after else { return }
            path.append(Array(",\"after\":\(after)".utf8))
        }
    }

    /// Returns a step to a contested place, as records show it.
    /// - Parameter inBase: the place in the base of an element without a key.
    static func step(_ step: ContestedValues.Step, inBase: Int) -> [UInt8] {
        switch step {
        case .name(let name):
            var out: [UInt8] = []
            name.withUnsafeBytes { CanonicalText.append($0, to: &out) }
            return out
        case .slot(let slot): return Array("{\"index\":\(slot)}".utf8)
        case .key(.value, _, _): return Array("{\"index\":\(inBase)}".utf8)
        case .key(_, let key, let occurrence):
            return Array("{\"key\":".utf8) + key + Array((occurrence > 0 ? ",\"occurrence\":\(occurrence)}" : "}").utf8)
        case .part(let from, _): return Array("{\"from\":\(from)}".utf8)
        }
    }

    /// Returns the path of some steps.
    static func json(_ steps: [[UInt8]]) -> [UInt8] {
        [UInt8(ascii: "[")] + Array(steps.joined(separator: [UInt8(ascii: ",")])) + [UInt8(ascii: "]")]
    }
}
