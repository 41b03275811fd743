import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Single files beside packs: docs/pack-format.md, section 11.
@Suite("Packed: bridged") struct BridgedExchangeTests {
    private static let day = 86_400 / Int(MemoryPlace.step)

    /// A device that reads and writes single files only, as another implementation does.
    private final class Other {
        let device: PackedDevice, exchange: Exchange
        init(_ place: MemoryPlace) throws {
            device = try PackedDevice(place)
            exchange = Exchange(store: device.store, transport: RemoteTransport(device.files))
        }
        func exchangeOnce() throws {
            #expect(try exchange.retrieve().problems.isEmpty)
            #expect(try exchange.send().problems.isEmpty)
        }
        var ids: Set<VersionID> { device.ids }
    }
    /// Counts the uploads of each version, in packs and in single files.
    private final class Uploads {
        var packs: [VersionID: Int] = [:], singles: [String: Int] = [:]
        func watch(_ device: PackedDevice) {
            device.files.made = { [self] name, bytes in
                if name.hasPrefix("versions/") { singles[name, default: 0] += 1 }
                guard let pack = PackName(name), pack.kind == .log, let header = PackID(bytes[16..<32]) else { return }
                for one in (try? PackFile(pack, bytes, stores: [header]))?.index.versions ?? [] { packs[one.id, default: 0] += 1 }
            }
        }
    }
    private func singles(_ place: MemoryPlace) -> Set<String> {
        Set(place.files.keys.filter { $0.hasPrefix("versions/") }.map { String($0.dropFirst(9)) })
    }
    private func bridged(_ place: MemoryPlace, _ count: Int) throws -> [PackedDevice] {
        try (0..<count).map { _ in try PackedDevice(place, isBridged: true) }
    }

