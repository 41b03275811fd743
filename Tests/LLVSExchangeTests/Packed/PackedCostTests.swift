import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Counts the requests and bytes of reading, with five writers that each sent four times.
@Suite("Packed: costs") struct PackedCostTests {
    private static let day = 86_400 / Int(MemoryPlace.step)

    private func write(_ writers: [PackedDevice], rounds: Int, _ random: inout SeededRandom) throws {
        for round in 0..<rounds {
            for (n, writer) in writers.enumerated() {
                for version in 0..<4 {
                    try writer.save("\(round) \(n) \(version)", StorageConformance.bytes(seed: random.next(), count: 8_000))
                }
                try writer.exchangeOnce()
            }
        }
        // Merged packs are deleted within a day.
        for _ in 0..<2 {
            writers[0].files.place.clock += Self.day + 1
            for writer in writers { try writer.exchangeOnce() }
        }
    }
    private func stored(_ place: MemoryPlace) -> Int { place.files.values.reduce(0) { $0 + $1.count } }

    /// A device. If encrypted, all devices have one identity.
    private func device(_ place: MemoryPlace, _ isEncrypted: Bool) throws -> PackedDevice {
        try PackedDevice(place, keys: isEncrypted ? keys() : nil)
    }
    private func keys() throws -> RemoteKeys { try identity.withSecret { try RemoteKeys(identities: [$0], recipients: []) } }
    private let identity: RemoteIdentity
    init() throws { identity = try RemoteIdentity() }

    @Test(arguments: [false, true]) func ofANewDeviceAndOfOneThatWasAway(isEncrypted: Bool) throws {
        let place = MemoryPlace()
        let writers = try (0..<5).map { _ in try device(place, isEncrypted) }, away = try device(place, isEncrypted)
        var random = SeededRandom(seed: 1)
        try writers[0].save("first", [1])
        for writer in writers { try writer.exchangeOnce() }
        try write(writers, rounds: 20, &random)
        try away.exchangeOnce()
        let before = stored(place)
        try write(writers, rounds: 16, &random)
        let all = writers[0].ids, logs = Dictionary(grouping: place.names(.log), by: \.writer)
        #expect(all.count == 721)
        // At most 9 names of each writer in log/, and 20 in all.
        let names = Dictionary(grouping: place.names(.log) + place.names(.base), by: \.writer)
        #expect(logs.values.allSatisfy { $0.count <= 9 } && names.values.allSatisfy { $0.count <= 20 }, "\(names.mapValues(\.count))")

        let new = try device(place, isEncrypted)
        let asked = try new.exchangeOnce()
        #expect(new.ids == all && asked.count <= 120)
        #expect(Double(new.files.bytesRead) <= 1.1 * Double(stored(place)), "\(new.files.bytesRead) of \(stored(place))")
        // Keys are listed again every ten minutes, and each request takes twelve simulated minutes.
        #expect(try new.exchangeOnce().filter { $0 != "list pack1/keys" } == ["list pack1/log"])

        // Of each writer, the device lacks one merged pack completely, and half of another one. It reads the ends of some packs first.
        let merged = place.names(.base).filter { (place.files[$0.description]?.count ?? 0) > 2 * PackedSettings.tail && $0.last > 20 }
        #expect(merged.count == 10)
        away.files.bytesRead = 0
        let fetched = try away.exchangeOnce()
        // The end of an encrypted pack is read from the beginning of a segment, and the head is read as well.
        let tails = merged.count * (isEncrypted ? PackedSettings.tail * 3 / 2 + EncryptedPack.headSize : PackedSettings.tail)
        #expect(away.ids == all && fetched.count { $0.hasPrefix("list") && $0 != "list pack1/keys" } <= 3)
        let newBytes = stored(place) - before, allowed = Int(1.3 * Double(newBytes)) + tails
        #expect(away.files.bytesRead <= allowed, "\(away.files.bytesRead) of \(newBytes)")
        // The bound is meaningful: reading everything would exceed it.
        #expect(allowed < stored(place) * 3 / 4, "\(allowed) of \(stored(place))")
    }

    // MARK: A little of a large pack

