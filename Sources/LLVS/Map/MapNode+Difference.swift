/// Comparing two maps.
extension MapNode {
    /// Calls for each key whose reference differs, with both entries, in byte order, until `body` throws.
    /// Costs O(differences × (key length + log n)): subtrees with equal digests are skipped.
    static func forEachDifference(_ a: MapNode?, _ b: MapNode?, _ body: (UnsafeRawBufferPointer, MapEntry?, MapEntry?) throws -> Void) rethrows {
        switch (a, b) {
        case (nil, nil): return
        case (let a?, nil): try a.forEachThrowing { try body($0, $1, nil) }
        case (nil, let b?): try b.forEachThrowing { try body($0, nil, $1) }
        case (let a?, let b?):
            if a === b || (a.count == b.count && a.digest == b.digest) { return }
            if a.leaf == nil, b.leaf == nil { try differencesOfInner(a, b, body) } else { try differencesByKey(a, b, body) }
        }
    }

    private func forEachThrowing(_ body: (UnsafeRawBufferPointer, MapEntry) throws -> Void) rethrows {
        if leaf != nil {
            for i in 0..<count { try body(key(i), entry(i)) }
        } else {
            for child in children { try child.forEachThrowing(body) }
        }
    }

    private static func differencesOfInner(_ a: MapNode, _ b: MapNode, _ body: (UnsafeRawBufferPointer, MapEntry?, MapEntry?) throws -> Void) rethrows {
        let shared = a.prefix.withUnsafeBytes { p in b.prefix.withUnsafeBytes { commonPrefix(p, $0) } }
        if shared == a.prefix.count, shared == b.prefix.count {
            var i = 0, j = 0
            while i < a.symbols.count || j < b.symbols.count {
                let x = i < a.symbols.count ? a.symbols[i] : .max, y = j < b.symbols.count ? b.symbols[j] : .max
                try forEachDifference(x <= y ? a.children[i] : nil, y <= x ? b.children[j] : nil, body)
                if x <= y { i += 1 }
                if y <= x { j += 1 }
            }
        } else if shared == a.prefix.count {
            try differencesBelow(a, b, UInt16(b.prefix[shared]) + 1) { try forEachDifference($0, $1, body) }
        } else if shared == b.prefix.count {
            try differencesBelow(b, a, UInt16(a.prefix[shared]) + 1) { try forEachDifference($1, $0, body) }
        } else if a.prefix[shared] < b.prefix[shared] {
            try forEachDifference(a, nil, body)
            try forEachDifference(nil, b, body)
        } else {
            try forEachDifference(nil, b, body)
            try forEachDifference(a, nil, body)
        }
    }

    /// `lower` lies wholly under one symbol of `upper`.
    private static func differencesBelow(_ upper: MapNode, _ lower: MapNode, _ symbol: UInt16, _ pair: (MapNode?, MapNode?) throws -> Void) rethrows {
        var met = false
        for (at, child) in zip(upper.symbols, upper.children) {
            if !met, at > symbol { met = true; try pair(nil, lower) }
            if at == symbol { met = true; try pair(child, lower) } else { try pair(child, nil) }
        }
        if !met { try pair(nil, lower) }
    }

    /// At least one is a leaf: walk both. A leaf holds few keys, so what the other has more is difference.
    private static func differencesByKey(_ a: MapNode, _ b: MapNode, _ body: (UnsafeRawBufferPointer, MapEntry?, MapEntry?) throws -> Void) rethrows {
        let (leaf, other, swapped) = a.leaf != nil ? (a, b, false) : (b, a, true)
        var i = 0
        func only(_ i: Int) throws { try swapped ? body(leaf.key(i), nil, leaf.entry(i)) : body(leaf.key(i), leaf.entry(i), nil) }
        do {
            try other.forEachThrowing { key, entry in
                while i < leaf.count, Bytes.compare(leaf.key(i), key) < 0 { try only(i); i += 1 }
                if i < leaf.count, Bytes.equal(leaf.key(i), key) {
                    let mine = leaf.entry(i)
                    if !mine.isSameReference(as: entry) { try swapped ? body(key, entry, mine) : body(key, mine, entry) }
                    i += 1
                } else {
                    try swapped ? body(key, entry, nil) : body(key, nil, entry)
                }
            }
            while i < leaf.count { try only(i); i += 1 }
        }
    }
}
