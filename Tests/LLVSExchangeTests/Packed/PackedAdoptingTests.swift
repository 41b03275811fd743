import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Tests adopting packs of absent writers: docs/pack-format.md, section 8.
@Suite("Packed: adopting") struct PackedAdoptingTests {
    private static let day = 86_400 / Int(MemoryPlace.step)

    /// A writer with packs at every level that never returns.
    private func silent(_ place: MemoryPlace, _ count: Int = 20) throws -> PackedDevice {
        let gone = try PackedDevice(place)
        for n in 0..<count {
            try gone.save("gone\(n)")
            try gone.exchangeOnce()
        }
        return gone
    }

    private func exchange(_ devices: [PackedDevice], days: Int) throws {
        for _ in 0..<days {
            devices[0].files.place.clock += Self.day + 1
            for device in devices { try device.exchangeOnce() }
        }
    }

    @Test func aSilentWriterIsAdopted() throws {
        let place = MemoryPlace(), gone = try silent(place), here = try PackedDevice(place)
        try here.save("here")
        try here.exchangeOnce()
        let theirs = (place.names(.log) + place.names(.base)).filter { $0.writer != here.writer }
        #expect(theirs.count > 3)
        try exchange([here], days: 29)
        #expect(Set(theirs.map(\.description)).isSubset(of: place.files.keys), "not before 30 days")
        try exchange([here], days: 4)
        let left = place.names(.log) + place.names(.base)
        #expect(left.allSatisfy { $0.writer == here.writer }, "\(left)")
        #expect(left.count <= 5 && place.versions() == here.ids && here.ids == gone.ids.union(here.ids))
        // The number of the adoption is used once, and a log pack shows the adopter's last number.
        let adopted = try #require(left.first { $0.kind == .base && $0.first == $0.last })
        #expect(!place.names(.log).contains { $0.first == adopted.first } && place.names(.log).contains { $0.first > adopted.first })
        // A new device receives everything and has nothing left to search for.
        let new = try PackedDevice(place)
        try new.exchangeOnce()
        #expect(new.ids == here.ids)
        #expect(try new.exchangeOnce() == ["list pack1/log"])
        // A silent writer returns. It continues with its own number, and no device lacks anything.
        try gone.save("back")
        try gone.exchangeOnce()
        try exchange([gone, here, new], days: 6)
        #expect(gone.ids == here.ids && here.ids == new.ids && place.versions() == here.ids)
        // For the numbers that were adopted it sends nothing.
        let sent = Set(place.names(.log).filter { $0.writer == gone.writer }.map(\.last))
        #expect(sent.allSatisfy { $0 > 20 }, "\(sent.sorted())")
    }

    /// Each writer left a single pack. These are merged, of many writers at once.
    @Test func silentWritersWithOnePackEachAreAdopted() throws {
        let place = MemoryPlace(), here = try PackedDevice(place)
        for n in 0..<30 {
            let gone = try PackedDevice(place)
            try gone.save("gone\(n)")
            try gone.exchangeOnce()
        }
        // One silent writer left more packs.
        _ = try silent(place, 3)
        try here.save("here")
        try here.exchangeOnce()
        #expect(place.names(.log).count == 34)
        try exchange([here], days: 29)
        #expect(place.names(.log).count == 34, "not before 30 days")
        try exchange([here], days: 4)
        let left = place.names(.log) + place.names(.base)
        #expect(left.count <= 5 && left.allSatisfy { $0.writer == here.writer }, "\(left)")
        #expect(place.versions() == here.ids && here.ids.count == 34)
        let new = try PackedDevice(place)
        try new.exchangeOnce()
        #expect(new.ids == here.ids)
        #expect(try new.exchangeOnce() == ["list pack1/log"], "all numbers are covered")
        // A single pack is left as it is: its replacement and the log pack that follows would be one more.
        let late = try PackedDevice(place)
        try late.save("late")
        try late.exchangeOnce()
        try exchange([here], days: 40)
        #expect(place.names(.log).count { $0.writer != here.writer } == 1)
    }

    /// A retired writer is not waited for. If it sends nevertheless, it does so as a new writer.
    @Test func whoRetiresIsAdoptedAtOnce() throws {
        let place = MemoryPlace(), gone = try silent(place), here = try PackedDevice(place)
        try here.save("here")
        try here.exchangeOnce()
        try gone.save("last")
        #expect(try gone.exchange.retire().versions.count == 1)
        try exchange([here], days: 4)
        #expect((place.names(.log) + place.names(.base)).allSatisfy { $0.writer == here.writer })
        #expect(place.versions() == here.ids && here.ids.isSuperset(of: gone.ids))
        try gone.save("after all")
        try exchange([gone, here], days: 2)
        #expect(gone.ids == here.ids && place.versions() == here.ids)
        #expect(place.names(.log).filter { $0.writer != here.writer }.map(\.last) == [1], "another writer")
        let single = Exchange(store: here.store, transport: MemoryTransport(name: "retiring"))
        #expect(throws: StoreError.self) { try single.retire() }
    }

