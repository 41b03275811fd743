/// Writes values: no white space, members in the order of their names, numbers as they were spelled or normalised.
package struct CanonicalWriter {
    private let values: DocumentValues
    private let normalises: Bool
    private let limit: Int
    private(set) var bytes: [UInt8] = []

    /// The result would be longer than `limit`.
    struct TooMuch: Error {}

    /// - Parameters:
    ///   - normalises: whether numbers are written in their shortest form, so that equal values are written alike.
    ///   - limit: the most bytes. A longer result throws `TooMuch`, mostly from `write`.
    init(_ values: DocumentValues, normalises: Bool = false, limit: Int = .max) {
        self.values = values
        self.normalises = normalises
        self.limit = limit
    }

    private struct Open {
        var ref: ValueRef
        /// Where its values begin in `children`, or in the container itself if it is computed.
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
    /// The members' values in order, or the elements, of all open containers.
    private var children: [UInt32] = []

    /// Calls with the bytes, which the callee may move out.
    mutating func hand(_ body: (inout [UInt8]) throws -> Void) rethrows { try body(&bytes) }
    mutating func clear() { bytes.removeAll(keepingCapacity: true) }
    mutating func cut(to count: Int) { bytes.removeLast(bytes.count - count) }
    mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }
    mutating func append(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
    /// Appends a number that is not negative.
    mutating func append(decimal number: Int) {
        if number >= 10 { append(decimal: number / 10) }
        bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
    }
    /// Appends the name of a member.
    mutating func appendName(_ name: UnsafeRawBufferPointer) {
        CanonicalText.append(name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }
    /// Returns the values of an object's members in the order of their names. The object is in the first tree.
    func sortedMembers(of node: UInt32) throws -> [UInt32] { try values.sortedMembers(of: ValueRef(tree: 0, node: node)) }

    /// - Parameter likely: the expected number of bytes, to reserve room for.
    package static func bytes(
        of ref: ValueRef, in values: DocumentValues, normalises: Bool = false, limit: Int = .max, likely: Int = 0
    ) throws -> [UInt8] {
        var writer = CanonicalWriter(values, normalises: normalises, limit: limit)
        // Reserved pages take no memory until they are written.
        if likely > 0 { try Memory.grow(&writer.bytes, by: likely, "Writing a merged value") }
        try writer.write(ref)
        // The checks before each value miss the last one, so check the total.
        if writer.bytes.count > limit { throw TooMuch() }
        return writer.bytes
    }

    mutating func write(_ ref: ValueRef) throws {
        var open: [Open] = []
        try begin(ref, &open)
        while let top = open.last {
            let i = open.count - 1
            if top.next < top.end { try top.ref.isComputed ? appendTogether(&open[i]) : appendWritten(&open[i]) }
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
                case .array(let elements): child = elements[next]
                case .object(let members):
                    CanonicalText.append(values.text(members[next].name), to: &bytes)
                    bytes.append(UInt8(ascii: ":"))
                    child = members[next].value
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

    /// Writes the next children of a container of a tree, members with their names, up to the first whose text is not canonical.
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
            // Check the same size as when name and value are written separately.
            if bytes.count + value.lowerBound - start > limit { throw TooMuch() }
            let text = UnsafeRawBufferPointer(rebasing: tree.bytes[start..<value.upperBound])
            if text.count < Self.large {
                bytes.append(contentsOf: text)
            } else {
                try appendText(text.count) { $0.append(contentsOf: text) }
            }
            top.next += 1
        }
        try values.work.done(4 * (top.next - first))
    }

    /// Writes the next children of a computed container, up to the first whose text is not canonical. Copies adjacent texts at once, and
    /// collects short texts in a small buffer.
    private mutating func appendTogether(_ top: inout Open) throws {
        guard !normalises else { return }
        let first = top.next, end = top.end
        let computed = values.computed[Int(top.ref.node)]
        // Often the first child is not canonical already. Then its container is written child by child.
        switch computed {
        case .array(let elements) where !isThere(elements[first]): return
        case .object(let members) where !members[first].value.isComputed && !isThere(members[first].value): return
        default: break
        }
        try withUnsafeTemporaryAllocation(byteCount: Self.large, alignment: 8) { room in
            var used = 0, next = first
            // The text to copy next. An adjacent text extends it.
            var pending = UnsafeRawBufferPointer(start: nil, count: 0)
            defer { top.next = next }
            func flush() {
                if used > 0 { bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: room[..<used])) }
                used = 0
            }
            func take() throws {
                if pending.count > room.count - used { flush() }
                if pending.count > room.count {
                    let text = pending
                    try appendText(text.count) { $0.append(contentsOf: text) }
                } else if let from = pending.baseAddress, let to = room.baseAddress {
                    Bytes.copy(from, to + used, pending.count)
                    used += pending.count
                }
                pending = UnsafeRawBufferPointer(start: nil, count: 0)
            }
            func put(_ byte: UInt8) {
                if used == room.count { flush() }
                room[used] = byte
                used += 1
            }
            func append(_ tree: JSONTree, _ place: Range<Int>, name size: Int = 0) throws {
                // Check the same size as when name and value are written separately: the bytes before the value.
                if bytes.count + used + pending.count + (next > top.start ? 1 : 0) + size > limit { throw TooMuch() }
                guard let base = tree.bytes.baseAddress else { return }
                let start = base + place.lowerBound
                if pending.count > 0, let before = pending.baseAddress, before + pending.count + 1 == start, place.lowerBound > 0,
                    tree.bytes[place.lowerBound - 1] == UInt8(ascii: ",")
                {
                    pending = UnsafeRawBufferPointer(start: before, count: pending.count + 1 + place.count)
                    return
                }
                try take()
                if next > top.start { put(UInt8(ascii: ",")) }
                pending = UnsafeRawBufferPointer(start: start, count: place.count)
            }
            switch computed {
            case .array(let elements):
                let areMany = end - first >= DocumentValues.many
                while next < end {
                    if areMany, next & (DocumentValues.batch - 1) == 0 {
                        values.touch(end - next) { elements[next + $0] }
                    }
                    let element = elements[next]
                    guard !element.isAbsent, !element.isComputed else { break }
                    let tree = values.tree(element)
                    guard let place = tree.written(element.node) else { break }
                    try append(tree, place)
                    next += 1
                }
            case .object(let members):
                let areMany = end - first >= DocumentValues.many
                while next < end {
                    if areMany, next & (DocumentValues.batch - 1) == 0 {
                        values.touch(end - next) { members[next + $0].value }
                    }
                    let (name, value) = members[next]
                    if value.isComputed, !name.isComputed, case .number(let spelling) = values.computed[Int(value.node)],
                        let own = values.tree(name).quoted(name.node)
                    {
                        try take()
                        if bytes.count + used + (next > top.start ? 1 : 0) + own.count + 1 > limit { throw TooMuch() }
                        if next > top.start { put(UInt8(ascii: ",")) }
                        pending = own
                        try take()
                        put(UInt8(ascii: ":"))
                        for byte in spelling { put(byte) }
                        next += 1
                        continue
                    }
                    guard !value.isAbsent, !value.isComputed, name.tree == value.tree else { break }
                    let tree = values.tree(value)
                    guard let place = tree.written(value.node), let own = tree.written(name.node), own.upperBound + 1 == place.lowerBound,
                        tree.bytes[own.upperBound] == UInt8(ascii: ":")
                    else { break }
                    try append(tree, own.lowerBound..<place.upperBound, name: place.lowerBound - own.lowerBound)
                    next += 1
                }
            default: break
            }
            try take()
            flush()
        }
        try values.work.done(4 * (top.next - first))
    }

    /// Returns whether the text of a value in a tree is canonical.
    @inline(__always)
    private func isThere(_ ref: ValueRef) -> Bool {
        !ref.isAbsent && !ref.isComputed && values.tree(ref).written(ref.node) != nil
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

    /// Appends a string of a tree: its text with the quotes if that is canonical.
    private mutating func appendString(_ tree: JSONTree, _ node: UInt32) {
        if let quoted = tree.quoted(node) { bytes.append(contentsOf: quoted) } else { CanonicalText.append(tree.text(node), to: &bytes) }
    }

    static let large = 4_096

    private mutating func appendText(_ size: Int, _ append: (inout [UInt8]) -> Void) throws {
        if size >= Self.large {
            try values.work.done(size >> 3)
            try Memory.grow(&bytes, by: size + size / 8, "Writing a merged value")
        }
        append(&bytes)
    }

    private static func digit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? nibble + 0x30 : nibble + 0x57 }
}
