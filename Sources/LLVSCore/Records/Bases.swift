/// Caches values that are bases of differences and were read or saved lately. With one of them in memory, the next value of its id can be
/// made in one step. Safe from all threads.
package final class Bases: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private struct Kept {
        var version: VersionID
        var id: [UInt8]
        var bytes: [UInt8]
        var checksum: UInt32
    }
    /// The most values in the cache.
    private static let most = 8
    private let lock = Lock(.leaf)
    /// The cached values, the most recently used one last.
    private var kept: [Kept] = []
    private var size = 0
    private let budget: Int
    private let account: MemoryAccount

    init(_ account: MemoryAccount) {
        self.account = account
        budget = account.bases
    }

    /// Returns the value that a version stored under an id; nil if it is not cached, or has another size or checksum.
    package func find(_ version: VersionID, _ id: UnsafeRawBufferPointer, size: Int, checksum: UInt32) -> [UInt8]? {
        lock.withLock {
            guard
                let index = kept.lastIndex(where: {
                    $0.version == version && $0.checksum == checksum && $0.bytes.count == size && $0.id.elementsEqual(id)
                })
            else { return nil }
            if index != kept.count - 1 { kept.append(kept.remove(at: index)) }
            return kept[kept.count - 1].bytes
        }
    }

    /// Returns whether a value of this size is not larger than the budget.
    func hasRoom(for size: Int) -> Bool { size < budget }

    /// Caches the value that a version stored under an id. Evicts the least recently used values if needed. Does nothing if the value is
    /// larger than the budget, or memory is short.
    package func keep(_ version: VersionID, _ id: UnsafeRawBufferPointer, _ bytes: [UInt8], checksum: UInt32) {
        guard bytes.count + id.count <= budget, Memory.isAmple else { return }
        let gone = lock.withLock { () -> [Kept] in
            var gone: [Kept] = []
            if let index = kept.lastIndex(where: { $0.version == version && $0.id.elementsEqual(id) }) {
                gone.append(kept.remove(at: index))
                size -= gone[0].bytes.count + gone[0].id.count
            }
            kept.append(Kept(version: version, id: Array(id), bytes: bytes, checksum: checksum))
            size += bytes.count + id.count
            while kept.count > Bases.most || size > budget {
                let first = kept.removeFirst()
                size -= first.bytes.count + first.id.count
                gone.append(first)
            }
            account.note(bases: size)
            return gone
        }
        withExtendedLifetime(gone) {}
    }

    /// Evicts all values.
    func removeAll() {
        let gone = lock.withLock { () -> [Kept] in
            defer { kept = []; size = 0; account.note(bases: 0) }
            return kept
        }
        withExtendedLifetime(gone) {}
    }
}
