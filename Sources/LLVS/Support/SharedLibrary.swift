/// A library of the system that is opened at its first use, not linked: hosts that never use it need none.
struct SharedLibrary {
    /// As people know it: "SQLite".
    let name: String
    /// What the dynamic linker looks for: "libsqlite3.so.0".
    let file: String
    /// In which packages systems bring it.
    let packages: String
    /// What it is opened for, as a message begins: "Opening the database".
    let purpose: String
    /// What goes on without it.
    let spared: String
    /// Whether what it is opened for is a path.
    var isForPath = false

    /// Its functions; there for good.
    /// - Parameters:
    ///   - place: what is to be reached or opened, for the message.
    ///   - open: opens the file of that name and gives the functions, or nil and writes why.
    /// - Throws: `.unsupported` when there is none, or it lacks a function; `.tooManyFiles`.
    func functions<Table>(
        for place: String, _ open: (_ file: String, _ problem: UnsafeMutablePointer<CChar>, _ size: Int) -> UnsafePointer<Table>?
    ) throws -> UnsafePointer<Table> {
        let found: Result<UnsafePointer<Table>, StoreError> = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { problem in
            guard let room = problem.baseAddress else { return .failure(unusable(for: place, "there is no memory", "Free some.")) }
            guard let functions = open(file, room, problem.count) else { return .failure(missing(for: place, String(cString: room))) }
            return .success(functions)
        }
        return try found.get()
    }

    /// The error of one that is there and does not serve.
    func unusable(for place: String, _ why: String, _ advice: String) -> StoreError {
        StoreError(.unsupported, "\(purpose) \(place) failed: \(why). \(advice) \(spared)", path: isForPath ? place : nil)
    }

    private func missing(for place: String, _ problem: String) -> StoreError {
        // The dynamic linker has words for that, but no number.
        do throws(Errno) { System.close(try System.open("/", O_RDONLY)) } catch {
            if error.code == EMFILE || error.code == ENFILE { return StoreError.posix(error, doing: "Opening \(name) for", path: place) }
        }
        return unusable(for: place, "\(name) cannot be opened: \(problem)", "Install it (\(packages)).")
    }
}
