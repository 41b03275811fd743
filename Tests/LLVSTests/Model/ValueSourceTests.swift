import Glibc
import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Values whose bytes are read piece by piece while a version is made.
@Suite struct ValueSourceTests {
    private static let threshold = 1 << 20

    private func bytes(_ size: Int, _ seed: UInt64 = 1) -> [UInt8] {
        var random = SeededRandom(seed: seed), bytes: [UInt8] = []
        while bytes.count < size { withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) } }
        return Array(bytes.prefix(size))
    }

    /// Returns `data` in pieces of up to `step` bytes; throws after `failing` bytes.
    private func source(_ id: String, _ data: [UInt8], told: Int? = nil, step: Int = 100_000, failing: Int? = nil) throws -> ValueSource {
        var at = 0
        return ValueSource(id: try ValueID(id), size: told) { buffer in
            if let failing, at >= failing { throw StoreError(.user, "The source broke.") }
            let end = min(data.count, at + min(step, buffer.count))
            data.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: buffer[..<(end - at)]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: $0[at..<end]))
            }
            defer { at = end }
            return end - at
        }
    }

    private func open(_ folder: TemporaryFolder, _ name: String, _ change: (inout FileStorage.Options) -> Void = { _ in }) throws -> Store {
        var options = Store.Options(), path = folder.path + "/" + name
        if name.isEmpty { options.storage = .memory; path = "" }
        if name.hasSuffix("sqlite") { options.storage = .custom(try SQLiteStorage(path: path)) }
        if name.hasSuffix("llvs") {
            var file = FileStorage.Options()
            change(&file)
            options.storage = .custom(try FileStorage(path: path, options: file))
        }
        return try Store(path: path, options: options)
    }
    private func blobs(_ folder: TemporaryFolder) throws -> Int { try folder.names("a.llvs/blobs").count }

    @Test(arguments: ["", "a.llvs", "a.sqlite"], [true, false])
    func whatASourceGivesIsTheValue(_ name: String, _ isTold: Bool) throws {
        let folder = TemporaryFolder(), sizes = [0, 1, 65_536, ValueSourceTests.threshold, ValueSourceTests.threshold + 1, 1_500_000]
        var store = try open(folder, name)
        let first = try store.makeVersion(basedOn: nil, changes: [insert("plain", "x"), insert("2", "old")])
        let sources = try sizes.enumerated().map {
            try source("\($0)", bytes($1), told: isTold && $1 > 0 ? $1 : nil, step: $0 == 4 ? 999_999 : 77_777)
        }
        let changes: [Value.Change] = [try update("plain", "y")]
        let made = try changes.withBorrowed { try store.makeVersion(basedOn: first.id, borrowing: $0, reading: sources) }
        #expect(made.valueDataSize == UInt64(sizes.reduce(1, +)))
        if name.hasSuffix("llvs") { #expect(try blobs(folder) == 2) }
        if !name.isEmpty { try store.close(); store = try open(folder, name) }
        for (i, size) in sizes.enumerated() { #expect(try store.value(ValueID("\(i)"), at: made.id)?.data == bytes(size), "\(size)") }
        #expect(try store.value(ValueID("plain"), at: made.id)?.data == Array("y".utf8))
        // The value is recorded as if its bytes had been passed at once.
        let kinds = try store.recordedChanges(madeIn: made.id).map(\.kind)
        #expect(kinds == [.insert, .insert, .update, .insert, .insert, .insert, .update])
        let plain = try Store.inMemory()
        _ = try plain.makeVersion(
            basedOn: nil, changes: [insert("plain", "x"), insert("2", "old")], id: first.id, timestamp: first.timestamp)
        let changed = try sizes.enumerated().map { Value.Change.update(try ValueID("\($0)"), data: bytes($1)) } + changes
        _ = try plain.makeVersion(basedOn: first.id, changes: changed, id: made.id, timestamp: made.timestamp)
        #expect(try plain.changes(madeIn: made.id) == store.changes(madeIn: made.id))
        #expect(try store.verify().damages.isEmpty)
        try store.close()
    }

    @Test func aSourceThatFailsLeavesNothing() throws {
        let folder = TemporaryFolder(), store = try open(folder, "a.llvs"), large = bytes(2_500_000)
        func attempt(_ sources: [ValueSource], on base: VersionID? = nil, _ changes: [Value.Change] = []) -> StoreError.Code? {
            code { _ = try changes.withBorrowed { try store.makeVersion(basedOn: base, borrowing: $0, reading: sources) } }
        }
        for told in [nil, large.count] {
            #expect(try attempt([source("a", large, told: told), source("b", large, told: told, failing: 2_000_000)]) == .user)
            #expect(try blobs(folder) == 0)
        }
        #expect(try attempt([source("a", large, told: large.count + 1)]) == .invalidArgument)
        #expect(try attempt([source("a", large, told: large.count - 1)]) == .invalidArgument)
        #expect(try attempt([source("a", bytes(10), told: 11)]) == .invalidArgument)
        #expect(try attempt([source("a", large, told: Limits.valueSize + 1)]) == .tooLarge)
        #expect(try attempt([ValueSource(id: ValueID("a")) { $0.count + 1 }]) == .invalidArgument)
        #expect(try attempt([ValueSource(id: ValueID("a")) { _ in -1 }]) == .invalidArgument)
        // Other invalid arguments are reported before sources are read.
        let unread = ValueSource(id: try ValueID("a")) { _ in
            Issue.record("it was read"); return 0
        }
        #expect(attempt([unread, unread]) == .duplicateID)
        #expect(try attempt([unread], on: nil, [insert("a", "x")]) == .duplicateID)
        #expect(try attempt([unread], on: VersionID("unknown")) == .unknownPredecessor)
        #expect(try blobs(folder) == 0)
        #expect(try store.allVersionIDs().isEmpty)
        #expect(
            try store.makeVersion(basedOn: nil, borrowing: BorrowedChanges([]), reading: [source("a", large)]).valueDataSize == 2_500_000)
        #expect(try blobs(folder) == 1)
        try store.close()
    }

    @Test func theSameVersionAgainKeepsOneBlob() throws {
        let folder = TemporaryFolder(), store = try open(folder, "a.llvs"), large = bytes(1_200_000), id = try VersionID("same")
        for _ in 0..<2 {
            #expect(try store.makeVersion(basedOn: nil, borrowing: BorrowedChanges([]), reading: [source("a", large)], id: id).id == id)
        }
        #expect(try blobs(folder) == 1)
        #expect(
            code {
                _ = try store.makeVersion(basedOn: nil, borrowing: BorrowedChanges([]), reading: [source("a", bytes(1_200_000, 2))], id: id)
            } == .versionMismatch)
        #expect(try blobs(folder) == 1)
        #expect(try store.value(ValueID("a"), at: id)?.data == large)
        try store.close()
    }

    @Test func aSourceMayReadTheStore() throws {
        let folder = TemporaryFolder(), store = try open(folder, "a.llvs"), large = bytes(1_300_000)
        let first = try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("a"), data: large)])
        var at = 0
        let copy = ValueSource(id: try ValueID("b")) { buffer in
            let data = try store.value(ValueID("a"), at: first.id)?.data ?? [], count = min(buffer.count, data.count - at)
            data.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: $0[at..<at + count]))
            }
            at += count
            return count
        }
        let second = try store.makeVersion(basedOn: first.id, borrowing: BorrowedChanges([]), reading: [copy])
        #expect(try store.value(ValueID("b"), at: second.id)?.data == large)
        try store.close()
    }

    /// Makes writes and syncs fail after a number of calls.
    private final class Faults: @unchecked Sendable {
        private let lock = Lock()
        var writesLeft = Int.max, syncsLeft = Int.max
        var system: FileSystem {
            var system = FileSystem()
            system.pwrite = { [self] (fd, bytes, offset) throws(Errno) in
                guard take(\.writesLeft) else { throw Errno(ENOSPC) }
                return try System.pwrite(fd, bytes, at: offset)
            }
            system.fdatasync = { [self] (fd) throws(Errno) in
                guard take(\.syncsLeft) else { throw Errno(EIO) }
                try System.fdatasync(fd)
            }
            return system
        }
        private func take(_ count: ReferenceWritableKeyPath<Faults, Int>) -> Bool {
            lock.withLock {
                self[keyPath: count] -= 1; return self[keyPath: count] >= 0
            }
        }
    }

    /// A blob that was not written to for a while does not count as still arriving. Its value is lost, and no version waits for it.
    @Test func aBlobThatIsDamagedHoldsUpNoVersions() throws {
        let folder = TemporaryFolder()
        var store = try open(folder, "a.llvs")
        let first = try store.makeVersion(
            basedOn: nil, changes: [.insert(ValueID("a"), data: bytes(1_200_000)), .insert(ValueID("b"), data: [1])])
        let second = try store.makeVersion(basedOn: first.id, changes: [.insert(ValueID("c"), data: [2])])
        try store.close()
        let blob = try "a.llvs/blobs/" + #require(folder.names("a.llvs/blobs").first)
        var damaged = try #require(folder.read(blob))
        damaged[5] ^= 4
        try folder.write(blob, damaged)
        store = try open(folder, "a.llvs")
        #expect(try store.allVersionIDs().isEmpty)
        try store.close()
        var times = [timespec(tv_sec: time(nil) - 100, tv_nsec: 0), timespec(tv_sec: time(nil) - 100, tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, folder.path + "/" + blob, &times, 0) == 0)
        store = try open(folder, "a.llvs")
        #expect(
            try store.headIDs() == [second.id] && store.value(ValueID("b"), at: second.id)?.data == [1]
                && store.value(ValueID("c"), at: second.id)?.data == [2])
        #expect(code { _ = try store.value(ValueID("a"), at: second.id) } == .damaged)
        #expect(try store.verify().isWhole == false)
        try store.close()
    }

    /// After any number of successful writes, either the version exists or no blob does.
    @Test func blobsOfAVersionThatCannotBeStoredAreRemoved() throws {
        let large = bytes(1_200_000), other = bytes(1_100_000, 2)
        for isReceived in [false, true] {
            var failures = 0
            for writes in stride(from: 0, to: 45, by: 3) {
                let folder = TemporaryFolder(), faults = Faults(),
                    store = try open(folder, "a.llvs") {
                        $0.system = faults.system; $0.durability = .normal
                    }
                let changes: [Value.Change] = try [.insert(ValueID("a"), data: large), .insert(ValueID("b"), data: other)]
                faults.writesLeft = writes
                let failure = code {
                    if isReceived {
                        let version = Version(
                            id: try VersionID("v"), predecessors: [], timestamp: 1, valueDataSize: 0, metadata: Metadata())
                        _ = try store.add([Store.ReceivedVersion(version: version, changes: changes)])
                    } else {
                        _ = try changes.withBorrowed {
                            try store.makeVersion(
                                basedOn: nil, borrowing: $0, reading: [source("c", large), source("d", large, told: large.count)])
                        }
                    }
                }
                faults.writesLeft = .max
                if failure != nil {
                    failures += 1
                    #expect(failure == .noSpace)
                    #expect(try blobs(folder) == 0, "after \(writes) writes")
                    #expect(try store.allVersionIDs().isEmpty)
                    // Later versions do not wait for the removed blobs.
                    _ = try store.makeVersion(basedOn: nil, changes: changes)
                    try store.close()
                    continue
                }
                #expect(try blobs(folder) == (isReceived ? 2 : 4))
                try store.close()
            }
            #expect(failures >= 2 && failures < 15)
        }
    }

    @Test func blobsStayWhenTheOutcomeIsNotKnown() throws {
        let folder = TemporaryFolder(), faults = Faults(), large = bytes(1_200_000)
        let store = try open(folder, "a.llvs") { $0.system = faults.system }
        faults.syncsLeft = 1 // the blob's own
        #expect(
            code {
                _ = try store.makeVersion(basedOn: nil, borrowing: BorrowedChanges([]), reading: [source("a", large, told: large.count)])
            } == .unknownOutcome)
        #expect(try blobs(folder) == 1)
        faults.syncsLeft = .max
        try store.close()
        let again = try open(folder, "a.llvs")
        for id in try again.allVersionIDs() { #expect(try again.value(ValueID("a"), at: id)?.data == large) }
        #expect(try again.verify().damages.isEmpty)
        try again.close()
    }

    @Test func aCoordinatorSavesThem() throws {
        let folder = TemporaryFolder(), coordinator = try StoreCoordinator(path: folder.path + "/a.llvs")
        let large = bytes(1_200_000),
            made = try coordinator.save(borrowing: BorrowedChanges([]), reading: [source("a", large)], metadata: Metadata(), branch: nil)
                .version
        #expect(made?.id == coordinator.currentVersion)
        #expect(try coordinator.store.value(ValueID("a"), at: coordinator.currentVersion)?.data == large)
        try coordinator.close()
    }
}
