import CLLVSShims

/// The listing of an exchange folder, read again only when its directories have changed.
///
/// A directory's times show that it gained or lost a name, with two reservations: only a file system of this machine shows it at once, and
/// a file system with coarse times may give a change the time that was read just before. So the times are trusted only on local file
/// systems, and only if they are older than two seconds.
struct FolderListing {
    /// The age in seconds from which a directory's times are trusted.
    static let settlingTime: Int64 = 2
    /// The system's clock; tests replace it.
    var now: @Sendable () -> Int64 = { System.now }
    private var known: (listing: ExchangeListing, versions: System.Status, changes: System.Status)?
    private let marks = Marks()

    /// Counts the listings of all copies of a `FolderListing`, so that no two get one mark. Safe from all threads.
    private final class Marks: @unchecked Sendable {
        // Sendable: `lock` guards all that changes.
        private let lock = Lock(.leaf)
        private var last: UInt64 = 0
        func next() -> UInt64 {
            lock.withLock {
                last += 1
                return last
            }
        }
    }

    /// Lists the two folders. Missing folders count as empty.
    /// - Throws: also errors of the control, which is checked with stage `.listing`, in names.
    mutating func read(_ versions: Folder, _ changes: Folder, _ control: OperationControl = OperationControl()) throws -> ExchangeListing {
        let control = control.paced(.listing, doing: "Listing the folder \(versions.path)")
        versions.renew()
        changes.renew()
        let before = FolderListing.status(versions).flatMap { v in FolderListing.status(changes).map { (v, $0) } }
        if let known, let before, known.versions == before.0, known.changes == before.1 { return known.listing }
        known = nil
        // Changes first: a version published between the two passes then shows as a version without changes, not as changes without a
        // version.
        var withChanges: [VersionID] = [], listing = ExchangeListing(versions: [])
        try FolderFiles.forEachName(in: changes) { name in
            try control.step()
            if let id = VersionID(validating: name) {
                withChanges.append(id)
            } else {
                listing.addForeign(String(decoding: name, as: UTF8.self), .changes)
            }
        }
        try FolderFiles.forEachName(in: versions) { name in
            try control.step()
            if let id = VersionID(validating: name) {
                listing.versions.append(id)
            } else {
                listing.addForeign(String(decoding: name, as: UTF8.self), .versions)
            }
        }
        try listing.setApart(withChanges, control)
        if let before, isSettled(before.0), isSettled(before.1), llvs_shim_is_local(versions.path) == 1,
            llvs_shim_is_local(changes.path) == 1
        {
            listing.mark = marks.next()
            known = (listing, before.0, before.1)
        }
        return listing
    }

    private static func status(_ folder: Folder) -> System.Status? {
        guard let held = try? folder.held() else { return nil }
        return try? System.status(held.descriptor)
    }
    private func isSettled(_ status: System.Status) -> Bool {
        let newest = max(status.modified, status.changed), now = now()
        return newest <= now && now - newest > FolderListing.settlingTime * 1_000_000_000
    }
}
