/// Copies of byte strings, whose addresses are stable while the arena lives.
package final class ByteArena {
    private var blocks: [UnsafeMutableRawPointer] = []
    private var next: UnsafeMutableRawPointer?
    private var left = 0

    package init() {}
    deinit { for block in blocks { block.deallocate() } }

    package func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard bytes.count > 0, let from = bytes.baseAddress else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        if left < bytes.count || next == nil {
            left = max(bytes.count, 256 << min(2 * blocks.count, 10))
            let block = UnsafeMutableRawPointer.allocate(byteCount: left, alignment: 8)
            blocks.append(block)
            next = block
        }
        guard let to = next else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        memcpy(to, from, bytes.count)
        next = to + bytes.count
        left -= bytes.count
        return UnsafeRawBufferPointer(start: to, count: bytes.count)
    }
}