    @Test func bothSidesMeet() throws {
        let place = MemoryPlace(), other = try Other(place)
        try other.device.save("before")
        try other.exchangeOnce()
        let devices = try bridged(place, 2)
        for (n, device) in devices.enumerated() {
            try device.exchangeOnce()
            try device.save("packs \(n)", [UInt8](repeating: UInt8(n), count: 10))
            try device.exchangeOnce()
        }
        try other.exchangeOnce()
        #expect(other.ids == devices[1].ids && other.ids.count == 3 && singles(place).count == 3)
        try other.device.save("after")
        try other.exchangeOnce()
        for device in devices + [devices[0]] { try device.exchangeOnce() }
        for device in devices { #expect(device.ids == other.ids && other.ids.count == 4) }
        // A device without the option uses the layout that the root states, even if it sends before it has read anything.
        let c = try PackedDevice(place)
        try c.save("and c")
        #expect(try c.exchange.send().versions.count == 1)
        #expect(singles(place).count == 5)
        try c.exchangeOnce()
        try other.exchangeOnce()
        #expect(other.ids == c.ids && c.ids.count == 5)
        for _ in 0..<3 { for device in devices + [c] { try device.exchangeOnce() } }
        #expect(place.versions() == c.ids && Set(c.ids.map(\.description)) == singles(place))
        #expect(try c.exchangeOnce() == ["list pack1/log", "list versions"], "nothing new")
    }

    /// One active device copies new versions from one side to the other, so they are sent once.
    @Test func nothingIsSentTwice() throws {
        let place = MemoryPlace(), other = try Other(place), devices = try bridged(place, 4), uploads = Uploads()
        for device in devices + [other.device] { uploads.watch(device) }
        for (n, device) in devices.enumerated() {
            try device.save("\(n)")
            try device.exchangeOnce()
        }
        for device in devices { try device.exchangeOnce() }
        for round in 0..<8 {
            // All devices read before the first one sends.
            try other.exchangeOnce()
            try other.device.save("single \(round)")
            try devices[round % 4].save("pack \(round)")
            try other.exchangeOnce()
            for device in devices { _ = try device.exchange.retrieve() }
            for device in devices { _ = try device.exchange.send() }
        }
        for device in devices + devices { try device.exchangeOnce() }
        try other.exchangeOnce()
        #expect(other.ids.count == 20 && devices.allSatisfy { $0.ids == other.ids })
        #expect(place.versions() == other.ids && singles(place).count == 20)
        #expect(uploads.packs.values.allSatisfy { $0 == 1 }, "\(uploads.packs)")
        #expect(uploads.singles.values.allSatisfy { $0 == 1 }, "\(uploads.singles)")
        #expect(uploads.packs.count == 20 && uploads.singles.count == 20)
    }

    /// The device whose turn it is stays away. Another device copies the versions a day later, or at once if it must send their
    /// descendants.
    @Test func anotherBringsItADayLater() throws {
        for goesOn in [false, true] {
            let place = MemoryPlace(), other = try Other(place), devices = try bridged(place, 3)
            for (n, device) in devices.enumerated() {
                try device.save("\(n)")
                try device.exchangeOnce()
            }
            for device in devices { try device.exchangeOnce() }
            try other.exchangeOnce()
            let late = try other.device.save("late")
            try other.exchangeOnce()
            for device in devices { _ = try device.exchange.retrieve() }
            let before = place.files, turn = try #require(devices.first { try !$0.exchange.send().versions.isEmpty })
            // Restore the place, as if that device had never returned.
            place.files = before
            let rest = devices.filter { $0 !== turn }
            for device in rest { try device.exchangeOnce() }
            #expect(!place.versions().contains(late))
            if goesOn {
                let next = try rest[0].store.makeVersion(basedOn: late, changes: [.insert(ValueID("on it"), data: [1])]).id
                try rest[0].exchangeOnce()
                #expect(place.versions().isSuperset(of: [late, next]) && singles(place).contains(next.description))
                continue
            }
            place.clock += Self.day + 1
            try rest[0].exchangeOnce()
            #expect(place.versions().contains(late))
            // The same in the other direction, from packs to single files: the device whose turn it is dies before it copies.
            turn.files.before = { if turn.files.asked.last?.hasPrefix("publish changes/") ?? false { throw MemoryFiles.died } }
            var waits: VersionID?
            for n in 0..<40 where waits == nil {
                let packed = try turn.save("packed \(n)")
                #expect(throws: StoreError.self) { try turn.exchangeOnce() }
                for device in rest { try device.exchangeOnce() }
                #expect(place.versions().contains(packed))
                if !singles(place).contains(packed.description) { waits = packed }
            }
            let packed = try #require(waits)
            for device in rest { try device.exchangeOnce() }
            #expect(!singles(place).contains(packed.description))
            place.clock += Self.day + 1
            try rest[0].exchangeOnce()
            #expect(singles(place).contains(packed.description))
        }
    }

    /// A device dies between any two requests: nothing is missing on either side when it comes back.
    @Test func interrupted() throws {
        var deaths = 0
        for dying in 0..<60 {
            let place = MemoryPlace(seed: UInt64(dying)), other = try Other(place), devices = try bridged(place, 2), a = devices[0]
            try devices[1].save("b")
            try devices[1].exchangeOnce()
            for n in 0..<2 { try other.device.save("single \(n)") }
            try other.exchangeOnce()
            try a.save("a")
            var left = dying
            a.files.before = {
                left -= 1
                guard left == -1 else { return }
                a.storage.isDead = true
                throw MemoryFiles.died
            }
            do { try a.exchangeOnce() } catch {
                deaths += 1
                a.storage.isDead = false
                a.restart()
            }
            a.files.before = {}
            for device in [a, devices[1], a, devices[1]] {
                #expect(try device.exchange.retrieve().problems.isEmpty)
                #expect(try device.exchange.send().problems.isEmpty)
            }
            try other.exchangeOnce()
            #expect(a.ids.count == 4 && a.ids == devices[1].ids && a.ids == other.ids, "\(dying)")
            #expect(place.versions() == a.ids && singles(place).count == 4, "\(dying)")
            if left >= 0 { break }
        }
        #expect(deaths > 10 && deaths < 60)
    }

    /// Devices leave no work behind when they retire.
    @Test func whoRetiresLeavesNothing() throws {
        let place = MemoryPlace(), other = try Other(place), devices = try bridged(place, 3)
        for (n, device) in devices.enumerated() {
            try device.save("\(n)")
            try device.exchangeOnce()
        }
        for device in devices { try device.exchangeOnce() }
        for n in 0..<6 { try other.device.save("single \(n)") }
        try other.exchangeOnce()
        _ = try devices[0].exchange.retrieve()
        _ = try devices[0].exchange.retire()
        #expect(place.versions() == devices[0].ids && devices[0].ids.count == 9)
    }

    @Test func whatIsNotBridged() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save()
        try a.exchangeOnce()
        let b = try PackedDevice(place, isBridged: true)
        try b.save()
        #expect(throws: StoreError.self) { try b.exchange.retrieve() }
        #expect(throws: StoreError.self) { try b.exchange.send() }
        #expect(place.files.keys.allSatisfy { $0.hasPrefix("pack1/") } && place.versions() == a.ids)
    }
}
