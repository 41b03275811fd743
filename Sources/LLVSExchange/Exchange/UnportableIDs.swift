/// The value ids that another implementation cannot hold or cannot distinguish, since it derives file names from them
/// (docs/interchange.md).
struct UnportableIDs {
    /// The ids beyond ASCII at all heads, and the ids found since. The keys are text, which compares by Unicode equivalence.
    private var known: [String: [UInt8]]?
    /// The ids already reported.
    private var told: Set<[UInt8]> = []

    /// Returns why another implementation cannot hold the id; nil if it can, or if that was reported before.
    mutating func reason(_ id: UnsafeRawBufferPointer, in store: Store, _ control: PacedControl) throws -> String? {
        guard let reason = try UnportableIDs.reason(id) ?? twin(id, in: store, control) else { return nil }
        return told.insert(Array(id)).inserted ? reason : nil
    }

    /// The message for ids at which another implementation fails. (For other unportable ids it reads another value, or writes to another
    /// place.)
    static let whatFails = "It fails there, and retrieves neither the version nor its descendants"

    /// Returns two metadata keys of a version that another implementation cannot distinguish: the same characters, composed differently.
    static func twinKeys(_ metadata: Metadata) -> (String, String)? {
        var seen: [String: [UInt8]] = [:]
        guard metadata.entries.contains(where: { $0.key.contains { $0 >= 0x80 } }) else { return nil }
        for entry in metadata.entries {
            let text = String(decoding: entry.key, as: UTF8.self)
            if let other = seen.updateValue(entry.key, forKey: text) { return (String(decoding: other, as: UTF8.self), text) }
        }
        return nil
    }

    /// Returns why another implementation fails at the id; nil if it does not.
    static func failure(_ id: UnsafeRawBufferPointer) -> String? {
        if id.contains(0) { return "it holds a NUL, which no file name can hold" }
        // Escaping turns one byte into at most nine.
        guard id.count > longestName / 9 else { return nil }
        let longest = parts(String(decoding: id, as: UTF8.self)).map(\.count).max() ?? 0
        return longest > longestName ? "it would take \(longest) bytes in a file name, and \(longestName) are the most" : nil
    }
    private static let longestName = 255

    private static func parts(_ text: String) -> [Substring.UTF8View] {
        ForeignFileNames.split(ForeignFileNames.escaped(text), 2).utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { Substring($0).utf8 }
    }

    /// Returns what is wrong with the id by itself.
    static func reason(_ id: UnsafeRawBufferPointer) -> String? {
        if let failure = failure(id) { return "\(failure). \(whatFails)" }
        let text = String(decoding: id, as: UTF8.self)
        for word in ["LLVSSLASH", "LLVSCOLON"] where text.contains(text: word) { return "it holds \(word), by which file names say / or :" }
        for part in parts(text) {
            if part.elementsEqual(".".utf8) || part.elementsEqual("..".utf8) {
                return "a file name made of it would be \"\(String(decoding: part, as: UTF8.self))\""
            }
        }
        return nil
    }

    private mutating func twin(_ id: UnsafeRawBufferPointer, in store: Store, _ control: PacedControl) throws -> String? {
        guard id.contains(where: { $0 >= 0x80 }) else { return nil }
        if known == nil { known = try UnportableIDs.ids(of: store, control) }
        let text = String(decoding: id, as: UTF8.self), other = known?[text]
        if other == nil { known?[text] = Array(id) }
        guard let other, !other.elementsEqual(id) else { return nil }
        return "another id has the same characters, composed in another way, and file systems take the two for one"
    }

    /// Returns the ids beyond ASCII at all heads. For each head only the difference from the one before is read; heads are ordered so that
    /// those built on one version follow each other.
    private static func ids(of store: Store, _ control: PacedControl) throws -> [String: [UInt8]] {
        var ids: [String: [UInt8]] = [:], before: MapNode?
        let heads = store.lock.withRead { store.dag.headOrdinals.map { (behind: store.dag.rows[Int($0)].first, ordinal: $0) } }
        for (_, head) in try heads.sorted(by: <, looking: control.look) {
            try control.look()
            let map = try store.maps.map(head, control)
            try MapNode.forEachDifference(before, map) { key, was, entry in
                try control.step(0)
                guard was == nil, entry != nil, key.contains(where: { $0 >= 0x80 }) else { return }
                Work.comparisons.count()
                let text = String(decoding: key, as: UTF8.self)
                if ids[text] == nil { ids[text] = Array(key) }
            }
            before = map
        }
        return ids
    }
}
