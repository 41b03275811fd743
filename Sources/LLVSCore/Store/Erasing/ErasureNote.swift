/// The policy of this device, and the orders that count on it: the contents of the file `erasures` (docs/format.md, "Erase orders"). The
/// bytes of an order are here, so that it counts also if its version is damaged or lost.
struct ErasureNote: Equatable {
    static let name = "erasures"
    /// The most orders, and the most bytes of all.
    static let most = 65_536, mostBytes = 64 << 20

    /// Where an order stands.
    enum State: UInt8 {
        /// To be followed.
        case open = 0x6F // o
        case followed = 0x64 // d
        /// It is followed once its delay is over.
        case announced = 0x61 // a
        /// It waits for a decision here, since it names much.
        case held = 0x77 // w
        /// It was decided here to keep the bytes.
        case kept = 0x6B // k

        /// Returns the state if copies of the note differ.
        func joined(_ other: State) -> State {
            if self == other { return self }
            for state in [State.kept, .open, .followed, .announced] where self == state || other == state {
                return state == .followed ? .open : state
            }
            return .held
        }
    }

    struct Line: Equatable {
        var order: String, version: VersionID
        var state: State
        var json: [UInt8]
        /// For the order of another device: when this one first saw it (seconds since 1970), and how many values and bytes it named then.
        var came: Arrival?

        /// Whether there is nothing to do for it now.
        var isFollowed: Bool {
            get { state != .open }
            set { state = newValue ? .followed : .open }
        }
        init(order: String, version: VersionID, isFollowed: Bool, json: [UInt8]) {
            self.init(order: order, version: version, state: isFollowed ? .followed : .open, json: json, came: nil)
        }
        init(order: String, version: VersionID, state: State, json: [UInt8], came: Arrival?) {
            self.order = order; self.version = version; self.state = state; self.json = json; self.came = came
        }
    }
    struct Arrival: Equatable { var time: UInt64, values: UInt64, bytes: UInt64 }

    var lines: [Line] = []
    var policy = ForgettingPolicy()
    /// Whether values were forgotten by a policy.
    var hasThinned = false
    private static let thinned = Array("thinned".utf8)

    init() {}
    /// - Parameter copies: an order that is not in all of them, or not followed in all of them, is not followed. The policy that was pinned
    ///   last counts.
    init(_ copies: [[UInt8]]) {
        var places: [String: (line: Int, copies: Int)] = [:]
        for copy in copies {
            for text in copy.split(separator: UInt8(ascii: "\n")).prefix(ErasureNote.most + 1) {
                if text.elementsEqual(ErasureNote.thinned) { hasThinned = true; continue }
                if let found = ForgettingPolicy(line: text) {
                    if found.number > policy.number { policy = found }
                    continue
                }
                guard let found = ErasureNote.line(text) else { continue }
                guard let known = places[found.order] else {
                    places[found.order] = (lines.count, 1)
                    lines.append(found)
                    continue
                }
                places[found.order]?.copies += 1
                lines[known.line].state = lines[known.line].state.joined(found.state)
            }
        }
        for (line, count) in places.values where count < copies.count && lines[line].state == .followed { lines[line].state = .open }
    }

    private static func line(_ text: ArraySlice<UInt8>) -> Line? {
        let words = text.split(separator: UInt8(ascii: " "), maxSplits: 3)
        guard words.count >= 3, words[0].count == 26,
            let version = Array(words[1]).withUnsafeBytes({ try? VersionID(ascii: $0) })
        else { return nil }
        let parts = words[2].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        let numbers = parts.dropFirst().compactMap { UInt64(String(decoding: $0, as: UTF8.self)) }
        return Line(
            order: String(decoding: words[0], as: UTF8.self), version: version,
            state: parts.first?.count == 1 ? parts[0].first.flatMap(State.init) ?? .open : .open,
            json: words.count > 3 ? Array(words[3]) : [],
            came: numbers.count == 3 ? Arrival(time: numbers[0], values: numbers[1], bytes: numbers[2]) : nil)
    }

    var bytes: [UInt8] {
        var out = policy.line
        if hasThinned { out += ErasureNote.thinned + [UInt8(ascii: "\n")] }
        for line in lines {
            out += Array("\(line.order) \(line.version) ".utf8)
            out.append(line.state.rawValue)
            if let came = line.came { out += Array(":\(came.time):\(came.values):\(came.bytes)".utf8) }
            out.append(UInt8(ascii: " "))
            out += line.json
            out.append(UInt8(ascii: "\n"))
        }
        return out
    }

    /// Pins other stewards, as an order says.
    mutating func replaceStewards(by stewards: Stewards, _ line: Line) {
        policy.stewards = stewards
        policy.number &+= 1
        lines.append(line)
    }

    /// Whether it has room for further orders of these sizes.
    func hasRoom(for orders: [[UInt8]]) -> Bool {
        lines.count + orders.count <= ErasureNote.most && orders.reduce(bytes.count) { $0 + $1.count + 256 } <= ErasureNote.mostBytes
    }
}
