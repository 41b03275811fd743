import LLVSTestHelpers

#if DEBUG
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import LLVS
import LLVSTestHelpers
import Testing
@testable import LLVSCore
@testable import LLVSExchange
@testable import LLVSMerge

/// Counts the steps that other devices can cause: twice the input causes about twice as many steps, never four times.
@Suite struct HostileCostTests {
    /// Measures the steps for a size and for twice that size.
    static func isLinear(_ size: Int, _ steps: (Int) throws -> Int) throws {
        let once = try steps(size), twice = try steps(2 * size)
        #expect(twice <= 3 * once + 1_000, "\(size): \(once) steps, \(2 * size): \(twice) steps")
    }

    private static func received(_ id: String, _ predecessors: [String], _ changes: [Value.Change], at time: Double) throws
        -> Store.ReceivedVersion
    {
        Store.ReceivedVersion(
            version: Version(
                id: try VersionID(id), predecessors: try predecessors.map { try VersionID($0) }, timestamp: time, valueDataSize: 0,
                metadata: Metadata()),
            changes: changes)
    }

    /// Two lines that are merged with each other at each step, and a version on top that preserves many values of the root.
    @Test func preservesAgainstALadderOfMerges() throws {
        try Self.isLinear(500) { size in
            let store = try memoryStore()
            let ids = try (0..<size).map { try ValueID("id \($0)") }
            var ladder = [try Self.received("root", [], ids.map { .insert($0, data: [1]) }, at: 0)]
            for other in ["a", "b"] { ladder.append(try Self.received("\(other)0", ["root"], [], at: 1)) }
            for i in 1...size {
                for (own, other) in [("a", "b"), ("b", "a")] {
                    ladder.append(try Self.received("\(own)\(i)", ["\(own)\(i - 1)", "\(other)\(i - 1)"], [], at: Double(i + 1)))
                }
            }
            let root = try VersionID("root")
            let top = try Self.received(
                "top", ["a\(size)", "b\(size)"], ids.map { .preserve(.init(id: $0, version: root)) }, at: Double(size + 2))
            for addition in try store.add(ladder) { guard case .added = addition else { Issue.record("\(addition)"); return 0 } }
            return try Work.versions.counting {
                guard case .added? = try store.add([top]).first else { Issue.record("the version was not added"); return }
            }
        }
    }

    /// Each merge of a ladder preserves a value that the root stored.
    @Test func aPreserveInEachMergeOfALadder() throws {
        try Self.isLinear(400) { size in
            let store = try memoryStore()
            let x = try ValueID("x"), root = try VersionID("root")
            var ladder = [try Self.received("root", [], [.insert(x, data: [1])], at: 0)]
            for other in ["a", "b"] { ladder.append(try Self.received("\(other)0", ["root"], [.update(x, data: [2])], at: 1)) }
            for i in 1...size {
                for (own, other) in [("a", "b"), ("b", "a")] {
                    ladder.append(
                        try Self.received(
                            "\(own)\(i)", ["\(own)\(i - 1)", "\(other)\(i - 1)"], [.preserve(.init(id: x, version: root))],
                            at: Double(i + 1)))
                }
            }
            return try Work.versions.counting {
                for addition in try store.add(ladder) { guard case .added = addition else { Issue.record("\(addition)"); return } }
            }
        }
    }

