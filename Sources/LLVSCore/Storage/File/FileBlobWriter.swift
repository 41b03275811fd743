/// Writes one blob piece by piece (see `BlobDirectory`), under a temporary name until it is complete. An unfinished file is removed. Used
/// by one thread at a time.
///
/// The checksums come before the bytes, and their number depends on the size. If the size is not known beforehand, the bytes go to an
/// unnamed file first, and are copied from it.
final class FileBlobWriter: BlobWriter {
    private let directory: BlobDirectory
    /// The name of the blob. The file has another name until it is complete.
    private let name: RandomName
    private let isReplacing: Bool
    private let file: OpenFile
    private let place: DirectoryEntry
    private var path: String { place.path }
    private let size: Int?
    private let dataOffset: Int
    private var position = 0
    private var checksums: [UInt32] = []
    private var checksum: UInt32 = 0
    private var isDone = false
    private let finished: (UInt64) -> Void

    /// - Parameters:
    ///   - replaced: the blob to replace under its name; nil for a new one.
    ///   - finished: called with the number of bytes written, once the blob is in place.
    init(_ directory: BlobDirectory, size: Int?, replacing replaced: BlobID? = nil, finished: @escaping (UInt64) -> Void = { _ in }) throws
    {
        self.directory = directory; self.size = size; self.finished = finished
        let new = try posix("Naming a new blob in", directory.path) { () throws(Errno) in try RandomName.random() }
        name = replaced.map(RandomName.init) ?? new
        isReplacing = replaced != nil
        let blocks = size.map(FileBlobWriter.blocks) ?? 0
        dataOffset = size == nil ? 0 : BlobDirectory.headerSize + 4 * blocks
        checksums.reserveCapacity(blocks)
        (file, place) = try directory.make(new.hex + ".new", readable: size == nil)
        if size == nil { try? place.unlink() }
    }
    deinit { cancel() }

    private static func blocks(_ size: Int) -> Int { size / BlobDirectory.blockSize + (size % BlobDirectory.blockSize == 0 ? 0 : 1) }

    func append(_ bytes: UnsafeRawBufferPointer) throws {
        let count = position + bytes.count
        guard !isDone, count <= size ?? Limits.valueSize else {
            throw StoreError(.internal, "More bytes were written to the blob \(path) than it is to have.", path: path)
        }
        try written { () throws(Errno) in try directory.system.write(file, bytes, at: UInt64(dataOffset + position)) }
        var at = 0
        while size != nil, at < bytes.count {
            let end = min(bytes.count, at + BlobDirectory.blockSize - (position + at) % BlobDirectory.blockSize)
            checksum = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: bytes[at..<end]), from: checksum)
            at = end
            if (position + at) % BlobDirectory.blockSize == 0 { checksums.append(checksum); checksum = 0 }
        }
        position = count
    }

    func finish(digest: [UInt8]) throws -> BlobID {
        guard let size else { return try copied(digest) }
        guard !isDone, position == size else {
            throw StoreError(.internal, "\(position) bytes were written to the blob \(path) instead of \(size).", path: path)
        }
        if position % BlobDirectory.blockSize != 0 { checksums.append(checksum) }
        let head = head(size, digest)
        try written { () throws(Errno) in
            try head.borrowed { (b) throws(Errno) in try directory.system.write(file, b, at: 0) }
            // A replacement may belong to a version that is durable already. It must not be lost in a power cut.
            if directory.durability == .full || isReplacing { try directory.system.sync(file) }
        }
        let final: DirectoryEntry
        do { final = try directory.publish(place, as: name) } catch {
            cancel()
            throw error
        }
        isDone = true
        directory.note(final)
        finished(UInt64(head.count) + UInt64(size))
        return BlobID(high: name.high, low: name.low)
    }

    /// Removes the file. No record names it.
    func cancel() {
        guard !isDone else { return }
        isDone = true
        if size != nil { try? place.unlink() }
    }

    private func written(_ body: () throws(Errno) -> Void) throws {
        do throws(Errno) { try body() } catch {
            cancel()
            throw StoreError.posix(error, doing: "Writing a value\(size.map { " of \($0) bytes" } ?? "") to", path: path)
        }
    }

    /// Returns a blob with the content of the unnamed file.
    private func copied(_ digest: [UInt8]) throws -> BlobID {
        guard !isDone else { throw StoreError(.internal, "The blob \(path) was finished before.", path: path) }
        isDone = true
        let blob = try FileBlobWriter(directory, size: position, finished: finished)
        var buffer = [UInt8](repeating: 0, count: 256 << 10), at = 0
        while at < position {
            let got = try posix("Reading what was written to", path) { () throws(Errno) in
                try buffer.filled { (b) throws(Errno) in
                    try System.pread(
                        file.descriptor, UnsafeMutableRawBufferPointer(rebasing: b[..<min(b.count, position - at)]), at: UInt64(at))
                }
            }
            guard got > 0 else {
                throw StoreError(
                    .io, "What was written to \(path) cannot be read back. The medium fails: copy the store to another.", path: path)
            }
            try buffer.withUnsafeBytes { try blob.append(UnsafeRawBufferPointer(rebasing: $0[..<got])) }
            at += got
        }
        return try blob.finish(digest: digest)
    }

    private func head(_ size: Int, _ digest: [UInt8]) -> [UInt8] {
        var head = [UInt8](repeating: 0, count: dataOffset)
        head.withUnsafeMutableBytes { head in
            for (block, checksum) in checksums.enumerated() {
                head.storeBytes(of: checksum.littleEndian, toByteOffset: BlobDirectory.headerSize + 4 * block, as: UInt32.self)
            }
            head.storeBytes(of: BlobDirectory.magic.littleEndian, toByteOffset: 0, as: UInt64.self)
            head.storeBytes(of: UInt32(1).littleEndian, toByteOffset: 8, as: UInt32.self)
            head.storeBytes(of: UInt32(BlobDirectory.blockSize).littleEndian, toByteOffset: 12, as: UInt32.self)
            name.store(in: head, at: 16)
            head.storeBytes(of: UInt64(size).littleEndian, toByteOffset: 32, as: UInt64.self)
            let table = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: head[BlobDirectory.headerSize...]))
            head.storeBytes(of: table.littleEndian, toByteOffset: 40, as: UInt32.self)
            for (i, byte) in digest.prefix(16).enumerated() { head[44 + i] = byte }
            let crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: head[0..<60]))
            head.storeBytes(of: crc.littleEndian, toByteOffset: 60, as: UInt32.self)
        }
        return head
    }
}
