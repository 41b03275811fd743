/// Writes values: no white space, members in the order of their names, numbers as they were spelled or normalised.
struct CanonicalWriter {
    private let values: DocumentValues
    private let normalises: Bool
    private let limit: Int
    private(set) var bytes: [UInt8] = []

    /// There would be more bytes than was said.
    struct TooMuch: Error {}

    /// - Parameters:
    ///   - normalises: numbers are written in their shortest form, so that equal values are written alike.
    ///   - limit: of bytes, about: writing more throws `TooMuch`.
    init(_ values: DocumentValues, normalises: Bool = false, limit: Int = .max) {
        self.values = values
        self.normalises = normalises
        self.limit = limit
    }

    private struct Open {
        var ref: ValueRef
        /// Where its values are in `children`; of a computed one, in itself.
        var start: Int
        var next: Int
        var end: Int
        var isObject: Bool

        init(_ ref: ValueRef, _ places: Range<Int>, isObject: Bool) {
            self.ref = ref
            (start, next, end) = (places.lowerBound, places.lowerBound, places.upperBound)
            self.isObject = isObject
        }
    }
    /// Values of members in order, or elements, of what is open.
    private var children: [UInt32] = []

    /// Calls with the bytes, which may be taken.
    mutating func hand(_ body: (inout [UInt8]) throws -> Void) rethrows { try body(&bytes) }
    mutating func clear() { bytes.removeAll(keepingCapacity: true) }
    mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }
    /// The name of a member.
    mutating func appendName(_ name: UnsafeRawBufferPointer) {
        CanonicalText.append(name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }
    /// The values of an object's members in the order of their names; of the first tree.
    func sortedMembers(of node: UInt32) throws -> [UInt32] { try values.sortedMembers(of: ValueRef(tree: 0, node: node)) }

    /// - Parameter likely: how many bytes there may be.
    static func bytes(
        of ref: ValueRef, in values: DocumentValues, normalises: Bool = false, limit: Int = .max, likely: Int = 0
    ) throws -> [UInt8] {
        var writer = CanonicalWriter(values, normalises: normalises, limit: limit)
        // What is not written to takes no memory.
        if likely > 0 { try Memory.grow(&writer.bytes, by: likely, "Writing a merged value") }
        try writer.write(ref)
        return writer.bytes
    }

    mutating func write(_ ref: ValueRef) throws {
        var open: [Open] = []
        try begin(ref, &open)
        while let top = open.last {
            let i = open.count - 1
            if !top.ref.isComputed, top.next < top.end { try appendWritten(&open[i]) }
            guard open[i].next < top.end else {
                bytes.append(top.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"))
                if !top.ref.isComputed { children.removeLast(children.count - top.start) }
                open.removeLast()
                continue
            }
            let next = open[i].next
            if next > top.start { bytes.append(UInt8(ascii: ",")) }
            open[i].next += 1
            var child: ValueRef
            if top.ref.isComputed {
                switch values.computed[Int(top.ref.node)] {
                case .array(let elements):
                    let count = try appendNeighbours(in: elements, from: top.next)
                    if count > 0 {
                        open[i].next += count - 1
                        continue
                    }
                    child = elements[top.next]
                case .object(let members):
                    CanonicalText.append(values.text(members[top.next].name), to: &bytes)
                    bytes.append(UInt8(ascii: ":"))
                    child = members[top.next].value
                default: child = .absent
                }
            } else {
                child = ValueRef(tree: top.ref.tree, node: children[next])
                if top.isObject {
                    appendString(values.tree(top.ref), values.tree(top.ref).nameNode(of: child.node))
                    bytes.append(UInt8(ascii: ":"))
                }
            }
            try begin(child, &open)
        }
    }

    /// Writes what follows in a container of a tree, as far as it stands in the text as it is to be written: members with their names.
    private mutating func appendWritten(_ top: inout Open) throws {
        guard !normalises else { return }
        let tree = values.tree(top.ref), first = top.next
        while top.next < top.end {
            let child = children[top.next]
            guard let value = tree.written(child) else { break }
            var start = value.lowerBound
            if top.isObject {
                guard let name = tree.written(tree.nameNode(of: child)), name.upperBound + 1 == start else { break }
                start = name.lowerBound
            }
            if top.next > top.start { bytes.append(UInt8(ascii: ",")) }
            // As where each is written by itself.
            if bytes.count + value.lowerBound - start > limit { throw TooMuch() }
            let text = UnsafeRawBufferPointer(rebasing: tree.bytes[start..<value.upperBound])
            if text.count < Self.large { bytes.append(contentsOf: text) } else {
                try appendText(text.count) { $0.append(contentsOf: text) }
            }
            top.next += 1
        }
        try values.work.done(4 * (top.next - first))
    }

    /// Most of what a merged list holds stands in one text one behind the other, as it is to be written: that is copied in one.
    /// - Returns: how many elements were written, 0 where it is not so.
    private mutating func appendNeighbours(in elements: ValueRefs, from start: Int) throws -> Int {
        let first = elements[start]
        guard !normalises, !first.isAbsent, !first.isComputed else { return 0 }
        let tree = values.tree(first)
        guard let place = tree.written(first.node) else { return 0 }
        var last = place, end = start + 1
        while end < elements.count, elements[end].tree == first.tree, let next = tree.written(elements[end].node),
            next.lowerBound == last.upperBound + 1, tree.bytes[last.upperBound] == UInt8(ascii: ",") {
            last = next
            end += 1
        }
        guard end > start + 1 else { return 0 }
        try values.work.done(4 * (end - start))
        // As where each is written by itself: before the last one there may be so many bytes.
        if bytes.count + last.lowerBound - place.lowerBound > limit { throw TooMuch() }
        let text = UnsafeRawBufferPointer(rebasing: tree.bytes[place.lowerBound..<last.upperBound])
        try appendText(text.count) { $0.append(contentsOf: text) }
        return end - start
    }

    private mutating func begin(_ ref: ValueRef, _ open: inout [Open]) throws {
        guard !ref.isAbsent else { return }
        try values.work.done(4)
        if bytes.count > limit { throw TooMuch() }
        if ref.isComputed {
            switch values.computed[Int(ref.node)] {
            case .number(let spelling): bytes += spelling
            case .text(let text): try appendText(text.count) { out in text.withUnsafeBytes { CanonicalText.append($0, to: &out) } }
            case .array(let elements):
                bytes.append(UInt8(ascii: "["))
                open.append(Open(ref, 0..<elements.count, isObject: false))
            case .object(let members):
                bytes.append(UInt8(ascii: "{"))
                open.append(Open(ref, 0..<members.count, isObject: true))
            }
            return
        }
        let tree = values.tree(ref), text = tree.text(ref.node), kind = tree.kind(ref.node)
        switch kind {
        case .null, .bool: bytes.append(contentsOf: text)
        case .number:
            if !normalises || (text.count <= 21 && JSONDecimal.isWhole(text) && !JSONDecimal.isWholeZero(text)) {
                bytes.append(contentsOf: text)
            } else {
                bytes += (JSONDecimal(text) ?? .zero).spelling
            }
        case .string where text.count < Self.large: appendString(tree, ref.node)
        case .string: try appendText(text.count) { CanonicalText.append(text, to: &$0) }
        case .array, .object:
            if !normalises, tree.isCanonical(ref.node) {
                try appendText(text.count) { $0.append(contentsOf: text) }
                return
            }
            let isObject = kind == .object
            bytes.append(isObject ? UInt8(ascii: "{") : UInt8(ascii: "["))
            let start = children.count
            tree.appendChildren(of: ref.node, to: &children)
            if isObject, !tree.isSorted(ref.node) { try MemberOrder.sort(&children, from: start, in: tree, values.work) }
            open.append(Open(ref, start..<children.count, isObject: isObject))
        case .raw:
            let digest = SHA256.digest(text).flatMap { [Self.digit($0 >> 4), Self.digit($0 & 15)] }
            bytes += Array("{\"sha256\":\"".utf8) + digest + Array("\",\"size\":\(text.count)}".utf8)
        }
    }

    /// A string of a tree: with its quotes, where it stands as it is to be written.
    private mutating func appendString(_ tree: JSONTree, _ node: UInt32) {
        if let quoted = tree.quoted(node) { bytes.append(contentsOf: quoted) } else { CanonicalText.append(tree.text(node), to: &bytes) }
    }

    private static let large = 4_096

    private mutating func appendText(_ size: Int, _ append: (inout [UInt8]) -> Void) throws {
        if size >= Self.large {
            try values.work.done(size >> 3)
            try Memory.grow(&bytes, by: size + size / 8, "Writing a merged value")
        }
        append(&bytes)
    }

    private static func digit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? nibble + 0x30 : nibble + 0x57 }
}
