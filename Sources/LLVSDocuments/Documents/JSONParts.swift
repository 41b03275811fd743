/// Finds some parts of JSON texts in one pass over each, without a tree. Used by one thread at a time.
///
/// It accepts the JSON that `JSONTreeParser` accepts. If that needs a closer look (long values, objects of many members, names with
/// escapes), it returns `.unsure`, and the caller parses a tree.
package final class JSONParts: @unchecked Sendable {
    // Sendable: one thread at a time uses it.
    /// The value at one of the pointers.
    package struct Part {
        package enum Kind: UInt8 { case missing, null, no, yes, number, string, container }
        package var kind = Kind.missing
        /// Whether it is a string with escapes.
        package var isEscaped = false
        /// The range of the part in the text; of a string without the quotes.
        package var start = 0, end = 0
    }
    package enum Outcome {
        case found, notJSON
        /// The text was not read to the end.
        case unsure
    }

    /// One segment of some pointers, and the place that it leads to.
    private struct Step {
        let start: Int, size: Int
        /// The segment as an index of an array; -1 if it is none.
        let index: Int
        let place: Int
    }
    /// A place to which some pointers lead: the steps from it, and the pointers that end at it.
    private struct Place {
        var steps = 0..<0, ends = 0..<0
    }
    private struct Level {
        var isObject = false
        var place = 0, start = 0
        /// The elements so far. For an object, the number of its first name.
        var count = 0, firstName = 0
        /// Whether the names of an object are in order so far.
        var isSorted = true
    }
    private struct Name {
        var word: UInt64 = 0
        var start = 0, size = 0
    }

    /// Limits: the bytes of a text, its depth, the members of an object whose names are not in order, and the names of all open objects.
    private static let mostBytes = 1 << 18, mostDepth = 64, mostMembers = 32, mostNames = 512
    private static let nowhere = -1

    private var names: [UInt8] = [], steps: [Step] = [], ends: [Int] = [], places: [Place] = []
    private let levels = UnsafeMutablePointer<Level>.allocate(capacity: mostDepth)
    private let seen = UnsafeMutablePointer<Name>.allocate(capacity: mostNames)
    private let found: UnsafeMutableBufferPointer<Part>
    /// Whether each number of the last text may be a part of a key (`IndexNumber`).
    private(set) var hasNumbersOfKeys = true

    /// - Parameter pointers: RFC 6901 pointers, split at their slashes.
    package init(_ pointers: [[[UInt8]]]) {
        found = .allocate(capacity: pointers.count)
        found.initialize(repeating: Part())
        add(Array(pointers.enumerated()), at: 0)
    }
    deinit {
        levels.deallocate()
        seen.deallocate()
        found.deallocate()
    }

    /// Adds the place to which the first `depth` segments lead, which all of these pointers have in common.
    @discardableResult
    private func add(_ pointers: [(offset: Int, element: [[UInt8]])], at depth: Int) -> Int {
        let own = places.count
        places.append(Place())
        let first = ends.count
        ends += pointers.filter { $0.element.count == depth }.map(\.offset)
        places[own].ends = first..<ends.count
        var further: [(segment: [UInt8], pointers: [(offset: Int, element: [[UInt8]])])] = []
        for pointer in pointers where pointer.element.count > depth {
            let segment = pointer.element[depth]
            if let known = further.firstIndex(where: { $0.segment == segment }) {
                further[known].pointers.append(pointer)
            } else {
                further.append((segment, [pointer]))
            }
        }
        let made = further.map { (segment: $0.segment, place: add($0.pointers, at: depth + 1)) }, start = steps.count
        for (segment, place) in made {
            steps.append(Step(start: names.count, size: segment.count, index: JSONPointer.index(segment) ?? -1, place: place))
            names += segment
        }
        places[own].steps = start..<steps.count
        return own
    }

    /// The value at a pointer in the last text. Valid after `.found`.
    package subscript(_ pointer: Int) -> Part { found[pointer] }

    /// Finds the parts in a text.
    package func find(in text: UnsafeRawBufferPointer) -> Outcome {
        guard text.count > 0, Bytes.isValidUTF8(text), let base = text.baseAddress else { return .notJSON }
        guard text.count <= JSONParts.mostBytes else { return .unsure }
        for i in found.indices { found[i] = Part() }
        hasNumbersOfKeys = true
        return names.withUnsafeBytes { names in
            steps.withUnsafeBufferPointer { steps in
                places.withUnsafeBufferPointer { places in
                    var pass = Pass(text: text, base: base, names: names, steps: steps, places: places, owner: self)
                    return pass.run()
                }
            }
        }
    }

    // MARK: One text

    private struct Pass {
        let text: UnsafeRawBufferPointer
        let base: UnsafeRawPointer
        let names: UnsafeRawBufferPointer
        let steps: UnsafeBufferPointer<Step>
        let places: UnsafeBufferPointer<Place>
        unowned(unsafe) let owner: JSONParts
        var at = 0, depth = 0, nameCount = 0

        init(
            text: UnsafeRawBufferPointer, base: UnsafeRawPointer, names: UnsafeRawBufferPointer, steps: UnsafeBufferPointer<Step>,
            places: UnsafeBufferPointer<Place>, owner: JSONParts
        ) {
            (self.text, self.base, self.names, self.steps, self.places, self.owner) = (text, base, names, steps, places, owner)
        }

        mutating func run() -> Outcome {
            let levels = owner.levels
            var place = 0
            skipSpace()
            while true {
                switch value(at: place) {
                case .scalar: break
                case .opened:
                    let level = depth - 1
                    skipSpace()
                    if at < text.count, text[at] == (levels[level].isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) { break }
                    guard let next = next(levels + level) else { return outcome }
                    place = next
                    continue
                case .wrong: return outcome
                }
                // After a value: the end of its container, or the next value.
                while true {
                    skipSpace()
                    guard depth > 0 else { return at == text.count ? .found : .notJSON }
                    let level = levels + (depth - 1)
                    guard at < text.count else { return .notJSON }
                    if text[at] == UInt8(ascii: ",") {
                        at += 1
                        skipSpace()
                        guard let next = next(level) else { return outcome }
                        place = next
                        break
                    }
                    guard text[at] == (level.pointee.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { return .notJSON }
                    at += 1
                    depth -= 1
                    if level.pointee.isObject { nameCount = level.pointee.firstName }
                    take(level.pointee.place, .container, level.pointee.start, at)
                }
            }
        }

        /// Why the pass stopped.
        private var outcome = Outcome.notJSON

        @inline(__always)
        private mutating func skipSpace() {
            while at < text.count, text[at] <= 0x20, JSONString.isSpace(text[at]) { at += 1 }
        }

        @inline(__always)
        private func take(_ place: Int, _ kind: Part.Kind, _ start: Int, _ end: Int, isEscaped: Bool = false) {
            guard place != JSONParts.nowhere else { return }
            for i in places[place].ends { owner.found[owner.ends[i]] = Part(kind: kind, isEscaped: isEscaped, start: start, end: end) }
        }

        private enum Value { case scalar, opened, wrong }

        @inline(__always)
        private mutating func value(at place: Int) -> Value {
            guard at < text.count else { return .wrong }
            let start = at
            switch text[at] {
            case UInt8(ascii: "\""):
                guard let isEscaped = string() else { return .wrong }
                take(place, .string, start + 1, at - 1, isEscaped: isEscaped)
                return .scalar
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                guard depth < JSONParts.mostDepth else { return stop(.unsure) }
                let isObject = text[at] == UInt8(ascii: "{")
                owner.levels[depth] = Level(isObject: isObject, place: place, start: at, count: 0, firstName: nameCount)
                depth += 1
                at += 1
                return .opened
            case UInt8(ascii: "t"): return word("true", .yes, place)
            case UInt8(ascii: "f"): return word("false", .no, place)
            case UInt8(ascii: "n"): return word("null", .null, place)
            default:
                guard let end = numberEnd() else { return .wrong }
                take(place, .number, start, end)
                at = end
                return .scalar
            }
        }

        private mutating func stop(_ outcome: Outcome) -> Value {
            self.outcome = outcome
            return .wrong
        }

        private mutating func word(_ word: StaticString, _ kind: Part.Kind, _ place: Int) -> Value {
            let size = word.utf8CodeUnitCount
            guard text.count - at >= size, memcmp(base + at, word.utf8Start, size) == 0 else { return .wrong }
            take(place, kind, at, at + size)
            at += size
            return .scalar
        }

        /// Returns the end of the number that begins at the current position; nil if none begins or it cannot be merged.
        private func numberEnd() -> Int? {
            var end = at
            if text[end] == UInt8(ascii: "-") { end += 1 }
            let first = end
            while end < text.count, text[end] &- 0x30 <= 9 { end += 1 }
            // Most are short whole numbers.
            let isPlain = end == text.count || text[end] != UInt8(ascii: ".") && text[end] | 0x20 != UInt8(ascii: "e")
            if isPlain, end - first == 1 || end - first > 1 && end - first <= 18 && text[first] != 0x30 { return end }
            guard let number = JSONNumberSpelling(text, at: at), JSONTreeParser.isWithinLimits(number) else { return nil }
            if !IndexNumber.isWithinLimits(UnsafeRawBufferPointer(rebasing: text[at..<number.end])) { owner.hasNumbersOfKeys = false }
            return number.end
        }

        /// Skips the string that begins at the current position. Returns whether it has escapes; nil if it is not a string.
        @inline(__always)
        private mutating func string() -> Bool? {
            var i = JSONTreeParser.plainEnd(of: text, from: at + 1)
            guard i < text.count else { return nil }
            if text[i] == UInt8(ascii: "\"") {
                at = i + 1
                return false
            }
            while text[i] == UInt8(ascii: "\\") {
                i += 1
                guard JSONString.escape(text, at: &i) != nil else { return nil }
                i = JSONTreeParser.plainEnd(of: text, from: i)
                guard i < text.count else { return nil }
            }
            guard text[i] == UInt8(ascii: "\"") else { return nil }
            at = i + 1
            return true
        }

        // MARK: Members and elements

        /// Moves to the next value in the open container, and returns its place.
        @inline(__always)
        private mutating func next(_ level: UnsafeMutablePointer<Level>) -> Int? {
            level.pointee.count += 1
            let place = level.pointee.place
            guard level.pointee.isObject else {
                guard place != JSONParts.nowhere else { return place }
                return step(of: place) { $0.index == level.pointee.count - 1 }
            }
            guard at < text.count, text[at] == UInt8(ascii: "\"") else { return nil }
            let start = at + 1
            guard let isEscaped = string() else { return nil }
            guard !isEscaped, nameCount < JSONParts.mostNames else {
                outcome = .unsure
                return nil
            }
            let size = at - 1 - start
            guard isNew(start, size, level) else { return nil }
            skipSpace()
            guard at < text.count, text[at] == UInt8(ascii: ":") else { return nil }
            at += 1
            skipSpace()
            guard place != JSONParts.nowhere else { return place }
            let name = UnsafeRawBufferPointer(start: base + start, count: size)
            return step(of: place) { step in
                step.size == size && Bytes.equal(UnsafeRawBufferPointer(rebasing: names[step.start..<step.start + size]), name)
            }
        }

        @inline(__always)
        private func step(of place: Int, _ isIt: (Step) -> Bool) -> Int {
            for i in places[place].steps where isIt(steps[i]) { return steps[i].place }
            return JSONParts.nowhere
        }

        /// Returns whether the object does not have the name yet, and remembers it. A name after all others in order is new.
        @inline(__always)
        private mutating func isNew(_ start: Int, _ size: Int, _ level: UnsafeMutablePointer<Level>) -> Bool {
            let seen = owner.seen, first = level.pointee.firstName
            var word = Bytes.word(text, at: start)
            if size < 8 { word &= ~(UInt64.max >> UInt64(8 * size)) }
            if level.pointee.isSorted, nameCount > first {
                let last = seen[nameCount - 1]
                level.pointee.isSorted = last.word < word || last.word == word && isBehind(start, size, last)
            }
            if !level.pointee.isSorted {
                guard nameCount - first < JSONParts.mostMembers else {
                    outcome = .unsure
                    return false
                }
                for i in first..<nameCount where seen[i].word == word && seen[i].size == size {
                    if size <= 8 || memcmp(base + seen[i].start, base + start, size) == 0 { return false }
                }
            }
            seen[nameCount] = Name(word: word, start: start, size: size)
            nameCount += 1
            return true
        }

        /// Returns whether a name comes after another in order.
        private func isBehind(_ start: Int, _ size: Int, _ other: Name) -> Bool {
            let before = UnsafeRawBufferPointer(start: base + other.start, count: other.size)
            return Bytes.compare(before, UnsafeRawBufferPointer(start: base + start, count: size)) < 0
        }
    }
}
