import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// The map compared with a sorted array, for sets of keys that stress its shape.
@Suite struct MapTests {
    static let alphabets: [(name: String, key: @Sendable (inout SeededRandom) -> [UInt8])] = [
        ("nested", { r in [UInt8](repeating: 0x61, count: Int.random(in: 1...300, using: &r)) }),
        ("few letters", { r in (0..<Int.random(in: 1...12, using: &r)).map { _ in UInt8.random(in: 0x61...0x63, using: &r) } }),
        (
            "common prefix",
            { r in Array("Contact/".utf8) + (0..<Int.random(in: 1...4, using: &r)).map { _ in UInt8.random(in: 0x30...0x39, using: &r) } }
        ),
        ("wide", { r in (0..<Int.random(in: 1...3, using: &r)).map { _ in UInt8.random(in: 0...255, using: &r) } }),
        ("deep", { r in [UInt8](repeating: 0x7A, count: 600) + [UInt8.random(in: 0...255, using: &r)] }),
        (
            "long",
            { r in
                let first = UInt8.random(in: 0x61...0x64, using: &r), digits = (0..<3).map { _ in UInt8.random(in: 0x30...0x32, using: &r) }
                return [first] + digits + [UInt8](repeating: first, count: Int.random(in: 0...2, using: &r) * 600)
            }
        ),
    ]

    static func apply(_ changes: [[UInt8]: UInt32?], to node: MapNode?) -> MapNode? {
        let sorted = changes.sorted { Bytes.compare($0.key, $1.key) < 0 }
        var arena: [UInt8] = []
        for (key, _) in sorted { arena += key }
        return arena.withUnsafeBytes { bytes in
            var at = 0
            let list = sorted.map { key, version in
                defer { at += key.count }
                return MapChange(
                    key: UnsafeRawBufferPointer(rebasing: bytes[at..<at + key.count]),
                    entry: version.map { MapEntry(version: $0, size: 0, bodyOffset: 0) })
            }
            return try? MapNode.applying(list[...], to: node)
        }
    }

    static func contents(_ node: MapNode?) -> [[UInt8]: UInt32] {
        var out: [[UInt8]: UInt32] = [:]
        node?.forEach { key, entry in
            out[Array(key)] = entry.version; return true
        }
        return out
    }

    /// The shape of a node: a leaf with its first key, or an inner node with its prefix and symbols.
    struct Shape: Equatable { let count: Int, key: [UInt8], symbols: [UInt16]? }

    /// Returns the shapes of all nodes, which depend only on the contents.
    static func shape(_ node: MapNode?) -> [Shape] {
        var found: [Shape] = []
        func add(_ node: MapNode) {
            guard node.leaf == nil else { found.append(Shape(count: node.count, key: Array(node.key(0)), symbols: nil)); return }
            found.append(Shape(count: node.count, key: Array(node.prefix), symbols: Array(node.symbols)))
            for child in node.children { add(child.opened) }
        }
        if let node { add(node.opened) }
        return found
    }

    @Test(arguments: 0..<6) func mapBehavesLikeASortedDictionary(alphabet: Int) throws {
        let (name, makeKey) = Self.alphabets[alphabet]
        // Long keys take much time.
        for seed in Sample.seeds(usual: 1, deep: name == "long" ? 1 : 6) {
            var random = SeededRandom(seed: seed)
            var node: MapNode?, model: [[UInt8]: UInt32] = [:]
            var snapshots: [(MapNode?, [[UInt8]: UInt32])] = []
            for step in 0..<60 {
                var changes: [[UInt8]: UInt32?] = [:]
                for _ in 0..<(step % 7 == 0 ? 150 : Int.random(in: 1...4, using: &random)) {
                    let removing = Int.random(in: 0..<10, using: &random) < (step > 40 ? 7 : 2)
                    let key = removing ? (model.keys.randomElement(using: &random) ?? makeKey(&random)) : makeKey(&random)
                    changes[key] = .some(removing ? nil : UInt32.random(in: 0..<1000, using: &random))
                }
                // Now and then the base of a change is a persisted map.
                if step % 9 == 4 { node = try FlatMapTests.flatten(node).map { MapNode($0) } }
                node = Self.apply(changes, to: node)
                for (key, value) in changes { model[key] = value }
                if let wrong = node?.checkInvariants() { Issue.record("\(name) \(Sample.hint(seed)) step \(step): \(wrong)") }
                #expect(Self.contents(node) == model, "\(name) \(Sample.hint(seed)) step \(step)")
                // Canonical: a map rebuilt at once from the same contents compares as equal and has the same shape.
                let rebuilt = Self.apply(model.mapValues { Optional($0) }, to: nil)
                #expect(MapNode.haveSameContents(rebuilt, node) && Self.shape(rebuilt) == Self.shape(node))
                snapshots.append((node, model))
            }
            for _ in 0..<30 {
                guard let (a, x) = snapshots.randomElement(using: &random), let (b, y) = snapshots.randomElement(using: &random) else {
                    continue
                }
                var last: [UInt8]?
                var seen: Set<[UInt8]> = []
                MapNode.forEachDifference(a, b) { key, p, q in
                    let key = Array(key)
                    if let last { #expect(Bytes.compare(last, key) < 0, "differences out of order: \(name) \(Sample.hint(seed))") }
                    last = key
                    seen.insert(key)
                    #expect(p?.version == x[key] && q?.version == y[key])
                }
                #expect(seen == Set(x.keys).union(y.keys).filter { x[$0] != y[$0] })
                let low = makeKey(&random), high = makeKey(&random)
                let expected = x.keys.filter { Bytes.compare($0, low) >= 0 && Bytes.compare($0, high) < 0 }.count
                low.withUnsafeBytes { l in
                    high.withUnsafeBytes { h in
                        var met = 0
                        a?.forEach(from: l, to: h) { _, _ in
                            met += 1; return true
                        }
                        #expect(met == expected && (a?.count(from: l, to: h) ?? 0) == expected, "range: \(name) \(Sample.hint(seed))")
                        for (low, high) in [(l, h), (l, nil), (UnsafeRawBufferPointer(start: nil, count: 0), h)]
                            as [(UnsafeRawBufferPointer, UnsafeRawBufferPointer?)]
                        {
                            var forwards: [[UInt8]] = [], backwards: [[UInt8]] = []
                            a?.forEach(from: low, to: high) { key, _ in
                                forwards.append(Array(key)); return true
                            }
                            a?.forEachBackwards(from: low, to: high) { key, entry in
                                #expect(entry.version == x[Array(key)])
                                backwards.append(Array(key))
                                return true
                            }
                            #expect(backwards == forwards.reversed(), "backwards: \(name) \(Sample.hint(seed))")
                            var different: [[UInt8]] = []
                            let bounds = KeyBounds(low: low, high: high)
                            MapNode.forEachDifference(a, b, within: bounds) { key, p, q in
                                #expect(p?.version == x[Array(key)] && q?.version == y[Array(key)])
                                different.append(Array(key))
                            }
                            let wanted = seen.filter { $0.withUnsafeBytes(bounds.hold) }.sorted { Bytes.compare($0, $1) < 0 }
                            #expect(different == wanted, "differences within: \(name) \(Sample.hint(seed))")
                        }
                    }
                }
                for key in [low, high] + (x.keys.randomElement(using: &random).map { [$0] } ?? []) {
                    #expect(key.withUnsafeBytes { a?.lookup($0)?.version } == x[key])
                }
            }
        }
    }
}
