/// Reads parts of one record through a window, so that a large record is never in memory as a whole.
struct RecordReader {
    private let read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Void
    private let length: Int
    private var window: [UInt8]
    private var windowStart = 0

    init(length: UInt64, read: @escaping (UInt64, UnsafeMutableRawBufferPointer) throws -> Void) {
        self.length = Int(clamping: length)
        self.read = read
        window = []
    }

    /// Calls with `count` bytes from `offset` on, reading ahead up to `ahead` more. Nil when the record ends before.
    mutating func with<R>(_ offset: Int, _ count: Int, ahead: Int = 0, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R? {
        guard offset >= 0, count >= 0, offset <= length, count <= length - offset else { return nil }
        if offset < windowStart || offset + count > windowStart + window.count {
            let size = min(length - offset, count + ahead)
            window = try [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
                try read(UInt64(offset), UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[0..<size]))
                filled = size
            }
            windowStart = offset
        }
        return try window.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[(offset - windowStart)...])) }
    }
}
