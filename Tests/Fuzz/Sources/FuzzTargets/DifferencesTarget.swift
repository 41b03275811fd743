import CLLVSShims
import LLVS

@testable import LLVSCore

/// Values as differences: arbitrary stored bytes, and differences that the library makes.
///
///     input = how u8 · part (base) · ...
///     how 0: size u32 · stored bytes, as they come
///         1: size u32 · streams, with a header that fits them
///         2: a value, whose difference is made and applied again
enum DifferencesTarget {
    static let target = FuzzTarget(name: "differences", run: run, seeds: seeds)
    private static let version = VersionID(high: 1, low: 2)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte() % 3, base = input.part()
        switch how {
        case 0:
            let size = Int(input.uint32())
            read(input.rest(), size: size, base)
        case 1:
            let size = Int(input.uint32() & 0xF_FFFF), streams = input.rest()
            read(stored(streams, base, checksum: made(streams, size: size, base).map(checksum) ?? 0), size: size, base)
        default: make(input.rest(), base)
        }
    }

    private static func checksum(_ bytes: [UInt8]) -> UInt32 { bytes.withUnsafeBytes { Bytes.crc32c($0) } }

    private static func stored(_ streams: [UInt8], _ base: [UInt8], checksum own: UInt32) -> [UInt8] {
        var out = RecordBuffer()
        do { try out.reserve(128 + streams.count) } catch { return [] }
        out.integer(UInt8(0))
        out.varint(1)
        out.varint(UInt64(Limits.valueSize))
        out.versionID(version)
        out.varint(UInt64(base.count))
        out.varint(0)
        out.integer(checksum(base))
        out.integer(own)
        streams.withUnsafeBytes { out.raw($0) }
        return Array(out.bytes)
    }

    private static func made(_ streams: [UInt8], size: Int, _ base: [UInt8]) -> [UInt8]? {
        var isMade = false
        let out = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            isMade = streams.withUnsafeBytes { from in
                base.withUnsafeBytes {
                    llvs_shim_difference_apply(from.baseAddress, from.count, $0.baseAddress, $0.count, buffer.baseAddress, size) == 1
                }
            }
            count = isMade ? size : 0
        }
        return isMade ? out : nil
    }

    private static func read(_ stored: [UInt8], size: Int, _ base: [UInt8]) {
        stored.withUnsafeBytes { stored in
            guard case .difference(let difference) = ValueDifference.read(stored, size: size) else { return }
            require(size <= ValueDifference.largestValue && difference.streamsSize <= 2 * size + 64, "a difference beyond its limits")
            Examining.attempt {
                try withScratch(size) { target in
                    let isMade = try base.withUnsafeBytes { try difference.apply(to: $0, into: target) }
                    require(
                        !isMade || Bytes.crc32c(UnsafeRawBufferPointer(target)) == difference.checksum, "a value of another checksum")
                }
            }
        }
    }

    private static func make(_ value: [UInt8], _ base: [UInt8]) {
        let room = value.count + 16
        let streams = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
            count = value.withUnsafeBytes { value in
                base.withUnsafeBytes {
                    llvs_shim_difference_make($0.baseAddress, $0.count, value.baseAddress, value.count, buffer.baseAddress, room)
                }
            }
        }
        require(streams.isEmpty || made(streams, size: value.count, base) == value, "a difference makes another value")
    }

    @Sendable private static func seeds() -> [FuzzTarget.Seed] {
        let base = Array("hello world, hello all".utf8), value = Array("hello brave world, hello all".utf8)
        let streams: [UInt8] = [5, 0x0D, 0, 0x0C, 0x21, 0] + Array("brave ".utf8)
        func seed(_ name: String, _ how: UInt8, _ rest: [UInt8]) -> FuzzTarget.Seed {
            .init(name: name, bytes: [how] + FuzzInput.part(base) + rest)
        }
        let size: [UInt8] = [UInt8(value.count), 0, 0, 0]
        return [
            seed("stored", 0, size + stored(streams, base, checksum: checksum(value))), seed("streams", 1, size + streams),
            seed("made", 2, value), seed("made-of-nothing-in-common", 2, Array(repeating: 0x7A, count: 64)),
        ]
    }
}
