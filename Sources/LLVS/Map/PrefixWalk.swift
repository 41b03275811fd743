/// Goes through the ids under a prefix, in order, some at a time.
struct PrefixWalk {
    /// Values that are read together, and bytes of them.
    private static let most = 1_024, mostBytes = 1 << 20

    private let map: MapNode?
    private let high: [UInt8]?
    /// Where the next ones begin; nil when there are none.
    private var low: [UInt8]?

    init(_ map: MapNode?, _ prefix: [UInt8]) {
        self.map = map
        (low, high) = IDRange.prefix(prefix).bounds
    }

    /// Calls with the next ids, which are good during the call, and what prevails for them.
    /// - Returns: how many they were, and the bytes of their values as far as they are told; nil when there are none.
    /// - Throws: what `body` throws.
    mutating func next(_ body: (UnsafeRawBufferPointer, MapEntry) throws -> Void) throws -> (count: Int, bytes: Int)? {
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
