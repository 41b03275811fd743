import CLLVS
import Glibc

/// Makes arguments of C functions from an input: valid ones, and every kind of invalid one that the header says is refused.
///
/// Each piece of memory has exactly the size that it claims, so AddressSanitizer notices reads beyond it.
final class Arguments {
    var input: FuzzInput
    private var memory: [UnsafeMutableRawPointer] = []
    /// Ids of versions that were made.
    var versions: [[UInt8]] = []

    init(_ input: FuzzInput) { self.input = input }
    deinit { for piece in memory { free(piece) } }

    func allocate(_ count: Int) -> UnsafeMutableRawBufferPointer {
        guard let start = calloc(1, max(1, count)) else { fail("no memory for an argument") }
        memory.append(start)
        return UnsafeMutableRawBufferPointer(start: start, count: count)
    }

    private func copy(_ bytes: [UInt8]) -> llvs_bytes {
        // Nothing beyond the end may be read, and empty bytes have an address that is not NULL.
        guard let start = malloc(bytes.count == 0 ? 1 : bytes.count) else { fail("no memory for an argument") }
        memory.append(start)
        memcpy(start, bytes, bytes.count)
        return llvs_bytes(data: UnsafePointer(start.assumingMemoryBound(to: UInt8.self)), size: bytes.count)
    }
    func text(_ text: String) -> llvs_bytes { copy(Array(text.utf8)) }

    static let absurd = [-1, Int.max, Int.min, 1 << 30 + 1, 1 << 40]

    /// Arbitrary bytes, none, existing ids, or an impossible size.
    func bytes() -> llvs_bytes {
        let how = input.byte()
        switch how % 16 {
        case 0: return llvs_bytes(data: nil, size: 0)
        case 1: return llvs_bytes(data: nil, size: Int(input.byte()) + 1)
        case 2: return llvs_bytes(data: copy([1]).data, size: Self.absurd[Int(input.byte()) % Self.absurd.count])
        case 3...8: return version()
        case 9...12: return text(["a", "b", "c", "å", ""][Int(input.byte()) % 5])
        default:
            let count = Int(input.byte())
            return copy((0..<count).map { _ in input.byte() })
        }
    }
    /// The id of an existing version, if there is one.
    func version() -> llvs_bytes { versions.isEmpty ? copy([65]) : copy(versions[Int(input.byte()) % versions.count]) }

    /// Elements in succession, `stride` bytes each. The count and the stride are valid, or impossible.
    func array<T>(of _: T.Type, _ make: () -> T) -> (start: UnsafePointer<T>?, count: Int, stride: Int) {
        let how = input.byte(), count = Int(input.byte() % 6), size = MemoryLayout<T>.stride
        var stride = size
        switch how % 16 {
        case 0: return (nil, 0, size)
        case 1: return (nil, count + 1, size)
        case 2: stride = size + 8 * Int(input.byte() % 8)
        case 3: stride = Int(input.uint16() % 200)
        case 4: return (rows(count, size, make), Self.absurd[Int(input.byte()) % Self.absurd.count], size)
        case 5: return (rows(max(1, count), size, make), max(1, count), Self.absurd[Int(input.byte()) % Self.absurd.count])
        default: break
        }
        return (rows(count, stride, make), count, stride)
    }
    private func rows<T>(_ count: Int, _ stride: Int, _ make: () -> T) -> UnsafePointer<T>? {
        let rows = allocate(count * stride)
        for i in 0..<count {
            let row = UnsafeMutableRawBufferPointer(rebasing: rows[i * stride..<(i + 1) * stride])
            withUnsafeBytes(of: make()) { row.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0.prefix(stride))) }
            // A byte that a newer program may have set.
            if stride > MemoryLayout<T>.size, input.byte() % 8 == 0 { row[stride - 1] = input.byte() }
        }
        return rows.baseAddress.map { UnsafePointer($0.assumingMemoryBound(to: T.self)) }
    }

    /// A struct that begins with its size: whole, NULL, of another size, or with bytes set after its end.
    func structure<T>(_ value: T) -> UnsafeMutablePointer<T>? {
        let how = input.byte(), size = MemoryLayout<T>.size
        var told = size
        switch how % 16 {
        case 0: return nil
        case 1: told = Int(input.byte())
        case 2: told = size + Int(input.byte())
        case 3: told = min(4097 + Int(input.uint32()), Int(UInt32.max))
        default: break
        }
        let there = told > 4096 ? size : max(4, told)
        let piece = allocate(there)
        withUnsafeBytes(of: value) { piece.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0.prefix(there))) }
        if there > size, input.byte() & 1 == 0 { piece[there - 1] = 1 }
        piece.storeBytes(of: UInt32(truncatingIfNeeded: told), as: UInt32.self)
        return piece.baseAddress?.assumingMemoryBound(to: T.self)
    }

    /// A valid struct.
    func whole<T>(_ value: T) -> UnsafeMutablePointer<T>? {
        let piece = allocate(MemoryLayout<T>.size)
        withUnsafeBytes(of: value) { piece.copyMemory(from: $0) }
        piece.storeBytes(of: UInt32(piece.count), as: UInt32.self)
        return piece.baseAddress?.assumingMemoryBound(to: T.self)
    }

    /// A constant; most often a valid one.
    func constant(_ last: UInt32) -> UInt32 {
        let byte = input.byte()
        return byte < 250 ? UInt32(byte) % (last + 1) : input.uint32()
    }
}
