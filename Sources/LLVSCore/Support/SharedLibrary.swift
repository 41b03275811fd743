/// A system library that is loaded on first use and not linked: hosts that never use it do not need it.
package struct SharedLibrary {
    /// The common name: "SQLite".
    package let name: String
    /// The file name for the dynamic linker: "libsqlite3.so.0".
    package let file: String
    /// The packages that contain it on different systems.
    package let packages: String
    /// The action that needs it, as the beginning of a message: "Opening the database".
    package let purpose: String
    /// A sentence about what works without it.
    package let spared: String
    /// Whether the argument of that action is a path.
    var isForPath = false
    package init(name: String, file: String, packages: String, purpose: String, spared: String, isForPath: Bool = false) {
        self.name = name; self.file = file; self.packages = packages; self.purpose = purpose; self.spared = spared
        self.isForPath = isForPath
    }

    /// Returns its functions, which are never unloaded.
    /// - Parameters:
    ///   - place: the place to reach or open, for the message.
    ///   - open: loads the library of that file name and returns the functions, or writes the reason and returns nil.
    /// - Throws: `.unsupported` if there is none, or it lacks a function; `.tooManyFiles`.
    package func functions<Table>(
        for place: String, _ open: (_ file: String, _ problem: UnsafeMutablePointer<CChar>, _ size: Int) -> UnsafePointer<Table>?
    ) throws -> UnsafePointer<Table> {
        let found: Result<UnsafePointer<Table>, StoreError> = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { problem in
            guard let room = problem.baseAddress else { return .failure(unusable(for: place, "there is no memory", "Free some.")) }
            guard let functions = open(file, room, problem.count) else { return .failure(missing(for: place, String(cString: room))) }
            return .success(functions)
        }
        return try found.get()
    }

    /// Returns the error for a library that is present and unusable.
    package func unusable(for place: String, _ why: String, _ advice: String) -> StoreError {
        StoreError(.unsupported, "\(purpose) \(place) failed: \(why). \(advice) \(spared)", path: isForPath ? place : nil)
    }

    private func missing(for place: String, _ problem: String) -> StoreError {
        // The dynamic linker reports this in words, without an error number.
        do throws(Errno) { System.close(try System.open("/", O_RDONLY)) } catch {
            if error.code == EMFILE || error.code == ENFILE { return StoreError.posix(error, doing: "Opening \(name) for", path: place) }
        }
        return unusable(for: place, "\(name) cannot be opened: \(problem)", "Install it (\(packages)).")
    }
}
