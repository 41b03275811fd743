/// What one rule says about the values that it is for. Does not change once it is read.
final class MergeRule: @unchecked Sendable {
    // Sendable: it is filled while the rules are parsed and does not change after that.
    enum Kind: String, CaseIterable { case auto, register, counter, set, list, tuple, text, bytes }
    enum Unit: String, CaseIterable { case word, line }
    enum Pick: Equatable {
        case newer, older, arbiter
        case extreme(greatest: Bool, pointer: [[UInt8]])

        var isOlder: Bool { if case .older = self { true } else { false } }
    }

    var kind = Kind.auto
    /// Pointers to what tells an element from others.
    var key: [[[UInt8]]]?
    var pick = Pick.newer
    var deletes = false
    /// What a missing member stands for: a node of the rules' tree.
    var absent: UInt32?
    var from = JSONDecimal.zero
    var min: JSONDecimal?
    var max: JSONDecimal?
    var identity: [[[UInt8]]]?
    var unit = Unit.word

    /// Where it stands in the rules: the prefix of ids, and the pattern.
    var prefix: [UInt8] = []
    var pattern: [UInt8] = []
    /// It stands in no rules of a store.
    var isBuiltIn = false

    /// The rule of the member that tells the form of a value: the larger stands.
    static let ofForm: MergeRule = {
        let rule = MergeRule()
        rule.pick = .extreme(greatest: true, pointer: [])
        rule.isBuiltIn = true
        return rule
    }()
}

/// What is wrong with rules, and where.
public struct InvalidRules: Error, Sendable, Equatable {
    /// An RFC 6901 pointer into the rules.
    public let pointer: String
    /// A sentence without its full stop.
    public let reason: String
    /// They are rules of a number that this library does not know: made for a newer one, probably.
    public let isUnknownMerge: Bool

    init(_ pointer: [UInt8], _ reason: String, isUnknownMerge: Bool = false) {
        self.pointer = String(decoding: pointer, as: UTF8.self)
        self.reason = reason
        self.isUnknownMerge = isUnknownMerge
    }

    /// As an error of the store: the pointer is its path.
    public var storeError: StoreError {
        StoreError(
            isUnknownMerge ? .unsupported : .invalidArgument,
            "The rules for merging cannot be used: at \"\(pointer)\", \(reason)."
                + (isUnknownMerge ? " A newer version of the library may know them." : " Mend the rules there."), path: pointer)
    }
}

/// A segment of a pattern: a member's name, or any.
enum PatternSegment: Hashable {
    case name([UInt8])
    case any
}

/// The rules for one value id, as a tree by the segments of their patterns. Does not change: any threads may use it at once.
final class ValueRules: @unchecked Sendable {
    // Sendable: it is filled while the rules are parsed and does not change after that.
    fileprivate struct Node {
        var rule: Int?
        var names: [[UInt8]: Int] = [:]
        var any: Int?
        /// Whether a counter is here or below.
        var counts = false
    }

    /// The text of the rules; what rules say is absent stands there.
    let text: JSONText?
    /// How the forms of the values follow each other, where that is told.
    let forms: ValueForms?
    private(set) var rules: [MergeRule] = []
    fileprivate private(set) var nodes = [Node()]

    /// Rules for everything: `auto`.
    convenience init() { self.init(nil, []) }

    /// Values are not looked into.
    static let bytes: ValueRules = {
        let rule = MergeRule()
        rule.kind = .bytes
        rule.isBuiltIn = true
        return ValueRules(nil, [([], rule)])
    }()

    init(_ text: JSONText?, _ rules: [(pattern: [PatternSegment], rule: MergeRule)], forms: ValueForms? = nil) {
        self.text = text
        self.forms = forms
        for (pattern, rule) in rules { add(pattern, rule) }
        if let forms {
            add(forms.at.map { .name($0) }, .ofForm)
        }
    }

    /// The rule of the whole value.
    var top: MergeRule? { nodes[0].rule.map { rules[$0] } }

    /// Whether equal sides may make another value: the rules hold a counter.
    var hasCounter: Bool { nodes[0].counts }

