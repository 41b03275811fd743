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

    /// Applies several differences, the one of the base first; nil if that is not possible with so much memory.
    static func applyAll(_ all: [(streams: [UInt8], size: Int)], to base: [UInt8], room: Int) -> [UInt8]? {
        let size = all.last?.size ?? 0
        var isMade = false
        // The streams of all, one after another.
        let streams = all.flatMap(\.streams), pieces = UnsafeMutablePointer<llvs_shim_piece>.allocate(capacity: room + 1)
        defer { pieces.deallocate() }
        pieces[room].end = 0xA5
        let made = [UInt8](unsafeUninitializedCapacity: size + 1) { buffer, count in
            buffer[size] = 0xA5
            streams.withUnsafeBytes { from in
                var at = 0
                let steps = all.map { one in
                    defer { at += one.streams.count }
                    return llvs_shim_difference(
                        streams: from.baseAddress.map { $0 + at }, streams_size: one.streams.count, size: one.size)
                }
                isMade = base.withUnsafeBytes {
                    llvs_shim_difference_apply_all(steps, steps.count, $0.baseAddress, $0.count, buffer.baseAddress, pieces, room) == 1
                }
            }
            #expect(buffer[size] == 0xA5)
            count = isMade ? size : 0
        }
        #expect(pieces[room].end == 0xA5)
        return isMade ? made : nil
    }

    /// Several differences that are applied together make the same value as one after another.
    @Test(arguments: Sample.seeds(from: 1, usual: 4, deep: 40)) func severalAtOnceMakeTheSame(seed: UInt64) throws {
        var random = SeededRandom(seed: seed), made = 0, refused = 0
        for _ in 0..<400 {
            let base = (0..<Int(1 + random.next() % 2_000)).map { _ in UInt8(truncatingIfNeeded: random.next() % 40) }
            var value = base, all: [(streams: [UInt8], size: Int)] = []
            for _ in 0..<1 + random.next() % 6 {
                let next = random.next() % 6 == 0 ? value + value.prefix(300) + value : Filling.edited(value, &random)
                let streams = Self.make(next, from: value)
                guard !streams.isEmpty else { break }
                all.append((streams, next.count))
                value = next
            }
            guard !all.isEmpty else { continue }
            #expect(Self.applyAll(all, to: base, room: 4_000) == value)
            made += 1
            // With little memory the result is the same, or there is none.
            if let same = Self.applyAll(all, to: base, room: Int(random.next() % 40)) { #expect(same == value) } else { refused += 1 }
            // With changed streams the result is that of applying them one after another, or there is none in either way.
            let at = Int(random.next() % UInt64(all.count)), place = Int(random.next() % UInt64(all[at].streams.count))
            all[at].streams[place] ^= 1 << UInt8(random.next() % 8)
            let inTurn = all.reduce(base as [UInt8]?) { before, one in before.flatMap { Self.apply(one.streams, to: $0, size: one.size) } }
            #expect(Self.applyAll(all, to: base, room: 8_000) == inTurn)
        }
        #expect(made > 300 && refused > 50)
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