    /// Two of its packs were truncated. It fills both numbers before it retires, and its newest pack says that it has retired.
    @Test func whoRetiresLeavesNoNumberOut() throws {
        let place = MemoryPlace(), gone = try silent(place, 5), here = try PackedDevice(place)
        try here.save("here")
        try here.exchangeOnce()
        let writer = gone.writer, logs = place.names(.log).filter { $0.writer == writer }
        var short: Set<PackName> = []
        for number in [UInt32(2), 4] {
            let name = try #require(logs.first { $0.last == number })
            place.put(name.description, Array(place.files[name.description]?.dropLast(9) ?? []))
            short.insert(name)
        }
        _ = try gone.exchange.retire()
        let numbers = place.names(.log).filter { $0.writer == writer && !short.contains($0) }.map(\.last)
        #expect(Set(numbers) == Set(1...6) && numbers.count == 6, "\(numbers.sorted())")
        try exchange([here], days: 4)
        let left = Set(place.names(.log) + place.names(.base)).subtracting(short)
        #expect(left.allSatisfy { $0.writer == here.writer }, "\(left)")
        #expect(place.versions() == here.ids && here.ids.isSuperset(of: gone.ids))
    }

    /// A retired writer deletes packs that it had replaced before, even if another device adopted its packs meanwhile and does not know
    /// that.
    @Test func whatAFormerWriterReplacedIsDeleted() throws {
        let place = MemoryPlace(), gone = try PackedDevice(place, fanIn: 3)
        for n in 0..<4 {
            try gone.save("\(n)", [UInt8](repeating: 1, count: 100))
            try gone.exchangeOnce()
        }
        let base = try #require(place.names(.base).first), replaced = place.names(.log).filter { $0.last <= 3 }
        #expect(replaced.count == 3)
        place.refusesDeletes = true
        _ = try gone.exchange.retire()
        place.refusesDeletes = false
        let here = try PackedDevice(place)
        try here.exchangeOnce()
        #expect(place.names(.base).contains { $0.writer != base.writer }, "the pack is adopted in the same exchange")
        place.clock += Self.day + 1
        try gone.exchangeOnce()
        #expect(place.files[base.description] != nil)
        try exchange([here, gone], days: 4)
        #expect(Set(replaced).isDisjoint(with: place.names(.log)) && place.files[base.description] == nil)
        #expect(gone.known?.deletions.isEmpty == true && place.versions() == here.ids && here.ids == gone.ids)
    }