    /// Whether the rule that a record names is one of these, and a counter.
    func isCounter(_ named: (prefix: [UInt8], pattern: [UInt8])?) -> Bool {
        guard let named else { return false }
        return rules.contains { $0.kind == .counter && $0.prefix == named.prefix && $0.pattern == named.pattern }
    }

    private func add(_ pattern: [PatternSegment], _ rule: MergeRule) {
        var at = 0
        if rule.kind == .counter { nodes[0].counts = true }
        for segment in pattern {
            let next: Int
            switch segment {
            case .name(let name):
                if let known = nodes[at].names[name] {
                    next = known
                } else {
                    next = nodes.count
                    nodes[at].names[name] = next
                    nodes.append(Node())
                }
            case .any:
                if let known = nodes[at].any {
                    next = known
                } else {
                    next = nodes.count
                    nodes[at].any = next
                    nodes.append(Node())
                }
            }
            at = next
            if rule.kind == .counter { nodes[at].counts = true }
        }
        nodes[at].rule = rules.count
        rules.append(rule)
    }
}

/// Finds the rule that holds for a path by going down: a *state* is all places in the tree of rules that the path so far may mean,
/// the most specific first. For one merge.
final class RuleStates {
    static let start = 0
    /// The state where no pattern reaches.
    static let none = -1

    private struct State {
        var places: [Int]
        var rule: Int?
        var counts: Bool
        /// Whether patterns here go on with names; those that were met, and the state there. All of them would be as many again for
        /// each state that shares a place.
        var hasNames: Bool
        var met: [[UInt8]: Int] = [:]
        var any: Int?
    }

    let rules: ValueRules
    private var states: [State] = []
    private var known: [[Int]: Int] = [:]

    init(_ rules: ValueRules) {
        self.rules = rules
        // Nothing leads back to where it starts.
        states.append(made(of: [0]))
    }

    private func state(of places: [Int]) -> Int {
        if let state = known[places] { return state }
        states.append(made(of: places))
        known[places] = states.count - 1
        return states.count - 1
    }

    private func made(of places: [Int]) -> State {
        State(
            places: places, rule: places.lazy.compactMap { self.rules.nodes[$0].rule }.first,
            counts: places.contains { rules.nodes[$0].counts }, hasNames: places.contains { !rules.nodes[$0].names.isEmpty })
    }

    private func next(_ state: Int, _ name: [UInt8]?) -> Int {
        var places: [Int] = []
        for place in states[state].places {
            if let name, let next = rules.nodes[place].names[name] { places.append(next) }
            if let next = rules.nodes[place].any { places.append(next) }
        }
        return places.isEmpty ? Self.none : self.state(of: places)
    }

    /// The state of a member.
    func step(_ state: Int, _ name: UnsafeRawBufferPointer) -> Int {
        guard state != Self.none else { return state }
        if states[state].hasNames {
            let key = Array(name)
            if let known = states[state].met[key] { return known }
            if states[state].places.contains(where: { rules.nodes[$0].names[key] != nil }) {
                let next = next(state, key)
                states[state].met[key] = next
                return next
            }
        }
        return stepToElement(state)
    }

    /// Whether no rule is for anything below.
    func endsBelow(_ state: Int) -> Bool {
        state == Self.none || !states[state].hasNames && stepToElement(state) == Self.none
    }

    /// The state of a slot of a tuple.
    func step(_ state: Int, slot: Int) -> Int {
        guard state != Self.none else { return state }
        return Array(String(slot).utf8).withUnsafeBytes { step(state, $0) }
    }

    /// The state of an element of a list or a set.
    func stepToElement(_ state: Int) -> Int {
        guard state != Self.none else { return state }
        if let any = states[state].any { return any }
        let next = next(state, nil)
        states[state].any = next
        return next
    }

    /// The rule that holds there, nil for `auto`.
    func rule(_ state: Int) -> Int? { state == Self.none ? nil : states[state].rule }

    /// Whether a counter may be there or below.
    func counts(_ state: Int) -> Bool { state != Self.none && states[state].counts }
}
