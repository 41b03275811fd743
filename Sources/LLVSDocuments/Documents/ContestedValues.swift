/// Values between which merges had to choose, by their place in a value. A merge that computes a virtual base reports them. The merge
/// that uses this base checks whether its sides hold two of them.
public struct ContestedValues: Sendable {
    /// A step down to a place, by which the place is found in any side.
    enum Step: Hashable, Sendable {
        case name([UInt8])
        case slot(Int)
        case key(ElementKeys.Source, [UInt8], occurrence: Int)
        /// Some bytes of a text. This is the last step.
        case part(from: Int, count: Int)
    }

    /// Digests of the values, by place.
    private(set) var places: [[Step]: Set<[UInt8]>] = [:]
    /// The number of digests, and whether the limit was exceeded. Once it is exceeded, no digest is held, whatever is added.
    private var count = 0, isTooMuch = false
    /// Each level of nested virtual merges also has the digests of the levels below it.
    private static let most = 1_024

    /// Creates an empty collection.
    public init() {}

    /// Whether there are no contested values.
    public var isEmpty: Bool { places.isEmpty }

    /// Adds the contested values of another merge.
    public mutating func formUnion(_ other: ContestedValues) {
        if other.isTooMuch { dropAll() }
        for (place, digests) in other.places { for digest in digests { add(digest, at: place) } }
    }

    private mutating func add(_ value: ValueRef, at place: [Step], in values: DocumentValues) throws {
        guard !value.isAbsent, !isTooMuch else { return }
        add(try Self.digest(value, in: values), at: place)
    }

    private mutating func add(_ digest: [UInt8], at place: [Step]) {
        guard !isTooMuch, places[place, default: []].insert(digest).inserted else { return }
        count += 1
        if count > Self.most { dropAll() }
    }

    private mutating func dropAll() {
        isTooMuch = true
        places = [:]
    }

    /// The places in a deterministic order.
    var ordered: [(place: [Step], digests: Set<[UInt8]>)] {
        let all = places.map { (order: Self.order($0.key), place: $0.key, digests: $0.value) }
        return all.sorted { Bytes.compare($0.order, $1.order) < 0 }.map { ($0.place, $0.digests) }
    }

    private static func order(_ place: [Step]) -> [UInt8] {
        place.flatMap { step -> [UInt8] in
            switch step {
            case .name(let name): Array("n\(name.count):".utf8) + name
            case .slot(let slot): Array("s\(slot):".utf8)
            case .key(let source, let key, let occurrence): Array("k\(source.rawValue),\(occurrence),\(key.count):".utf8) + key
            case .part(let from, let count): Array("p\(from),\(count):".utf8)
            }
        }
    }

    /// Returns a digest that is equal for equal values only.
    static func digest(_ value: ValueRef, in values: DocumentValues) throws -> [UInt8] {
        if values.isKind(value, .raw) { return [0] + SHA256.digest(values.text(value)) }
        return try [1] + CanonicalWriter.bytes(of: value, in: values, normalises: true).withUnsafeBytes { SHA256.digest($0) }
    }

    // MARK: Reports of a merge

    /// Creates the contested values of a merge with `tellsPlaces`.
    /// - Parameters:
    ///   - drafts: the records of the merge.
    ///   - made: the result, or nil if the merge removed the value.
    init(_ merge: DocumentMergeRun, _ drafts: Pieces<RecordDraft>, made: DocumentValues?) throws {
        let result = made.map { ContestedPlaces($0, merge.rules) }
        for (i, draft) in drafts.enumerated() {
            if isTooMuch { break }
            var steps = try Self.steps(draft.place, merge, result)
            if let from = merge.starts[i] { steps.append(.part(from: from, count: merge.values.size(draft.result))) }
            try add(draft.inputs.x, at: steps, in: merge.values)
            try add(draft.inputs.y, at: steps, in: merge.values)
        }
    }

    /// Returns the steps from the whole value down to a place of a merge. Elements are identified by their keys in the result, which is
    /// the base of the next merge. An element without a key may have another value in the result. Without a result, elements are
    /// identified by their keys in the base of this merge.
    static func steps(_ place: UInt32, _ merge: DocumentMergeRun, _ result: ContestedPlaces?) throws -> [Step] {
        var down: [UInt32] = [], place = place
        while place != KeptPlaces.whole {
            down.append(place)
            place = merge.places.parent(of: place)
        }
        var steps: [Step] = [], at = ContestedPlaces.Place()
        for place in down.reversed() {
            guard let step = try step(place, merge, result, at) else { continue }
            at = try result?.go(step, from: at) ?? at
            steps.append(step)
        }
        return steps
    }

    private static func step(
        _ place: UInt32, _ merge: DocumentMergeRun, _ result: ContestedPlaces?, _ at: ContestedPlaces.Place
    ) throws -> Step? {
        if let name = merge.places.name(of: place) { return .name(Array(merge.values.text(name))) }
        guard let (frame, child) = merge.places.holder(of: place) else { return nil }
        switch frame.shape {
        case .tuple: return .slot(child)
        case .set(let plan): return try plan.contestedStep(child)
        case .list(let plan):
            // (The place of an element in the result is known once the list is merged.)
            if let result, let came = plan.outcome(child).at, let key = try result.key(ofElement: came, of: at) {
                return .key(key.source, key.bytes, occurrence: key.occurrence)
            }
            return try plan.contestedStep(child)
        // (With `tellsPlaces` there are no short lists and no chains.)
        case .object, .elements, .chain: return nil
        }
    }
}
