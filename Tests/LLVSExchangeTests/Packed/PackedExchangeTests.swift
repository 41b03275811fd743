import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// The packed layout over remote files, on a place in memory: docs/pack-format.md, sections 5 to 10.
@Suite("Packed: exchanges") struct PackedExchangeTests {
    @Test func twoStores() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        for n in 0..<100 { try a.save("a\(n)") }
        try a.exchangeOnce()
        #expect(place.names(.root).count == 1 && place.names(.log).count == 1 && place.files.count == 2)
        try b.exchangeOnce()
        #expect(b.ids == a.ids && a.ids.count == 100 && place.files.count == 2)
        try b.save("b")
        try b.exchangeOnce()
        try a.exchangeOnce()
        #expect(a.ids == b.ids && a.ids.count == 101 && place.names(.log).count == 2)
        #expect(place.versions() == a.ids)
    }

    /// The figures of section 1.8 of the design.
    @Test func requests() throws {
        let place = MemoryPlace(), devices = try (0..<5).map { _ in try PackedDevice(place) }
        try devices[0].save()
        for _ in 0..<2 { for device in devices { try device.exchangeOnce() } }
        #expect(try devices[1].exchangeOnce() == ["list pack1/log"], "nothing new")
        devices[1].restart()
        #expect(try devices[1].exchangeOnce() == ["list pack1/log"], "nothing new, in another process")
        for n in 0..<50 { try devices[0].save("n\(n)") }
        #expect(try devices[0].exchangeOnce().count == 2, "send")
        try devices[0].save("again")
        devices[0].files.asked = []
        _ = try devices[0].exchange.send()
        #expect(devices[0].files.asked.count == 2, "send alone")
        for device in devices[1...3] {
            try device.save("x")
            try device.exchangeOnce()
        }
        devices[4].files.asked = []
        _ = try devices[4].exchange.retrieve()
        #expect(devices[4].files.asked.count <= 1 + 5 + 2, "receive from four writers, one of which sent twice")
        #expect(devices[4].ids == devices[3].ids)
    }

    @Test func largeValuesLieBesideThePacks() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2), b = try PackedDevice(place)
        let data = Filling.pattern(PackFormat.partSize + 1_000)
        let version = try a.save("large", data)
        try a.exchangeOnce()
        #expect(place.names(.blob).count == 2)
        try b.exchangeOnce()
        #expect(try b.store.value(ValueID("large"), at: version)?.data == data)
        // Merged packs refer to the same parts.
        for n in 0..<3 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        #expect(place.names(.base).count > 0 && place.names(.blob).count == 2)
        let c = try PackedDevice(place)
        try c.exchangeOnce()
        #expect(c.ids == a.ids)
        #expect(try c.store.value(ValueID("large"), at: version)?.data == data)
        // A missing part holds back the version that names it, and only that.
        let part = try #require(place.names(.blob).first).description, bytes = place.files[part]
        place.files[part] = nil
        let d = try PackedDevice(place)
        let found = try d.exchange.retrieve()
        #expect(!found.problems.isEmpty && d.ids.isEmpty)
        place.files[part] = bytes
        // The descendants in the same pack arrive too.
        #expect(try d.exchange.retrieve().problems.isEmpty)
        #expect(d.ids == a.ids)
    }

    /// A large value is removed and set again, repeatedly. It is fetched once: by a device that read it before, and by one that reads all
    /// of these versions.
    @Test func aLargeValueThatComesBackIsFetchedOnce() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        let data = Filling.pattern(2 << 20), id = try ValueID("large")
        func parts(_ asked: [String]) -> Int { asked.count { $0.hasPrefix("read pack1/blob") } }
        var versions = [try a.save("large", data)]
        try a.exchangeOnce()
        #expect(parts(try b.exchangeOnce()) == 1)
        for n in 0..<3 {
            versions.append(try a.store.makeVersion(basedOn: versions.last, changes: [.remove(id)]).id)
            // The resent versions are in larger packs than before, which new devices read first.
            let filling = (0..<(n + 1) << 12).map { UInt8(truncatingIfNeeded: $0 &* ($0 >> 3)) }
            let back: [Value.Change] = [.insert(id, data: data), .insert(try ValueID("filling \(n)"), data: filling)]
            versions.append(try a.store.makeVersion(basedOn: versions.last, changes: back).id)
            #expect(!(try a.exchangeOnce()).contains { $0.hasPrefix("publish pack1/blob") })
            b.restart()
            #expect(parts(try b.exchangeOnce()) == 0, "it is here")
        }
        let c = try PackedDevice(place)
        #expect(parts(try c.exchangeOnce()) == 1, "once in an exchange")
        for device in [b, c] {
            for (n, version) in versions.enumerated() {
                #expect(try device.store.value(id, at: version)?.data == (n % 2 == 0 ? data : nil), "\(n)")
            }
        }
        // The pack is read nevertheless when the contents of the place are verified.
        c.files.asked = []
        #expect(try c.exchange.retrieve(verifyKnown: true).problems.isEmpty)
        #expect(parts(c.files.asked) >= 1)
        // A version that waits for another waits without its large value.
        let newest = try #require(place.names(.log).max { $0.last < $1.last }), d = try PackedDevice(place)
        let others = place.files.filter { $0.key.hasPrefix("pack1/log/") && $0.key != newest.description }
        for name in others.keys { place.files[name] = nil }
        #expect(parts(try d.exchangeOnce()) == 0 && d.ids.isEmpty)
        for (name, bytes) in others { place.files[name] = bytes }
        #expect(parts(try d.exchangeOnce()) == 1 && d.ids == a.ids)
    }

    /// If two devices sent the same value, it is read once: the listing shows that the other one's parts exist. Parts that are missing from
    /// the listing are read.
    @Test(arguments: [false, true]) func aLargeValueThatLiesTwiceIsReadOnce(isLost: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place), c = try PackedDevice(place)
        let data = Filling.runs(of: 256, count: 2 << 20)
        try a.save("large", data)
        try a.exchangeOnce()
        try c.exchangeOnce()
        let first = place.names(.blob)
        try b.save("large", data)
        _ = try b.exchange.send()
        #expect(place.names(.blob).count == 2)
        if isLost { for name in place.names(.blob) where !first.contains(name) { place.remove(name.description) } }
        let asked = try c.exchangeOnce().filter { $0.contains("pack1/blob") }
        #expect(asked.first == "list pack1/blob" && asked.count == (isLost ? 2 : 1), "\(asked)")
        #expect(c.ids.count == (isLost ? 1 : 2))
    }

    /// A device that is interrupted in the middle of a large value continues with the missing part.
    @Test(arguments: [false, true]) func aLargeValueGoesOnWhereItEnded(dies: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        try a.save("first")
        try a.exchangeOnce()
        let data = Filling.runs(of: 4_096, count: 2 * PackFormat.partSize + 1_000), version = try a.save("large", data)
        var parts = 0
        a.files.before = {
            guard a.files.asked.last?.hasPrefix("publish pack1/blob") == true else { return }
            parts += 1
            guard parts == 2 else { return }
            a.storage.isDead = dies
            throw dies ? MemoryFiles.died : MemoryFiles.lost
        }
        #expect(throws: StoreError.self) { try a.exchangeOnce() }
        a.storage.isDead = false
        if dies { a.restart() }
        #expect(place.names(.blob).count == 1)
        try a.exchangeOnce()
        #expect(parts == 4 && place.names(.blob).count == 3, "the first part is not sent again")
        try b.exchangeOnce()
        #expect(try b.store.value(ValueID("large"), at: version)?.data == data)
        // A part that has disappeared meanwhile is sent again.
        let more = Filling.runs(of: 4_096, count: data.count, from: 1), second = try a.save("more", more), before = Set(place.names(.blob))
        parts = 0
        #expect(throws: StoreError.self) { try a.exchangeOnce() }
        a.storage.isDead = false
        if dies { a.restart() }
        for name in place.names(.blob) where !before.contains(name) { place.remove(name.description) }
        try a.exchangeOnce()
        try b.exchangeOnce()
        #expect(try b.store.value(ValueID("more"), at: second)?.data == more)
    }

    /// Sends the first part of a large value; the connection breaks before the second.
    private func sendOnePart(_ device: PackedDevice) throws {
        var parts = 0
        device.files.before = { [files = device.files] in
            guard files.asked.last?.hasPrefix("publish pack1/blob") == true else { return }
            parts += 1
            if parts == 2 { throw MemoryFiles.lost }
        }
        #expect(throws: StoreError.self) { try device.exchangeOnce() }
    }

    /// Parts that no pack ever named are removed by the device that sent them, a month later. No others are.
    @Test func unreferencedPartsAreRemoved() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        try a.save("first")
        for device in [a, b] { try device.exchangeOnce() }
        let data = Filling.runs(of: 4_096, count: PackFormat.partSize + 1_000), version = try a.save("large", data)
        try sendOnePart(a)
        let orphans = Set(place.names(.blob))
        #expect(orphans.count == 1)
        // The other device receives the version by another way.
        try a.give(to: b)
        try b.exchangeOnce()
        try a.exchangeOnce()
        #expect(place.names(.blob).count == 3)
        for days in [20, 5, 8] {
            #expect(orphans.isSubset(of: place.names(.blob)))
            place.clock += days * 120
            try a.exchangeOnce()
        }
        #expect(orphans.isDisjoint(with: place.names(.blob)) && place.names(.blob).count == 2)
        let c = try PackedDevice(place)
        try c.exchangeOnce()
        #expect(try c.store.value(ValueID("large"), at: version)?.data == data)
    }

    @Test func mergesPacksAndDeletesTheReplaced() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        var most = 0
        for n in 0..<100 {
            try a.save("n\(n)")
            try a.exchangeOnce()
            if n % 7 == 0 { try b.exchangeOnce() }
            place.clock += 1
            #expect(place.versions() == a.ids)
            most = max(most, place.names(.log).count)
        }
        #expect(most <= 2 * 8 + 2, "in log/: \(most)")
        place.clock += 300
        for _ in 0..<3 { try a.exchangeOnce() }
        #expect(place.names(.log).count + place.names(.base).count <= 20)
        try b.exchangeOnce()
        let c = try PackedDevice(place)
        let asked = try c.exchangeOnce()
        #expect(c.ids == a.ids && b.ids == a.ids)
        #expect(asked.count <= 3 + 20)
    }

    @Test func missingFilesAreReadLater() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        try a.save("first")
        try a.exchangeOnce()
        let first = try #require(place.names(.log).first).description
        try a.save("second")
        try a.exchangeOnce()
        let bytes = try #require(place.files[first])
        // Truncated, empty, reversed: nothing of it is read, and no problem is reported yet.
        for wrong in [Array(bytes.prefix(bytes.count / 2)), [], bytes.reversed()] {
            place.files[first] = wrong
            let found = try b.exchange.retrieve()
            #expect(b.ids.isEmpty)
            #expect(found.problems.allSatisfy { $0.error.code == .missingPredecessor })
        }
        // After a day it is reported.
        place.clock += 130
        #expect(try b.exchange.retrieve().problems.contains { $0.name == first })
        place.files[first] = bytes
        #expect(try b.exchange.retrieve().problems.isEmpty)
        #expect(b.ids == a.ids)
    }

    /// Packs that were acknowledged but are truncated, or are lost later, are sent again.
    @Test func whatIsLostIsSentAgain() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        for n in 0..<3 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        try b.exchangeOnce()
        let name = try #require(place.names(.log).min { $0.last < $1.last }).description
        place.files[name] = Array(place.files[name]!.prefix(100))
        try a.exchangeOnce()
        #expect(place.versions() == a.ids, "short")
        let lost = try #require(place.names(.log).max { $0.last < $1.last }).description
        place.files[lost] = nil
        for _ in 0..<6 {
            place.clock += 125
            try b.exchangeOnce()
        }
        #expect(place.versions() == a.ids, "lost, and sent by another")
    }

    /// The remote is reset to a state before a merge of packs. The device that merged them still deletes the replaced packs, and then
    /// disappears. The other devices notice the loss.
    @Test func versionsOfALostMergedPackAreSentAgain() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2), b = try PackedDevice(place)
        for n in 0..<2 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        let backup = place.files
        try a.save("n2")
        try a.exchangeOnce()
        let replaced = place.names(.log).filter { $0.last < 3 }.map(\.description)
        #expect(place.names(.base).count == 1 && replaced.count == 2)
        try b.exchangeOnce()
        #expect(b.ids == a.ids && a.ids.count == 3)
        place.files = backup
        // The merged pack and the third log pack are found lost, and the restored packs count again.
        for _ in 0..<4 {
            place.clock += 125
            try b.exchangeOnce()
        }
        #expect(place.versions() == b.ids)
        for name in replaced { place.remove(name) }
        for _ in 0..<4 {
            place.clock += 125
            try b.exchangeOnce()
        }
        #expect(place.versions() == b.ids)
    }

    /// A listing reports impossible sizes. Such packs are reported, and calculating with these sizes ends no process.
    @Test func impossibleSizesAreReported() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        for n in 0..<3 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        for name in place.names(.log) { place.claims[name.description] = .max }
        let b = try PackedDevice(place)
        #expect(try b.exchange.retrieve().problems.count == 3)
        place.claims = [:]
        for _ in 0..<3 {
            place.clock += 125
            try b.exchangeOnce()
        }
        #expect(b.ids == a.ids)
    }

    /// The remote is reset to before a large value. Its parts are sent again with the version that names them.
    @Test func aLargeValueThatWasLostIsSentAgain() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save("small")
        try a.exchangeOnce()
        let backup = place.files
        let large = Filling.pattern(2 << 20)
        let id = try a.save("large", large)
        try a.exchangeOnce()
        #expect(!place.names(.blob).isEmpty)
        place.files = backup
        for _ in 0..<6 {
            place.clock += 125
            try a.exchangeOnce()
        }
        #expect(place.versions() == a.ids && !place.names(.blob).isEmpty)
        let new = try PackedDevice(place)
        try new.exchangeOnce()
        #expect(try new.ids == a.ids && new.store.value(ValueID("large"), at: id)?.data == large)
    }

    @Test func whatEndsInTheMiddleOfHealingIsDoneAgain() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        for n in 0..<3 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        try b.exchangeOnce()
        place.remove(try #require(place.names(.log).min { $0.last < $1.last }).description)
        // b knows everything that is listed, so it reads only in order to heal.
        var failures = 0
        b.files.before = {
            guard failures < 2, b.files.asked.last?.hasPrefix("read") == true else { return }
            failures += 1
            throw MemoryFiles.lost
        }
        for _ in 0..<8 {
            place.clock += 125
            _ = try? b.exchangeOnce()
        }
        #expect(failures == 2 && place.versions() == b.ids)
    }

    /// An outdated listing cannot be distinguished from a missing root; an existing root is not overwritten.
    @Test func aRootThatIsNotListedYetIsLeft() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save()
        try a.exchangeOnce()
        let root = try #require(place.names(.root).first).description
        place.hides = [root]
        place.clock += 130
        #expect(try !a.exchangeOnce().contains("publish \(root)"))
        place.files[root] = nil
        place.clock += 130
        #expect(try a.exchangeOnce().contains("publish \(root)"))
    }

    @Test func anEmptiedRemoteIsNotFilled() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save()
        try a.exchangeOnce()
        let files = place.files
        place.files = [:]
        #expect(throws: StoreError.self) { try a.exchange.retrieve() }
        try a.save("more")
        #expect(throws: StoreError.self) { try a.exchange.send() }
        #expect(place.files.isEmpty)
        // The files return, without the root.
        place.files = files.filter { !$0.key.contains("root-") }
        place.clock += 130
        try a.exchangeOnce()
        #expect(place.names(.root).count == 1 && place.versions() == a.ids)
        // The other way out: a device fills the place again.
        place.files = [:]
        a.exchange.restorationState = Array("new".utf8)
        try a.exchangeOnce()
        #expect(place.versions() == a.ids)
    }

    @Test func aRemoteThatIsFullOrDeletesNothing() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2)
        place.refusesDeletes = true
        for n in 0..<20 {
            try a.save("n\(n)")
            try a.exchangeOnce()
            place.clock += 10
        }
        #expect(place.versions() == a.ids)
        place.refusesDeletes = false
        place.isFull = true
        try a.save("full")
        let before = place.files.count
        #expect(throws: StoreError.self) { try a.exchangeOnce() }
        #expect(place.files.count < before, "replaced packs are deleted in the same exchange")
        place.isFull = false
        try a.exchangeOnce()
        #expect(place.versions() == a.ids)
    }

    /// After any failed delete, replaced packs stay, sending and merging continue, and the delete is retried.
    @Test(arguments: [405, 409, 423, 500, 0])
    func aDeleteThatFailsStopsNothing(status: Int32) throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2)
        var fault = StoreError(status == 423 ? .busy : .transport, "Nothing is deleted here.")
        fault.httpStatus = status
        place.deleteFault = fault
        for n in 0..<20 {
            try a.save("n\(n)")
            try a.exchangeOnce()
            place.clock += 1_200
        }
        #expect(place.versions() == a.ids && !place.names(.base).isEmpty)
        let left = place.files.count
        place.deleteFault = nil
        place.clock += 2 * 86_400
        for n in 0..<2 {
            try a.save("more\(n)")
            try a.exchangeOnce()
            place.clock += 86_400
        }
        #expect(place.files.count < left / 2 && place.versions() == a.ids)
    }

    /// On a metered network packs are merged once, and merged packs are not merged again.
    @Test func thrift() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2)
        var thrifty = OperationControl()
        thrifty.isThrifty = true
        for n in 0..<12 {
            try a.save("n\(n)")
            _ = try a.exchange.retrieve(control: thrifty)
            _ = try a.exchange.send(control: thrifty)
        }
        #expect(place.names(.base).count >= 5 && place.names(.base).allSatisfy { $0.last - $0.first == 1 })
        try a.exchangeOnce()
        #expect(place.names(.base).contains { $0.last - $0.first > 2 } && place.versions() == a.ids)
        // Large values wait, with their descendants; everything else is sent.
        let large = try a.save("large", [UInt8](repeating: 7, count: (1 << 20) + 1)), on = try a.save("on it")
        let beside = try a.store.makeVersion(basedOn: nil, changes: [.insert(ValueID("beside"), data: [1])]).id
        #expect(try a.exchange.send(control: thrifty).versions == [beside] && place.names(.blob).isEmpty)
        #expect(try Set(a.exchange.send().versions) == [large, on] && place.names(.blob).count == 1 && place.versions() == a.ids)
    }

    /// Large values are not received either, nor their descendants. That is no problem, and nothing is requested twice.
    @Test func thriftReceiving() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        var thrifty = OperationControl()
        thrifty.isThrifty = true
        let data = [UInt8](repeating: 7, count: (1 << 20) + 1), small = try a.save("small")
        try a.exchangeOnce()
        let large = try a.save("large", data)
        try a.exchangeOnce()
        let on = try a.save("on it")
        try a.exchangeOnce()
        let first = try b.exchange.retrieve(control: thrifty)
        #expect(first.versions == [small] && first.problems.isEmpty)
        b.files.asked = []
        let second = try b.exchange.retrieve(control: thrifty)
        #expect(second.versions.isEmpty && second.problems.isEmpty && b.files.asked == ["list pack1/log"])
        #expect(try Set(b.exchange.retrieve().versions) == [large, on])
        #expect(try b.store.value(ValueID("large"), at: large)?.data == data)
    }

    /// The byte counts of a status: the total is known before the first byte, and no count ever decreases.
    @Test func bytesToComeAndToGo() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        final class Told: @unchecked Sendable { var seen: [(done: UInt64, total: UInt64)] = [] }
        func control() -> (OperationControl, ByteProgress, Told) {
            let bytes = ByteProgress(), told = Told()
            var control = OperationControl(progress: { _ in
                told.seen.append(bytes.now); return true
            })
            control.bytes = bytes
            return (control, bytes, told)
        }
        func isRising(_ told: Told) -> Bool {
            zip(told.seen, told.seen.dropFirst()).allSatisfy { $0.done <= $1.done && $0.total <= $1.total && $1.done <= $1.total }
        }
        try a.save("0", [UInt8](repeating: 0, count: 1_000))
        let (sending, gone, toldSending) = control()
        _ = try a.exchange.send(control: sending)
        #expect(gone.now == (1_000, 1_000) && toldSending.seen.contains { $0 == (0, 1_000) } && isRising(toldSending))
        for n in 1..<4 {
            try a.save("\(n)", (0..<30_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3 &+ n) })
            try a.exchangeOnce()
        }
        let packs = (place.names(.log)).reduce(0) { $0 + UInt64(place.files[$1.description]?.count ?? 0) }
        let (receiving, come, toldReceiving) = control()
        _ = try b.exchange.retrieve(control: receiving)
        #expect(come.now == (packs, packs) && toldReceiving.seen.first { $0.total > 0 } ?? (1, 1) == (0, packs) && isRising(toldReceiving))
        // A large value is counted as soon as it is known to be needed.
        let large = [UInt8](repeating: 9, count: 9 << 20)
        try a.save("large", large)
        let (more, goneMore, toldMore) = control()
        _ = try a.exchange.send(control: more)
        #expect(goneMore.now == (9 << 20, 9 << 20) && isRising(toldMore) && Set(toldMore.seen.map(\.done)).count > 2)
        let newest = try #require(place.names(.log).max { $0.last < $1.last })
        let pack = UInt64(place.files[newest.description]?.count ?? 0), (last, comeLast, toldLast) = control()
        _ = try b.exchange.retrieve(control: last)
        #expect(comeLast.now == (pack + 9 << 20, pack + 9 << 20) && isRising(toldLast), "\(comeLast.now)")
    }

    /// The stages in a status.
    @Test func stages() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2)
        final class Told: @unchecked Sendable { var seen: Set<OperationProgress.Stage> = [] }
        let told = Told(),
            control = OperationControl(progress: {
                told.seen.insert($0.stage); return true
            })
        for n in 0..<4 {
            try a.save("\(n)")
            _ = try a.exchange.retrieve(control: control)
            _ = try a.exchange.send(control: control)
            place.clock += 3
        }
        #expect(told.seen.isSuperset(of: [.listing, .receiving, .sending, .merging, .deleting]), "\(told.seen)")
    }

    /// A device that lost its memory of what it sent may be a copy, and the original deletes parts of large values that no pack names. So
    /// the device sends parts of its own.
    @Test func aNewWriterNamesNoPartsOfAFormerOne() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save("first")
        try a.exchangeOnce()
        let data = Filling.runs(of: 4_096, count: PackFormat.partSize + 1_000)
        try a.save("large", data)
        try sendOnePart(a)
        let left = Set(place.names(.blob)), twin = try PackedDevice(place)
        #expect(left.count == 1)
        twin.storage.caches = a.storage.caches
        let version = try twin.save("large", data)
        try twin.exchangeOnce()
        #expect(place.names(.blob).count == 3)
        for name in left { place.remove(name.description) }
        let reader = try PackedDevice(place)
        try reader.exchangeOnce()
        #expect(try reader.store.value(ValueID("large"), at: version)?.data == data)
    }

    @Test func twoFirstDevicesAtOnce() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        try a.save("a")
        try b.save("b")
        var isFirst = true
        a.files.before = {
            // Runs after `a` has found the remote empty, and before it writes its root.
            guard isFirst, a.files.asked.last?.hasPrefix("publish") == true else { return }
            isFirst = false
            try b.exchangeOnce()
        }
        try a.exchangeOnce()
        #expect(place.names(.root).count == 2)
        place.clock += 130
        for device in [a, b, a] { try device.exchangeOnce() }
        #expect(a.ids == b.ids && a.ids.count == 2)
    }

    @Test func theStateIsReadAgainAsItWas() throws {
        let place = MemoryPlace(seed: 3), a = try PackedDevice(place, fanIn: 2), b = try PackedDevice(place, fanIn: 2)
        for n in 0..<9 {
            try a.save("a\(n)", [UInt8](repeating: 1, count: n == 3 ? 2 << 20 : 1))
            try b.save("b\(n)")
            for device in [a, b] { try device.exchangeOnce() }
        }
        let (name, bytes) = try #require(a.storage.caches.first { $0.key.hasPrefix("packs-") && $0.key.utf8.count == 22 })
        let state = try #require(PackedState(encoded: bytes)), again = try #require(PackedState(encoded: PackedState.encoded(state.body)))
        #expect(again.body.count == bytes.count - 16)
        #expect(state.read.count == again.read.count && state.attempts.count == again.attempts.count)
        #expect(!state.deletions.isEmpty && state.heads == again.heads && state.writer == again.writer && !state.blobs.isEmpty)
        for at in stride(from: 0, to: bytes.count, by: 61) {
            #expect(PackedState(encoded: Array(bytes[..<at])) == nil)
            var wrong = bytes
            wrong[at] ^= 1
            #expect(PackedState(encoded: wrong) == nil)
        }
        // A device whose state is lost or damaged is a new writer, and sends nothing twice.
        let before = place.files.count
        a.storage.caches[name] = [1, 2, 3]
        a.restart()
        try a.exchangeOnce()
        #expect(place.files.count == before)
        try a.save("more")
        try a.exchangeOnce()
        try b.exchangeOnce()
        #expect(a.ids == b.ids && place.versions() == a.ids)
    }
}
