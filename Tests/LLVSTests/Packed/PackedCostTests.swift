import LLVSTesting
import Testing
@testable import LLVS

/// What reading costs, in requests and bytes: five writers, of whom each sent ten versions at a time.
@Suite("Packed: costs") struct PackedCostTests {
    private static let day = 86_400 / Int(MemoryPlace.step)

    private func write(_ writers: [PackedDevice], rounds: Int, _ random: inout SeededRandom) throws {
        for round in 0..<rounds {
            for (n, writer) in writers.enumerated() {
                for version in 0..<10 {
                    let data = (0..<1_000).map { _ in UInt8.random(in: 0...255, using: &random) }
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
        try write(writers, rounds: 24, &random)
        try away.exchangeOnce()
        let before = stored(place)
        try write(writers, rounds: 12, &random)
        let all = writers[0].ids, logs = Dictionary(grouping: place.names(.log), by: \.writer)
        #expect(all.count == 1_801)
        // Names: at most 9 of each writer in log/, and 20 in all.
        let names = Dictionary(grouping: place.names(.log) + place.names(.base), by: \.writer)
        #expect(logs.values.allSatisfy { $0.count <= 9 } && names.values.allSatisfy { $0.count <= 20 }, "\(names.mapValues(\.count))")

        let new = try PackedDevice(place)
        let asked = try new.exchangeOnce()
        #expect(new.ids == all && asked.count <= 120)
        #expect(Double(new.files.bytesRead) <= 1.1 * Double(stored(place)), "\(new.files.bytesRead) of \(stored(place))")
        #expect(try new.exchangeOnce() == ["list pack1/log"])

        away.files.bytesRead = 0
        let fetched = try away.exchangeOnce(), tails = names.values.reduce(0) { $0 + $1.count } * PackedSettings.tail
        #expect(away.ids == all && fetched.count { $0.hasPrefix("list") } <= 3)
        let newBytes = stored(place) - before
        #expect(Double(away.files.bytesRead) <= 1.3 * Double(newBytes) + Double(tails), "\(away.files.bytesRead) of \(newBytes)")
        #expect(away.files.bytesRead < stored(place) * 3 / 4, "\(away.files.bytesRead) of \(stored(place))")
    }
}
