/// Imports the versions of a store directory of the other implementation into a store.
public enum StoreImporter {
    /// Adds every version of the store at `directory` that is not in `store`, under the same id, with the same timestamp, metadata and
    /// state. The directory is only read.
    ///
    /// Uses the directory's index of prevailing values. A version whose state has bytes that another version stored records a `preserve`.
    /// May be repeated. In all else it works like `Exchange.retrieve`: a version that cannot be imported is a problem in the result and
    /// holds back only those that depend on it.
    /// - Parameters:
    ///   - directory: the path of the store's directory, which is only read.
    ///   - store: the store that receives the versions.
    ///   - decode: decodes compressed data (`LLZF`); called on this thread with the bytes after those four. If it returns nil, the data is
    ///     used unchanged. Without a decoder such files are problems with the code `.unsupported`.
    ///   - control: as for `Exchange.retrieve`.
    /// - Throws: `.notFound`, `.notADirectory`, `.notAStore`; `.unsupported` for a store that is one SQLite database; `.cancelled`; errors
    ///   of `decode` with the code `.user`; errors that keep the store from adding.
    public static func importStore(
        at directory: String, into store: Store, decode: ForeignDecoder? = nil, control: OperationControl = OperationControl()
    ) throws -> ExchangeResult {
        let paced = control.paced(.listing, doing: "Importing from the store directory \(directory)")
        if let file = try database(directory, paced) {
            throw StoreError(
                .unsupported,
                "\(file) is an SQLite database, of an unknown form. Give the directory of a store, or let the program that made "
                    + "it exchange through a folder instead.",
                path: file)
        }
        let found = try ForeignStoreDirectory(ForeignDirectory(path: directory, copies: copies(for: store)), decode: decode, paced)
        return try Exchange(store: store, transport: StoreDirectoryTransport(found)).retrieve(control: control)
    }

    /// Returns the path of a database that is the store, or lies at its top.
    private static func database(_ path: String, _ control: PacedControl) throws -> String? {
        guard !path.isEmpty, !path.utf8.contains(0) else { return nil }
        let folder = Folder(path)
        return try ([DirectoryEntry(path)] + ((try? FolderFiles.names(in: folder, control)) ?? []).map(folder.place)).first {
            try control.step()
            return isDatabase($0)
        }?.path
    }

    private static func isDatabase(_ place: DirectoryEntry) -> Bool {
        let start = Array("SQLite format 3\0".utf8)
        guard let status = try? place.status(), status.isRegularFile, status.size >= UInt64(start.count) else { return false }
        if let part = OpenDatabases.part(FileIdentity(status)) { return part == .database }
        guard let file = try? DatabaseFile(place, "Looking at") else { return false }
        var bytes = [UInt8](repeating: 0, count: start.count)
        let got = try? bytes.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: 0) }
        return got == start.count && bytes == start
    }

    /// Returns where copies of databases are made: beside the store, which has room for imported data, otherwise in the system's temporary
    /// folder.
    private static func copies(for store: Store) -> [String] {
        let temporary = (getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp") + "/llvs"
        let path = (store.storage as? FileStorage)?.path ?? (store.storage as? SQLiteStorage)?.path
        return [path.map { System.absolute(Paths.withoutTrailingSlashes($0)) }, temporary].compactMap(\.self)
    }
}
