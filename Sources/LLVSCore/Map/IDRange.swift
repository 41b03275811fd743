/// The ids that an enumeration covers, in byte order.
public enum IDRange: Sendable, Hashable {
    /// Every id.
    case all
    /// The ids that begin with these bytes.
    case prefix([UInt8])
    /// From inclusive, to exclusive; nil is unbounded.
    case range(from: [UInt8]?, to: [UInt8]?)

    /// The range as bounds in byte order: `low` inclusive, `high` exclusive, nil unbounded.
    var bounds: (low: [UInt8], high: [UInt8]?) {
        switch self {
        case .all: return ([], nil)
        case .range(let from, let to): return (from ?? [], to)
        case .prefix(let prefix):
            var high = prefix
            while let last = high.last {
                if last < 0xFF { high[high.count - 1] = last + 1; return (prefix, high) }
                high.removeLast()
            }
            return (prefix, nil)
        }
    }

    /// The ids that satisfy all given conditions; empty bytes mean "not given".
    package init(prefix: [UInt8], from: [UInt8], to: [UInt8]) {
        if from.isEmpty && to.isEmpty { self = prefix.isEmpty ? .all : .prefix(prefix); return }
        self = IDRange.prefix(prefix).narrowed(low: from, high: to.isEmpty ? nil : to)
    }

    /// The ids of the range after `after` and before `before`.
    package func narrowed(after: ValueID?, before: ValueID?) -> IDRange {
        after == nil && before == nil ? self : narrowed(low: after.map { $0.bytes + [0] } ?? [], high: before?.bytes)
    }

    private func narrowed(low: [UInt8], high: [UInt8]?) -> IDRange {
        var (from, to) = bounds
        if from.lexicographicallyPrecedes(low) { from = low }
        if let high, to.map({ high.lexicographicallyPrecedes($0) }) ?? true { to = high }
        return .range(from: from.isEmpty ? nil : from, to: to)
    }
}
