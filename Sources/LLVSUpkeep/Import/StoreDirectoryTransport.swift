/// Presents a store directory of the other implementation as the other side of an exchange, for receiving only. The changes of a version
/// are found by comparing its index with its first predecessor's.
final class StoreDirectoryTransport: ExchangeTransport, @unchecked Sendable {
    // Sendable: used by one exchange, which admits one call at a time.
    private let directory: ForeignStoreDirectory
    private var nodes: [ForeignStoreDirectory.NodeName: ForeignStoreDirectory.Node] = [:]
    /// The number of entries of the cached nodes, and the most nodes and entries cached; a version shares nearly all of its nodes with its
    /// predecessor.
    private var entriesCached = 0
    private static let nodeCount = 20_000, entryCount = 1 << 20
    private static let depthLimit = 16
    /// The nodes that were read, their number of entries, and the number of entries visited to compare versions.
    private var met: Set<ForeignStoreDirectory.NodeName> = [], entriesMet = 0, entriesCompared = 0
    /// A node differs between a version and its predecessor because one of the two wrote it, so each is visited only a few times. A
    /// malicious store could make all versions name a few large nodes in turn, so the visits are bounded.
    private static let mostComparisons = 16, freeComparisons = 1 << 20

    init(_ directory: ForeignStoreDirectory) { self.directory = directory }

    var description: String { "the store directory \(directory.path)" }

    func list(_ control: OperationControl) throws -> ExchangeListing {
        var listing = ExchangeListing(versions: try directory.versionNames())
        listing.reportsForeign = true
        return listing
    }

    func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try fetch(names, control) { id in
            guard let bytes = try directory.versionFile(id) else { return nil }
            return Array("{\"version\":".utf8) + bytes + Array("}".utf8)
        }
    }
    func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try fetch(names, control) { id in
            guard let bytes = try directory.versionFile(id) else { return nil }
            let version = try InterchangeDecoder.bareVersion(bytes, name: id, file: "versions/\(id)")
            return InterchangeEncoder.changes(try changes(of: version))
        }
    }
    private func fetch(_ names: [String], _ control: OperationControl, _ read: (VersionID) throws -> [UInt8]?) throws -> [FetchedFile] {
        var files: [FetchedFile] = [], size = 0
        for (i, name) in names.enumerated() {
            if i % 16 == 15 { try control.check(.receiving, i, of: names.count, doing: "Importing from \(description)") }
            do {
                let bytes = try VersionID(validating: name).flatMap(read)
                files.append(bytes.map(FetchedFile.data) ?? .missing)
                size += bytes?.count ?? 0
            } catch {
                let error = StoreError.of(error)
                // Errors of the host's decoder, and errors that are not the file's fault.
                if [.user, .cancelled, .outOfMemory, .busy].contains(error.code) { throw error }
                files.append(.unreadable(error))
            }
            if size >= ExchangeLimits.batchSize { break }
        }
        return files
    }

    // MARK: Changes of a version

    func changes(of version: Version) throws -> [Value.Change] {
        let (here, before) = try difference(version.id, version.predecessors.first)
        var changes: [Value.Change] = [], size = 0
        for (id, stored) in here where before[id] != stored {
            try directory.control.step()
            if stored == version.id {
                let data = try directory.value(Value.Reference(id: id, version: stored))
                size += data.count
                // The version could not be sent to a folder either.
                guard size <= ExchangeLimits.fileSize else {
                    throw StoreError(
                        .tooLarge,
                        "The values of the version \(version.id) in \(directory.path) have more than \(ExchangeLimits.fileSize) bytes. It "
                            + "was not imported, and neither were its descendants.", versionID: version.id.description)
                }
                changes.append(before[id] == nil ? .insert(id, data: data) : .update(id, data: data))
            } else {
                changes.append(.preserve(Value.Reference(id: id, version: stored)))
            }
        }
        let removed = before.keys.filter { here[$0] == nil }
        if !removed.isEmpty {
            // If the second predecessor lacks the value too, the removal came from it.
            let second = version.predecessors.count > 1 ? try difference(version.id, version.predecessors[1]).before : nil
            for id in removed { changes.append(second.map { $0[id] == nil } ?? false ? .preserveRemoval(id) : .remove(id)) }
        }
        return changes
    }

    /// Returns the values in the nodes that differ between two versions.
    private func difference(_ version: VersionID, _ base: VersionID?) throws -> (here: [ValueID: VersionID], before: [ValueID: VersionID]) {
        let here = try node(.root(version)), before = try base.map { try node(.root($0)) }
        let names = Set(here.nodes), namesBefore = Set(before?.nodes ?? [])
        return (try values(here, without: namesBefore), try before.map { try values($0, without: names) } ?? [:])
    }

    private func values(_ root: ForeignStoreDirectory.Node, without shared: Set<ForeignStoreDirectory.NodeName>) throws -> [ValueID:
        VersionID]
    {
        var values: [ValueID: VersionID] = [:]
        // Each node is visited once, however often it is named; otherwise a store whose nodes name all of the next level many times would
        // take forever.
        var seen = shared
        var open = [(node: root, depth: 0)]
        while let (node, depth) = open.popLast() {
            entriesCompared += node.entryCount
            guard entriesCompared - StoreDirectoryTransport.freeComparisons <= StoreDirectoryTransport.mostComparisons * entriesMet else {
                throw StoreError(
                    .damaged,
                    "The versions in \(directory.path) name the same parts of the index again and again, so that comparing them would take "
                        + "too long. Import from a copy of the store as its own program writes it.", path: directory.path)
            }
            for value in node.values {
                try directory.control.step()
                values[value.id] = value.version
            }
            guard depth < StoreDirectoryTransport.depthLimit else {
                throw StoreError(
                    .damaged, "The index in \(directory.path) is nested too deeply. Import from a copy of the store that is whole.",
                    path: directory.path)
            }
            for name in node.nodes where seen.insert(name).inserted {
                try directory.control.step()
                open.append((try self.node(name), depth + 1))
            }
        }
        return values
    }

    private func node(_ name: ForeignStoreDirectory.NodeName) throws -> ForeignStoreDirectory.Node {
        if let node = nodes[name] { return node }
        let node = try directory.node(name)
        entriesCached += node.entryCount
        if nodes.count >= StoreDirectoryTransport.nodeCount || entriesCached > StoreDirectoryTransport.entryCount {
            (nodes, entriesCached) = ([:], node.entryCount)
        }
        nodes[name] = node
        if met.insert(name).inserted { entriesMet += node.entryCount }
        return node
    }

    // MARK: Unsupported

    private var unsupported: StoreError {
        StoreError(.unsupported, "\(description) can only be imported from. Send to an exchange instead.", path: directory.path)
    }
    func send(_ files: [ExchangeFiles], _ control: OperationControl) throws { throw unsupported }
    func readSnapshotFile(_ name: String) throws -> [UInt8]? { nil }
    func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws { throw unsupported }
    func deleteSnapshotFile(_ name: String) throws { throw unsupported }
    func snapshotFileNames() throws -> [String] { [] }
    var restorationState: [UInt8] {
        get { [] }
        set {}
    }
    func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { nil }
    func close() {}
}
