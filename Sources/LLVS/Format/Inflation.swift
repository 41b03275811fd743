import CLLVSShims

/// Raw deflate (RFC 1951) taken back, as a whole.
enum Inflated {
    /// Fills `size` bytes at `target`; false when the deflated bytes do not make exactly so many.
    @inline(__always)
    static func fill(_ target: UnsafeMutableRawPointer?, size: Int, from deflated: UnsafeRawBufferPointer) -> Bool {
        guard let target, let from = deflated.baseAddress else { return false }
        return llvs_shim_inflate(from, deflated.count, target, size) == 1
    }

    /// The same as an array; nil when they do not make exactly `size` bytes. Where these may be many, ask `Memory.expect` before.
    static func bytes(_ size: Int, from deflated: UnsafeRawBufferPointer) -> [UInt8]? {
        var isWhole = false
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
            isWhole = fill(buffer.baseAddress, size: size, from: deflated)
            filled = isWhole ? size : 0
        }
        return isWhole ? bytes : nil
    }
}

/// The same piece by piece. Used by one thread at a time.
final class Inflation {
    private let state: OpaquePointer
    private var isDone = false

    /// - Throws: `.outOfMemory`.
    init() throws {
        guard let state = llvs_shim_inflater_make() else {
            throw StoreError(.outOfMemory, "There is no memory to inflate a value. Free some, and try again.")
        }
        self.state = state
    }
    deinit { llvs_shim_inflater_free(state) }

    /// Takes of `piece`, and writes to `target`, as far as both reach. Answers how many bytes were taken and made; nil when
    /// the bytes are not what deflate makes.
    func take(_ piece: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> (taken: Int, made: Int)? {
        guard !isDone else { return (0, 0) }
        var taken = 0, done: Int32 = 0
        let made = llvs_shim_inflate_more(state, piece.baseAddress, piece.count, &taken, target.baseAddress, target.count, &done)
        isDone = done != 0
        return made < 0 ? nil : (taken, Int(made))
    }

    /// Whether the deflated bytes have come to their end, and nothing more comes of them: the last bits may still be in
    /// the state, with all bytes taken.
    func isAtEnd() -> Bool {
        let none = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        return isDone || (take(UnsafeRawBufferPointer(none), into: none) != nil && isDone)
    }

    /// Takes all of `piece` and counts what was made of it; false when it is wrong or has no room.
    func append(_ piece: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer, _ made: inout Int) -> Bool {
        var at = 0, filled = 0
        while at < piece.count {
            guard
                let step = take(
                    UnsafeRawBufferPointer(rebasing: piece[at...]), into: UnsafeMutableRawBufferPointer(rebasing: target[filled...])),
                step.taken > 0 || step.made > 0
            else { return false }
            at += step.taken
            filled += step.made
            made += step.made
        }
        return true
    }
}
