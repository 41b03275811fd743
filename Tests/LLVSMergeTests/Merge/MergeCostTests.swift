#if DEBUG
import LLVSDocuments
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSMerge

/// The cost of large merges, of folds of many heads and of reading the bytes of changes: in pages of tables that are read, and in versions
/// that are visited. Each page and each version is visited a few times at most, whatever their number.
@Suite struct MergeCostTests {
    static let count = 9_000
    /// More changes than are kept in memory for a version, and than were once compared by maps.
    static let changed = MapPolicy.mostComparedWithMaps + 104
    static let pages = changed / RecordTable.changesPerPage + 1

    /// A store with many values, and several versions on one base that each change some of them.
    static func branches(_ store: Store, _ number: Int, apart: Bool) throws -> (base: Version, branches: [Version], ids: [ValueID]) {
        let ids = try (0..<count).map { try ValueID("id \($0 * 7_919 % count)") }
        let base = try store.makeVersion(basedOn: nil, changes: ids.map { .insert($0, data: bytes("old")) })
        _ = try store.maps.map(store.requireOrdinal(base.id))
        let made = try (0..<number).map { i in
            try store.makeVersion(
                basedOn: base.id,
                changes: (0..<changed).map { j in
                    .update(ids[(apart ? i * changed / 2 + j : j) % count], data: bytes("new \(i)"))
                })
        }
        return (base, made, ids)
    }

    @Test func aLargeMergeReadsEachPageAFewTimes() throws {
        for apart in [true, false] {
            for arbiter in [BuiltInArbiter.mostRecentChange, RecordedDifferenceTests.Wrapped(arbiter: .mostRecentChange)]
                as [any MergeArbiter]
            {
                let store = try memoryStore()
                let (_, branches, _) = try Self.branches(store, 3, apart: apart)
                let once = try store.merge(branches[0].id, with: branches[1].id, arbiter: arbiter)
                var merged = once
                let pages = try Work.pages.counting { merged = try store.merge(once.id, with: branches[2].id, arbiter: arbiter) }
                // The pages of the three branches and of the merge, for the maps and the recorded changes; twice if bytes are compared.
                #expect(pages <= 4 * Self.pages, "\(pages) pages where a version has \(Self.pages)")
                let reading = try Work.pages.counting { _ = try store.values(at: merged.id, limit: .max) }
                #expect(reading <= 3 * Self.pages, "\(reading) pages")
            }
        }
    }

