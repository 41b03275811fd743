import CLLVSShims
import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

/// Values as differences: Tests/Vectors/differences.json, and round trips.
struct ValueDifferenceTests {
    private struct Vectors: Decodable {
        struct Vector: Decodable {
            var name: String
            var stored: String
            var size: Int
            var base: String
            var value: String?
            var refused: String?
        }
        var format: Int
        var vectors: [Vector]
    }

    private func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex.utf8), values = digits.map { $0 < 58 ? $0 - 48 : $0 - 87 }
        return stride(from: 0, to: digits.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
    }

    @Test func vectors() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/differences.json")
        let vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
        #expect(vectors.format == 1 && vectors.vectors.count > 80)
        for vector in vectors.vectors {
            let base = bytes(vector.base)
            try bytes(vector.stored).withUnsafeBytes { stored in
                switch ValueDifference.read(stored, size: vector.size) {
                case .newer: #expect(vector.refused == "newer", "\(vector.name)")
                case .damaged: #expect(vector.refused == "damaged", "\(vector.name)")
                case .difference(let difference):
                    try withScratch(vector.size) { target in
                        let isMade = try base.withUnsafeBytes { try difference.apply(to: $0, into: target) }
                        #expect((isMade ? Array(target) : nil) == vector.value.map(bytes), "\(vector.name)")
                        #expect(vector.refused == (isMade ? nil : "damaged"), "\(vector.name)")
                    }
                }
            }
        }
    }

    // MARK: What is made

    /// The streams of a difference; empty if there is none.
    static func make(_ value: [UInt8], from base: [UInt8], room: Int? = nil) -> [UInt8] {
        let room = room ?? value.count + 16
        return [UInt8](unsafeUninitializedCapacity: room + 1) { buffer, count in
            buffer[room] = 0xA5
            count = value.withUnsafeBytes { value in
                base.withUnsafeBytes {
                    llvs_shim_difference_make($0.baseAddress, $0.count, value.baseAddress, value.count, buffer.baseAddress, room)
                }
            }
            #expect(buffer[room] == 0xA5 && count <= room)
        }
    }

    static func apply(_ streams: [UInt8], to base: [UInt8], size: Int) -> [UInt8]? {
        var isMade = false
        let made = [UInt8](unsafeUninitializedCapacity: size + 1) { buffer, count in
            buffer[size] = 0xA5
            isMade = streams.withUnsafeBytes { streams in
                base.withUnsafeBytes {
                    llvs_shim_difference_apply(streams.baseAddress, streams.count, $0.baseAddress, $0.count, buffer.baseAddress, size) == 1
                }
            }
            #expect(buffer[size] == 0xA5)
            count = isMade ? size : 0
        }
        return isMade ? made : nil
    }

    @Test(arguments: Sample.seeds(from: 1, usual: 4, deep: 40)) func whatIsMadeComesBack(seed: UInt64) throws {
        var random = SeededRandom(seed: seed), made = 0, sizes = 0
        for round in 0..<1_500 {
            let letters = [2, 5, 40, 256][round % 4]
            let base = (0..<Int(random.next() % 3_000)).map { _ in UInt8(truncatingIfNeeded: random.next() % UInt64(letters)) }
            let value = Filling.edited(base, &random)
            let streams = Self.make(value, from: base, room: round % 3 == 0 ? Int(random.next() % 200) : nil)
            guard !streams.isEmpty else { continue }
            made += 1
            sizes += streams.count
            #expect(Self.apply(streams, to: base, size: value.count) == value)
            // With changed or truncated streams nothing outside the given buffers is read or written.
            var wrong = streams
            wrong[Int(random.next() % UInt64(wrong.count))] ^= 1 << UInt8(random.next() % 8)
            _ = Self.apply(wrong, to: base, size: value.count)
            _ = Self.apply(Array(streams.dropLast(Int(random.next() % UInt64(streams.count)))), to: base, size: value.count)
            _ = Self.apply(streams, to: Array(base.dropLast(Int(random.next() % 100))), size: value.count)
        }
        #expect(made > 1_000 && sizes / made < 300)
    }

    @Test func aDifferenceIsAsSmallAsWhatWasEdited() {
        let base = Filling.words(200_000, 5)
        var value = base
        for place in stride(from: 10_000, to: 200_000, by: 20_000) {
            value.replaceSubrange(place..<place + 5, with: Array("another word".utf8))
        }
        #expect(Self.make(value, from: base).count < 10 * 30)
        let moved = Array(base[100_000...] + base[..<100_000])
        #expect(Self.make(moved, from: base).count < 30)
        #expect(Self.make(base + base, from: base).count < 30)
        #expect(Self.make(base, from: base).count < 12)
    }

    @Test func nothingIsMadeOfWhatHasNothingInCommon() {
        var random = SeededRandom(seed: 3)
        let a = (0..<300_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        let b = a.map { _ in UInt8(truncatingIfNeeded: random.next()) }
        #expect(Self.make(a, from: b).isEmpty)
        #expect(Self.make([], from: b).isEmpty)
        #expect(Self.make(a, from: []).isEmpty)
    }
}
