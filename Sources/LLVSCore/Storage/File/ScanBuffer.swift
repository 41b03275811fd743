import CLLVSShims

/// A window of a file for scanning, filled in large pieces.
final class ScanBuffer {
    /// The bytes that are read at once when going forward; after a jump, a quarter of that.
    static let chunk = 1 << 20
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var start: UInt64 = 0
    private var count = 0
    /// Whether unreadable bytes were met since `forget`.
    private(set) var metUnreadable = false

    deinit { free(memory.baseAddress) }
    func forget() { count = 0; start = 0; metUnreadable = false }

    @inline(__always)
    func hit(_ offset: UInt64, _ wanted: Int) -> UnsafeRawBufferPointer? {
        guard offset >= start, offset - start <= UInt64(count), wanted <= count - Int(offset - start) else { return nil }
        let from = Int(offset - start)
        return UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(memory)[from..<from + wanted])
    }

    /// Returns how many bytes from `offset` on are in the buffer.
    func available(_ offset: UInt64) -> Int { offset >= start && offset - start <= UInt64(count) ? count - Int(offset - start) : 0 }

    func fill(_ fd: Int32, _ offset: UInt64, _ wanted: Int, size: UInt64) throws(Errno) -> UnsafeRawBufferPointer? {
        guard offset <= size, UInt64(wanted) <= size - offset else { return nil }
        let forward = count == 0 || (offset >= start && offset - start <= UInt64(count))
        let ahead = forward ? ScanBuffer.chunk : ScanBuffer.chunk / 4
        let filling = Int(min(size - offset, UInt64(max(wanted, ahead))))
        if memory.count < filling {
            free(memory.baseAddress)
            memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
            // The old content is gone, even if the new allocation fails.
            count = 0
            // A small file gets a small buffer, a longer one the full buffer at once.
            let room = max(filling, min(ScanBuffer.chunk, filling * 4))
            guard let bytes = llvs_shim_allocate(room) else { throw Errno(ENOMEM) }
            memory = UnsafeMutableRawBufferPointer(start: bytes, count: room)
        }
        count = 0
        let target = UnsafeMutableRawBufferPointer(rebasing: memory[0..<filling])
        let got: Int
        do throws(Errno) {
            got = try System.pread(fd, target, at: offset)
        } catch {
            guard error.code == EIO else { throw error }
            got = readAround(fd, target, at: offset)
        }
        start = offset
        count = got
        return hit(offset, wanted)
    }

    /// Reads around bad sectors: unreadable bytes count as zeros, so that they cost only the frames in which they are.
    private func readAround(_ fd: Int32, _ target: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int {
        var done = 0
        while done < target.count {
            let piece = UnsafeMutableRawBufferPointer(rebasing: target[done..<min(target.count, done + 4096)])
            let got = try? System.pread(fd, piece, at: offset &+ UInt64(done))
            if got == nil {
                piece.initializeMemory(as: UInt8.self, repeating: 0)
                metUnreadable = true
            }
            let count = got ?? piece.count
            done += count
            if count < piece.count { break }
        }
        return done
    }
}
