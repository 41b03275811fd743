/// The places in a value that records name: each is a child of another. There may be as many frames of objects as there are objects, so
/// these are not retained for this.
struct KeptPlaces {
    /// The value as a whole.
    static let whole = UInt32.max

    private struct Kept {
        var parent: UInt32
        /// The index of its frame; `none` for a member; from `element` on for an element of a short list.
        var holder: UInt32
        /// The index of the child. For a member its name, with the tree in the upper half. For an element its key, and its number.
        var child: UInt64
    }
    private static let none = UInt32.max
    /// Has the tree in the lowest five bits, and above them whether the element is known by its `id`.
    private static let element = UInt32.max - 0xFF, isID: UInt32 = 0x20

    private var all = Pieces<Kept>()
    private var holders: [MergeFrame] = []

    /// Adds a member.
    mutating func add(_ name: ValueRef, in parent: UInt32) -> UInt32 {
        all.append(Kept(parent: parent, holder: Self.none, child: UInt64(name.tree) << 32 | UInt64(name.node)))
        return UInt32(truncatingIfNeeded: all.count - 1)
    }

    /// Adds an element of a short list. The base is one of the first trees.
    mutating func add(_ known: ShortLists.Known, in parent: UInt32) -> UInt32 {
        let (ref, number, isID) =
            switch known {
            case .value(let base, let place): (base, place, UInt32(0))
            case .id(let id, let occurrence): (id, occurrence, Self.isID)
            }
        all.append(Kept(parent: parent, holder: Self.element | isID | ref.tree & 0x1F, child: UInt64(number) << 32 | UInt64(ref.node)))
        return UInt32(truncatingIfNeeded: all.count - 1)
    }

    /// Returns the key of an element of a short list.
    func element(of place: UInt32) -> ShortLists.Known? {
        guard place != Self.whole else { return nil }
        let kept = all[Int(place)]
        guard kept.holder >= Self.element, kept.holder != Self.none else { return nil }
        let ref = ValueRef(tree: kept.holder & 0x1F, node: UInt32(truncatingIfNeeded: kept.child)), number = Int(kept.child >> 32)
        return kept.holder & Self.isID != 0 ? .id(ref, occurrence: number) : .value(ref, place: number)
    }

    /// Adds a child of any other frame.
    mutating func add(_ child: Int, of frame: MergeFrame, in parent: UInt32) -> UInt32 {
        let holder = frame.holder ?? UInt32(truncatingIfNeeded: holders.count)
        if frame.holder == nil {
            holders.append(frame)
            frame.holder = holder
        }
        all.append(Kept(parent: parent, holder: holder, child: UInt64(child)))
        return UInt32(truncatingIfNeeded: all.count - 1)
    }

    /// Returns the parent of a place; for the whole, the whole.
    func parent(of place: UInt32) -> UInt32 { place == Self.whole ? place : all[Int(place)].parent }

    /// Returns the name of a member.
    func name(of place: UInt32) -> ValueRef? {
        guard place != Self.whole, all[Int(place)].holder == Self.none else { return nil }
        let child = all[Int(place)].child
        return ValueRef(tree: UInt32(truncatingIfNeeded: child >> 32), node: UInt32(truncatingIfNeeded: child))
    }

    /// Returns the frame of a child that is not a member, and its index.
    func holder(of place: UInt32) -> (frame: MergeFrame, child: Int)? {
        guard place != Self.whole, all[Int(place)].holder < Self.element else { return nil }
        return (holders[Int(all[Int(place)].holder)], Int(all[Int(place)].child))
    }
}

/// A long array in pieces. Growing a contiguous array would copy it, and take twice its memory meanwhile.
struct Pieces<Element>: Sequence {
    private static var bits: Int { 12 }
    private var pieces: [[Element]] = []

    private(set) var count = 0
    var isEmpty: Bool { count == 0 }

    mutating func append(_ element: Element) {
        if count & (1 << Self.bits - 1) == 0 {
            pieces.append([])
            // Most merges have few.
            if count > 0 { pieces[pieces.count - 1].reserveCapacity(1 << Self.bits) }
        }
        pieces[pieces.count - 1].append(element)
        count += 1
    }

    @inline(__always)
    subscript(_ i: Int) -> Element { pieces[i >> Self.bits][i & (1 << Self.bits - 1)] }

    /// Releases the pieces that hold only elements before this one. They must not be read any more.
    mutating func forget(before count: Int) {
        let piece = count >> Self.bits - 1
        if count & (1 << Self.bits - 1) == 0, pieces.indices.contains(piece) { pieces[piece] = [] }
    }

    func makeIterator() -> some IteratorProtocol<Element> { pieces.joined().makeIterator() }
}