    /// A cancellation takes effect at the first poll, and one through the progress callback at the next.
    @Test func addingLooksAtItsControl() throws {
        let store = try memoryStore(), x = try ValueID("x"), root = try VersionID("root")
        var ladder = [try Self.received("root", [], [.insert(x, data: [1])], at: 0)]
        for other in ["a", "b"] { ladder.append(try Self.received("\(other)0", ["root"], [], at: 1)) }
        for i in 1...10_000 {
            for (own, other) in [("a", "b"), ("b", "a")] {
                ladder.append(try Self.received("\(own)\(i)", ["\(own)\(i - 1)", "\(other)\(i - 1)"], [], at: Double(i + 1)))
            }
        }
        let token = CancelToken()
        token.cancel()
        #expect(throws: StoreError.self) { try store.add(ladder, control: OperationControl(token: token)) }
        #expect(try store.statistics().versions == 0)
        _ = try store.add(ladder)
        let top = try Self.received("top", ["a10000", "b10000"], [.preserve(.init(id: x, version: root))], at: 20_000)
        for mostLooks in 1...2 {
            let looks = Looks()
            let steps = Work.versions.counting {
                #expect(throws: StoreError.self) {
                    try store.add([top], control: OperationControl(progress: { _ in looks.count() < mostLooks }))
                }
            }
            #expect(steps <= mostLooks * 9_000, "\(steps) versions were walked over")
        }
        #expect(throws: StoreError.self) { try store.add([top], control: OperationControl(token: token)) }
        guard case .added? = try store.add([top]).first else { Issue.record("the version was not added"); return }
    }

    /// Walks through a long history end at the first poll after a cancellation, in each call.
    @Test func longWalksLookAtTheirControl() throws {
        let store = try memoryStore(), x = try ValueID("x")
        var all = [
            try Self.received("root", [], [.insert(x, data: [1])], at: 0),
            try Self.received("other", ["root"], [.update(x, data: [2])], at: 1),
        ]
        for other in ["a", "b"] { all.append(try Self.received("\(other)0", ["root"], [], at: 1)) }
        for i in 1...15_000 {
            for (own, other) in [("a", "b"), ("b", "a")] {
                all.append(try Self.received("\(own)\(i)", ["\(own)\(i - 1)", "\(other)\(i - 1)"], [], at: Double(i + 1)))
            }
        }
        all.append(try Self.received("tip", ["a15000"], [.update(x, data: [3])], at: 20_000))
        _ = try store.add(all)
        let root = try VersionID("root"), other = try VersionID("other"), tip = try VersionID("tip")
        let calls: [(String, (OperationControl) throws -> Void)] = [
            ("merge", { _ = try store.merge(other, with: tip, arbiter: BuiltInArbiter.mostRecentChange, control: $0) }),
            (
                "merge heads",
                { _ = try store.mergeHeads(into: other, arbiter: BuiltInArbiter.mostRecentChange, selection: .all, control: $0) }
            ),
            ("differences", { _ = try store.differences(from: root, to: tip, control: $0) }),
            ("walk", { _ = try store.walk(HistoryQuery(hiding: [other]), control: $0).next(.max, control: $0) }),
        ]
        for (name, call) in calls {
            let token = CancelToken()
            token.cancel()
            let none = Work.versions.counting {
                #expect(throws: StoreError.self, "\(name)") { try call(OperationControl(token: token)) }
            }
            #expect(none <= 10_000, "\(name) walked over \(none) versions although it was cancelled before")
            let looks = Looks()
            let steps = Work.versions.counting {
                #expect(throws: StoreError.self, "\(name)") { try call(OperationControl(progress: { _ in looks.count() < 3 })) }
            }
            #expect(steps <= 30_000 && looks.number == 3, "\(name) visited \(steps) versions, and polled \(looks.number) times")
        }
        #expect(try store.heads().count == 3)
    }

    /// Heads whose last changes do not distinguish them: each is compared with some others, not with all.
    @Test func headsThatLookAlike() throws {
        try Self.isLinear(150) { size in
            let store = try memoryStore()
            let a = try ValueID("a"), b = try ValueID("b")
            let heads = try (0..<size).map { i in
                try Self.received("head\(i)", [], [.insert(a, data: [1]), .insert(b, data: Array("\(i)".utf8))], at: Double(i))
            }
            _ = try store.add(heads)
            let ordinals = try heads.map { try store.requireOrdinal($0.version.id) }
            var groups = 0
            let steps = try Work.comparisons.counting { groups = try store.equalStates.groupedByState(ordinals).count }
            #expect(groups == size)
            return steps
        }
    }

    /// Heads that are copies of the whole state with some difference. A save compares a limited number of ids, and leaves the rest to a
    /// merge.
    @Test func headsThatNearlyHaveTheStateOfASave() throws {
        let store = try memoryStore()
        let coordinator = try StoreCoordinator(store: store)
        let ids = try (0..<2_000).map { try ValueID("id \($0)") }
        let state = ids.map { Value.Change.insert($0, data: [1]) }
        _ = try coordinator.save(state)
        var copies = [try Self.received("copy", [], state, at: 1)]
        for i in 0..<200 {
            copies.append(try Self.received("head\(i)", ["copy"], [.update(ids[1_999 - i], data: [2])], at: 2))
            copies.append(try Self.received("top\(i)", ["head\(i)"], [.update(ids[0], data: [1])], at: 3))
        }
        _ = try store.add(copies)
        let x = try ValueID("x")
        let steps = try Work.comparisons.counting { _ = try coordinator.save([.insert(x, data: [1])]) }
        #expect(steps <= 100_000, "\(steps) ids were compared")
        let again = try Work.comparisons.counting { _ = try coordinator.save([.update(x, data: [2])]) }
        #expect(again <= 1_000, "\(again) ids were compared again")
        #expect(try coordinator.merge())
    }

    private final class Looks: @unchecked Sendable {
        private let lock = Lock()
        private(set) var number = 0
        func count() -> Int {
            lock.withLock {
                number += 1; return number
            }
        }
    }

    /// Listing a folder and sorting versions to be sent.
    @Test func longListsLookAtTheirControl() throws {
        let temporary = TemporaryFolder()
        let transport = try FolderTransport(path: temporary.path)
        try FolderFiles.makeDirectory(temporary.path + "/versions")
        for i in 0..<2_100 { try temporary.write("versions/name \(i)", "") }
        let looks = Looks()
        _ = try transport.list(
            OperationControl(progress: { _ in
                _ = looks.count(); return true
            }))
        #expect(looks.number >= 2)
        #expect(throws: StoreError.self) { try transport.list(OperationControl(progress: { _ in looks.count() < 4 })) }
        var random = SeededRandom(seed: 7), sorts = 0
        let keys = (0..<60_000).map { _ in
            OrderKey(
                generation: UInt32.random(in: 0...9, using: &random), timestamp: Double(Int.random(in: 0...99, using: &random)),
                id: VersionID(high: random.next(), low: random.next()), ordinal: 0)
        }
        let sorted = keys.sorted { sorts += 1 }
        #expect(sorts >= 5 && zip(sorted, sorted.dropFirst()).allSatisfy { !OrderKey.isBefore($1, $0) } && sorted.count == keys.count)
    }

    /// Changes without versions, and files that interrupted senders left, are scanned with a poll after at most 1,024 of them.
    @Test func manyNamesAreLookedThroughWithAControl() throws {
        let temporary = TemporaryFolder(), count = 2_100
        for folder in ["versions", "changes", "tmp"] { try FolderFiles.makeDirectory(temporary.path + "/" + folder) }
        for i in 0..<count {
            try temporary.write("changes/nobody-\(i)", "")
            try temporary.write("tmp/left \(i)", "")
        }
        let store = try memoryStore()
        let saved = try store.set(["x": "1"], nil)
        let exchange = try Exchange(store: store, transport: FolderTransport(path: temporary.path))
        func looks(_ call: (OperationControl) throws -> Void) throws -> Int {
            let looks = Looks()
            try call(OperationControl(progress: { _ in looks.count() > 0 }))
            return looks.number
        }
        // The names are listed, compared with the versions, and reported.
        var problems = 0
        let retrieving = try looks { problems = try exchange.retrieve(control: $0).problems.count }
        #expect(problems == count)
        #expect(retrieving >= 3 * (count / 1_024), "\(retrieving) looks")
        let token = CancelToken()
        token.cancel()
        #expect(throws: StoreError.self) { try exchange.send(control: OperationControl(token: token)) }
        // The remaining names are scanned once.
        let first = try looks { _ = try exchange.send(control: $0) }
        _ = try store.set(["x": "2"], saved)
        let second = try looks { _ = try exchange.send(control: $0) }
        // The second send has one more version, which costs a poll.
        #expect(first + 1 >= second + count / 1_024, "\(first) polls, and \(second) the next time")
        let left = try System.names(in: temporary.path + "/tmp"), sent = try System.names(in: temporary.path + "/versions")
        #expect(left.count == count && sent.count == 2)
    }

    /// Many versions side by side are merged one after the other, in two orders. They are the best common ancestors of the two results.
    @Test func manyCommonBases() throws {
        try Self.isLinear(150) { size in
            let store = try memoryStore()
            let x = try ValueID("x")
            var all = [try Self.received("root", [], [.insert(x, data: [0])], at: 0)]
            for i in 0..<size {
                all.append(
                    try Self.received(
                        "base\(i)", ["root"], [.update(i == size - 1 ? x : ValueID("id \(i)"), data: bytes("\(i)"))], at: Double(i + 1))
                )
            }
            for (side, order) in [("a", Array(0..<size)), ("b", Array((0..<size).reversed()))] {
                for i in 1..<size {
                    all.append(
                        try Self.received(
                            "\(side)\(i)", [i == 1 ? "base\(order[0])" : "\(side)\(i - 1)", "base\(order[i])"],
                            i == size - 1 ? [.update(x, data: bytes(side))] : [], at: Double(size + i)))
                }
            }
            for addition in try store.add(all) { guard case .added = addition else { Issue.record("\(addition)"); return 0 } }
            let a = try VersionID("a\(size - 1)"), b = try VersionID("b\(size - 1)")
            #expect(try store.mergeBases(a, b).count == size)
            return try Work.versions.counting { try store.merge(a, with: b, arbiter: BuiltInArbiter.mostRecentChange) }
        }
    }

    /// Heads that each merge a version of a line with its root, or with the version after the root.
    @Test(arguments: [1, 2, 100]) func manyHeadsOnALineAndItsRoot(roots: Int) throws {
        try Self.isLinear(300) { size in
            let store = try memoryStore()
            var all = [try Self.received("line0", [], [.insert(ValueID("x"), data: [0])], at: 0)]
            for i in 1...size {
                all.append(try Self.received("line\(i)", ["line\(i - 1)"], [.update(ValueID("x"), data: bytes("\(i)"))], at: Double(i)))
            }
            for i in roots + 1..<size {
                all.append(
                    try Self.received(
                        "head\(i)", ["line\(i)", "line\(i % roots)"], [.insert(ValueID("head \(i)"), data: [1])], at: Double(size + i)))
            }
            for addition in try store.add(all) { guard case .added = addition else { Issue.record("\(addition)"); return 0 } }
            let into = try VersionID("line\(size)")
            var walked = 0
            // A fold does not walk all earlier merges again for the values of each head either.
            let gone = try Work.unindexed.counting {
                walked = try Work.versions.counting { try store.mergeHeads(into: into, arbiter: BuiltInArbiter.mostRecentChange) }
            }
            return walked + gone
        }
    }

    /// Heads, each of which merges a version of one line with a version of another line.
    enum TwoLines: CaseIterable { case besideOneVersion, inNoOrder, alongTwoLines, twoLinesInNoOrder, lastChangeTellsNothing }

    /// Each head has two common ancestors with everything merged before. No comparison goes back to where these meet.
    @Test(arguments: TwoLines.allCases) func manyHeadsOnTwoLines(_ kind: TwoLines) throws {
        // Now and then a map is made. Its cost is limited by the way to its anchor, however long the lines are.
        let size = 200, most = 120 * size
        let store = try memoryStore(), x = try ValueID("x"), y = try ValueID("y"), z = try ValueID("z")
        let order = kind == .inNoOrder || kind == .twoLinesInNoOrder ? (0...size).map { $0 * 37 % size } : Array(0...size)
        let areTwo = kind == .alongTwoLines || kind == .twoLinesInNoOrder
        var all = [try Self.received("root", [], [.insert(x, data: [0]), .insert(z, data: [0])], at: 0)]
        for i in 0..<size {
            all.append(try Self.received("line\(i)", [i == 0 ? "root" : "line\(i - 1)"], [.update(x, data: bytes("\(i)"))], at: Double(i)))
            if areTwo || i == 0 {
                all.append(
                    try Self.received("side\(i)", [i == 0 ? "root" : "side\(i - 1)"], [.update(y, data: bytes("\(i)"))], at: Double(i)))
            }
        }
        for i in 0..<size {
            let side = "side\(areTwo ? i : 0)", own = try ValueID("own \(i)")
            let preserved = Value.Change.preserve(.init(id: y, version: try VersionID(side)))
            let changes = kind == .lastChangeTellsNothing ? [preserved, .insert(own, data: [1])] : [preserved]
            let time = Double(2 * size + order[i])
            all.append(try Self.received("merge\(i)", ["line\(i)", side], changes, at: time))
            if kind == .lastChangeTellsNothing {
                all.append(try Self.received("head\(i)", ["merge\(i)"], [.update(z, data: [1])], at: time))
            }
        }
        for addition in try store.add(all) { guard case .added = addition else { Issue.record("\(addition)"); return } }
        let into = try #require(try store.heads().first).id
        var walked = 0
        let gone = try Work.unindexed.counting {
            walked = try Work.versions.counting { try store.mergeHeads(into: into, arbiter: BuiltInArbiter.mostRecentChange) }
        }
        #expect(walked + gone <= most, "\(walked + gone) steps")
    }

    /// Heads that all change a counter, merged by rules. To find the recency of the sum, the earlier merges are not walked again.
    @Test func manyHeadsThatCount() throws {
        try Self.isLinear(100) { size in
            let store = try memoryStore(), counter = try ValueID("a")
            let rules = bytes(#"{"merge":1,"ids":{"":"bytes","a":{"/n":"counter"}}}"#)
            let first = [Value.Change.insert(try ValueID("__llvs_schema"), data: rules), .insert(counter, data: bytes(#"{"n":0}"#))]
            var all = [try Self.received("root", [], first, at: 0)]
            for i in 0..<size {
                all.append(try Self.received("head\(i)", ["root"], [.update(counter, data: bytes(#"{"n":\#(i)}"#))], at: Double(i + 1)))
            }
            for addition in try store.add(all) { guard case .added = addition else { Issue.record("\(addition)"); return 0 } }
            let into = try VersionID("head0")
            return try Work.comparisons.counting {
                let merged = try #require(try store.mergeHeads(into: into, arbiter: RulesArbiter()))
                #expect(try store.text("a", merged) == #"{"n":\#(size * (size - 1) / 2)}"#)
            }
        }
    }

    /// Heads of equal states in groups of nine, on a long line. The line is not walked for each group.
    @Test(arguments: [false, true]) func manyGroupsOfEqualHeads(areMerges: Bool) throws {
        try Self.isLinear(30) { size in
            let store = try memoryStore(), x = try ValueID("x")
            var all = [try Self.received("line0", [], [.insert(x, data: [0])], at: 0), try Self.received("side", ["line0"], [], at: 0)]
            for i in 1...20 * size {
                // A line of merges is as expensive for a search for the next version that is no merge.
                let behind = areMerges && i > 1 ? ["line\(i - 1)", i % 2 == 0 ? "side" : "line1"] : ["line\(i - 1)"]
                all.append(try Self.received("line\(i)", behind, [], at: Double(i)))
            }
            for i in 0..<9 * size {
                let behind = areMerges ? ["line\(20 * size)", "line\(20 * size - 1)"] : ["line\(20 * size)"]
                all.append(try Self.received("head\(i)", behind, [.update(x, data: bytes("\(i / 9)"))], at: Double(20 * size + i)))
            }
            for addition in try store.add(all) { guard case .added = addition else { Issue.record("\(addition)"); return 0 } }
            let into = try #require(try store.heads().first).id
            return try Work.versions.counting { try store.mergeHeads(into: into, arbiter: BuiltInArbiter.mostRecentChange) }
        }
    }

    /// How heads without a common ancestor with the local line are arranged on their own roots.
    enum ForeignHeads: CaseIterable { case onOneRoot, onTwoRoots, onRootsOfTheirOwn, twoOnEach, onRootsInTurn, fromThePast }

    /// Heads beside a line with which they have no common ancestor. None of them is compared with everything that was merged before.
    @Test(arguments: ForeignHeads.allCases) func manyHeadsOnForeignRoots(_ kind: ForeignHeads) throws {
        try Self.isLinear(150) { size in
            let store = try memoryStore()
            var all = [try Self.received("mine", [], [.insert(ValueID("mine"), data: [0])], at: 1e6)]
            let roots: Int, time: (Int) -> Double
            switch kind {
            case .onOneRoot: (roots, time) = (1, { Double($0 + 1) })
            case .fromThePast: (roots, time) = (1, { -Double($0 + 1) })
            case .onTwoRoots, .onRootsInTurn: (roots, time) = (2, { Double($0 + 1) })
            case .onRootsOfTheirOwn: (roots, time) = (size, { Double($0 + 1) })
            case .twoOnEach: (roots, time) = (size / 2, { Double($0 + 1) })
            }
            for i in 0..<roots { all.append(try Self.received("root\(i)", [], [.insert(ValueID("root \(i)"), data: [0])], at: 0)) }
            for i in 0..<size {
                let behind = kind == .onTwoRoots ? ["root0", "root1"] : ["root\(i % roots)"]
                all.append(try Self.received("head\(i)", behind, [.insert(ValueID("head \(i)"), data: [1])], at: time(i)))
            }
            for addition in try store.add(all) { guard case .added = addition else { Issue.record("\(addition)"); return 0 } }
            let into = try VersionID("mine")
            var compared = 0
            let read = try MapWork.counting {
                compared = try Work.comparisons.counting { try store.mergeHeads(into: into, arbiter: BuiltInArbiter.mostRecentChange) }
            }
            return compared + Int(read.read)
        }
    }

    /// Versions whose large values are missing do not cause further checks for these values until something arrives.
    @Test func versionsThatWaitForBlobs() throws {
        let directory = TemporaryDirectory(), path = directory.path + "/store", count = 40
        var options = Store.Options()
        options.durability = .normal
        let store = try Store(path: path, options: options)
        let root = try store.set(["x": "0"], nil)
        for i in 0..<count {
            try store.makeVersion(
                basedOn: root.id, changes: [.insert(ValueID("large"), data: [UInt8](repeating: UInt8(i), count: (1 << 20) + 1))])
        }
        try store.close()
        TemporaryDirectory.remove(path + "/cache")
        let blobs = try System.names(in: path + "/blobs")
        try #require(blobs.count == count)
        try System.rename(path + "/blobs/" + blobs[0], directory.path + "/kept")
        for name in blobs.dropFirst() { try System.unlink(path + "/blobs/" + name) }
        // The times of a directory prove nothing for two seconds.
        var file = FileStorage.Options()
        file.durability = .normal
        file.system.now = { System.now + 10_000_000_000 }
        options.storage = .custom(try FileStorage(path: path, options: file))
        let again = try Store(path: path, options: options)
        #expect(try again.statistics().pending == UInt64(count))
        try again.reloadHistory()
        let asked = try Work.blobs.counting { for i in 0..<50 { _ = try again.version(VersionID("unknown\(i)")) } }
        #expect(asked == 0, "\(asked) blobs were asked for")
        try System.rename(directory.path + "/kept", path + "/blobs/" + blobs[0])
        try again.reloadHistory()
        #expect(try again.statistics().pending == UInt64(count - 1))
    }

    /// A verification reports each damage once, however many there are.
    @Test func manyDamages() throws {
        try Self.isLinear(300) { size in
            let storage = HookedStorage(), store = try Store(storage: storage, options: Store.Options())
            let id = try ValueID("x"), version = try VersionID("v")
            // Damages of values, whose files a storage may report as well, and damages of other files.
            for i in 0..<size {
                storage.foundWhenVerifying.append(
                    StorageDamage(file: "blob \(i)", offset: 0, message: "one", version: version, value: id, lost: .nothing))
            }
            for i in 0..<size {
                storage.foundWhenVerifying.append(StorageDamage(file: "blob \(i)", offset: 70, message: "two", lost: .value))
            }
            for i in 0..<size {
                storage.foundWhenVerifying.append(StorageDamage(file: "other \(i)", offset: 0, message: "three", lost: .nothing))
            }
            return try Work.damages.counting {
                let report = try store.verify()
                #expect(report.damages.count == 2 * size && report.damages.prefix(size).allSatisfy { $0.offset == 70 })
            }
        }
    }

    /// Pending versions are not visited for each unknown id.
    @Test func versionsThatWaitForOthers() throws {
        let directory = TemporaryDirectory(), path = directory.path + "/store"
        var options = Store.Options()
        options.durability = .normal
        let store = try Store(path: path, options: options)
        for i in 0..<2_000 {
            _ = try store.admit([
                PendingVersions.Record(
                    place: RecordPlace(segment: 0, offset: UInt64(i), length: 1),
                    header: try Self.header("waits\(i)", on: "missing\(i)"))
            ])
        }
        #expect(try store.statistics().pending == 2_000)
        for i in 0..<50 { _ = try store.set(["x": "\(i)"], nil) }
        let looked = store.lock.withWrite { store.pending.takeReady(in: store.dag) }
        #expect(looked.ready.isEmpty && !looked.isStoring)
        #expect(store.lock.withRead { store.pending.unsettledRows(in: store.dag) } == 0)
    }

    private static func header(_ id: String, on predecessor: String) throws -> RecordHeader {
        let encoder = RecordEncoder()
        let metadata = try Metadata([
            (bytes("key"), [UInt8](repeating: 1, count: 10_000)),
            (Metadata.branchKey, bytes("\"" + String(repeating: "b", count: 5_000) + "\"")),
        ])
        let version = Version(
            id: try VersionID(id), predecessors: [try VersionID(predecessor)], timestamp: 1, valueDataSize: 0, metadata: metadata)
        try encoder.encode(version, RecordChanges([]), blobThreshold: nil) { _, _ in BlobID(high: 0, low: 0) }
        let record = try encoder.bytes(RecordChanges([]))
        guard case .whole(let header) = record.withUnsafeBytes({ RecordHeader.read($0, recordLength: UInt64(record.count)) }) else {
            throw StoreError(.internal, "A header cannot be read.")
        }
        return header
    }

    /// Pending versions keep neither metadata nor long names of branches in memory.
    @Test func whatVersionsCarryIsNotHeldForEach() throws {
        let record = PendingVersions.Record(
            place: RecordPlace(segment: 0, offset: 0, length: 1), header: try Self.header("one", on: "other"))
        #expect(record.header.metadata.isEmpty)
        #expect(record.branch?.key.count == 33 && record.branch == BranchName(String(repeating: "b", count: 5_000)))
        #expect(BranchName("draft").key == bytes("draft"))
        let store = try memoryStore(), longest = String(repeating: "b", count: Limits.branchNameSize)
        var metadata = Metadata()
        metadata.branch = longest
        let made = try store.makeVersion(basedOn: nil, changes: [], metadata: metadata)
        #expect(try store.heads(onBranch: longest).map(\.id) == [made.id] && store.heads(onBranch: longest + "b").isEmpty)
        metadata.branch = longest + "b"
        do {
            _ = try store.makeVersion(basedOn: nil, changes: [], metadata: metadata)
            Issue.record("a name that is too long was accepted")
        } catch let error as StoreError { #expect(error.code == .invalidMetadata && error.message.contains("1024")) }
        // A received version with a longer name is accepted and found by its name.
        let version = Version(id: try VersionID("elsewhere"), predecessors: [made.id], timestamp: 1, valueDataSize: 0, metadata: metadata)
        _ = try store.add([.init(version: version, changes: [])])
        #expect(try store.heads(onBranch: longest + "b").map(\.branch) == [longest + "b"])
        #expect(try store.walk(HistoryQuery(branch: longest + "b")).next(9).map(\.version) == [version.id])
        let index = store.lock.withRead { HistoryIndex.encode(store.dag, nil, mark: []) }
        #expect(
            try index.count < 1_000
                && HistoryIndex.decode(index) { _ in [0, 1, 2, 3] }?.history.headsInNoOrder(onBranch: longest + "b").count == 1)
    }

    /// Of a folder full of foreign names and invalid versions, few names are kept in memory.
    @Test func namesThatAreNoneOfOurs() throws {
        let store = try memoryStore(), count = 3 * ExchangeLimits.foreignCount
        let name = "costs \(UInt64.random(in: 0 ... .max))", transport = MemoryTransport(name: name)
        for i in 0..<count { transport.plant("none of ours \(i)", version: [], changes: nil) }
        for i in 0..<100 { transport.plant(".expected \(i)", version: [], changes: nil) }
        let listing = try transport.list(OperationControl())
        #expect(listing.foreign.count == ExchangeLimits.foreignCount && listing.furtherForeign == count - ExchangeLimits.foreignCount)
        #expect(try Exchange(store: store, transport: transport).retrieve().problems.isEmpty)
    }

    @Test func versionFilesThatAreNone() throws {
        let store = try memoryStore(), count = ExchangeLimits.problemCount + 50
        let transport = MemoryTransport(name: "costs \(UInt64.random(in: 0 ... .max))")
        for i in 0..<count { transport.plant("empty\(i)", version: [], changes: []) }
        let problems = try Exchange(store: store, transport: transport).retrieve().problems
        #expect(problems.count == ExchangeLimits.problemCount + 1 && problems.contains { $0.error.message.hasPrefix("50 further") })
    }

    /// If many files are broken and the mark of the listing is unchanged, a retrieve checks some of them again, in turn; otherwise it
    /// checks all.
    @Test func brokenFilesAreLookedAtInTurn() throws {
        let count = ExchangeLimits.brokenCount + 7
        let transport = CountedFetches(try (0..<count).map { try VersionID("empty\($0)") })
        let exchange = try Exchange(store: memoryStore(), transport: transport)
        func fetched() throws -> Set<String> {
            transport.names = []
            let problems = try exchange.retrieve().problems
            // The number of the others is reported.
            #expect(problems.count == ExchangeLimits.problemCount + 1)
            #expect(problems.contains { $0.error.message.hasPrefix("\(count - ExchangeLimits.problemCount) further") })
            #expect(Set(transport.names).count == transport.names.count)
            return Set(transport.names)
        }
        transport.mark = 1
        #expect(try fetched().count == count)
        var all: Set<String> = []
        for _ in 0..<2 {
            let some = try fetched()
            #expect(some.count == ExchangeLimits.brokenCount)
            all.formUnion(some)
        }
        #expect(all.count == count)
        transport.mark = 2
        #expect(try fetched().count == count)
        // The mark is unknown.
        transport.mark = nil
        #expect(try fetched().count == count)
        transport.mark = 2
        #expect(try exchange.retrieve(verifyKnown: true).problems.count == ExchangeLimits.problemCount + 1)
    }
}

/// Empty version files. Records which of them were requested. Used by one thread.
private final class CountedFetches: ExchangeTransport, @unchecked Sendable {
    let ids: [VersionID]
    var mark: UInt64?, names: [String] = []
    init(_ ids: [VersionID]) { self.ids = ids }

    let description = "broken files"
    func list(_ control: OperationControl) throws -> ExchangeListing {
        var listing = ExchangeListing(versions: [])
        listing.versions = ids
        listing.mark = mark
        return listing
    }
    func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        self.names += names
        return names.map { _ in .data([]) }
    }
    func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] { names.map { _ in .missing } }
    func send(_ files: [ExchangeFiles], _ control: OperationControl) throws {}
    func readSnapshotFile(_ name: String) throws -> [UInt8]? { nil }
    func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws {}
    func deleteSnapshotFile(_ name: String) throws {}
    func snapshotFileNames() throws -> [String] { [] }
    var restorationState: [UInt8] = []
    func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { nil }
    func close() {}
}
#endif
