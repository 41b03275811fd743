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
    private static let period = (0..<128 << 10).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }

    private static func made(_ count: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Void) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            buffer.baseAddress.map(fill)
            filled = count
        }
    }
}
