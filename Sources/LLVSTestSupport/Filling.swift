#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Large values for tests. They are made of whole blocks, since a debug build takes a second to compute ten million single bytes.
package enum Filling {
    /// Returns runs of `length` equal bytes. The byte of each run is one more than that of the run before. Deflate makes them much smaller.
    package static func runs(of length: Int, count: Int, from first: UInt8 = 0) -> [UInt8] {
        made(count) { bytes in
            var at = 0, byte = first
            while at < count {
                let size = min(length, count - at)
                memset(bytes + at, Int32(byte), size)
                at += size
                byte &+= 1
            }
        }
    }

    /// Returns a pattern in which each group of 512 bytes differs from the group before it. The pattern repeats after 128 KiB.
    package static func pattern(_ count: Int) -> [UInt8] {
        made(count) { bytes in
            var at = 0
            while at < count {
                let size = min(period.count, count - at)
                period.withUnsafeBytes { _ = $0.baseAddress.map { memcpy(bytes + at, $0, size) } }
                at += size
            }
        }
    }
    /// A text of few different words, determined by a seed.
    package static func words(_ size: Int, _ seed: UInt64) -> [UInt8] {
        var state = seed | 1, out: [UInt8] = []
        while out.count < size {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            out += Array("word\(state >> 56) ".utf8)
        }
        return Array(out[..<size])
    }

    /// The value after some edits. Sometimes a part of it is also copied to another place.
    package static func edited(_ base: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
        var value = base
        func place(_ count: Int) -> Int { Int(random.next() % UInt64(count + 1)) }
        for _ in 0..<random.next() % 6 {
            let start = place(value.count), end = min(value.count, start + place(30))
            value.replaceSubrange(start..<end, with: (0..<place(30)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
        }
        if random.next() % 5 == 0 {
            let start = place(value.count), part = value[start..<min(value.count, start + place(200))]
            value.insert(contentsOf: Array(part), at: place(value.count))
        }
        return value
    }

    /// Bytes that cannot be compressed, which a test finds in a file by their beginning.
    package static func noise(_ seed: UInt64, _ count: Int) -> [UInt8] { StorageConformance.bytes(seed: seed, count: count) }

    private static let period = (0..<128 << 10).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }

    private static func made(_ count: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Void) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            buffer.baseAddress.map(fill)
            filled = count
        }
    }
}
