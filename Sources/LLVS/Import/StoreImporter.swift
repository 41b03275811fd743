/// Brings the versions of a store directory of the other implementation into a store.
public enum StoreImporter {
    /// Adds every version of the store at `directory` that is not in `store`, under the same id, with the
    /// same time stamp, metadata and state. The directory is only read.
    ///
    /// Goes by the directory's index of what prevails where. A version that shows bytes stored in another
    /// one records a `preserve`. May be repeated; works like `Exchange.retrieve` in all else: what cannot be
    /// imported is a problem in the result and holds back only what depends on it.
    /// - Parameter decode: for what is compressed (`LLZF`); called on this thread, with what follows those four bytes. What it gives nil for is
    ///   taken as it is. Without one such files are problems with the code `.unsupported`.
    /// - Throws: `.notFound`, `.notADirectory`, `.notAStore`; `.unsupported` for a store that is one SQLite database; `.cancelled`;
    ///   what `decode` throws with the code `.user`; what keeps the store from adding.
    public static func importStore(at directory: String, into store: Store, decode: ForeignDecoder? = nil, _ control: OperationControl = OperationControl()) throws -> ExchangeResult {
        let paced = control.paced(.listing, doing: "Importing from the store directory \(directory)")
        if let file = try database(directory, paced) {
            throw StoreError(.unsupported, "\(file) is an SQLite database, of a form that is not known. Give the directory of a store, or let the program that made it exchange through a folder instead.", path: file)
        }
        let found = try ForeignStoreDirectory(ForeignDirectory(path: directory), decode: decode, paced)
        return try Exchange(store: store, transport: StoreDirectoryTransport(found)).retrieve(control)
    }

    /// A database that is the store, or is at the top of it.
    private static func database(_ path: String, _ control: PacedControl) throws -> String? {
        guard !path.isEmpty, !path.utf8.contains(0) else { return nil }
        let folder = Folder(path)
        return try ([Place(path)] + ((try? FolderFiles.names(in: folder, control)) ?? []).map(folder.place)).first {
            try control.step()
            return FolderFiles.signature($0) != nil && FolderFiles.beginsWith("SQLite format 3\0", $0)
        }?.path
    }
}