    /// Bases that were merged with each other again and again, with more maps than fit into memory. No map is made for one id after
    /// another.
    @Test func basesThatDisagreeAreAskedForIdsWhereTheirMapsDoNotFit() throws {
        func made(_ budget: Int) throws -> (merged: VersionID, nodes: UInt64) {
            var options = Store.Options()
            options.storage = .memory
            options.memoryBudget = budget
            let store = try Store(path: "", options: options)
            let ids = try (0..<Self.count).map { try ValueID("id \($0 * 7_919 % Self.count)") }
            var left = try store.makeVersion(basedOn: nil, changes: ids.map { .insert($0, data: bytes("old")) }, id: VersionID("root"))
            var right = left
            for round in 0..<8 {
                func side(_ name: String, _ base: Version, _ start: Int) throws -> Version {
                    try store.makeVersion(
                        basedOn: base.id, changes: (0..<250).map { .update(ids[start + $0], data: bytes("\(name) \(round)")) },
                        id: VersionID("\(name)-\(round)"))
                }
                let (a, b) = (try side("left", left, 0), try side("right", right, 125))
                left = try store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.ours)
                right = try store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.theirs)
            }
            var merged = left
            let nodes = try MapWork.counting {
                merged = try store.merge(left.id, with: right.id, arbiter: BuiltInArbiter.mostRecentChange)
            }.made
            return (merged.id, nodes)
        }
        let small = try made(1 << 20)
        #expect(small.nodes <= 20 * UInt64(Self.count), "\(small.nodes) nodes were made")
    }

    /// The merge is the same for either way of finding what the second side changed, and when all forks are considered.
    @Test func aLargeMergeIsThatOfAllForks() throws {
        for apart in [true, false] {
            let store = try memoryStore()
            let (base, branches, ids) = try Self.branches(store, 3, apart: apart)
            func prepared(_ second: Version, _ arbiter: any MergeArbiter) throws -> String {
                let (a, b) = (try store.requireOrdinal(branches[2].id), try store.requireOrdinal(second.id))
                guard
                    case .version(let version, _, _, let changes) = try MergePreparation(store: store).prepareMerge(
                        a, b, arbiter: arbiter, metadata: Metadata(), relation: .any)
                else { return "none" }
                return withExtendedLifetime(changes) { "\(version) \(changes.changes.count)" }
            }
            // Much is recorded, and little of it prevails. This is tested once, since it does not concern the other branches.
            var second = base
            for i in 0..<(apart ? MapPolicy.mostOfSecondSide / Self.changed + 1 : 0) {
                second = try store.makeVersion(
                    basedOn: second.id, changes: ids[..<Self.changed].map { .update($0, data: bytes("step \(i)")) })
            }
            for other in apart ? [branches[1], second] : [branches[1]] {
                for arbiter in [BuiltInArbiter.mostRecentBranch, .mostRecentChange, .ours, .theirs] {
                    let made = try prepared(other, arbiter)
                    #expect(try made == prepared(other, RecordedDifferenceTests.Wrapped(arbiter: arbiter)) && made != "none")
                }
            }
        }
    }

    @Test func foldingLooksAtEachVersionAFewTimes() throws {
        func walked(heads: Int) throws -> Int {
            let store = try memoryStore()
            var trunk = try store.set(["k": "0"], nil)
            for i in 0..<heads {
                if i % 3 == 0 { trunk = try store.set(["k": "\(i)"], trunk) }
                _ = try store.set(["n\(i)": "1"], trunk)
            }
            return try Work.versions.counting { _ = try store.mergeHeads(into: trunk.id, arbiter: BuiltInArbiter.mostRecentChange) }
        }
        let few = try walked(heads: 100), many = try walked(heads: 400)
        // Each version is visited by the fold, and by the walks that find common ancestors.
        #expect(few <= 8 * 100 && many <= 8 * 400, "\(few) versions for 100 heads, \(many) for 400")
    }

    /// The larger result, whether it is that of the newer version or of the older one.
    @Test func settlingTwoLargeAnswersReadsEachPageAFewTimes() throws {
        for number in 0..<4 {
            let store = try memoryStore()
            let (_, branches, ids) = try Self.branches(store, 2, apart: false)
            let metadata = try Metadata([(bytes("number"), bytes("\(number)"))])
            let smaller = try store.merge(branches[0].id, with: branches[1].id, arbiter: BuiltInArbiter.ours, metadata: metadata)
            let larger = try store.merge(branches[0].id, with: branches[1].id, arbiter: BuiltInArbiter.theirs, metadata: metadata)
            var merged = larger
            let pages = try Work.pages.counting { merged = try store.merge(smaller.id, with: larger.id, arbiter: BuiltInArbiter.ours) }
            #expect(pages <= 4 * Self.pages, "\(pages) pages where a version has \(Self.pages)")
            #expect(try store.changes(madeIn: merged.id).count == (merged.predecessors[0] == larger.id ? 0 : Self.changed))
            #expect(
                try store.value(ids[0], at: merged.id)?.data == bytes("new 1")
                    && store.differences(from: larger.id, to: merged.id).isEmpty)
        }
    }

    @Test func theBytesOfChangesNeedNoPages() throws {
        let store = try memoryStore()
        let (base, branches, _) = try Self.branches(store, 1, apart: true)
        let recorded = try store.recordedChanges(madeIn: branches[0].id),
            different = try store.differences(from: base.id, to: branches[0].id)
        #expect(recorded.count == Self.changed && different.count == Self.changed)
        let pages = try Work.pages.counting {
            let (one, other) = (try store.batch(recorded), try store.batch(different))
            #expect(one.presentCount == Self.changed && other.presentCount == Self.changed)
        }
        #expect(pages == 0)
    }

    @Test func aReferenceNeedsOnePage() throws {
        let store = try memoryStore()
        let (_, branches, ids) = try Self.branches(store, 1, apart: true)
        func references(_ ids: [ValueID]) -> [Value.Reference] { ids.map { Value.Reference(id: $0, version: branches[0].id) } }
        let sorted = ids[..<Self.changed].sorted()
        // In order, each page is read once; in random order, at most one page for each reference.
        for many in [false, true] {
            store.maps.cache.removeAll()
            let pages = try Work.pages.counting {
                let found =
                    try many
                    ? store.batch(references(sorted)).presentCount
                    : references(sorted).compactMap { try store.value($0) }.filter { $0.data == bytes("new 0") }.count
                #expect(found == Self.changed)
            }
            #expect(pages <= Self.pages, "\(pages) pages")
        }
        var random = SeededRandom(seed: 5)
        let chosen = (0..<500).compactMap { _ in sorted.randomElement(using: &random) }
        let pages = try Work.pages.counting { for reference in references(chosen) { _ = try store.value(reference) } }
        #expect(pages <= chosen.count, "\(pages) pages for \(chosen.count) references")
        // Absent ids: between the pages, before the first and after the last.
        let absent = try references(sorted.prefix(100).map { try ValueID($0.description + " ") } + [ValueID("a"), ValueID("z")])
        for reference in absent {
            let found = try store.value(reference)
            #expect(found == nil, "\(reference.id)")
        }
        // With the map of the version in memory, no page is read.
        _ = try store.maps.map(store.requireOrdinal(branches[0].id))
        let read = try Work.pages.counting { for reference in references(chosen) + absent { _ = try store.value(reference) } }
        #expect(read == 0)
    }

    /// A line into which versions of another device are merged one after the other. These versions form a line of their own, or all build
    /// on the base.
    @Test(arguments: [true, false]) func aLineThatOthersAreMergedWith(isOfOneDevice: Bool) throws {
        func costs(_ count: Int) throws -> (merging: Int, undoing: Int) {
            func counted(_ body: () throws -> Void) throws -> Int {
                var comparisons = 0
                let versions = try Work.versions.counting { comparisons = try Work.comparisons.counting(body) }
                return versions + comparisons
            }
            let store = try memoryStore()
            let rules = "{\"merge\":1,\"ids\":{\"a\":{\"/n\":\"counter\"}}}"
            let base = try store.set([MergeSchema.valueID: rules, "a": "{\"n\":0,\"r\":\"\"}"], nil)
            let edit = try store.set(["a": "{\"n\":1,\"r\":\"mine\"}"], base)
            var head = edit, other = base, merging = 0
            for i in 0..<count {
                other = try store.set(["a": "{\"n\":\(i),\"r\":\"\(i)\"}"], isOfOneDevice ? other : base)
                merging += try counted { head = try store.merge(head.id, with: other.id, arbiter: RulesArbiter()) }
            }
            var undone: Version?
            let undoing = try counted { undone = try store.revert(edit.id, at: head.id).version }
            #expect(undone != nil)
            return (merging, undoing)
        }
        let few = try costs(60), many = try costs(240)
        #expect(many.undoing <= 5 * few.undoing, "undoing: \(few.undoing) steps, of four times as many \(many.undoing)")
        // (If they all build on the base, each merge walks back to it.)
        if isOfOneDevice {
            #expect(many.merging <= 5 * few.merging, "merging: \(few.merging) steps, of four times as many \(many.merging)")
        }
    }
}
#endif
