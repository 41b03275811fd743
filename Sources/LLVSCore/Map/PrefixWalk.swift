/// Iterates over the ids under a prefix, in order, in batches.
package struct PrefixWalk {
    /// The most values of a batch, and their bytes.
    private static let most = 1_024, mostBytes = 1 << 20

    private let map: MapNode?
    private let high: [UInt8]?
    /// Where the next batch begins; nil at the end.
    private var low: [UInt8]?

    package init(_ map: MapNode?, _ prefix: [UInt8]) {
        self.map = map
        (low, high) = IDRange.prefix(prefix).bounds
    }

    /// Calls `body` with the next ids, which are valid during the call, and their entries.
    /// - Returns: the number of ids, and the known bytes of their values; nil at the end.
    /// - Throws: errors of `body`.
    package mutating func next(_ body: (UnsafeRawBufferPointer, MapEntry) throws -> Void) throws -> (count: Int, bytes: Int)? {
        guard let map, let from = low else { return nil }
        var count = 0, bytes = 0, last: [UInt8]?, failure: (any Error)?
        from.withUnsafeBytes { low in
            func walk(_ high: UnsafeRawBufferPointer?) {
                map.forEach(from: low, to: high) { id, entry in
                    do { try body(id, entry) } catch {
                        failure = error
                        return false
                    }
                    count += 1
                    if entry.size != MapEntry.unknownSize { bytes += Int(entry.size) }
                    let isFull = count >= PrefixWalk.most || bytes >= PrefixWalk.mostBytes
                    if isFull { last = Array(id) }
                    return !isFull
                }
            }
            if let high { high.withUnsafeBytes { walk($0) } } else { walk(nil) }
        }
        if let failure { throw failure }
        low = last.map { $0 + [0] }
        return count > 0 ? (count, bytes) : nil
    }
}
