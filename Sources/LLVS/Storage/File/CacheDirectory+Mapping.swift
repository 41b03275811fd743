#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Large caches: written piece by piece, and mapped.
///
/// A mapped file never changes: it has one writer, who gives it its name when it is whole, and a name that is used
/// once. Only caches are mapped; records are not, since those who carry them from machine to machine may shorten
/// a file, and reading behind the end of a mapped file ends the process.
extension CacheDirectory {
    /// The bytes of a cache, mapped; nil when it is not there or its envelope is none. They are not compared with their
    /// checksum: who reads a few of them in many has checksums of their parts. O(1).
    func open(_ name: String) throws -> CacheBytes? {
        try CacheName.check(name)
        if let kept = keptInMemory(name) { return kept.map { $0.withUnsafeBytes { CacheBytes(copying: $0) } } }
        guard let opened = try? OpenFile(file(name), O_RDONLY) else { return nil }
        return withExtendedLifetime(opened) { map(opened.descriptor, name) }
    }

    /// Maps the data of a cache file; nil when its envelope is wrong.
    fileprivate func map(_ descriptor: Int32, _ name: String) -> CacheBytes? {
        guard let status = try? System.status(descriptor), status.isRegularFile, let size = Int(exactly: status.size), size > CacheDirectory.envelopeSize, !CacheDirectory.isHollow(descriptor, status.size),
              let memory = mmap(nil, size, PROT_READ, MAP_SHARED, descriptor, 0), memory != MAP_FAILED else { return nil }
        let all = UnsafeRawBufferPointer(start: memory, count: size)
        let bytes = CacheBytes(UnsafeRawBufferPointer(rebasing: all[CacheDirectory.envelopeSize...])) { munmap(memory, size) }
        guard CacheDirectory.dataChecksum(envelope: UnsafeRawBufferPointer(rebasing: all[0..<CacheDirectory.envelopeSize]), name, size: size) != nil else { return nil }
        return bytes
    }

    /// Writes a cache piece by piece. With nil for a name, the file has none either once it is mapped.
    func writer(_ name: String?) throws -> any CacheWriter {
        if let name { try CacheName.check(name) }
        guard isWritable else {
            guard let name else { return MemoryCacheWriter() }
            return MemoryCacheWriter { [self] in keepInMemory(name, $0) }
        }
        let (aside, file) = try makeAside()
        // Maps whose names got lost: those of processes that were killed before they told them, or that closed at once.
        // One that is in use all the same stays open where it is, and is made again from the records after that.
        if name?.hasPrefix(CacheDirectory.mapPrefix) == true { removeOld { $0.hasPrefix(CacheDirectory.mapPrefix) && $0.hasSuffix(".cache") } }
        return FileCacheWriter(self, name, aside, file)
    }

    private final class FileCacheWriter: CacheWriter {
        private static let pieceSize = 256 << 10
        private let directory: CacheDirectory
        private let name: String?
        /// Nil once it is in place.
        private var aside: Place?
        private let file: OpenFile
        private var piece: [UInt8] = []
        private var written: UInt64 = 0
        private var checksum: UInt32 = 0

        init(_ directory: CacheDirectory, _ name: String?, _ aside: Place, _ file: OpenFile) {
            self.directory = directory
            self.name = name
            self.aside = aside
            self.file = file
            piece.reserveCapacity(FileCacheWriter.pieceSize)
        }
        deinit { if let aside { try? aside.unlink() } }

        func append(_ bytes: UnsafeRawBufferPointer) throws {
            if piece.count + bytes.count > FileCacheWriter.pieceSize { try flush() }
            if bytes.count > FileCacheWriter.pieceSize { try write(bytes) } else { piece.append(contentsOf: bytes) }
        }

        private func flush() throws {
            try piece.withUnsafeBytes { try write($0) }
            piece.removeAll(keepingCapacity: true)
        }

        private func write(_ bytes: UnsafeRawBufferPointer) throws {
            try posix("Writing a cache", directory.path) { () throws(Errno) in
                try directory.system.write(file.descriptor, bytes, at: UInt64(CacheDirectory.envelopeSize) + written)
            }
            written += UInt64(bytes.count)
            checksum = Bytes.crc32c(bytes, from: checksum)
        }

        /// Not synced: after a power cut the file does not match its checksum, or is not there, and both are fine.
        func finish() throws -> CacheBytes {
            try flush()
            let envelope = CacheDirectory.envelope(name ?? "", size: written, checksum: checksum)
            try posix("Writing a cache", directory.path) { () throws(Errno) in
                try envelope.borrowed { (b) throws(Errno) in try directory.system.write(file.descriptor, b, at: 0) }
            }
            guard let aside else { throw StoreError(.internal, "A cache in \(directory.path) was finished before.", path: directory.path) }
            let reopened = try posix("Reading a cache", directory.path) { () throws(Errno) in try OpenFile(aside, O_RDONLY) }
            guard let bytes = withExtendedLifetime(reopened, { directory.map(reopened.descriptor, name ?? "") }) else {
                throw StoreError(.io, "A cache in \(directory.path) is not what was written to it. Check the disk.", path: directory.path)
            }
            try posix("Writing a cache", directory.path) { () throws(Errno) in
                if let name { try aside.rename(to: directory.file(name)) } else { try aside.unlink() }
            }
            self.aside = nil
            return bytes
        }
    }
}
