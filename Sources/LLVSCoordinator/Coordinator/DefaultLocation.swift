extension StoreCoordinator {
    /// Returns the platform's path for an app's store: on Linux `$XDG_DATA_HOME/<app>/store.llvs`, or `~/.local/share/<app>/store.llvs`
    /// if the variable is not set; on macOS `~/Library/Application Support/<app>/store.llvs`. Does not create the directories above it.
    /// Source: XDG Base Directory Specification 0.8.
    /// - Throws: `.invalidArgument` for a name that is not a file name, `.notFound` if there is no home directory.
    public static func defaultLocation(app: String) throws -> String {
        guard !app.isEmpty, app != ".", app != "..", !app.utf8.contains(UInt8(ascii: "/")), !app.utf8.contains(0) else {
            throw StoreError(
                .invalidArgument,
                "\"\(app)\" cannot be the name of a directory. Give a name without slashes and NULs that is not \".\" or \"..\".")
        }
        #if os(macOS)
        let variable: String? = nil, below = "/Library/Application Support"
        #else
        let variable = getenv("XDG_DATA_HOME").map { String(cString: $0) }, below = "/.local/share"
        #endif
        // The specification requires that relative values are ignored.
        if let variable, variable.utf8.first == UInt8(ascii: "/") { return "\(variable)/\(app)/store.llvs" }
        guard let home = getenv("HOME").map({ String(cString: $0) }), !home.isEmpty else {
            throw StoreError(
                .notFound, "There is no home directory for the store of \"\(app)\". Set HOME or XDG_DATA_HOME, or give a path.")
        }
        return "\(home)\(below)/\(app)/store.llvs"
    }
}
