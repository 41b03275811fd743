/// Writes version files and changes files of the interchange layout, in our one canonical form.
///
/// `docs/interchange.md` is normative. The same version always gives the same bytes, because two devices may make the same deterministic
/// version and write its files at the same time.
package enum InterchangeEncoder {
    /// `{"version":{"identifier":…,"predecessors":…,"timestamp":…,"valueDataSize":…,"metadata":[…],"digest":"…"}}`
    /// - Parameter digest: the identity digest of the version and its changes; nil leaves the member out. It is a member of the version,
    ///   where other implementations ignore unknown members.
    package static func version(_ version: Version, digest: [UInt8]? = nil) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(256)
        append("{\"version\":", to: &out)
        appendVersion(version, digest, to: &out)
        append("}", to: &out)
        return out
    }

    private static func appendVersion(_ version: Version, _ digest: [UInt8]?, to out: inout [UInt8]) {
        append("{\"identifier\":", to: &out)
        append(version.id, to: &out)
        if let first = version.predecessors.first {
            append(",\"predecessors\":{\"idOfFirst\":", to: &out)
            append(first, to: &out)
            if version.predecessors.count > 1 {
                append(",\"idOfSecond\":", to: &out)
                append(version.predecessors[1], to: &out)
            }
            append("}", to: &out)
        }
        append(",\"timestamp\":", to: &out)
        JSONNumber.append(version.timestamp, to: &out)
        append(",\"valueDataSize\":", to: &out)
        JSONNumber.append(version.valueDataSize, to: &out)
        append(",\"metadata\":[", to: &out)
        var first = true
        for entry in version.metadata.entries {
            if !first { append(",", to: &out) }
            first = false
            appendString(entry.key, to: &out)
            append(",{\"data\":\"", to: &out)
            entry.value.withUnsafeBytes { Base64.append($0, to: &out) }
            append("\"}", to: &out)
        }
        append("]", to: &out)
        if let digest {
            append(",\"digest\":\"", to: &out)
            Hex.append(digest, to: &out)
            append("\"", to: &out)
        }
        append("}", to: &out)
    }

    /// `[{"insert":{"id":…,"data":…}},…]`, sorted by the bytes of the ids.
    package static func changes(_ changes: [Value.Change]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(changes.reduce(2) { $0 + sizeHint($1) })
        append("[", to: &out)
        var first = true
        InterchangeOrder.sorted(changes).withBorrowed { sorted in
            for change in sorted { append(change, &first, to: &out) { _ in } }
        }
        append("]", to: &out)
        return out
    }

    /// Appends a change. One without bytes has the member `erased`, with its size and digest.
    /// - Parameter flush: called now and then, and may empty `out`.
    package static func append(
        _ change: BorrowedChange, _ isFirst: inout Bool, to out: inout [UInt8], _ flush: (inout [UInt8]) throws -> Void
    )
        rethrows
    {
        if !isFirst { append(",", to: &out) }
        isFirst = false
        switch change.kind {
        case .insert, .update:
            append(change.kind == .insert ? "{\"insert\":{\"id\":" : "{\"update\":{\"id\":", to: &out)
            JSONString.append(change.id, to: &out)
            append(",\"data\":\"", to: &out)
            guard let hollow = change.hollow else {
                try Base64.append(change.data, to: &out, flush)
                append("\"}}", to: &out)
                break
            }
            append("\",\"erased\":{\"size\":", to: &out)
            JSONNumber.append(UInt64(clamping: hollow.size), to: &out)
            append(",\"sha256\":\"", to: &out)
            Hex.append(hollow.digest, to: &out)
            append("\"}}}", to: &out)
        case .remove:
            append("{\"remove\":", to: &out)
            JSONString.append(change.id, to: &out)
            append("}", to: &out)
        case .preserve:
            append("{\"preserve\":{\"valueId\":", to: &out)
            JSONString.append(change.id, to: &out)
            append(",\"storedVersionId\":", to: &out)
            if let stored = change.storedVersion { append(stored, to: &out) }
            append("}}", to: &out)
        case .preserveRemoval:
            append("{\"preserveRemoval\":", to: &out)
            JSONString.append(change.id, to: &out)
            append("}", to: &out)
        }
        try flush(&out)
    }

    /// Returns about how many bytes a change takes in its file.
    package static func sizeHint(_ change: Value.Change) -> Int {
        switch change {
        case .insert(let id, let data), .update(let id, let data): 40 + id.bytes.count + Base64.encodedSize(data.count)
        case .remove(let id), .preserveRemoval(let id): 30 + id.bytes.count
        case .preserve(let reference): 100 + reference.id.bytes.count
        }
    }

    @inline(__always)
    package static func append(_ text: StaticString, to out: inout [UInt8]) {
        out.append(contentsOf: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
    private static func append(_ id: VersionID, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        id.withASCII { out.append(contentsOf: $0) }
        out.append(UInt8(ascii: "\""))
    }
    private static func appendString(_ text: [UInt8], to out: inout [UInt8]) {
        text.withUnsafeBytes { JSONString.append($0, to: &out) }
    }
}

/// The order of changes in a changes file: by the bytes of the ids, each id once.
package enum InterchangeOrder {
    /// Returns the changes sorted. If an id occurs several times, the last change counts. O(n) if they are sorted already, else O(n log n).
    package static func sorted(_ changes: [Value.Change]) -> [Value.Change] { sorted(changes, looking: {}) }
    /// - Parameter look: called now and then if there are many; an error that it throws ends the work.
    static func sorted(_ changes: [Value.Change], looking look: () throws -> Void) rethrows -> [Value.Change] {
        var ascending = true
        for i in changes.indices.dropFirst() where !(changes[i - 1].id < changes[i].id) { ascending = false; break }
        if ascending { return changes }
        let order = try Array(changes.indices).sorted(
            by: { a, b in
                let order = Bytes.compare(changes[a].id.bytes, changes[b].id.bytes)
                return order != 0 ? order < 0 : a < b
            }, looking: look)
        var result: [Value.Change] = []
        result.reserveCapacity(changes.count)
        for i in order {
            if result.count & 0xFFFF == 0xFFFF { try look() }
            if let last = result.last, last.id == changes[i].id { result[result.count - 1] = changes[i] } else { result.append(changes[i]) }
        }
        return result
    }

    /// Bytes of the values that the changes store.
    package static func valueDataSize(_ changes: [Value.Change]) -> UInt64 {
        changes.reduce(0) { sum, change in
            switch change {
            case .insert(_, let data), .update(_, let data): sum &+ UInt64(data.count)
            default: sum
            }
        }
    }
}
