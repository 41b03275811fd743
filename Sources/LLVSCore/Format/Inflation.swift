import CLLVSShims

/// Inflates raw deflate (RFC 1951) in one call.
package enum Inflated {
    /// Inflates to `size` bytes at `target`. Returns false if the deflated bytes do not inflate to exactly that size.
    @inline(__always)
    static func fill(_ target: UnsafeMutableRawPointer?, size: Int, from deflated: UnsafeRawBufferPointer) -> Bool {
        guard let target, let from = deflated.baseAddress else { return false }
        return llvs_shim_inflate(from, deflated.count, target, size) == 1
    }

    /// Returns the inflated bytes; nil if there are not exactly `size` of them. If `size` may be large, call `Memory.expect` first.
    package static func bytes(_ size: Int, from deflated: UnsafeRawBufferPointer) -> [UInt8]? {
        var isWhole = false
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
            isWhole = fill(buffer.baseAddress, size: size, from: deflated)
            filled = isWhole ? size : 0
        }
        return isWhole ? bytes : nil
    }
}

/// Inflates raw deflate piece by piece. Used by one thread at a time.
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

    /// Inflates from `piece` into `target` until one of them is used up, or the stream ends. Returns how many bytes it read and wrote; nil
    /// if the bytes are not valid deflate.
    func take(_ piece: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> (taken: Int, made: Int)? {
        guard !isDone else { return (0, 0) }
        var taken = 0, done: Int32 = 0
        let made = llvs_shim_inflate_more(state, piece.baseAddress, piece.count, &taken, target.baseAddress, target.count, &done)
        isDone = done != 0
        return made < 0 ? nil : (taken, Int(made))
    }

    /// Returns whether the deflate stream has ended. After all bytes were read, the last bits may still be in the state; this reads them.
    func isAtEnd() -> Bool {
        let none = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        return isDone || (take(UnsafeRawBufferPointer(none), into: none) != nil && isDone)
    }

    /// Inflates all of `piece` into `target`, and adds the number of written bytes to `made`. Returns false if `piece` is not valid
    /// deflate, or `target` is too small.
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
