import LLVSCore

extension CallbackStorage.Functions {
    /// Returns functions that fail as planned. They work below the checksums of the store, so the store sees what a damaged medium would
    /// return.
    package func failing(_ plan: FaultPlan, name: String) -> CallbackStorage.Functions {
        let inner = self, lost = LostRecords()
        var outer = inner
        outer.append = { records in
            guard let met = try plan.begin(.append, name) else { return try inner.append(records) }
            switch met.kind {
            case .loseAcknowledgement:
                _ = try inner.append(records)
                throw met.error
            case .partial:
                // A violation of the storage's contract: a part of a batch remains.
                if records.count > 1 { _ = try inner.append(Array(records.prefix(records.count / 2))) }
                throw met.error
            case .absent: return lost.places(records.count)
            case .corrupt, .cut:
                guard !records.isEmpty else { throw met.error }
                let which = met.index(records.count)
                let spoiled = met.spoil(Array(records[which]))
                return try spoiled.withUnsafeBytes { bytes in
                    var all = records
                    all[which] = bytes
                    return try inner.append(all)
                }
            case .fail, .delay: throw met.error
            }
        }
        outer.list = { mark in
            guard let met = try plan.begin(.scan, name) else { return try inner.list(mark) }
            var (records, next) = try inner.list(mark)
            let which = met.index(records.count)
            switch met.kind {
            case .loseAcknowledgement, .fail, .delay: throw met.error
            case .partial: throw met.error
            case .absent: if !records.isEmpty { records.remove(at: which) }
            case .corrupt, .cut:
                guard !records.isEmpty else { break }
                if records[which].first.isEmpty {
                    records[which].size = met.kind == .cut ? records[which].size / 2 : records[which].size &+ 1
                } else {
                    records[which].first = met.spoil(records[which].first)
                }
            }
            return (records, next)
        }
        outer.read = { place, offset, buffer in
            let met = try plan.begin(.read, name)
            if lost.holds(place) { return 0 }
            guard let met else { return try inner.read(place, offset, buffer) }
            switch met.kind {
            case .absent: return 0
            case .cut: return min(try inner.read(place, offset, buffer), buffer.count / 2)
            case .corrupt:
                let count = try inner.read(place, offset, buffer)
                if count > 0, count <= buffer.count { buffer[met.index(count)] ^= 0x40 }
                return count
            case .loseAcknowledgement, .partial, .fail, .delay: throw met.error
            }
        }
        outer.sync = { try plan.around(.sync, name) { try inner.sync() } }
        outer.close = {
            // A close that fails must still close.
            let met = Result { try plan.begin(.closeStorage, name) }
            try inner.close()
            if let met = try met.get() { throw met.error }
        }
        if let get = inner.cacheGet {
            outer.cacheGet = { cache in
                guard let met = try plan.begin(.cacheGet, name) else { return try get(cache) }
                switch met.kind {
                case .absent: return nil
                case .corrupt, .cut: return try get(cache).map(met.spoil)
                default: throw met.error
                }
            }
        }
        if let put = inner.cachePut {
            outer.cachePut = { cache, data in
                guard let met = try plan.begin(.cachePut, name) else { return try put(cache, data) }
                switch met.kind {
                case .absent: return
                case .corrupt, .cut: try met.spoil(Array(data)).withUnsafeBytes { try put(cache, $0) }
                case .loseAcknowledgement:
                    try put(cache, data)
                    throw met.error
                default: throw met.error
                }
            }
        }
        if let delete = inner.cacheDelete {
            outer.cacheDelete = { cache in try plan.around(.cacheDelete, name) { try delete(cache) } }
        }
        return outer
    }
}

/// Records that were reported as stored but were not.
private final class LostRecords: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock()
    private var all: Set<UInt64> = []
    /// No storage uses places this high.
    private var next = UInt64.max
    func places(_ count: Int) -> [UInt64] {
        lock.withLock {
            (0..<count).map { _ in
                defer { next &-= 1 }
                all.insert(next)
                return next
            }
        }
    }
    func holds(_ place: UInt64) -> Bool { lock.withLock { all.contains(place) } }
}
