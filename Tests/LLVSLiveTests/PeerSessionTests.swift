import Foundation
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSExchange
@testable import LLVSLive

/// Two sessions connected in memory: docs/live-protocol.md.
@Suite("Live: sessions") struct PeerSessionTests {
    static let pairing = [UInt8](0..<48)

    /// Two sessions and the bytes between them.
    struct Wire {
        var a: PeerSession, b: PeerSession
        /// The number of bytes carried in either direction.
        var carried = 0
        var failure: (any Error)?

        init(
            _ a: Store, _ b: Store, pairing: [UInt8]? = nil, identities: ([UInt8], [UInt8])? = nil, hashesLimit: Int? = nil,
            change: (inout PeerSession.Options) -> Void = { _ in }
        ) throws {
            func options(_ bytes: [UInt8], _ identity: [UInt8]?, _ isInitiator: Bool) throws -> PeerSession.Options {
                var options = PeerSession.Options(pairing: try bytes.withUnsafeBytes { try Pairing($0) })
                options.isInitiator = isInitiator
                if let hashesLimit { options.hashesLimit = hashesLimit }
                options.identity = identity
                options.device = isInitiator ? "first" : "second"
                return options
            }
            let ours = PeerSessionTests.pairing
            self.a = try PeerSession(a, options: options(ours, identities?.0, true))
            var second = try options(pairing ?? ours, identities?.1, false)
            change(&second)
            self.b = try PeerSession(b, options: second)
        }

        static func pump(_ from: PeerSession, _ to: PeerSession, _ chunk: Int, _ change: (inout [UInt8]) -> Void = { _ in }) throws -> Int {
            var buffer = [UInt8](repeating: 0, count: chunk)
            let count = try buffer.withUnsafeMutableBytes { try from.send(into: $0) }
            guard count > 0 else { return 0 }
            var bytes = Array(buffer.prefix(count))
            change(&bytes)
            try bytes.withUnsafeBytes { try to.receive($0) }
            return count
        }

        /// Carries bytes until neither side has any, or up to a limit.
        mutating func run(chunk: Int = 100_000, limit: Int = .max) throws {
            while carried < limit {
                let room = min(chunk, limit - carried)
                let first = try Wire.pump(a, b, room)
                carried += first
                guard carried < limit else { return }
                let second = try Wire.pump(b, a, min(chunk, limit - carried))
                carried += second
                if first == 0, second == 0 { return }
            }
        }
    }

    private func store(_ folder: TemporaryDirectory? = nil, durability: Durability = .normal) throws -> Store {
        var options = Store.Options()
        options.durability = durability
        if let folder { return try Store(path: folder.path + "/store", options: options) }
        options.storage = .memory
        return try Store(path: "", options: options)
    }

    private func ids(_ store: Store) throws -> Set<VersionID> { Set(store.ids(store.lock.withRead { store.dag.liveOrdinals })) }

    private func save(_ store: Store, _ random: inout SeededRandom, large: Bool = false) throws {
        let heads = Array(store.lock.withRead { store.dag.headOrdinals }).sorted().map { ordinal in store.ids([ordinal])[0] }
        let base = heads.isEmpty || UInt8.random(in: 0..<20, using: &random) == 0 ? nil : heads.randomElement(using: &random)
        let size = large ? 3 << 20 : Int.random(in: 0..<300, using: &random)
        let data = Filling.runs(of: 7, count: size)
        let id = try ValueID("v\(UInt64.random(in: 0..<40, using: &random))-\(random.next())")
        _ = try store.makeVersion(basedOn: base, changes: [.insert(id, data: data)])
    }

    private func expectSame(_ a: Store, _ b: Store, _ hint: String) throws {
        let first = try ids(a), second = try ids(b)
        #expect(first == second, "\(hint): \(first.count) and \(second.count) versions")
    }

    @Test func randomHistories() throws {
        for seed in Sample.seeds(usual: 16, deep: 60) {
            var random = SeededRandom(seed: seed)
            let a = try store(), b = try store()
            let chunk = [1, 7, 1_000, 100_000].randomElement(using: &random) ?? 1
            for _ in 0..<3 {
                for _ in 0..<Int.random(in: 0..<40, using: &random) { try save(a, &random) }
                for _ in 0..<Int.random(in: 0..<40, using: &random) { try save(b, &random) }
                let before = (try ids(a), try ids(b))
                var wire = try Wire(a, b)
                try wire.run(chunk: chunk)
                try expectSame(a, b, "\(Sample.hint(seed))")
                #expect(wire.a.state.phase == .inStep && wire.b.state.phase == .inStep, "\(Sample.hint(seed))")
                // Versions that the other side had were not sent.
                #expect(wire.a.state.sent == before.0.subtracting(before.1).subtracting([EmptyRoot.id]).count, "\(Sample.hint(seed))")
                #expect(wire.b.state.sent == before.1.subtracting(before.0).subtracting([EmptyRoot.id]).count, "\(Sample.hint(seed))")
                #expect(wire.a.state.device == "second" && wire.b.state.device == "first")
                try wire.a.close()
                try wire.run()
                #expect(wire.a.state.phase == .ended && wire.b.state.phase == .ended && wire.a.state.error == nil, "\(Sample.hint(seed))")
            }
        }
    }

