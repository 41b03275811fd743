/// What came to the state of a remote later, each in a part of its own: who does not know one passes over it.
extension PackedState {
    private enum Part {
        static let bridging: UInt8 = 1
    }
    var hasMore: Bool { !bridging.isEmpty }

    var parts: [(part: UInt8, contents: StateWriter)] {
        var parts: [(UInt8, StateWriter)] = []
        func add<T>(_ part: UInt8, _ items: [T], _ put: (inout StateWriter, T) -> Void) {
            guard !items.isEmpty else { return }
            var out = StateWriter()
            out.list(items, put)
            parts.append((part, out))
        }
        add(Part.bridging, Array(bridging)) { out, item in
            out.bytes.versionID(item.key)
            out.bytes.integer(item.value.since)
            out.bytes.bytes.append(item.value.isFromPacks ? 1 : 0)
        }
        return parts
    }

    mutating func take(_ part: UInt8, _ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { bytes in
            var from = StateReader(bytes)
            switch part {
            case Part.bridging:
                for (id, one) in try from.list({ from in
                    (try from.cursor.versionID(), Bridging(since: try from.time(), isFromPacks: try from.flag()))
                }) { bridging[id] = one }
            default: return
            }
            try from.cursor.end()
        }
    }
}
