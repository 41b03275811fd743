/// Large values that were received before the pack that refers to them: in files of the storage if it has such, else in memory. Values
/// that no version uses are removed in the end.
package final class SpooledBlobs {
    private let storage: any Storage
    private var finished: [PackID: Store.Pulled] = [:]
    /// The blob whose parts are being received.
    private var current: Filling?
    /// Blobs that were handed to versions which are not stored yet.
    private var given: [BlobID: WrittenValue] = [:]

    private struct Filling {
        let digest: PackID
        var nextPart: UInt32 = 0
        var size = 0
        var hash = SHA256()
        var bytes: [UInt8] = []
        var writer: (any BlobWriter)?
        /// Whether a part that was not full arrived, which is the last.
        var isEnded = false
    }

    package init(_ storage: any Storage) { self.storage = storage }
    deinit { removeAll() }

    /// The number of blobs.
    package var count: Int { finished.count + (current == nil ? 0 : 1) }

    /// Returns whether all of a large value was received.
    package func has(_ reference: BlobReference) -> Bool { finished[reference.digest].map { UInt64($0.size) == reference.size } ?? false }

    /// Adds one part. The parts of a blob must come in order, one blob after another.
    /// - Parameter digest: the digest of the content of all parts, if their names have another.
    /// - Throws: `PackFault` if it is not the next part.
    func append(_ part: PackFile, of digest: PackID? = nil) throws {
        let name = part.index.name, digest = digest ?? name.digest, size = part.index.blocks.reduce(0) { $0 + $1.raw }
        if current?.digest != digest { try finishCurrent() }
        var filling = current ?? Filling(digest: digest)
        guard name.last == filling.nextPart, !filling.isEnded, filling.size <= Limits.valueSize - size, count < PackFormat.blobsLimit else {
            throw PackFault.damaged("a part of a large value is not the one that is due")
        }
        // Store the state in any case, so that the written bytes are removed even after an error.
        defer { current = filling }
        let isLast = size < PackFormat.partSize
        try makeRoom(size, in: &filling, whole: isLast && filling.size == 0 ? size : nil)
        try part.forEachBlock { try add($0, to: &filling) }
        filling.size += size
        filling.nextPart += 1
        filling.isEnded = isLast
    }

    /// Appends bytes of a large value, in pieces of any size; one value after another, until `finishCurrent`.
    /// - Throws: `PackFault` if it exceeds the size limit of values.
    package func append(_ bytes: UnsafeRawBufferPointer, of digest: PackID) throws {
        if current?.digest != digest { try finishCurrent() }
        var filling = current ?? Filling(digest: digest)
        guard filling.size <= Limits.valueSize - bytes.count else { throw PackFault.tooLarge("a large value of it is above 1 GiB") }
        defer { current = filling }
        try makeRoom(bytes.count, in: &filling, whole: nil)
        try add(bytes, to: &filling)
        filling.size += bytes.count
    }

    /// Moves a value that becomes too large for memory to a file.
    private func makeRoom(_ size: Int, in filling: inout Filling, whole: Int?) throws {
        guard filling.writer == nil, filling.size + size > storage.blobThreshold ?? Int.max else { return }
        let writer = try storage.blobWriter(size: whole)
        try filling.bytes.withUnsafeBytes(writer.append)
        filling.bytes = []
        filling.writer = writer
    }

    private func add(_ block: UnsafeRawBufferPointer, to filling: inout Filling) throws {
        filling.hash.update(block)
        if let writer = filling.writer { return try writer.append(block) }
        try Memory.grow(&filling.bytes, by: block.count, "Reading a large value")
        filling.bytes.append(contentsOf: block)
    }

    /// Ends the current blob. A blob that does not match its name counts as not received.
    package func finishCurrent() throws {
        guard var filling = current else { return }
        current = nil
        let digest = filling.hash.finish()
        guard PackID(digest) == filling.digest else {
            filling.writer?.cancel()
            return
        }
        let value: Store.Pulled
        if let writer = filling.writer {
            value = .written(WrittenValue(blob: try writer.finish(digest: digest), size: filling.size, digest: digest))
        } else {
            value = .bytes(filling.bytes)
        }
        remove(finished.updateValue(value, forKey: filling.digest))
    }

    /// Returns a value for one version, which becomes its only owner; nil if it was not received, or differs.
    package func take(_ reference: BlobReference) throws -> Store.Pulled? {
        guard let value = finished[reference.digest], UInt64(value.size) == reference.size else { return nil }
        guard case .written(let written) = value else { return value }
        guard written.digest == reference.sha256 else { return nil }
        let own = given[written.blob] == nil ? written : try copy(written)
        given[own.blob] = own
        return .written(own)
    }

    /// Returns a function that reads a blob; nil if the blob is not complete, or has another size.
    func read(_ reference: BlobReference) throws -> ((UInt64, UnsafeMutableRawBufferPointer) throws -> Void)? {
        guard let value = finished[reference.digest], UInt64(value.size) == reference.size else { return nil }
        switch value {
        case .bytes(let bytes):
            return { offset, buffer in
                bytes.withUnsafeBytes {
                    let end = min(bytes.count, Int(offset) + buffer.count)
                    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[min(Int(offset), end)..<end]))
                }
            }
        case .written(let written):
            return { [storage] offset, buffer in try storage.readBlob(written.blob, at: offset, into: buffer) }
        }
    }

    private func copy(_ written: WrittenValue) throws -> WrittenValue {
        let writer = try storage.blobWriter(size: written.size)
        do {
            try withScratch(256 << 10) { buffer in
                var at = 0
                while at < written.size {
                    let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, written.size - at)])
                    try storage.readBlob(written.blob, at: UInt64(at), into: piece)
                    try writer.append(UnsafeRawBufferPointer(piece))
                    at += piece.count
                }
            }
            return WrittenValue(blob: try writer.finish(digest: written.digest), size: written.size, digest: written.digest)
        } catch {
            writer.cancel()
            throw error
        }
    }

    /// Records that the version with these values is stored, or may be: they belong to it.
    package func keep(_ values: some Sequence<WrittenValue>) { for value in values { kept.insert(value.blob) } }
    private var kept: Set<BlobID> = []

    /// Values that no version used, with the references from which they were read.
    private var retained: [PackID: (reference: BlobReference, value: Store.Pulled)] = [:], retainedSize = 0
    /// The most bytes to retain in files, and in memory.
    private static let mostInFiles = 1 << 30, mostInMemory = 32 << 20

    /// Ends a pack. Removes values that no version used, except those that were read as the references say: the next pack may refer to
    /// them as well, and if versions are refused, their values should not be read again and again.
    func endPack(retaining references: [BlobReference]) {
        current?.writer?.cancel()
        current = nil
        let most = storage.blobThreshold == nil ? SpooledBlobs.mostInMemory : SpooledBlobs.mostInFiles
        for reference in references where retained[reference.digest] == nil && has(reference) {
            guard let value = finished[reference.digest], value.size <= most - retainedSize else { continue }
            if case .written(let written) = value, kept.contains(written.blob) { continue }
            finished[reference.digest] = nil
            retained[reference.digest] = (reference, value)
            retainedSize += value.size
        }
        for value in finished.values { remove(value) }
        var files: Set<BlobID> = []
        for one in retained.values { if case .written(let value) = one.value { files.insert(value.blob) } }
        for value in given.values where !files.contains(value.blob) { remove(.written(value)) }
        finished = [:]
        given = [:]
        kept = []
    }

    /// Returns whether a value with this reference is retained.
    func isRetained(_ reference: BlobReference) -> Bool { retained[reference.digest]?.reference == reference }

    /// Makes a retained value available again.
    /// - Returns: false if there is none.
    func restore(_ reference: BlobReference) -> Bool {
        guard isRetained(reference), let found = retained.removeValue(forKey: reference.digest) else { return false }
        retainedSize -= found.value.size
        remove(finished.updateValue(found.value, forKey: reference.digest))
        return true
    }

    /// Removes all values that no version used.
    package func removeAll() {
        for one in retained.values { remove(one.value) }
        (retained, retainedSize) = ([:], 0)
        current?.writer?.cancel()
        current = nil
        for value in finished.values { remove(value) }
        for value in given.values { remove(.written(value)) }
        finished = [:]
        given = [:]
        kept = []
    }
    private func remove(_ value: Store.Pulled?) {
        if case .written(let written)? = value, !kept.contains(written.blob) { storage.removeBlob(written.blob) }
    }
}