    /// An observer of the store is called within the call that received the versions, and may call the session.
    @Test func anObserverOfTheStoreAsksTheSession() throws {
        let (one, two) = (try store(), try store())
        var random = SeededRandom(seed: 9)
        try save(one, &random)
        var wire = try Wire(one, two)
        let session = wire.b
        nonisolated(unsafe) var phases: [PeerSession.Phase] = [], busy = 0
        let observation = two.observeVersions { _ in
            phases.append(session.state.phase)
            session.setBackground(false)
            #expect(session.takeProblems().isEmpty)
            do { try session.storeChanged() } catch { busy += 100 }
            do { try session.close() } catch { busy += (error as? StoreError)?.code == .busy ? 1 : 100 }
        }
        nonisolated(unsafe) var ended = wire
        let finished = Parallel.finishes { try ended.run() }
        #expect(finished)
        guard finished else { return }
        wire = ended
        #expect(!phases.isEmpty && busy == phases.count)
        #expect(try ids(one) == ids(two) && wire.b.state.phase == .inStep)
        observation.cancel()
    }

    /// Histories for which HAVE identifies few common versions, and lists would be too long.
    @Test func manyBranchesAreComparedByRanges() throws {
        var random = SeededRandom(seed: 9)
        let a = try store(), b = try store()
        var heads: [VersionID] = []
        for i in 0..<1_400 { heads.append(try a.makeVersion(basedOn: nil, changes: [.insert(ValueID("r\(i)"), data: [1])]).id) }
        for i in 0..<1_400 { _ = try a.makeVersion(basedOn: heads[i], changes: [.insert(ValueID("s\(i)"), data: [1])]) }
        var first = try Wire(a, b)
        try first.run()
        try expectSame(a, b, "first")
        for i in 0..<25 {
            for (store, name) in [(a, "a"), (b, "b")] {
                let base = heads[Int.random(in: 0..<1_400, using: &random)]
                _ = try store.makeVersion(basedOn: base, changes: [.insert(ValueID("\(name)\(i)"), data: [1])])
            }
        }
        var wire = try Wire(a, b, hashesLimit: 50)
        try wire.run()
        try expectSame(a, b, "by ranges")
        #expect(wire.a.state.sent == 25 && wire.b.state.sent == 25, "versions that the other side has are not sent")
        #expect(wire.a.state.phase == .inStep && wire.b.state.phase == .inStep)
        #expect(wire.carried < 100_000, "\(wire.carried) bytes")
    }

