extension InterchangeEncoder {
    /// Returns the changes file of a version of the store, in pieces: one value at a time is in memory. The bytes are those of `changes`.
    static func changes(madeIn id: VersionID, of store: Store) throws -> OutgoingFile {
        var size = 2, isFirst = true
        try store.forEachChangeSize(madeIn: id) { change, dataSize in
            var out: [UInt8] = []
            append(change, &isFirst, to: &out) { _ in }
            size += out.count + Base64.encodedSize(dataSize)
        }
        return OutgoingFile(size: size) { sink in
            var out: [UInt8] = [], isFirst = true
            func flush(_ out: inout [UInt8], whenLargerThan limit: Int) throws {
                guard out.count > limit else { return }
                try out.withUnsafeBytes(sink)
                out.removeAll(keepingCapacity: true)
            }
            append("[", to: &out)
            try store.forEachChange(madeIn: id, withHollow: true) { change in
                try append(change, &isFirst, to: &out) { try flush(&$0, whenLargerThan: 256 << 10) }
            }
            append("]", to: &out)
            try flush(&out, whenLargerThan: 0)
        }
    }
}
