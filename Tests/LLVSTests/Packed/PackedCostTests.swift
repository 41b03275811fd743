import LLVSTesting
import Testing
@testable import LLVS

/// What reading costs, in requests and bytes: five writers, of whom each sent four versions at a time.
@Suite("Packed: costs") struct PackedCostTests {
    private static let day = 86_400 / Int(MemoryPlace.step)

    private func write(_ writers: [PackedDevice], rounds: Int, _ random: inout SeededRandom) throws {
        for round in 0..<rounds {
            for (n, writer) in writers.enumerated() {
                for version in 0..<4 {
                    var data: [UInt8] = []
                    for _ in 0..<1_000 { withUnsafeBytes(of: random.next()) { data.append(contentsOf: $0) } }
                    try writer.save("\(round) \(n) \(version)", data)
                }
                try writer.exchangeOnce()
            }
        }
        // What was merged is deleted in a day.
        for _ in 0..<2 {
            writers[0].files.place.clock += Self.day + 1
            for writer in writers { try writer.exchangeOnce() }
        }
    }
    private func stored(_ place: MemoryPlace) -> Int { place.files.values.reduce(0) { $0 + $1.count } }

    @Test func ofANewDeviceAndOfOneThatWasAway() throws {
        let place = MemoryPlace(), writers = try (0..<5).map { _ in try PackedDevice(place) }, away = try PackedDevice(place)
        var random = SeededRandom(seed: 1)
        try writers[0].save("first", [1])
        for writer in writers { try writer.exchangeOnce() }
        try write(writers, rounds: 20, &random)
        try away.exchangeOnce()
        let before = stored(place)
        try write(writers, rounds: 16, &random)
        let all = writers[0].ids, logs = Dictionary(grouping: place.names(.log), by: \.writer)
        #expect(all.count == 721)
        // Names: at most 9 of each writer in log/, and 20 in all.
        let names = Dictionary(grouping: place.names(.log) + place.names(.base), by: \.writer)
        #expect(logs.values.allSatisfy { $0.count <= 9 } && names.values.allSatisfy { $0.count <= 20 }, "\(names.mapValues(\.count))")

        let new = try PackedDevice(place)
        let asked = try new.exchangeOnce()
        #expect(new.ids == all && asked.count <= 120)
        #expect(Double(new.files.bytesRead) <= 1.1 * Double(stored(place)), "\(new.files.bytesRead) of \(stored(place))")
        #expect(try new.exchangeOnce() == ["list pack1/log"])

        // Of each writer it lacks all of one merged pack, and half of another: one or the other is looked at by its end first.
        let merged = place.names(.base).filter { (place.files[$0.description]?.count ?? 0) > 2 * PackedSettings.tail && $0.last > 20 }
        #expect(merged.count == 10)
        away.files.bytesRead = 0
        let fetched = try away.exchangeOnce(), tails = merged.count * PackedSettings.tail
        #expect(away.ids == all && fetched.count { $0.hasPrefix("list") } <= 3)
        let newBytes = stored(place) - before, allowed = Int(1.3 * Double(newBytes)) + tails
        #expect(away.files.bytesRead <= allowed, "\(away.files.bytesRead) of \(newBytes)")
        // The bound says something: to read all would break it.
        #expect(allowed < stored(place) * 3 / 4, "\(allowed) of \(stored(place))")
    }
}
