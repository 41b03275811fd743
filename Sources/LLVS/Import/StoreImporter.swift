/// Brings the versions of a store directory of the other implementation into a store.
public enum StoreImporter {
    /// Adds every version of the store at `directory` that is not in `store`, under the same id, with the
    /// same time stamp, metadata and state. The directory is only read.
    ///
    /// Goes by the directory's index of what prevails where. A version that shows bytes stored in another
    /// one records a `preserve`. May be repeated; works like `Exchange.retrieve` in all else: what cannot be
    /// imported is a problem in the result and holds back only what depends on it. Files that are
    /// compressed (`LLZF`) are such problems, with the code `.unsupported`.
    /// - Throws: `.notFound`, `.notADirectory`, `.notAStore`; `.unsupported` for a store kept in SQLite; `.cancelled`;
    ///   what keeps the store from adding.
    public static func importStore(at directory: String, into store: Store, _ control: OperationControl = OperationControl()) throws -> ExchangeResult {
        try Exchange(store: store, transport: StoreDirectoryTransport(path: directory)).retrieve(control)
    }
}