    /// A pack that a writer merged from eight, seven of which another device has.
    private struct Merged {
        let place: MemoryPlace, writer: PackedDevice, away: PackedDevice, name: String, bytes: [UInt8]
    }
    private func merged(_ isEncrypted: Bool, versions: Int, size: Int) throws -> Merged {
        let place = MemoryPlace(), writer = try device(place, isEncrypted), away = try device(place, isEncrypted)
        place.pace = 1
        var random = SeededRandom(seed: 3)
        for round in 0..<9 {
            if round == 7 { try away.exchangeOnce() }
            for n in 0..<versions { try writer.save("\(round) \(n)", StorageConformance.bytes(seed: random.next(), count: size)) }
            try writer.exchangeOnce()
        }
        place.clock += 2 * 86_400
        for _ in 0..<2 { try writer.exchangeOnce() }
        #expect(place.names(.log).count == 1)
        let name = try #require(place.names(.base).first).description
        away.files.ranges = []
        return Merged(place: place, writer: writer, away: away, name: name, bytes: try #require(place.files[name]))
    }

    /// Of an encrypted pack about as much is read as of an unencrypted one: the head, the end, and the segments that contain the wanted
    /// blocks.
    @Test(arguments: [(32, 8_000), (320, 450)]) func aLittleOfALargePack(versions: Int, size: Int) throws {
        var ranges: [[Range<Int>]] = [], sizes: [Int] = []
        for isEncrypted in [false, true] {
            let merged = try merged(isEncrypted, versions: versions, size: size)
            let asked = try merged.away.exchangeOnce()
            #expect(merged.away.ids == merged.writer.ids && asked.count { $0.hasPrefix("list pack1/base") } == 1)
            ranges.append(merged.away.files.ranges.filter { $0.name == merged.name }.map(\.range))
            sizes.append(merged.bytes.count)
        }
        let bytes = ranges.map { $0.reduce(0) { $0 + $1.count } }
        #expect(sizes[0] > 1 << 20 && bytes[0] < sizes[0] / 2, "\(bytes) of \(sizes)")
        #expect(ranges[1].count == ranges[0].count + 1, "\(ranges)")
        // Whole segments, at both ends of each range.
        let more = EncryptedPack.headSize + 2 * ranges[0].count * AgePayload.sealedSize
        #expect(bytes[1] <= bytes[0] + more && bytes[1] < sizes[1] * 2 / 3, "\(bytes) of \(sizes)")
    }

    /// Any byte of a partly read pack is changed. Nothing wrong is accepted, and nothing that is affected by the change.
    @Test func aPartThatWasChangedIsRefused() throws {
        let good = try merged(true, versions: 32, size: 8_000), start = EncryptedPack.headSize, step = AgePayload.sealedSize
        func read(_ bytes: [UInt8]) throws -> (device: PackedDevice, ranges: [Range<Int>]) {
            good.place.files[good.name] = bytes
            let device = try good.away.clone(random: { [place = good.place] in place.random.next() }, keys: keys())
            _ = try device.exchange.retrieve()
            return (device, device.files.ranges.filter { $0.name == good.name }.map(\.range))
        }
        let (first, wanted) = try read(good.bytes)
        #expect(first.ids == good.writer.ids && wanted.count == 3 && wanted.allSatisfy { $0.count < good.bytes.count / 2 })
        var refused = 0
        let segments = stride(from: start, to: good.bytes.count, by: 2 * step).map { at in
            (at: at, isRead: wanted.contains { $0.contains(at) })
        }
        // The usual run tries every fourth segment that is not read.
        let nth = sample(usual: 4, deep: 1)
        let seen = segments.filter(\.isRead).map(\.at), others = segments.filter { !$0.isRead }.map(\.at)
        let tried = seen + stride(from: 0, to: others.count, by: nth).map { others[$0] }
        for at in [0, 30, 100, 170] + tried + [good.bytes.count - 1] {
            var bad = good.bytes
            bad[at] ^= 1
            let (device, ranges) = try read(bad)
            let isRead = wanted.contains { $0.contains(at) }
            // A change in bytes that are not read has no effect. Otherwise the whole file is read, and its pack id is wrong.
            #expect(isRead == (ranges.last == 0..<bad.count), "\(at)")
            #expect(device.ids == (isRead ? good.away.ids : good.writer.ids), "\(at)")
            refused += isRead ? 1 : 0
            good.place.files[good.name] = good.bytes
            _ = try device.exchange.retrieve()
            #expect(device.ids == good.writer.ids, "\(at)")
        }
        #expect(refused >= 6)
        // Truncated at the end of a segment, truncated within one, one byte more, and two whole segments in another order.
        let all = stride(from: start, to: good.bytes.count, by: step).map { Array(good.bytes[$0..<min($0 + step, good.bytes.count)]) }
        var swapped = all
        swapped.swapAt(all.count - 3, all.count - 2)
        let head = good.bytes[..<start]
        func joined(_ parts: some Sequence<[UInt8]>) -> [UInt8] { parts.reduce(into: Array(head)) { $0 += $1 } }
        let wrong: [[UInt8]] = [
            joined(all.dropLast()), good.bytes.dropLast(), good.bytes + [0], joined(swapped), joined(all.dropFirst() + [all[0]]),
        ]
        for (n, bad) in wrong.enumerated() { #expect(try read(bad).device.ids == good.away.ids, "\(n)") }
    }

    /// A service that returns the whole file for a part of it is asked once.
    @Test(arguments: [false, true]) func withoutRangesAllOfItIsRead(isEncrypted: Bool) throws {
        let merged = try merged(isEncrypted, versions: 32, size: 8_000)
        merged.away.files.hasRanges = false
        try merged.away.exchangeOnce()
        #expect(merged.away.ids == merged.writer.ids && merged.away.files.ranges.count { $0.name == merged.name } == 1)
    }
}
