/// A snapshot of the other implementation, `zip-v1`: a zip of its store directory, split into chunks.
///
/// The chunks are joined in an unnamed file in the system's temporary directory (`TMPDIR`, else /tmp), so that entries can be read at any
/// offset; names in the zip are never used as paths.
struct ZipSnapshot: SnapshotVersions {
    static let format = "zip-v1"

    private let source: String
    private let control: OperationControl
    private let transport: StoreDirectoryTransport
    private let directory: ForeignStoreDirectory
    private let order: [VersionID]
    private var next = 0
    var versionsRead: UInt64 { UInt64(next) }

    /// - Parameter read: returns a chunk by its index; nil if there is none.
    /// - Throws: `.snapshotDamaged`, `.foreignSnapshot`, `.noSpace` and other errors of the temporary file, `.cancelled`, errors of
    ///   reading.
    init(
        _ manifest: SnapshotManifest, from source: String, decode: ForeignDecoder?, _ control: OperationControl,
        read: (_ index: Int) throws -> [UInt8]?
    ) throws {
        self.source = source; self.control = control
        func damaged(_ what: String) -> StoreError { ZipSnapshot.damaged(what, source) }
        guard manifest.chunkCount > 0, manifest.chunkCount <= UInt64(SnapshotLimits.chunkCount) else {
            throw damaged("its manifest claims \(manifest.chunkCount) chunks")
        }
        let most = UInt64(SnapshotLimits.foreignChunkSize)
        guard manifest.totalSize >= manifest.chunkCount, manifest.totalSize <= manifest.chunkCount * most else {
            throw damaged("its manifest claims \(manifest.totalSize) bytes in \(manifest.chunkCount) chunks")
        }
        let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        let file = try posix("Making a temporary file in", folder) { () throws(Errno) -> OpenFile in
            let place = Folder(folder).place("llvs-\(try RandomName.random().hex)")
            let file = try OpenFile(place, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
            try place.unlink()
            return file
        }
        var size: UInt64 = 0, digest = SHA256()
        let count = Int(manifest.chunkCount)
        for i in 0..<count {
            try control.check(.reading, i, of: count, doing: "Restoring the snapshot in \(source)")
            let name = SnapshotLimits.chunkName(i)
            guard let chunk = try read(i) else { throw damaged("\(name) is missing") }
            guard !chunk.isEmpty, chunk.count <= SnapshotLimits.foreignChunkSize, UInt64(chunk.count) <= manifest.totalSize - size else {
                throw damaged("\(name) has another size than its manifest says, or more than \(SnapshotLimits.foreignChunkSize) bytes")
            }
            digest.update(chunk)
            try posix("Writing a temporary file in", folder) { () throws(Errno) in try ZipSnapshot.write(chunk, to: file, at: size) }
            size += UInt64(chunk.count)
        }
        // Sets the size, since the file may end with a hole.
        try posix("Writing a temporary file in", folder) { () throws(Errno) in try System.truncate(file.descriptor, to: size) }
        guard size == manifest.totalSize else { throw damaged("it has \(size) bytes, and its manifest says \(manifest.totalSize)") }
        if let told = manifest.sha256, told.lowercased() != Hex.text(of: digest.finish()) {
            throw damaged("its bytes do not match its manifest")
        }
        let paced = control.within(.reading, count, of: count).paced(.reading, doing: "Restoring the snapshot in \(source)")
        let zip = try ForeignZip(try ZipArchive(file, size: size, source: source, paced), paced)
        do { directory = try ForeignStoreDirectory(zip, decode: decode, paced) } catch let error as StoreError
            where error.code == .notAStore
        {
            throw damaged("it is a zip, but not of a store")
        }
        transport = StoreDirectoryTransport(directory)
        order = try ZipSnapshot.order(directory, source, paced)
        guard !order.isEmpty else { throw damaged("it holds no version") }
    }

    /// Writes only pieces that are not zero: other pieces become holes in the file, which take no space.
    private static func write(_ chunk: [UInt8], to file: OpenFile, at offset: UInt64) throws(Errno) {
        let zeros = [UInt8](repeating: 0, count: 64 << 10)
        try chunk.borrowed { (all) throws(Errno) in
            for start in stride(from: 0, to: all.count, by: zeros.count) {
                let piece = UnsafeRawBufferPointer(rebasing: all[start..<min(all.count, start + zeros.count)])
                if zeros.withUnsafeBytes({ Bytes.equal(piece, UnsafeRawBufferPointer(rebasing: $0[..<piece.count])) }) { continue }
                try FileSystem().write(file, piece, at: offset + UInt64(start))
            }
        }
    }

    func damaged(_ what: String) -> StoreError { ZipSnapshot.damaged(what, source) }
    private static func damaged(_ what: String, _ source: String) -> StoreError { SnapshotReader.damaged(what, source) }

    /// Sorts predecessors first. The stack is explicit, since histories are long.
    private static func order(_ directory: ForeignStoreDirectory, _ source: String, _ control: PacedControl) throws -> [VersionID] {
        var predecessors: [VersionID: [VersionID]] = [:]
        for name in try directory.versionNames() {
            try control.step()
            guard let id = VersionID(validating: name) else { throw damaged("\"\(name)\" among its versions is not a version id", source) }
            predecessors[id] = try whole(source) { try version(id, directory, source).predecessors }
        }
        var order: [VersionID] = [], begun: Set<VersionID> = [], done: Set<VersionID> = []
        for start in predecessors.keys.sorted() where !done.contains(start) {
            var stack = [start]
            while let id = stack.last {
                try control.step()
                guard let before = predecessors[id] else { throw damaged("a version builds on \(id), which is not in it", source) }
                if begun.insert(id).inserted {
                    stack += before.filter { !done.contains($0) }
                } else {
                    stack.removeLast()
                    guard before.allSatisfy(done.contains) else { throw damaged("the version \(id) is among its own ancestors", source) }
                    if done.insert(id).inserted { order.append(id) }
                }
            }
        }
        return order
    }

    private static func version(_ id: VersionID, _ directory: ForeignStoreDirectory, _ source: String) throws -> Version {
        guard let bytes = try directory.versionFile(id) else { throw damaged("the file of the version \(id) is missing", source) }
        return try InterchangeDecoder.bareVersion(bytes, name: id, file: "versions/\(id)")
    }

    /// Reports invalid contents as damage of the snapshot, but not errors of reading.
    private static func whole<R>(_ source: String, _ read: () throws -> R) throws -> R {
        do { return try read() } catch let error as StoreError {
            switch error.code {
            case .missingChanges, .missingVersion, .damaged, .invalidJSON, .cutShort, .invalidBase64, .invalidUTF8, .identifierMismatch,
                .invalidValueID, .invalidVersionID, .invalidMetadata, .tooLarge:
                throw damaged(error.message, source)
            default: throw error
            }
        }
    }

    mutating func next(keepingData: (VersionID) -> Bool) throws -> Store.ReceivedVersion? {
        guard next < order.count else { return nil }
        let id = order[next]
        var (version, changes) = try ZipSnapshot.whole(source) {
            let version = try ZipSnapshot.version(id, directory, source)
            return (version, InterchangeOrder.sorted(try transport.changes(of: version)))
        }
        version.valueDataSize = InterchangeOrder.valueDataSize(changes)
        if !keepingData(id) { changes = changes.map(\.withoutData) }
        next += 1
        return Store.ReceivedVersion(version: version, changes: changes)
    }
}
