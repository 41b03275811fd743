/// Reads nodes of a flat map; `FlatMap` has the layout.
extension FlatMap {
    /// A node, by its address. Valid as long as the map.
    struct Node {
        let at: UnsafeRawPointer
        var kind: UInt8 { at.load(as: UInt8.self) }
        var isLeaf: Bool { kind != 0 }
        var symbolCount: Int { Int(at.load(fromByteOffset: 2, as: UInt16.self)) }
        var count: Int { Int(at.load(fromByteOffset: 4, as: UInt32.self)) }
        /// The number of its first entry.
        var first: Int { Int(at.load(fromByteOffset: 8, as: UInt32.self)) }
        var prefixCount: Int { Int(at.load(fromByteOffset: 12, as: UInt32.self)) }

        // Inner nodes.
        var symbols: UnsafeBufferPointer<UInt16> {
            UnsafeBufferPointer(start: (at + headerSize).assumingMemoryBound(to: UInt16.self), count: symbolCount)
        }
        var childrenOffset: Int { headerSize + (symbolCount * 2 + 3) & ~3 }
        func child(_ i: Int) -> UInt32 { at.load(fromByteOffset: childrenOffset + i * 4, as: UInt32.self) }

        // Leaves.
        private var isWide: Bool { kind == 2 }
        private var endSize: Int { isWide ? 4 : 2 }
        @inline(__always) func end(_ i: Int) -> Int {
            isWide
                ? Int(at.load(fromByteOffset: headerSize + i * 4, as: UInt32.self))
                : Int(at.load(fromByteOffset: headerSize + i * 2, as: UInt16.self))
        }
        var prefixOffset: Int { isLeaf ? headerSize + (count * endSize + 1) & ~1 : childrenOffset + symbolCount * 4 }

        var prefix: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: at + prefixOffset, count: prefixCount) }
        /// The part of the i-th key after the prefix.
        @inline(__always) func rest(_ i: Int) -> UnsafeRawBufferPointer {
            let start = i == 0 ? 0 : end(i - 1)
            return UnsafeRawBufferPointer(start: at + prefixOffset + prefixCount + start, count: end(i) - start)
        }

        /// Returns the first index in a leaf whose key is not below `key`, and whether it is that key.
        @inline(__always) func search(_ key: UnsafeRawBufferPointer) -> (index: Int, found: Bool) {
            let prefix = prefix
            let head = UnsafeRawBufferPointer(rebasing: key.prefix(prefix.count))
            let order = Bytes.compare(prefix, head)
            // A key that ends within the prefix is below all of them.
            guard order == 0 else { return (order > 0 ? 0 : count, false) }
            return search(rest: UnsafeRawBufferPointer(rebasing: key[prefix.count...]))
        }

        /// Returns the index of a key in a leaf; nil if it is absent. Compares the prefix last, since it nearly always matches.
        @inline(__always) func index(of key: UnsafeRawBufferPointer) -> Int? {
            let prefix = prefix
            guard key.count >= prefix.count else { return nil }
            let (index, found) = search(rest: UnsafeRawBufferPointer(rebasing: key[prefix.count...]))
            return found && Bytes.equal(prefix, UnsafeRawBufferPointer(rebasing: key.prefix(prefix.count))) ? index : nil
        }

        /// Compares the first eight bytes as one number, where most keys differ.
        @inline(__always) private func search(rest: UnsafeRawBufferPointer) -> (index: Int, found: Bool) {
            let rests = at + prefixOffset + prefixCount, word = Node.firstWord(rest, readable: rest.count)
            var low = 0, high = count
            while low < high {
                let middle = (low + high) >> 1
                let start = middle == 0 ? 0 : end(middle - 1)
                let other = UnsafeRawBufferPointer(start: rests + start, count: end(middle) - start)
                // Readable past the end: a footer of more than eight bytes follows all nodes.
                let otherWord = Node.firstWord(other, readable: 8)
                if otherWord < word { low = middle + 1; continue }
                if otherWord > word { high = middle; continue }
                let order = Bytes.compare(other, rest)
                if order == 0 { return (middle, true) }
                if order < 0 { low = middle + 1 } else { high = middle }
            }
            return (low, false)
        }

        /// Returns the first eight bytes as a number with the same order, padded with zero bytes.
        @inline(__always) private static func firstWord(_ bytes: UnsafeRawBufferPointer, readable: Int) -> UInt64 {
            guard let start = bytes.baseAddress else { return 0 }
            if bytes.count >= 8 { return UInt64(bigEndian: start.loadUnaligned(as: UInt64.self)) }
            if readable >= 8 { return UInt64(bigEndian: start.loadUnaligned(as: UInt64.self)) & ~(UInt64.max >> UInt64(bytes.count * 8)) }
            var word: UInt64 = 0
            for i in 0..<bytes.count { word |= UInt64(bytes[i]) << UInt64(56 - i * 8) }
            return word
        }

        /// Returns the index of the child with a symbol. Tries direct positions first: symbols are mostly digits, and so adjacent.
        @inline(__always) func childIndex(_ symbol: UInt16) -> Int? {
            let symbols = symbols
            guard symbols.count > 0 else { return nil }
            let fromFirst = Int(symbol) - Int(symbols[0]), fromLast = symbols.count - 1 - (Int(symbols[symbols.count - 1]) - Int(symbol))
            if fromFirst >= 0, fromFirst < symbols.count, symbols[fromFirst] == symbol { return fromFirst }
            if fromLast >= 0, fromLast < symbols.count, symbols[fromLast] == symbol { return fromLast }
            var low = 0, high = symbols.count
            while low < high {
                let middle = (low + high) >> 1
                if symbols[middle] < symbol { low = middle + 1 } else { high = middle }
            }
            return low < symbols.count && symbols[low] == symbol ? low : nil
        }
    }
}
