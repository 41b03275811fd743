import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Tests reports about a remote, which change nothing: docs/pack-format.md, section 7.
@Suite("Packed: reports") struct PackedReportsTests {
    private static let day = 86_400 / Int(MemoryPlace.step), hour = 3_600 / Int(MemoryPlace.step)

    private func codes(_ device: PackedDevice) throws -> [StoreError.Code] {
        try device.exchange.retrieve().problems.map(\.error.code)
    }
    private func status(_ device: PackedDevice) throws -> RemoteStatus { try #require(try device.exchange.remoteStatus()) }

    /// The next place is announced to all devices, even to those that come after the first pack with the notice was merged.
    @Test func moved() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 3), b = try PackedDevice(place, fanIn: 3)
        for device in [a, b, a] {
            try device.save()
            try device.exchangeOnce()
        }
        try a.save("last")
        #expect(try a.exchange.announceMove(to: "https+webdav://elsewhere/ä/").versions.count == 1)
        for device in [b, b] {
            let problem = try #require(try device.exchange.retrieve().problems.first)
            #expect(problem.error.code == .placeMoved && problem.error.path == "https+webdav://elsewhere/ä/" && problem.name == "pack1")
        }
        #expect(try codes(a) == [.placeMoved])
        for n in 0..<12 {
            try a.save("a\(n)")
            try a.exchangeOnce()
            try b.exchangeOnce()
        }
        place.clock += 2 * Self.day
        for device in [a, b, a, b] { try device.exchangeOnce() }
        #expect(place.names(.base).count > 0 && place.names(.log).allSatisfy { $0.writer != a.writer || $0.last > 5 })
        let c = try PackedDevice(place)
        #expect(try codes(c) == [.placeMoved] && c.ids == a.ids)
        for wrong in ["", "a\nb", String(repeating: "x", count: 1_025)] {
            #expect(throws: StoreError.self) { try a.exchange.announceMove(to: wrong) }
        }
        let single = Exchange(store: a.store, transport: MemoryTransport(name: "moving"))
        #expect(throws: StoreError.self) { try single.announceMove(to: "elsewhere") }
    }

    /// A device that refills an emptied place informs the devices that knew the place.
    @Test func seededAnew() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        for device in [a, b, a, b] {
            try device.save()
            try device.exchangeOnce()
        }
        place.files = [:]
        place.clock += Self.day + 1
        #expect(throws: StoreError.self) { try a.exchange.retrieve() }
        a.exchange.transport.restorationState = Array("new".utf8)
        try a.exchangeOnce()
        let told = try b.exchange.retrieve().problems.filter { $0.error.code == .rolledBack }
        #expect(told.count == 1 && told[0].error.message.contains("refilled by"), "\(told)")
        // A device that comes for the first time has nothing to hear of that.
        let c = try PackedDevice(place)
        #expect(try codes(c) == [])
        // In the end everything is at the place again.
        for _ in 0..<4 {
            place.clock += Self.day
            for device in [a, b] { _ = try? device.exchangeOnce() }
        }
        #expect(place.versions().isSuperset(of: a.ids.union(b.ids)))
        #expect(try codes(b) == [], "reported for a day")
        // The event is reported once; later packs do not repeat it.
        try a.save("more")
        try a.exchangeOnce()
        #expect(try codes(b) == [])
    }

    /// If several devices are to refill the place, only the first reports it. A device that ends before it sent anything reports it when it
    /// continues.
    @Test(arguments: [false, true]) func seededAnewByTheFirstAlone(dies: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place), c = try PackedDevice(place)
        for device in [a, b, c, a, b, c] {
            try device.save()
            try device.exchangeOnce()
        }
        place.files = [:]
        place.clock += Self.day + 1
        for device in [a, b] { device.exchange.transport.restorationState = Array("new".utf8) }
        if dies {
            _ = try a.exchange.retrieve()
            a.restart()
        }
        try a.exchangeOnce()
        try b.save("more")
        try b.exchangeOnce()
        let told = try c.exchange.retrieve().problems.filter { $0.error.code == .rolledBack && $0.error.message.contains("refilled by") }
        #expect(told.count == 1, "\(told)")
    }

    /// Names of devices are shown to all, even after the packs with them were merged, and again after a change.
    @Test func names() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 3, named: "Ann's laptop"), b = try PackedDevice(place, fanIn: 3)
        func names(_ device: PackedDevice) throws -> [String?] {
            try device.exchange.remoteStatus()?.writers.sorted { $0.isHere && !$1.isHere }.map(\.name) ?? []
        }
        for device in [a, b, a, b] {
            try device.save()
            try device.exchangeOnce()
        }
        #expect(try names(a) == ["Ann's laptop", nil] && names(b) == [nil, "Ann's laptop"])
        for n in 0..<9 {
            try a.save("a\(n)")
            try a.exchangeOnce()
        }
        place.clock += 2 * Self.day
        try a.exchangeOnce()
        let late = try PackedDevice(place)
        _ = try late.exchange.retrieve()
        #expect(try names(late).contains("Ann's laptop"))
        let state = try #require(b.known), again = try #require(PackedState(encoded: PackedState.encoded(state.body)))
        #expect(again.names == state.names && a.known?.saidName == "Ann's laptop")
        for wrong in [[], [10], Array(repeating: 65, count: 129), [0xFF]] as [[UInt8]] { #expect(DeviceName.text(wrong) == nil) }
        for wrong in ["a\u{7F}", "\u{80}", "na\u{9B}31mme", "a\u{2028}b", "\u{2029}", "\u{202E}nna", "\u{200F}", "\u{61C}", "\u{2066}a"] {
            #expect(DeviceName.text(Array(wrong.utf8)) == nil, "\(wrong.debugDescription)")
        }
        for right in ["Ä", "\u{A0}", "👨\u{200D}👩\u{200D}👧", "می\u{200C}خواهم", "Ann's laptop", "\u{2027}\u{202F}"] {
            #expect(DeviceName.text(Array(right.utf8)) == right)
        }
    }

    /// A newest pack has disappeared, and no pack replaces it.
    @Test func rolledBack() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        for n in 0..<3 {
            try a.save("\(n)")
            try a.exchangeOnce()
            try b.exchangeOnce()
        }
        let newest = try #require(place.names(.log).max { $0.last < $1.last })
        place.remove(newest.description)
        place.clock += 2
        #expect(try codes(b) == [], "not before a second check")
        place.clock += 2
        #expect(try codes(b) == [.rolledBack])
        #expect(try codes(b) == [.rolledBack])
        place.clock += 2 * Self.day
        for device in [b, a] { _ = try? device.exchangeOnce() }
        #expect(try codes(b) == [] && place.versions() == a.ids)
        // Merged packs are replaced, not lost.
        for n in 3..<40 {
            try a.save("\(n)")
            try a.exchangeOnce()
            place.clock += Self.hour
            #expect(try codes(b) == [], "\(n)")
        }
    }

    /// A number that another device saw has not been listed for more than an hour.
    @Test func withheld() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place), c = try PackedDevice(place)
        for device in [a, b, c, a, b, c] {
            try device.save()
            try device.exchangeOnce()
        }
        // The place hides a's new pack from c; b has seen it.
        try a.save("hidden")
        try a.exchangeOnce()
        let hidden = try #require(place.names(.log).filter { $0.writer == a.writer }.max { $0.last < $1.last })
        _ = try b.exchange.retrieve()
        _ = try b.store.makeVersion(basedOn: nil, changes: [.insert(ValueID("b"), data: [1])])
        _ = try b.exchange.send()
        place.hides = [hidden.description]
        #expect(try codes(c) == [])
        place.clock += Self.hour - 2
        #expect(try codes(c) == [], "not within an hour")
        place.clock += 4
        let told = try c.exchange.retrieve().problems
        #expect(told.map(\.error.code) == [.withheld] && told[0].name == "pack1/log/" + Base32.encode(PackID.bytes(of: a.writer)))
        c.restart()
        #expect(try codes(c) == [.withheld])
        place.hides = []
        #expect(try codes(c) == [] && c.ids == a.ids.union(b.ids))
        // Packs are merged and the merged pack covers the numbers: nothing is withheld.
        for n in 0..<30 {
            try a.save("\(n)")
            for device in [a, b] { try device.exchangeOnce() }
        }
        place.clock += Self.hour
        #expect(try codes(c) == [])
        place.clock += 2 * Self.hour
        #expect(try codes(c) == [])
    }

    /// Two sequences of packs that continue in parallel.
    @Test func forked() {
        func id(_ n: UInt64) -> PackID { PackID(high: 1, low: n) }
        func link(_ number: UInt32, _ own: UInt64, _ before: UInt64) -> PackedReports.Link {
            PackedReports.Link(number: number, id: id(own), before: id(before))
        }
        // 5 was copied: 6 and 16, 7 and 17, 8 and 18.
        var reports = PackedReports()
        let rows = [link(5, 5, 4), link(6, 6, 5), link(6, 16, 5), link(7, 7, 6), link(7, 17, 16), link(8, 8, 7)]
        for one in rows { #expect(reports.link(9, one) == nil, "\(one)") }
        #expect(reports.link(9, link(8, 18, 17)) == 7)
        // After a number was attempted twice, the sequence continues from one of the attempts.
        reports = PackedReports()
        for one in [link(5, 5, 4), link(5, 15, 4), link(6, 6, 15), link(6, 16, 15), link(7, 7, 16), link(8, 8, 7)] {
            #expect(reports.link(9, one) == nil)
        }
        // The memory is bounded, whatever packs claim.
        for n in 0..<1_000 as Range<UInt64> { _ = reports.link(9, link(UInt32(n) + 10, n + 100, n + 99)) }
        for n in 0..<1_000 as Range<UInt64> { _ = reports.link(n, link(1, n, 0)) }
        #expect(reports.chains.count == PackedReports.writersLimit && reports.chains[9]?.count == PackedReports.chainLimit)
        for n in 0..<1_000 as Range<UInt32> { reports.happened(.forked, 1, n, at: 0) }
        #expect(reports.events.count == PackedReports.eventsLimit)
    }

    /// A store was copied, and the copies never see each other's packs. A device that sees the packs of both reports it.
    @Test func aWriterOfWhichBothRowsAreShown() throws {
        let place = MemoryPlace(), other = MemoryPlace(), a = try PackedDevice(place), reader = try PackedDevice(place)
        try a.save("common")
        try a.exchangeOnce()
        other.files = place.files
        other.clock = place.clock
        let twin = try PackedDevice(other)
        try a.give(to: twin)
        twin.storage.caches = a.storage.caches
        twin.restart()
        for n in 0..<3 {
            try a.save("a\(n)")
            try a.exchangeOnce()
            try twin.save("b\(n)")
            try twin.exchangeOnce()
        }
        #expect(a.writer == twin.writer)
        #expect(try codes(reader) == [])
        for (name, bytes) in other.files where place.files[name] == nil { place.put(name, bytes) }
        place.clock += Self.day + 1
        #expect(try codes(reader) == [.writerForked])
        #expect(reader.ids == a.ids.union(twin.ids), "all versions are received")
    }

    // MARK: The status

    @Test func fingerprintsAndWriters() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        #expect(try a.exchange.remoteStatus() == nil)
        for device in [a, b, a, b, a] {
            try device.save()
            try device.exchangeOnce()
        }
        for device in [b, a] { _ = try device.exchange.retrieve() }
        let first = try status(a).fingerprint
        #expect(first.split(separator: " ").count == 6 && first.split(separator: " ").allSatisfy { $0.count == 5 })
        #expect(try status(b).fingerprint == first)
        // A device without memory sees the same, and so does another process.
        let c = try PackedDevice(place)
        _ = try c.exchange.retrieve()
        #expect(try status(c).fingerprint == first)
        c.restart()
        #expect(try status(c).fingerprint == first)
        // A device that is shown an older state gets another fingerprint.
        try a.save("more")
        try a.exchangeOnce()
        #expect(try status(a).fingerprint != first)
        _ = try b.exchange.retrieve()
        #expect(try status(b).fingerprint == status(a).fingerprint)
        let newest = try #require(place.names(.log).filter { $0.writer == a.writer }.max { $0.last < $1.last })
        place.hides = [newest.description]
        let d = try PackedDevice(place)
        _ = try d.exchange.retrieve()
        #expect(try status(d).fingerprint == first)
        let known = try status(b)
        #expect(known.layout == .packed && known.epoch == 0 && known.writers.count == 2 && known.writers.map(\.isHere).count { $0 } == 1)
        #expect(known.writers.map(\.number).sorted() == [2, 4])
        #expect(known.writers.contains { $0.id == Base32.encode(PackID.bytes(of: a.writer)) })
        #expect(known.packs > 0 && known.bytes > 0 && known.listed != nil)
        // Fixed values, which other implementations can compare.
        let seen = [PackServices.Seen(writer: 1, number: 2, id: PackID(high: 3, low: 4))]
        #expect(RemoteStatus.fingerprint(PackID(high: 5, low: 6), seen) == "vinoz maluf lonoz zapiz sakit faduv")
        #expect(RemoteStatus.fingerprint(nil, seen) == "" && RemoteStatus.fingerprint(PackID(high: 5, low: 6), []) == "")
    }

    /// The state of an older library does not record the keys of large values. No new pack names these values' parts.
    @Test func largeValuesOfAnOlderState() throws {
        var state = PackedState()
        state.pin = StoreKeys.Pin(number: 2, recipient: try AgeRecipient(RemoteIdentity().recipient))
        let blob = try #require(BlobReference(size: 3, sha256: [UInt8](repeating: 4, count: 32), parts: [.zero]))
        state.blobs[blob.digest] = blob
        let now = try #require(PackedState(encoded: PackedState.encoded(state.body)))
        #expect(now.oldBlobs.isEmpty && now.currentBlobs.count == 1)
        // As an older library wrote it: without the fields that were added later.
        var old = Array(state.body)
        old[6] = UInt8(ascii: "2")
        // A flag before the pin; after it an epoch, a time and two lists, all empty; then the count of exchanges.
        old.removeSubrange((old.count - 8 - 4 - 8 - 2)..<(old.count - 8))
        old.remove(at: old.count - 8 - 36 - 1)
        let known = try #require(PackedState(encoded: PackedState.encoded(old)))
        #expect(known.pin == state.pin && known.blobs.count == 1 && known.currentBlobs.isEmpty)
    }
}
