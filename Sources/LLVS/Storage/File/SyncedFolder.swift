/// Whether a folder-syncing program carries a directory: by the files that the well-known ones keep at the top of
/// what they sync. Compacting segments there is correct, but every machine would send the others what they have.
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

    /// The marker in the directory or the nearest above it that has one: of this user, of the system, or of whoever has the store. What
    /// somebody else puts into a directory that all may write, such as /tmp, says nothing.
    static func marker(above path: String) -> String? {
        var at = resolved(path)
        let owners = [geteuid(), 0, (try? System.status(at))?.owner ?? 0]
        while true {
            for name in markers {
                guard let status = try? System.status(at == "/" ? "/" + name : at + "/" + name), owners.contains(status.owner) else {
                    continue
                }
                // ~/.dropbox is where Dropbox keeps its settings.
                if name == ".dropbox", at == home { continue }
                return at == "/" ? "/" + name : at + "/" + name
            }
            let parent = Paths.parent(of: at)
            if parent == at || at == "." { return nil }
            at = parent
        }
    }

    private static var home: String? { getenv("HOME").map { resolved(String(cString: $0)) } }

    /// Without symbolic links, so that the directories above are those it is really in.
    private static func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }
}
