/// One rule for values. Immutable after parsing.
package final class SchemaRule: @unchecked Sendable {
    // Sendable: it is filled while the rules are parsed and does not change after that.
    package enum Kind: String, CaseIterable { case auto, register, counter, set, list, tuple, text, bytes }
    enum Unit: String, CaseIterable { case word, line }
    enum Pick: Equatable {
        case newer, older, arbiter
        case extreme(greatest: Bool, pointer: [[UInt8]])

        var isOlder: Bool { if case .older = self { true } else { false } }
    }

    package var kind = Kind.auto
    /// Pointers to the values that identify an element.
    var key: [[[UInt8]]]?
    var pick = Pick.newer
    var deletes = false
    /// The stand-in for a missing member: a node of the rules' tree.
    var absent: UInt32?
    var from = JSONDecimal.zero
    var min: JSONDecimal?
    var max: JSONDecimal?
    var identity: [[[UInt8]]]?
    var unit = Unit.word

    /// Where the rule is in the rules: its prefix of ids, and its pattern.
    var prefix: [UInt8] = []
    var pattern: [UInt8] = []
    /// Whether it is built in, and not in the rules of a store.
    var isBuiltIn = false

    /// The rule for the member that has the form's number: the larger number wins.
    static let ofForm: SchemaRule = {
        let rule = SchemaRule()
        rule.pick = .extreme(greatest: true, pointer: [])
        rule.isBuiltIn = true
        return rule
    }()
}

/// An error in rules, and its place.
public struct InvalidRules: Error, Sendable, Equatable {
    /// An RFC 6901 pointer into the rules.
    public let pointer: String
    /// A sentence without its full stop.
    public let reason: String
    /// Whether the rules have a number that this library does not know: they are probably made for a newer library.
    public let isUnknownMerge: Bool

    init(_ pointer: [UInt8], _ reason: String, isUnknownMerge: Bool = false) {
        self.pointer = String(decoding: pointer, as: UTF8.self)
        self.reason = reason
        self.isUnknownMerge = isUnknownMerge
    }

    /// The same as an error of the store. The pointer is its path.
    public var storeError: StoreError {
        StoreError(
            isUnknownMerge ? .unsupported : .invalidArgument,
            "The rules for merging cannot be used: at \"\(pointer)\", \(reason)."
                + (isUnknownMerge ? " A newer version of the library may know them." : " Correct the rules there."), path: pointer)
    }
}

/// A segment of a pattern: the name of a member, or any.
enum PatternSegment: Hashable {
    case name([UInt8])
    case any
}

/// The rules for one value id, as a tree by the segments of their patterns. Immutable: any threads may use it at once.
package final class ValueRules: @unchecked Sendable {
    // Sendable: it is filled while the rules are parsed and does not change after that.
    fileprivate struct Node {
        var rule: Int?
        var names: [[UInt8]: Int] = [:]
        var any: Int?
        /// Whether a counter is at this node or below.
        var counts = false
    }

    /// The text of the rules, which has the stand-ins for absent values.
    let text: JSONText?
    /// How the forms of the values follow each other, if the rules say so.
    package let forms: ValueForms?
    private(set) var rules: [SchemaRule] = []
    fileprivate private(set) var nodes = [Node()]

    /// Rules that merge everything by `auto`.
    package convenience init() { self.init(nil, []) }

    /// Rules that merge each value as a whole, as bytes.
    package static let bytes: ValueRules = {
        let rule = SchemaRule()
        rule.kind = .bytes
        rule.isBuiltIn = true
        return ValueRules(nil, [([], rule)])
    }()

    init(_ text: JSONText?, _ rules: [(pattern: [PatternSegment], rule: SchemaRule)], forms: ValueForms? = nil) {
        self.text = text
        self.forms = forms
        for (pattern, rule) in rules { add(pattern, rule) }
        if let forms {
            add(forms.at.map { .name($0) }, .ofForm)
        }
    }

    /// The rule for the whole value.
    package var top: SchemaRule? { nodes[0].rule.map { rules[$0] } }

    /// Whether merging equal sides may result in another value: the rules have a counter.
    package var hasCounter: Bool { nodes[0].counts }

    /// Returns whether the rule that a record names is one of these, and a counter.
    package func isCounter(_ named: (prefix: [UInt8], pattern: [UInt8])?) -> Bool {
        guard let named else { return false }
        return rules.contains { $0.kind == .counter && $0.prefix == named.prefix && $0.pattern == named.pattern }
    }

    private func add(_ pattern: [PatternSegment], _ rule: SchemaRule) {
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

/// Finds the rule for a path by descending. A *state* is the set of all nodes of the rules' tree that may match the path so far, the most
/// specific first. For one merge.
final class RuleStates {
    static let start = 0
    /// The state that no pattern matches.
    static let none = -1

    private struct State {
        var places: [Int]
        var rule: Int?
        var counts: Bool
        /// Whether patterns continue with names. `met` has the states of the names that were read so far; computing all names for each
        /// state would multiply them.
        var hasNames: Bool
        var met: [[UInt8]: Int] = [:]
        var any: Int?
    }

    let rules: ValueRules
    private var states: [State] = []
    private var known: [[Int]: Int] = [:]

    init(_ rules: ValueRules) {
        self.rules = rules
        // The start is in no other state.
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

    /// Returns the state of a member.
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

    /// Returns whether no rule applies anywhere below.
    func endsBelow(_ state: Int) -> Bool {
        state == Self.none || !states[state].hasNames && stepToElement(state) == Self.none
    }

    /// Returns the state of a slot of a tuple.
    func step(_ state: Int, slot: Int) -> Int {
        guard state != Self.none else { return state }
        return Array(String(slot).utf8).withUnsafeBytes { step(state, $0) }
    }

    /// Returns the state of an element of a list or a set.
    func stepToElement(_ state: Int) -> Int {
        guard state != Self.none else { return state }
        if let any = states[state].any { return any }
        let next = next(state, nil)
        states[state].any = next
        return next
    }

    /// Returns the rule for a state; nil for `auto`.
    func rule(_ state: Int) -> Int? { state == Self.none ? nil : states[state].rule }

    /// Returns whether a counter may be at the state or below.
    func counts(_ state: Int) -> Bool { state != Self.none && states[state].counts }
}
