#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// What prevails for one value id: the version that stored the bytes, and where in its record they are.
struct MapEntry {
    /// The ordinal of the storing version in this process's history.
    var version: UInt32
    /// Bytes of the value; `unknownSize` when it was not told.
    var size: UInt32
    /// Offset of the body from the start of the storing version's record; 0 when it must be looked up in
    /// the record's table (preserved entries, blobs). Logical: a record keeps its bytes wherever it lies.
    var bodyOffset: UInt64

    static let unknownSize = UInt32.max

    /// Entries are the same reference when the same version stored them (the id is the key).
    @inline(__always)
    func isSameReference(as other: MapEntry) -> Bool { version == other.version }
}

/// One change to a map: sets the entry of a key, or removes it. The key is borrowed.
struct MapChange {
    var key: UnsafeRawBufferPointer
    var entry: MapEntry?
}

/// A set hash of map entries: the sum of keyed 128-bit hashes of each, so that it depends on the contents
/// alone and changes with an entry in constant time.
///
/// Keyed by secrets that are random per process, and never stored: nobody outside can make two sets collide.
struct MapDigest: Equatable {
    var a: UInt64 = 0
    var b: UInt64 = 0

    static func + (x: MapDigest, y: MapDigest) -> MapDigest { MapDigest(a: x.a &+ y.a, b: x.b &+ y.b) }

    private static let secrets: (UInt64, UInt64, UInt64, UInt64) = {
        var generator = SystemRandomNumberGenerator()
        return (generator.next() | 1, generator.next() | 1, generator.next() | 1, generator.next() | 1)
    }()

    @inline(__always)
    private static func fold(_ x: UInt64, _ y: UInt64) -> UInt64 {
        let product = x.multipliedFullWidth(by: y)
        return product.high ^ product.low
    }

    init() {}
    init(a: UInt64, b: UInt64) { self.a = a; self.b = b }

    /// Of one entry. Source of the mixing step: Wang Yi, wyhash (64 by 64 multiplication, halves xored), two
    /// lanes with secrets of their own.
    init(key: UnsafeRawBufferPointer, version: UInt32) {
        let (s0, s1, s2, s3) = MapDigest.secrets
        var x = s0 ^ UInt64(key.count), y = s2 ^ UInt64(version)
        var i = 0
        while i + 8 <= key.count {
            let word = key.loadUnaligned(fromByteOffset: i, as: UInt64.self)
            x = MapDigest.fold(x ^ word, s1 ^ UInt64(i))
            y = MapDigest.fold(y ^ word, s3 &+ UInt64(i))
            i += 8
        }
        var tail: UInt64 = 0
        while i < key.count { tail = tail << 8 | UInt64(key[i]); i += 1 }
        x = MapDigest.fold(x ^ tail ^ s3, s1 ^ UInt64(version))
        y = MapDigest.fold(y ^ tail ^ s0, s3)
        a = MapDigest.fold(x ^ s2, y | 1) ^ x
        b = MapDigest.fold(y ^ s1, x | 1) ^ y
    }
}
