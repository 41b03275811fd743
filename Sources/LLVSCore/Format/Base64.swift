/// Base64 (RFC 4648, section 4), padded, strict: no line breaks, no other alphabet, no stray bits.
package enum Base64 {
    /// Returns the length of the text that `encode` writes for this many bytes.
    package static func encodedSize(_ size: Int) -> Int { (size + 2) / 3 * 4 }

    /// Appends the encoding of `data`. O(n).
    static func append(_ data: UnsafeRawBufferPointer, to out: inout [UInt8]) { append(data, to: &out) { _ in } }

    /// Appends the encoding of `data`. `flush` is called with `out` after each 64 KiB, and may empty it.
    static func append(_ data: UnsafeRawBufferPointer, to out: inout [UInt8], _ flush: (inout [UInt8]) throws -> Void) rethrows {
        guard !data.isEmpty else { return }
        // A piece at a time, so that the array grows by amortised steps and no second copy is made.
        let piece = 3 << 14
        try withUnsafeTemporaryAllocation(byteCount: min(encodedSize(data.count), encodedSize(piece)), alignment: 8) { buffer in
            var start = 0
            while start < data.count {
                let end = min(start + piece, data.count)
                let written = encode(UnsafeRawBufferPointer(rebasing: data[start..<end]), into: buffer)
                out.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<written]))
                try flush(&out)
                start = end
            }
        }
    }

    package static func encode(_ data: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(encodedSize(data.count))
        data.withUnsafeBytes { append($0, to: &out) }
        return out
    }

    /// Returns nil if the text is not base64: wrong alphabet, length or padding, or bits set after the last byte.
    package static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        let count = text.count
        guard count % 4 == 0 else { return nil }
        guard count > 0 else { return [] }
        let equals = UInt8(ascii: "=")
        let padding = text[count - 1] != equals ? 0 : text[count - 2] != equals ? 1 : 2
        let size = count / 4 * 3 - padding
        var valid = false
        let out = [UInt8](unsafeUninitializedCapacity: size) { buffer, initialized in
            valid = decode(text, padding: padding, into: buffer)
            if !valid { buffer.update(repeating: 0) }
            initialized = size
        }
        return valid ? out : nil
    }

    /// Decodes text that comes in pieces, as strictly as `decode` does.
    struct Decoder {
        /// Letters after the decoded ones, in the lowest bytes: the last group may be padded, so it waits for the end.
        private var waiting: UInt32 = 0
        private var waitingCount = 0
        private static let piece = 1 << 16

        /// Decodes the text except its last letters, and appends the result. Returns false if the text is not base64.
        mutating func append(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) -> Bool {
            var at = 0
            if waitingCount > 0 {
                while waitingCount < 4, at < text.count { wait(text[at]); at += 1 }
                guard at < text.count else { return true }
                guard appendWaiting(padding: 0, to: &out) else { return false }
            }
            guard at < text.count else { return true }
            let end = at + (text.count - at - 1) / 4 * 4
            while at < end {
                let next = min(end, at + Decoder.piece)
                guard Decoder.append(UnsafeRawBufferPointer(rebasing: text[at..<next]), padding: 0, to: &out) else { return false }
                at = next
            }
            while at < text.count { wait(text[at]); at += 1 }
            return true
        }

        /// Decodes and appends the rest. Returns false if the text is not base64.
        mutating func finish(_ out: inout [UInt8]) -> Bool {
            guard waitingCount > 0 else { return true }
            guard waitingCount == 4 else { return false }
            let equals = UInt8(ascii: "=")
            return appendWaiting(padding: letter(3) != equals ? 0 : letter(2) != equals ? 1 : 2, to: &out)
        }

        private mutating func wait(_ letter: UInt8) {
            waiting |= UInt32(letter) << (8 * UInt32(waitingCount))
            waitingCount += 1
        }
        private func letter(_ index: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: waiting >> (8 * index)) }

        private mutating func appendWaiting(padding: Int, to out: inout [UInt8]) -> Bool {
            defer { waiting = 0; waitingCount = 0 }
            return withUnsafeBytes(of: waiting.littleEndian) { Decoder.append($0, padding: padding, to: &out) }
        }

        private static func append(_ text: UnsafeRawBufferPointer, padding: Int, to out: inout [UInt8]) -> Bool {
            let size = text.count / 4 * 3 - padding
            return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: size) { decoded in
                guard Base64.decode(text, padding: padding, into: decoded) else { return false }
                out.append(contentsOf: decoded)
                return true
            }
        }
    }

    private static func encode(_ data: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer) -> Int {
        alphabet.withUnsafeBufferPointer { letters in
            var i = 0, o = 0
            while i + 3 <= data.count {
                let word = UInt32(data[i]) << 16 | UInt32(data[i + 1]) << 8 | UInt32(data[i + 2])
                out[o] = letters[Int(word >> 18)]
                out[o + 1] = letters[Int(word >> 12 & 63)]
                out[o + 2] = letters[Int(word >> 6 & 63)]
                out[o + 3] = letters[Int(word & 63)]
                i += 3; o += 4
            }
            let rest = data.count - i
            if rest > 0 {
                let word = UInt32(data[i]) << 16 | (rest == 2 ? UInt32(data[i + 1]) << 8 : 0)
                out[o] = letters[Int(word >> 18)]
                out[o + 1] = letters[Int(word >> 12 & 63)]
                out[o + 2] = rest == 2 ? letters[Int(word >> 6 & 63)] : UInt8(ascii: "=")
                out[o + 3] = UInt8(ascii: "=")
                o += 4
            }
            return o
        }
    }

    private static func decode(_ text: UnsafeRawBufferPointer, padding: Int, into out: UnsafeMutableBufferPointer<UInt8>) -> Bool {
        values.withUnsafeBufferPointer { values in
            let whole = text.count - (padding > 0 ? 4 : 0)
            var i = 0, o = 0
            // A byte that is no letter sets the top bit here. The bits are collected, and checked once.
            var bad: UInt32 = 0
            let raw = UnsafeMutableRawBufferPointer(out)
            shifted.withUnsafeBufferPointer { tables in
                // Four bytes are stored for three, so the last group is left to the plain loop.
                while i + 4 < whole {
                    let word =
                        tables[Int(text[i])] | tables[256 + Int(text[i + 1])] | tables[512 + Int(text[i + 2])]
                        | tables[768 + Int(text[i + 3])]
                    bad |= word
                    raw.storeBytes(of: word.littleEndian, toByteOffset: o, as: UInt32.self)
                    i += 4; o += 3
                }
            }
            while i < whole {
                let a = values[Int(text[i])], b = values[Int(text[i + 1])], c = values[Int(text[i + 2])], d = values[Int(text[i + 3])]
                bad |= UInt32((a | b | c | d) & 0x80) << 24
                out[o] = a << 2 | b >> 4
                out[o + 1] = b << 4 | c >> 2
                out[o + 2] = c << 6 | d
                i += 4; o += 3
            }
            guard bad & 0x8000_0000 == 0 else { return false }
            guard padding > 0 else { return true }
            let a = values[Int(text[i])], b = values[Int(text[i + 1])]
            guard (a | b) & 0x80 == 0 else { return false }
            out[o] = a << 2 | b >> 4
            if padding == 2 { return b & 15 == 0 }
            let c = values[Int(text[i + 2])]
            guard c & 0x80 == 0, c & 3 == 0 else { return false }
            out[o + 1] = b << 4 | c >> 2
            return true
        }
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    /// The six bits of each letter as first, second, third and fourth of its group, at their position in three bytes, little-endian. The
    /// top bit is set for any other byte.
    private static let shifted: [UInt32] = {
        var table = [UInt32](repeating: 0x8000_0000, count: 1024)
        for (value, letter) in alphabet.enumerated() {
            let v = UInt32(value), i = Int(letter)
            table[i] = v << 2
            table[256 + i] = v >> 4 | (v & 15) << 12
            table[512 + i] = (v >> 2) << 8 | (v & 3) << 22
            table[768 + i] = v << 16
        }
        return table
    }()
    /// The six bits of each letter; 0xFF for any other byte.
    private static let values: [UInt8] = {
        var table = [UInt8](repeating: 0xFF, count: 256)
        for (value, letter) in alphabet.enumerated() { table[Int(letter)] = UInt8(value) }
        return table
    }()
}
