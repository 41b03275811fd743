/// Computes the base value of an id for a merge. If there are several best common ancestors, their contents are merged into one.
///
/// The ancestors are folded oldest first, by the rules of the merge itself. The base of each step is computed in the same way, from the
/// best common ancestors of the versions folded so far and the next one. An explicit stack replaces recursion, since criss-crosses may be
/// nested deeply. The bases of versions are cached for all ids, and the folded values for one id.
struct ContentBase {
    /// The value that serves as the base, and the contested values of the merges that computed it.
    struct Found {
        var held: SideValue?
        var contested = ContestedValues()
    }

    private let store: Store
    /// Oldest first.
    private let bases: [UInt32]
    private let control: PacedControl
    private var folds: [[UInt32]: FoldedVersions] = [:]
    /// Returns the value of an id at a version.
    private let held: (UnsafeRawBufferPointer, UInt32) throws -> SideValue?

    /// - Parameter held: returns the value of an id at a version. The default returns the value that prevails there.
    init(
        _ store: Store, bases: [UInt32], holding held: ((UnsafeRawBufferPointer, UInt32) throws -> SideValue?)? = nil,
        _ control: PacedControl
    ) {
        self.store = store
        self.bases = store.oldestFirst(bases)
        self.held = held ?? { SideValue(try store.maps.entry($0, at: $1)) }
        self.control = control
    }

    private struct Frame {
        let fold: FoldedVersions
        var next = 1
        var found: Found
        var versions: [UInt32] { fold.versions }
    }

    mutating func value(_ merge: HeldMerge) throws -> Found {
        if bases.count <= 1 { return Found(held: try bases.first.flatMap { try held(merge.key, $0) }) }
        var memo: [[UInt32]: Found] = [:]
        var stack = [try frame(bases, merge.key)]
        while var top = stack.popLast() {
            try control.step(0)
            if top.next == top.versions.count {
                memo[top.versions] = top.found
                continue
            }
            let other = try held(merge.key, top.versions[top.next])
            // One version stored both, so there is nothing to merge.
            if !SideValue.isSameReference(top.found.held, other) {
                let below = store.oldestFirst(try top.fold.bases(upTo: top.next, in: store, control))
                guard let base = try known(below, merge.key, memo) else {
                    stack.append(top)
                    stack.append(try frame(below, merge.key))
                    continue
                }
                let outcome = try merge.merge(base.held, top.found.held, other, contested: base.contested, isForBase: true)
                switch outcome.result {
                case .a: break
                case .b: top.found.held = other
                case .absent: top.found.held = nil
                case .computed(let bytes, let recency): top.found.held = SideValue(.computed(bytes, recency: recency))
                }
                top.found.contested.formUnion(base.contested)
                top.found.contested.formUnion(outcome.contested)
            }
            top.next += 1
            stack.append(top)
        }
        return memo[bases] ?? Found()
    }

    /// Returns the folded value of versions if that needs no merge or is already known.
    private func known(_ versions: [UInt32], _ key: UnsafeRawBufferPointer, _ memo: [[UInt32]: Found]) throws -> Found? {
        switch versions.count {
        case 0: return Found()
        case 1: return Found(held: try held(key, versions[0]))
        default: return memo[versions]
        }
    }

    private mutating func frame(_ versions: [UInt32], _ key: UnsafeRawBufferPointer) throws -> Frame {
        let fold = folds[versions] ?? FoldedVersions(versions)
        folds[versions] = fold
        return Frame(fold: fold, found: Found(held: try versions.first.flatMap { try held(key, $0) }))
    }
}

extension Store {
    fileprivate func oldestFirst(_ versions: [UInt32]) -> [UInt32] { lock.withRead { versions.sorted { dag.isNewer($1, $0) } } }
}