    /// A device whose store lost its versions no longer knows what its packs hold. It deletes nothing because of them, and does not check
    /// again every day.
    @Test func forgottenPacksAreNotDeleted() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 3)
        for n in 0..<4 {
            try a.save("\(n)")
            try a.exchangeOnce()
        }
        #expect(a.known?.deletions.isEmpty == false)
        let fallen = try PackedDevice(place, fanIn: 3)
        fallen.storage.caches = a.storage.caches
        try exchange([fallen], days: 3)
        #expect(fallen.known?.deletions.isEmpty == true)
        #expect(place.versions() == a.ids && fallen.ids == a.ids)
    }

    /// If there are more names than a page of a listing has, packs of active writers are adopted, except the newest of each.
    @Test func manyNames() throws {
        let place = MemoryPlace(), active = try PackedDevice(place, fanIn: 100), here = try PackedDevice(place, fanIn: 4, mostNames: 12)
        for n in 0..<12 {
            try active.save("n\(n)")
            try active.exchangeOnce()
        }
        try exchange([here], days: 2)
        #expect(place.names(.base).isEmpty, "not with fewer names")
        try active.save("one more")
        try active.exchangeOnce()
        try exchange([here, active], days: 4)
        let theirs = place.names(.log).filter { $0.writer == active.writer }
        #expect(theirs.map(\.last) == [13] && place.versions() == active.ids && here.ids == active.ids)
        try active.save("and goes on")
        try active.exchangeOnce()
        try exchange([here, active], days: 3)
        let new = try PackedDevice(place)
        try new.exchangeOnce()
        #expect(new.ids == active.ids && here.ids == active.ids && place.versions() == active.ids)
    }

    /// An adopted pack among small packs of the device's own does not prevent these from being merged.
    @Test func noneIsStrandedBeforeAnAdoption() throws {
        let place = MemoryPlace(), here = try PackedDevice(place, fanIn: 4, silence: Int64(Self.day) * MemoryPlace.step)
        // Packs of at most 256 KiB. An adopted pack larger than half of that is not merged with small ones.
        here.files.largestFile = 256 << 10
        var most = 0, random = SeededRandom(seed: 1)
        for n in 0..<12 {
            let gone = try PackedDevice(place, fanIn: 100)
            for part in 0..<3 {
                try gone.save("large\(n) \(part)", StorageConformance.bytes(seed: random.next(), count: 50 << 10))
                try gone.exchangeOnce()
            }
            try here.save("here\(n)")
            try exchange([here], days: 3)
            most = max(most, place.names(.log).count + place.names(.base).count)
        }
        #expect(most < 30, "\(most)")
        #expect(place.versions() == here.ids)
    }

    /// One of the active devices adopts at once. Another one does so only if the first does not.
    @Test func othersWait() throws {
        let place = MemoryPlace(), gone = try silent(place)
        let devices = try (0..<3).map { _ in try PackedDevice(place) }
        for round in 0..<31 {
            place.clock += Self.day + 1
            for (n, device) in devices.enumerated() {
                if round % 3 == 0 { try device.save("\(n) \(round)") }
                try device.exchangeOnce()
            }
        }
        let adoptions = place.names(.base).filter { $0.first == $0.last && $0.writer != gone.writer }
        #expect(adoptions.count == 1, "\(adoptions)")
        try exchange(devices, days: 2)
        #expect(!(place.names(.log) + place.names(.base)).contains { $0.writer == gone.writer })
        for device in devices { #expect(device.ids == devices[0].ids && place.versions() == device.ids) }
    }

    /// The device dies at any request of an adoption. The number remains one of an adoption, nothing is lost, and the adoption is finished
    /// later.
    @Test func interrupted() throws {
        var deaths = 0
        for dying in 0..<30 {
            let place = MemoryPlace(seed: UInt64(dying)), gone = try silent(place, 12), here = try PackedDevice(place)
            try here.save("here")
            try here.exchangeOnce()
            place.clock += 31 * Self.day
            var left = dying
            here.files.before = {
                left -= 1
                guard left == -1 else { return }
                here.storage.isDead = true
                throw MemoryFiles.died
            }
            do { try here.exchangeOnce() } catch {
                deaths += 1
                here.storage.isDead = false
                here.restart()
            }
            here.files.before = {}
            #expect(place.versions() == gone.ids.union(here.ids), "\(dying)")
            try here.save("then")
            try exchange([here], days: 3)
            let names = place.names(.log) + place.names(.base)
            #expect(names.allSatisfy { $0.writer == here.writer } && place.versions() == here.ids, "\(dying): \(names)")
            // No log pack has a number that was attempted for an adoption.
            let adopted = Set(names.filter { $0.kind == .base && $0.first == $0.last }.map(\.first))
            #expect(adopted.isDisjoint(with: place.names(.log).map(\.first)), "\(dying)")
            let new = try PackedDevice(place)
            try new.exchangeOnce()
            #expect(new.ids == here.ids, "\(dying)")
            if left >= 0 { break }
        }
        #expect(deaths > 8)
    }

    /// A place that refuses to delete, or is full, is not filled further.
    @Test func notWhereNothingCanBeDeleted() throws {
        let place = MemoryPlace(), here = try PackedDevice(place)
        _ = try silent(place)
        try here.exchangeOnce()
        place.refusesDeletes = true
        for n in 0..<20 {
            try here.save("here\(n)")
            try here.exchangeOnce()
            place.clock += Self.day
        }
        let before = place.names(.base).filter { $0.first == $0.last }
        try exchange([here], days: 20)
        #expect(place.names(.base).filter { $0.first == $0.last } == before)
    }

    /// Packs that another writer replaced but had not deleted yet are adopted too.
    @Test func whatWasReplacedAndNotDeletedGoesToo() throws {
        let place = MemoryPlace(), gone = try silent(place, 9), here = try PackedDevice(place)
        // The writer merged packs and then disappeared: its log packs still exist.
        #expect(place.names(.base).count == 1 && place.names(.log).count == 9)
        try here.exchangeOnce()
        try exchange([here], days: 34)
        #expect((place.names(.log) + place.names(.base)).allSatisfy { $0.writer == here.writer })
        #expect(place.versions() == gone.ids && here.ids == gone.ids)
    }
}

extension PackedDevice {
    /// The id under which the device writes now.
    var writer: UInt64 {
        files.place.names(.log).filter { name in
            (try? PackedNotes(store, remote: files.description).load())?.writer == name.writer
        }.first?.writer ?? 0
    }
}
