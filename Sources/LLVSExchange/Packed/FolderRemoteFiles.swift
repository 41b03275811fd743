/// A folder as a place that holds named files: for the packed layout on a drive, on a stick or in a synced folder.
package final class FolderRemoteFiles: RemoteFiles, @unchecked Sendable {
    // Sendable: `lock` guards the folders and counts.
    private let root: Folder
    private let path: String
    private let isDurable: Bool
    private let lock = Lock(.leaf)
    private var folders: [String: Folder] = [:]
    private var counted = RemoteCounts()
    private static let namesPerLook = 1_024

    /// - Parameter folder: checked, and created if requested.
    package init(_ folder: FolderTransport, isDurable: Bool) {
        path = folder.path
        root = Folder(folder.path)
        self.isDurable = isDurable
    }

    package var description: String { "the folder \(path)" }
    package var usualDescription: @Sendable () -> String { { [path] in FolderTransport.usualDescription(path) } }
    package var capabilities: RemoteCapabilities {
        RemoteCapabilities(requestsToPublish: 1, isExclusive: false, hasRanges: true, hasFeed: false, isNear: true)
    }
    package var counts: RemoteCounts { lock.withLock { counted } }
    package func close() {}

    /// Returns the folder of a directory, whether it exists or not.
    private func folder(_ directory: String) -> Folder {
        guard !directory.isEmpty else { return root }
        if let known = lock.withLock({ folders[directory] }) { return known }
        var folder = root
        for component in directory.split(separator: "/") { folder = folder.folder(String(component)) }
        let made = folder
        return lock.withLock {
            folders[directory] = folders[directory] ?? made
            return folders[directory] ?? made
        }
    }
    private func place(_ name: String) -> DirectoryEntry {
        let parent = Paths.parent(of: name)
        return folder(parent == "." ? "" : parent).place(String(name.split(separator: "/").last ?? ""))
    }
    private func count(_ change: (inout RemoteCounts) -> Void) { lock.withLock { change(&counted) } }

    package func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        count { $0.requests += 1 }
        // The folder may have been recreated or mounted since.
        let folder = folder(directory)
        _ = folder.renew()
        var entries: [RemoteEntry] = [], names: [String] = []
        try FolderFiles.forEachName(in: folder) { name in
            if names.count % FolderRemoteFiles.namesPerLook == 0 { try check() }
            names.append(String(decoding: name, as: UTF8.self))
        }
        for name in names {
            try check()
            guard RemoteName.isComponent(name), let status = try? folder.place(name).status() else { continue }
            let age = withTimes ? (System.now &- status.modified) / 1_000_000_000 : nil
            entries.append(RemoteEntry(name: name, isDirectory: !status.isRegularFile, size: Int(exactly: status.size), age: age))
        }
        return entries
    }

    package func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents] {
        try files.map { file in
            try check()
            count { $0.requests += 1 }
            return try read(file)
        }
    }

    private func read(_ file: RemoteRead) throws -> RemoteContents {
        let place = place(file.name)
        guard let range = file.range else {
            do {
                guard let bytes = try FolderFiles.read(place, limit: file.limit) else { return .missing }
                count { $0.bytesDown += bytes.count }
                return .bytes(bytes, isWhole: true)
            } catch let error as StoreError where error.code != .tooManyFiles && error.code != .outOfMemory { return .unreadable(error) }
        }
        do throws(Errno) {
            let opened = try OpenFile(place, O_RDONLY)
            guard try System.status(opened.descriptor).isRegularFile else { return .missing }
            var bytes = [UInt8](repeating: 0, count: range.count)
            let got = try bytes.filled { (b) throws(Errno) in try System.pread(opened.descriptor, b, at: UInt64(max(0, range.lowerBound))) }
            count { $0.bytesDown += got }
            return .bytes(Array(bytes.prefix(got)), isWhole: false)
        } catch {
            if error == .missing { return .missing }
            return .unreadable(FolderFiles.error(error, "Reading the file", place.path))
        }
    }

    package func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        try files.map { file in
            try check()
            count {
                $0.requests += 1; $0.bytesUp += file.data.size
            }
            let final = place(file.name)
            if !file.replaces, (try? final.status()) != nil { return .exists }
            try makeFolders(Paths.parent(of: file.name))
            try makeFolders("tmp")
            let name = try posix("Naming a file in", path) { () throws(Errno) in try RandomName.random().hex }
            let aside = folder("tmp").place(name)
            try FolderFiles.writeNew(aside, file.data, check: check)
            do {
                let sync = FolderSync(root)
                if isDurable { try sync.files([aside], check: check) }
                try FolderFiles.publish(aside, as: final)
                if isDurable { try sync.directory(final.folder) }
            } catch {
                try? aside.unlink()
                guard let error = error as? StoreError, error.code == .foreignFile else { throw error }
                return .refused(error)
            }
            return .published
        }
    }

    private func makeFolders(_ directory: String) throws {
        guard directory != "." else { return }
        var whole = ""
        for component in directory.split(separator: "/") {
            whole += (whole.isEmpty ? "" : "/") + component
            try FolderFiles.makeDirectory(folder(whole))
        }
    }

    package func delete(_ names: [String], _ check: Check) throws {
        for name in names {
            try check()
            count { $0.requests += 1 }
            try FolderFiles.remove(place(name))
        }
    }

    package func observe(_ directories: [String], _ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? {
        // Of the enclosing folders, including the place itself, only these names matter.
        var parts: [String: Set<String>] = [:]
        for directory in directories {
            var rest = directory
            while !rest.isEmpty {
                let (above, name) = RemoteName.split(rest)
                parts[above, default: []].insert(name)
                rest = above
            }
        }
        let around = parts.filter { !directories.contains($0.key) }.map { above, names in
            // The folder itself may be reached through a link.
            WatchedDirectory(above.isEmpty ? path + "/." : "\(path)/\(above)", names: { names.contains($0) })
        }
        return try FolderWatch.start(
            around + directories.map { WatchedDirectory("\(path)/\($0)", names: { RemoteName.isComponent($0) }) }, changed)
    }

    package func prepareUploads(_ check: Check) throws { try FolderFiles.removeFiles(in: folder("tmp"), olderThan: 86_400) }
}