    @Test func cutsAnywhere() throws {
        var random = SeededRandom(seed: 1)
        let a = try store(), b = try store()
        for _ in 0..<30 { try save(a, &random) }
        for _ in 0..<30 { try save(b, &random) }
        var whole = try Wire(a, b)
        let (copyOfA, copyOfB) = (try store(), try store())
        // The same histories for each cut.
        func fill(_ to: Store, _ from: Store) throws {
            var bytes: [UInt8] = [], at = 0
            _ = try from.writePack { bytes += $0 }
            _ = try to.readPack { buffer in
                let count = min(buffer.count, bytes.count - at)
                bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[at..<at + count])) }
                at += count
                return count
            }
        }
        try fill(copyOfA, a)
        try fill(copyOfB, b)
        try whole.run()
        for limit in stride(from: 0, to: whole.carried, by: max(1, whole.carried / sample(usual: 40, deep: 200))) {
            let c = try store(), d = try store()
            try fill(c, copyOfA)
            try fill(d, copyOfB)
            var wire = try Wire(c, d)
            try wire.run(chunk: 97, limit: limit)
            #expect(throws: StoreError.self) { try wire.a.receiveEnd() }
            // An unknown peer gets no byte.
            let code = wire.a.state.error?.code
            #expect(limit == 0 ? code == .wrongKey : code == .cutShort || (code == .wrongKey && limit < 164))
            for store in [c, d] { #expect(try store.verifyRecords(OperationControl()).isWhole) }
            var next = try Wire(c, d)
            try next.run()
            try expectSame(c, d, "cut at \(limit)")
            #expect(
                wire.a.state.received + wire.b.state.received + next.a.state.received + next.b.state.received
                    == (try ids(c).subtracting(ids(copyOfA)).union(ids(d).subtracting(ids(copyOfB)))).count, "no version arrived twice")
        }
    }

    @Test func whatIsSavedIsPushedAndALaterLinkKnowsIt() throws {
        var random = SeededRandom(seed: 2)
        let a = try store(), b = try store()
        let identities = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
        for _ in 0..<2_000 { try save(a, &random) }
        var wire = try Wire(a, b, identities: identities)
        try wire.run()
        try expectSame(a, b, "first")
        for _ in 0..<5 {
            try save(a, &random)
            try save(b, &random)
            try wire.a.storeChanged()
            try wire.b.storeChanged()
            try wire.run()
            try expectSame(a, b, "pushed")
        }
        #expect(wire.a.state.sent == 2_005 && wire.b.state.sent == 5)
        // Received versions are not sent back; one frame confirms them.
        try wire.a.storeChanged()
        try wire.b.storeChanged()
        let carried = wire.carried
        try wire.run()
        #expect(wire.carried - carried < 300)
        try wire.a.storeChanged()
        try wire.b.storeChanged()
        let silent = wire.carried
        try wire.run()
        #expect(wire.carried == silent)
        #expect(wire.a.state.sent == 2_005 && wire.b.state.sent == 5)
        try save(b, &random)
        var later = try Wire(a, b, identities: identities)
        try later.run()
        try expectSame(a, b, "later")
        #expect(later.b.state.sent == 1 && later.a.state.sent == 0, "versions from the other side are not sent back")
        #expect(later.carried < 2_000, "\(later.carried) bytes for one version")
        // Without identities the devices do not recognize each other, and still transfer nothing.
        var unknown = try Wire(a, b)
        try unknown.run()
        #expect(unknown.a.state.sent == 0 && unknown.b.state.sent == 0 && unknown.a.state.phase == .inStep)
    }

    /// A received version counts as present only once it is stored. If storing fails, it is neither acknowledged nor skipped by the next
    /// link.
    @Test(arguments: [1, 2, 3]) func whatCouldNotBeStoredDoesNotCountAsHere(_ tries: Int) throws {
        var random = SeededRandom(seed: 14)
        let storage = HookedStorage(), a = try store(), b = try Store(storage: storage, options: Store.Options())
        let identities = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
        for _ in 0..<30 { try save(a, &random) }
        var first = try Wire(a, b, identities: identities)
        try first.run()
        try expectSame(a, b, "first")
        for _ in 0..<5 { try save(a, &random) }
        let had = try ids(b)
        storage.beforeAppend = { throw StoreError(.noSpace, "The disk is full.") }
        for number in 0..<tries {
            // The open link first, then new ones.
            var wire = number == 0 ? first : try Wire(a, b, identities: identities)
            if number == 0 { try wire.a.storeChanged() }
            #expect(throws: StoreError.self) { try wire.run() }
            #expect(wire.b.state.error?.code == .noSpace && wire.a.sending.acknowledged < wire.a.sending.mark)
            #expect(try ids(b) == had)
        }
        storage.beforeAppend = {}
        var last = try Wire(a, b, identities: identities)
        try last.run()
        try expectSame(a, b, "after \(tries) links whose versions could not be stored")
        #expect(last.a.negotiation == nil && last.a.state.sent == 5, "they know each other still")
    }

    /// Versions are on the disk by the time their acknowledgement leaves. Any process that opens the store then has them, even if this one
    /// ends.
    @Test func whatIsAcknowledgedOutlivesTheProcess() throws {
        var random = SeededRandom(seed: 15)
        let folder = TemporaryDirectory(), a = try store(), b = try store(folder)
        for _ in 0..<20 { try save(a, &random) }
        let wire = try Wire(a, b)
        var buffer = [UInt8](repeating: 0, count: 700), looks = 0
        while wire.a.state.phase != .inStep {
            _ = try Wire.pump(wire.a, wire.b, 700)
            let before = wire.a.sending.acknowledged, count = try buffer.withUnsafeMutableBytes { try wire.b.send(into: $0) }
            // The state that a killed process would leave: this process does nothing more.
            let other = try store(folder), there = try ids(other)
            try other.close()
            try buffer.withUnsafeBytes { try wire.a.receive(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            guard wire.a.sending.acknowledged > before else { continue }
            looks += 1
            #expect(try there == ids(a))
        }
        #expect(looks == 1)
    }

    /// A receiver does not send everything back over the next link, nor after the stores were reopened.
    @Test(arguments: [false, true]) func whatCameOverALinkIsNotSentBackOverTheNext(opensAnew: Bool) throws {
        var random = SeededRandom(seed: 16)
        let folders = (TemporaryDirectory(), TemporaryDirectory())
        let identities = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
        var a = try store(folders.0), b = try store(folders.1)
        for round in 0..<3 {
            for _ in 0..<100 { try save(a, &random) }
            var wire = try Wire(a, b, identities: identities)
            try wire.run()
            try wire.b.storeChanged()
            try wire.run()
            try expectSame(a, b, "round \(round)")
            #expect(wire.b.state.sent == 0 && wire.a.state.sent == 100, "round \(round)")
            try wire.a.close()
            try wire.run()
            guard opensAnew else { continue }
            try a.close()
            try b.close()
            (a, b) = (try store(folders.0), try store(folders.1))
        }
    }

    /// A device that only receives sends nothing back over a later link. This holds for versions from a complete link and from a link that
    /// was cut, while a version of its own is pending, and after both stores were reopened.
    @Test(arguments: [false, true]) func whatCameFromAPeerDoesNotGoBack(_ isFile: Bool) throws {
        var random = SeededRandom(seed: 15)
        let folders = (TemporaryDirectory(), TemporaryDirectory())
        let identities = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
        func opened(_ folder: TemporaryDirectory?) throws -> Store { try store(folder, durability: .full) }
        var a = try opened(isFile ? folders.0 : nil), b = try opened(isFile ? folders.1 : nil)
        for session in 0..<6 {
            for _ in 0..<150 { try save(a, &random) }
            let here = try ids(a).subtracting(ids(b)).count
            var cut = try Wire(a, b, identities: identities)
            if session > 2 {
                try cut.run(chunk: 1_000, limit: 12_000)
                #expect(try ids(b) != ids(a) && cut.b.state.received > 0, "\(cut.b.state.received) of \(here) arrived")
                #expect(cut.b.state.sent == 0, "session \(session)")
                if session == 4 { try save(b, &random) }
            }
            let before = cut.a.state.sent
            if isFile, session > 0 {
                // Knowledge that was stored at the end of a link counts; knowledge that a killed process did not store does not.
                cut.a.abandon()
                cut.b.abandon()
                try a.close()
                try b.close()
                (a, b) = (try opened(folders.0), try opened(folders.1))
            }
            var wire = try Wire(a, b, identities: identities)
            try wire.run()
            try expectSame(a, b, "session \(session)")
            #expect(wire.b.state.sent == (session == 4 ? 1 : 0), "session \(session): \(wire.b.state.sent) went back")
            #expect(wire.a.state.phase == .inStep && wire.b.state.phase == .inStep)
            if session > 0, session < 3 { #expect(wire.a.negotiation == nil && before == 0 && wire.a.state.sent == here) }
            try wire.a.close()
            try wire.run()
            #expect(wire.a.state.phase == .ended && wire.b.state.phase == .ended)
            #expect(wire.a.state.error == nil && wire.b.state.error == nil)
        }
    }

    /// Devices that know each other, and have received much by another way. They first ask for it, on either side, and send nothing twice.
    @Test(arguments: [0, 1, 2], [false, true]) func whatCameByAnotherRoadIsNotSent(_ roads: Int, _ isListed: Bool) throws {
        var random = SeededRandom(seed: 16)
        let a = try store(), b = try store(), identities = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
        try save(a, &random)
        func link(_ hint: String) throws -> Wire {
            var wire = try Wire(a, b, identities: identities, hashesLimit: isListed ? nil : 50)
            try wire.run()
            try expectSame(a, b, hint)
            #expect(wire.a.state.phase == .inStep && wire.b.state.phase == .inStep, "\(hint)")
            return wire
        }
        _ = try link("first")
        let count = isListed ? 500 : 1_500
        for _ in 0..<count { try save(a, &random); if roads == 2 { try save(b, &random) } }
        // By packs: everything in one direction, or both sides' versions in both directions, and then more versions that the other side
        // lacks.
        if roads > 0 { try carryPack(from: a, to: b) }
        if roads == 2 { try carryPack(from: b, to: a) }
        let lacking = roads == 0 ? count : 7
        if roads > 0 { for _ in 0..<7 { try save(a, &random) } }
        if roads == 2 { for _ in 0..<3 { try save(b, &random) } }
        let wire = try link("\(roads) roads")
        #expect(wire.a.isKnown && wire.b.isKnown)
        #expect(wire.a.state.sent == lacking && wire.b.state.sent == (roads == 2 ? 3 : 0), "\(wire.a.state.sent), \(wire.b.state.sent)")
        if roads > 0 { #expect(wire.carried < 40_000, "\(wire.carried) bytes") }
        var again = try link("again")
        #expect(again.a.state.sent == 0 && again.b.state.sent == 0 && again.carried < 2_000)
        try again.a.close()
        try again.run()
        #expect(again.a.state.phase == .ended && again.b.state.phase == .ended)
    }
    private func carryPack(from: Store, to: Store) throws {
        var bytes: [UInt8] = [], at = 0
        _ = try from.writePack { bytes += Array($0) }
        _ = try to.readPack { buffer in
            let count = min(buffer.count, bytes.count - at)
            bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[at..<at + count])) }
            at += count
            return count
        }
    }

    /// A large value of which a part had arrived continues in the reopened store, unless the part has changed.
    @Test(arguments: ["kept", "damaged", "another's", "old", "gone"]) func aLargeValueGoesOnInAStoreThatIsOpenedAnew(_ how: String) throws {
        let folders = (TemporaryDirectory(), TemporaryDirectory())
        var data = [UInt8](repeating: 0, count: 10 << 20)
        try Pairing.fillRandom(&data)
        let version: VersionID
        do {
            let a = try store(folders.0), b = try store(folders.1)
            version = try a.makeVersion(basedOn: nil, changes: [.insert(ValueID("large"), data: data)]).id
            var wire = try Wire(a, b)
            try wire.run(limit: 9 << 20)
            #expect(try b.storage.cacheGet(LiveParts.list) != nil)
            try a.close()
            try b.close()
        }
        let a = try store(folders.0), b = try store(folders.1), first = LiveParts.name(0), list = LiveParts.list
        var bytes = try #require(try b.storage.cacheGet(first)), known = try #require(try b.storage.cacheGet(list))
        switch how {
        case "damaged":
            bytes[100] ^= 1
            try b.storage.cachePut(first, bytes)
        case "another's":
            bytes[100] ^= 1
            try b.storage.cachePut(first, bytes[32...].withUnsafeBytes { SHA256.digest($0) } + bytes[32...])
        case "old":
            // The eight bytes of the time: set to long ago.
            for i in 0..<8 { known[i] = 0 }
            try b.storage.cachePut(list, known)
        case "gone": try b.storage.cacheDelete(first)
        default: break
        }
        var wire = try Wire(a, b)
        try wire.run()
        #expect(wire.b.state.phase == .inStep)
        #expect(try b.value(ValueID("large"), at: version)?.data == data)
        let expected = how == "kept" ? 2 << 20 : how == "another's" ? 12 << 20 : 10 << 20
        #expect(abs(wire.carried - expected) < 1 << 20, "\(wire.carried) bytes")
        #expect(try b.storage.cacheGet(list) == nil && b.storage.cacheGet(first) == nil, "nothing is kept that is not needed")
    }

    /// Devices still know each other after the stores were reopened.
    @Test(arguments: ["opened anew", "set back", "copied", "kept nothing", "another order"])
    func whatIsKnownOfAPeerOutlivesTheOpening(_ how: String) throws {
        var random = SeededRandom(seed: 12)
        let folders = (TemporaryDirectory(), TemporaryDirectory()), aside = TemporaryDirectory()
        let identities = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
        func exchange(saving: Int = 0, _ random: inout SeededRandom) throws -> (sent: Int, knew: Bool) {
            let a = try store(folders.0), b = try store(folders.1)
            for _ in 0..<saving { try save(a, &random) }
            var wire = try Wire(a, b, identities: identities)
            try wire.run()
            try expectSame(a, b, how)
            let knew = wire.a.negotiation == nil && wire.b.negotiation == nil
            // Pushed versions are acknowledged, and count.
            for _ in 0..<saving / 10 { try save(a, &random); try wire.a.storeChanged() }
            try wire.run()
            try wire.a.close()
            try wire.run()
            try a.close()
            try b.close()
            return (wire.a.state.sent, knew)
        }
        #expect(try exchange(saving: 200, &random).knew == false)
        let place = URL(fileURLWithPath: folders.0.path), copy = URL(fileURLWithPath: aside.path + "/copy")
        try FileManager.default.copyItem(at: place, to: copy)
        func setBack() throws {
            try FileManager.default.removeItem(at: place)
            try FileManager.default.copyItem(at: copy, to: place)
        }
        switch how {
        case "set back":
            // The other side has more versions than this side remembers, under the same incarnation: both states are from one opening.
            let a = try store(folders.0), b = try store(folders.1)
            try save(a, &random)
            var wire = try Wire(a, b, identities: identities)
            try wire.run()
            try FileManager.default.removeItem(at: copy)
            try FileManager.default.copyItem(at: place, to: copy)
            for _ in 0..<20 { try save(a, &random) }
            try wire.a.storeChanged()
            try wire.run()
            try wire.a.close()
            try wire.run()
            try a.close()
            try b.close()
            try setBack()
            let again = try store(folders.0)
            for _ in 0..<60 { try save(again, &random) }
            try again.close()
        case "copied":
            // The other store continues with the same identity.
            #expect(try exchange(saving: 20, &random).knew)
            let later = URL(fileURLWithPath: aside.path + "/later")
            try FileManager.default.moveItem(at: place, to: later)
            try FileManager.default.copyItem(at: copy, to: place)
            #expect(try exchange(saving: 90, &random).knew == false)
            try FileManager.default.removeItem(at: place)
            try FileManager.default.moveItem(at: later, to: place)
        case "kept nothing":
            let a = try store(folders.0)
            try a.storage.cacheDelete(PeerKnowledge.name)
            try a.close()
        case "another order":
            let a = try store(folders.0)
            var kept = try #require(try a.storage.cacheGet(PeerKnowledge.name))
            kept[13] ^= 1
            try a.storage.cachePut(PeerKnowledge.name, kept)
            try a.close()
        default: break
        }
        let again = try exchange(saving: 10, &random)
        #expect(again.knew == (how == "opened anew"), "\(how)")
        if again.knew { #expect(again.sent == 11, "\(again.sent) versions") }
        #expect(try exchange(saving: 10, &random).knew, "\(how), and once more")
    }

    /// Truncated and changed knowledge of peers is either valid or ignored.
    @Test func whatIsKeptOfPeersIsReadWithCare() throws {
        var kept = PeerKnowledge.Kept(), random = SeededRandom(seed: 13)
        (kept.rows, kept.order) = (9, [UInt8](repeating: 5, count: 32))
        kept.incarnations = [LiveFrame.Since(incarnation: .random(), ordinal: 4)]
        kept.devices = [([UInt8](repeating: 6, count: 32), PeerKnowledge.Known(since: kept.incarnations[0], rows: 8, live: 8))]
        #expect(PeerKnowledge.Kept(kept.bytes) == kept)
        for count in 0..<kept.bytes.count { #expect(PeerKnowledge.Kept(Array(kept.bytes.prefix(count))) == nil) }
        #expect(PeerKnowledge.Kept(kept.bytes + [0]) == nil)
        for _ in 0..<5_000 {
            var changed = kept.bytes
            changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            if let read = PeerKnowledge.Kept(changed) { #expect(read.bytes == changed) }
        }
    }

    /// In the background, a link without transfers says goodbye after 20 minutes.
    @Test func whoIsIdleInTheBackgroundSaysGoodbye() throws {
        var random = SeededRandom(seed: 14)
        let a = try store()
        var wire = try Wire(a, store())
        func wait(from: Double, until: Double) throws {
            for now in stride(from: from, through: until, by: 20) {
                try wire.a.tick(now)
                try wire.b.tick(now)
                try wire.run()
            }
        }
        try wire.run()
        try wait(from: 0, until: 3_000)
        #expect(wire.a.state.phase == .inStep, "not in front")
        wire.a.setBackground(true)
        try wait(from: 3_020, until: 4_200)
        #expect(wire.a.state.phase == .inStep)
        // A transferred version restarts the time.
        try save(a, &random)
        try wire.a.storeChanged()
        try wire.run()
        try wait(from: 4_220, until: 5_400)
        #expect(wire.a.state.phase == .inStep)
        try wait(from: 5_420, until: 5_440)
        #expect(wire.a.state.phase == .ended && wire.b.state.phase == .ended)
        #expect(wire.a.state.error == nil && wire.b.state.error == nil, "both said goodbye")
    }

    /// For ten minutes, received versions are left to their maker to send, unless a version to be sent builds on them.
    @Test func whatCameOverALinkIsLeftToItsMaker() throws {
        let a = try store(), b = try store(), folder = TemporaryDirectory()
        let theirs = try a.makeVersion(basedOn: nil, changes: [.insert(ValueID("a"), data: [1])]).id
        let beside = try a.makeVersion(basedOn: nil, changes: [.insert(ValueID("c"), data: [1])]).id
        var wire = try Wire(a, b)
        try wire.run()
        let late = LateArrivals.of(b), all = [EmptyRoot.id, theirs, beside].filter { (try? b.contains($0)) == true }
        #expect(try late.leftOut(of: all, in: b).allSatisfy { $0 == EmptyRoot.id })
        let mine = try b.makeVersion(basedOn: theirs, changes: [.insert(ValueID("b"), data: [2])]).id
        #expect(try Set(late.leftOut(of: all + [mine], in: b)).isSuperset(of: [theirs, mine]))
        #expect(try !late.leftOut(of: all + [mine], in: b).contains(beside))
        #expect(try late.leftOut(of: all, in: b, at: Clock.steady() + 599).allSatisfy { $0 == EmptyRoot.id })
        #expect(try late.leftOut(of: all, in: b, at: Clock.steady() + 601) == all, "after ten minutes all send it")
        for layout in ["interchange", "packed"] {
            let place = try FolderTransport(path: "\(folder.path)/\(layout)")
            let exchange = Exchange(
                store: b,
                transport: layout == "interchange"
                    ? place : PackedTransport(FolderRemoteFiles(place, isDurable: false), settings: PackedSettings()))
            var control = OperationControl()
            control.leavesToMakers = true
            #expect(try Set(exchange.send(control: control).versions).isSuperset(of: [theirs, mine]), "\(layout)")
            #expect(try !exchange.send(control: control).versions.contains(beside), "\(layout)")
            #expect(try exchange.send().versions == [beside], "\(layout): who asks for it sends all")
        }
    }

    @Test func whoNegotiatesAgainAndAgain() throws {
        let store = try self.store(), known = PeerKnowledge.of(store), device = [UInt8](repeating: 1, count: 32)
        for _ in 0..<10 { #expect(known.mayNegotiate(device, at: 5)) }
        #expect(!known.mayNegotiate(device, at: 5) && !known.mayNegotiate(device, at: 5.9))
        #expect(known.mayNegotiate(device, at: 6.5) && !known.mayNegotiate(device, at: 6.6))
        #expect(known.mayNegotiate([2], at: 6.6), "others may")
        for _ in 0..<10 { #expect(known.mayNegotiate(device, at: 1_000)) }
        #expect(!known.mayNegotiate(device, at: 1_000))
        // An address may use 100 new keys at once, then ten a second; other addresses have their own limit.
        for number in 0..<100 { #expect(known.mayNegotiate([3, UInt8(number)], from: "here", at: 2_000)) }
        #expect(!known.mayNegotiate([4], from: "here", at: 2_000) && known.mayNegotiate([4], from: "there", at: 2_000))
        #expect(known.mayNegotiate([5], at: 2_000), "where it is not known from where")
        for number in 0..<10 { #expect(known.mayNegotiate([6, UInt8(number)], from: "here", at: 2_001)) }
        #expect(!known.mayNegotiate([7], from: "here", at: 2_001))
        // The limit also holds over links on which the other side is never recognized.
        var refused: StoreError?
        for _ in 0..<1_000 where refused == nil {
            var wire = try Wire(self.store(), store)
            var options = PeerSession.Options(pairing: try PeerSessionTests.pairing.withUnsafeBytes { try Pairing($0) })
            options.identity = [UInt8](repeating: 7, count: 32)
            wire.a = try PeerSession(self.store(), options: options)
            do { try wire.run() } catch let error as StoreError { refused = error }
        }
        #expect(refused?.message.contains("again and again") == true)
    }

    /// A store is closed while it sends. Another call gets the error before the sending call does. The goodbye is sent nevertheless.
    @Test func theGoodbyeOfAStoreThatIsClosedIsNotLost() throws {
        let a = try store(), b = try store()
        var wire = try Wire(a, b), buffer = [UInt8](repeating: 0, count: 1 << 20), random = SeededRandom(seed: 15)
        try wire.run()
        for _ in 0..<60 {
            let data = StorageConformance.bytes(seed: random.next(), count: 20_000)
            _ = try a.makeVersion(basedOn: nil, changes: [.insert(ValueID("v"), data: data)])
        }
        try wire.a.storeChanged()
        // Sends a part of the pending bytes. The rest goes before the goodbye.
        #expect(try Wire.pump(wire.a, wire.b, 10) == 10)
        try a.close()
        #expect(try Wire.pump(wire.a, wire.b, 1 << 20) > 0)
        #expect(throws: StoreError.self) { try wire.a.storeChanged() }
        let count = try buffer.withUnsafeMutableBytes { try wire.a.send(into: $0) }
        try buffer.prefix(count).withUnsafeBytes { try wire.b.receive($0) }
        // Without a goodbye the link would count as cut.
        try wire.b.receiveEnd()
        #expect(wire.b.state.phase == .ended && wire.b.state.error == nil)
        #expect(wire.a.state.error?.code == .closed)
    }

    /// A side that said goodbye no longer counts as linked, even while the program holds the session.
    @Test func whatHasEndedIsNotCounted() throws {
        let store = try self.store()
        var sessions: [Wire] = []
        for _ in 0..<6 {
            var wire = try Wire(self.store(), store)
            try wire.run()
            sessions.append(wire)
        }
        #expect(PeerKnowledge.of(store).linkCount == 6)
        for index in sessions.indices {
            try sessions[index].a.close()
            try sessions[index].run()
        }
        #expect(sessions.allSatisfy { $0.b.state.phase == .ended } && PeerKnowledge.of(store).linkCount == 0)
    }

    @Test func largeValues() throws {
        for isFile in [false, true] {
            var random = SeededRandom(seed: 3)
            let folders = (TemporaryDirectory(), TemporaryDirectory())
            let a = try store(isFile ? folders.0 : nil), b = try store(isFile ? folders.1 : nil)
            for i in 0..<12 { try save(a, &random, large: i % 4 == 1) }
            var cut = try Wire(a, b)
            try cut.run(chunk: 10_000, limit: 200_000)
            var wire = try Wire(a, b)
            try wire.run(chunk: 10_000)
            try expectSame(a, b, "files: \(isFile)")
            #expect(wire.a.state.phase == .inStep && wire.b.state.phase == .inStep)
            #expect(try b.verifyRecords(OperationControl()).isWhole)
        }
    }

    @Test func whoIsNotPairedGetsNothing() throws {
        var random = SeededRandom(seed: 4)
        let a = try store(), b = try store()
        try save(a, &random)
        var other = PeerSessionTests.pairing
        for index in [0, 47] {
            other[index] ^= 1
            var wire = try Wire(a, b, pairing: other)
            let error = #expect(throws: StoreError.self) { try wire.run() }
            #expect(error?.code == .wrongKey)
            var buffer = [UInt8](repeating: 0, count: 100)
            #expect(try buffer.withUnsafeMutableBytes { try wire.b.send(into: $0) } == 0, "not a byte is answered")
            #expect(try ids(b).isEmpty)
            other[index] ^= 1
        }
        var wire = try Wire(a, b) { $0.accepted = [[UInt8](repeating: 9, count: 32)] }
        #expect(throws: StoreError.self) { try wire.run() }
        #expect(wire.b.state.error?.code == .wrongKey)
        #expect(try ids(b).isEmpty)
    }

    @Test func everyChangedByteEndsTheLink() throws {
        var random = SeededRandom(seed: 5)
        let a = try store()
        for _ in 0..<3 { try save(a, &random) }
        for index in 0..<400 {
            let b = try store(), wire = try Wire(a, b)
            var position = 0, isRefused = false
            do {
                for _ in 0..<20 {
                    for (from, to) in [(wire.a, wire.b), (wire.b, wire.a)] {
                        _ = try Wire.pump(from, to, 100_000) { bytes in
                            if index >= position, index < position + bytes.count { bytes[index - position] ^= 0x10 }
                            position += bytes.count
                        }
                    }
                }
            } catch { isRefused = true }
            // If a size has grown, the other side waits for more bytes.
            #expect(isRefused || (wire.a.state.phase != .inStep || wire.b.state.phase != .inStep) || index >= position, "byte \(index)")
        }
    }

    /// A session that ended with an error no longer counts for the limit of links, even before the program releases it.
    @Test func aSessionThatEndedByAnErrorIsNoOpenLink() throws {
        let listening = try store(), identity = [UInt8](repeating: 3, count: 32), known = PeerKnowledge.of(listening)
        var ended: [PeerSession] = []
        for _ in 0..<PeerKnowledge.linksOfDevice + 2 {
            var wire = try Wire(store(), listening, identities: (identity, [UInt8](repeating: 4, count: 32)))
            try wire.run()
            #expect(wire.b.state.phase == .inStep && known.state.withLock { $0.open.count } == 1)
            #expect(throws: StoreError.self) { try wire.b.receiveEnd() }
            #expect(known.state.withLock { $0.open.isEmpty })
            ended.append(wire.b)
        }
        withExtendedLifetime(ended) {}
    }

    @Test func silenceEndsIt() throws {
        var wire = try Wire(store(), store())
        try wire.a.tick(0)
        try wire.a.tick(9)
        #expect(throws: StoreError.self) { try wire.a.tick(11) }
        wire = try Wire(store(), store())
        try wire.run()
        try wire.a.tick(100)
        try wire.a.tick(131)
        try wire.run()
        // The answer counts as a sign of life.
        try wire.a.tick(191)
        try wire.a.tick(222)
        #expect(throws: StoreError.self) { try wire.a.tick(282) }
        #expect(wire.a.state.error?.code == .cutShort)
    }

    /// Frames of arbitrary bytes are decoded or refused. A decoded frame is encoded again to the same bytes.
    @Test func framesOfAnyBytes() throws {
        var random = SeededRandom(seed: 6)
        let ids = [VersionID(high: 1, low: 2), try VersionID("abc")]
        let frames: [LiveFrame] = [
            .hello(LiveFrame.Hello(device: "x")),
            .have(LiveFrame.Have(headCount: 3, versionCount: 9, fingerprint: [1, 2, 3, 4], heads: ids, samples: [ids[1]])),
            .list(LiveFrame.Listed(bits: [true, false, true], hashes: [1, 5, .max])),
            .data(ordinal: 7, codec: 1, raw: 10, bytes: [1, 2, 3]), .ack(count: 1, ordinal: 2), .credit(5),
            .want(sha256: [UInt8](repeating: 1, count: 32), offset: 3, length: 4),
            .blob(sha256: [UInt8](repeating: 1, count: 32), offset: 3, bytes: [1]), .news(ids), .ping(1), .pong(2), .bye, .error(3, "why"),
            .pairing([UInt8](0..<48)), .commitment([UInt8](0..<32)), .nonce([UInt8](1..<33)), .ask(ids),
            .ranges([
                VersionRange(contents: .settled, end: .init(generation: 1, id: ids[0])),
                VersionRange(contents: .sum(count: 3, fingerprint: [1, 2, 3, 4]), end: .init(generation: 2, id: ids[1])),
                VersionRange(contents: .list([1, .max]), end: .init(generation: 3, id: ids[1])),
                VersionRange(contents: .here([5]), end: .init(generation: .max, id: ids[1])), VersionRange(contents: .unknown),
            ]),
        ]
        for frame in frames {
            let bytes = frame.encoded()
            #expect(try LiveFrame(bytes) == frame)
            for count in 0..<bytes.count { _ = try? LiveFrame(Array(bytes.prefix(count))) }
            for _ in 0..<2_000 {
                var changed = bytes
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                if let decoded = try? LiveFrame(changed), case .hello = decoded {
                } else if let decoded = try? LiveFrame(changed) {
                    if case .error = decoded { continue }
                    if case .unknown = decoded { continue }
                    if case .list = decoded { continue }
                    #expect(decoded.encoded() == changed)
                }
            }
        }
    }
}
