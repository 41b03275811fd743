/// Detects whether a folder-syncing program carries a directory, by the files that well-known programs have at the top of their folders.
/// Compacting segments there is correct, but every machine would send the other machines what they have already.
enum SyncedFolder {
    static let markers = [
        ".stfolder", // Syncthing
        ".dropbox", ".dropbox.cache", // Dropbox
        ".nextcloudsync.log", ".owncloudsync.log", // Nextcloud, ownCloud
        ".sync", // Resilio
        ".tmp.driveupload", // Google Drive
        ".megaignore", // MEGA
        ".seafile-data", // Seafile
    ]

    /// Returns the marker in the directory, or in the nearest one above that has one. The marker must belong to this user, to the system,
    /// or to the store's owner. A file of another user in a directory that all may write, such as /tmp, does not count.
    static func marker(above path: String) -> String? {
        var at = resolved(path)
        let owners = [geteuid(), 0, (try? System.status(at))?.owner ?? 0]
        while true {
            for name in markers {
                guard let status = try? System.status(at == "/" ? "/" + name : at + "/" + name), owners.contains(status.owner) else {
                    continue
                }
                // Dropbox stores its settings in ~/.dropbox.
                if name == ".dropbox", at == home { continue }
                return at == "/" ? "/" + name : at + "/" + name
            }
            let parent = Paths.parent(of: at)
            if parent == at || at == "." { return nil }
            at = parent
        }
    }

    private static var home: String? { getenv("HOME").map { resolved(String(cString: $0)) } }

    /// Returns a path without symbolic links, whose parents are the real ones.
    private static func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }
}
