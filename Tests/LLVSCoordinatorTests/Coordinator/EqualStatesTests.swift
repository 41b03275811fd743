import LLVSCoordinator
import LLVSDocuments
import LLVSExchange
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSMerge

/// Heads with equal states, the note of the current version, and what calls of a coordinator return.
@Suite struct EqualStatesTests {
    private func twins(_ store: Store) throws -> (base: Version, a: Version, b: Version) {
        let base = try store.set(["k": "0", "l": "0"], nil)
        return (base, try store.set(["k": "1"], base), try store.set(["k": "1"], base))
    }

    @Test func headsOfEqualStatesAreLeftAlone() throws {
        let store = try memoryStore()
        let (_, a, b) = try twins(store)
        #expect(try store.mergeHeads(into: a.id, arbiter: BuiltInArbiter.ours)?.id == b.id)
        #expect(try store.mergeHeads(into: b.id, arbiter: BuiltInArbiter.ours) == nil)
        #expect(try store.heads().count == 2)
        // A merge of the two is the same empty version on every device.
        let merged = try store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.ours, metadata: Metadata([(bytes("by"), bytes("\"me\""))]))
        #expect(try merged.metadata.isEmpty && store.changes(madeIn: merged.id).isEmpty)
    }

    @Test func theyAreMergedBeforeAHeadOfAnotherStateIs() throws {
        let store = try memoryStore()
        let (base, a, b) = try twins(store)
        let other = try store.set(["l": "2"], base)
        let merged = try #require(try store.mergeHeads(into: a.id, arbiter: BuiltInArbiter.mostRecentChange))
        let before = try #require(merged.predecessors.first { $0 != other.id })
        let joined = try #require(try store.version(before))
        #expect(joined.predecessors == [b.id, a.id] && merged.predecessors.contains(other.id))
        #expect(try store.changes(madeIn: joined.id).isEmpty && store.text("k", merged) == "1" && store.text("l", merged) == "2")
        #expect(try store.heads() == [merged])
    }

    @Test func theyAreMergedBeforeACoordinatorSavesOnOne() throws {
        let store = try memoryStore()
        let (base, a, b) = try twins(store)
        let other = try store.set(["l": "2"], base)
        let coordinator = try StoreCoordinator(store: store)
        try coordinator.setCurrentVersion(a.id)
        let saved = try #require(try coordinator.save([.update(id("l"), data: bytes("3"))]))
        let joined = try #require(try store.version(saved.predecessors[0]))
        #expect(joined.predecessors == [b.id, a.id])
        #expect(try Set(store.heads()) == [saved, other])
        // Differing heads are not merged, even if they become equal and differ again.
        let next = try #require(try coordinator.save([.update(id("l"), data: bytes("2")), .update(id("k"), data: bytes("0"))]))
        #expect(next.predecessors == [saved.id])
        let last = try #require(try coordinator.save([.update(id("l"), data: bytes("5"))]))
        #expect(try store.version(last.predecessors[0])?.predecessors.count == 2)
        #expect(try store.heads() == [last])
    }

    @Test func manyHeadsFindTheirLike() throws {
        let store = try memoryStore()
        let base = try store.set(["k": "0"], nil)
        var heads: [Version] = []
        for i in 0..<120 { heads.append(try store.set(["k": "\(i % 40)", "own \(i % 40)": "x"], base)) }
        let groups = try store.equalStates.groupedByState(heads.map { try store.requireOrdinal($0.id) })
        #expect(groups.count == 40 && groups.allSatisfy { $0.count == 3 })
        let merged = try #require(try store.mergeHeads(into: heads[5].id, arbiter: BuiltInArbiter.mostRecentChange))
        #expect(try store.heads() == [merged] && store.count(at: merged.id) == 41)
    }

    @Test func revertsReportWhatWasUndone() throws {
        let store = try memoryStore()
        let a = try store.set(["k": "1", "l": "1"], nil)
        let b = try store.set(["k": "2", "l": "2"], a)
        let c = try store.set(["l": "3"], b)
        let undone = try store.revert(b.id, at: c.id)
        #expect(try undone.undone == [id("k")] && undone.superseded == [id("l")])
        let version = try #require(undone.version)
        #expect(try store.text("k", version) == "1" && store.text("l", version) == "3")
        let again = try store.revert(b.id, at: version.id)
        #expect(try again.version == nil && again.undone.isEmpty && again.superseded == [id("l")])
        #expect(try store.heads() == [version])
    }

    @Test func aBranchThatNeverWasCannotBeMerged() throws {
        let coordinator = try StoreCoordinator(store: memoryStore())
        try coordinator.save(CoordinatorTests.change("k", "1"))
        #expect(code { try coordinator.merge(selection: .branches(["nobody"])) } == .unknownVersion)
    }

    @Test func aSaveNamesWhatItExpects() throws {
        let coordinator = try StoreCoordinator(store: memoryStore())
        let first = try #require(try coordinator.save(CoordinatorTests.change("k", "1"), expected: EmptyRoot.id, timestamp: 5))
        #expect(first.timestamp == 5)
        #expect(code { try coordinator.save(CoordinatorTests.change("k", "2"), expected: EmptyRoot.id) } == .moved)
        #expect(code { try coordinator.save(CoordinatorTests.change("k", "2"), expected: first.id, timestamp: 1) } == .invalidArgument)
        let second = try coordinator.save(CoordinatorTests.change("k", "2"), expected: first.id, timestamp: 6)
        #expect(second?.timestamp == 6)
        #expect(code { try coordinator.save([], expected: first.id) } == .moved)
        #expect(code { try coordinator.save(CoordinatorTests.change("k", "2"), timestamp: .infinity) } == .invalidArgument)
    }

    /// If the value has changed since it was read, the save builds on the version that was read, and is merged.
    @Test func aSaveThatMergesStandsOnWhatWasRead() throws {
        let coordinator = try StoreCoordinator(store: memoryStore())
        let read = try #require(try coordinator.save(CoordinatorTests.change("k", "1")))
        let beside = try #require(try coordinator.save(CoordinatorTests.change("k", "2")))
        let saved = try #require(try coordinator.save(CoordinatorTests.change("k", "3"), expected: read.id, merges: true))
        #expect(saved.predecessors == [read.id])
        let merged = try #require(try coordinator.store.version(coordinator.currentVersion))
        #expect(Set(merged.predecessors) == [beside.id, saved.id])
        #expect(try coordinator.store.text("k", merged) == "3")
        let other = try coordinator.save(CoordinatorTests.change("other", "1"), expected: read.id, merges: true)
        #expect(other?.predecessors == [merged.id] && other?.id == coordinator.currentVersion)
        #expect(code { try coordinator.save(CoordinatorTests.change("k", "4"), merges: true) } == .invalidArgument)
        try coordinator.setCurrentVersion(read.id)
        #expect(code { try coordinator.save(CoordinatorTests.change("k", "4"), expected: beside.id, merges: true) } == .moved)
        #expect(code { try coordinator.save(CoordinatorTests.change("k", "4"), expected: EmptyRoot.id, merges: true) } == .moved)
    }

    @Test func oneNameIsOpenOnce() throws {
        let directory = TemporaryDirectory()
        try withExtendedLifetime(directory) {
            for storage in [Store.StorageChoice.file, .sqlite] {
                var options = StoreCoordinator.Options()
                options.store.storage = storage
                let path = directory.path + "/\(storage)"
                let one = try StoreCoordinator(path: path, options: options)
                #expect(code { _ = try StoreCoordinator(path: path, options: options) } == .busy)
                #expect(code { _ = try StoreCoordinator(store: one.store, options: options) } == .busy)
                try one.save(CoordinatorTests.change("k", "1"))
                let last = try #require(try one.save(CoordinatorTests.change("k", "2")))
                try one.close()
                let again = try StoreCoordinator(path: path, options: options)
                #expect(again.currentVersion == last.id)
                try again.close()
            }
        }
    }

    /// A note that was written is found even if a later write failed halfway.
    @Test func aNoteSurvivesAWriteThatWasCutOff() throws {
        let directory = TemporaryDirectory()
        try withExtendedLifetime(directory) {
            let path = directory.path + "/note"
            func open(_ system: FileSystem = FileSystem()) throws -> NoteFile {
                let cache = NoteCache(get: { bytes("earlier") })
                return try #require(
                    try NoteFile(DirectoryEntry(path), system, isReadOnly: false, storeOwner: { nil }, makeDirectory: {}, cache: cache))
            }
            #expect(try open().read() == bytes("earlier"))
            var note: NoteFile? = try open()
            for i in 0..<5 { try bytes("version \(i)").withUnsafeBytes { try note?.write($0) } }
            note = nil
            var system = FileSystem()
            system.pwrite = { (fd, data, offset) throws(Errno) in
                _ = try System.pwrite(fd, UnsafeRawBufferPointer(rebasing: data[..<(data.count / 2)]), at: offset)
                throw Errno(5)
            }
            var broken: NoteFile? = try open(system)
            #expect(code { try bytes("lost").withUnsafeBytes { try broken?.write($0) } } == .io)
            broken = nil
            #expect(try open().read() == bytes("version 4"))
        }
    }

    /// A note in the former format: 160 bytes, with zeros before the checksum.
    @Test func anEarlierNoteIsRead() throws {
        let directory = TemporaryDirectory()
        try withExtendedLifetime(directory) {
            let path = directory.path + "/note"
            var file = [UInt8](repeating: 0, count: 672)
            for (slot, number, text) in [(0, 4, "newer"), (512, 3, "older")] {
                let head =
                    Array("LLVSnot\n".utf8) + [UInt8(number), 0, 0, 0, 0, 0, 0, 0, UInt8(text.utf8.count), 0, 0, 0] + Array(text.utf8)
                file.replaceSubrange(slot..<slot + head.count, with: head)
                let sum = file[slot..<slot + 156].withUnsafeBytes { Bytes.crc32c($0) }
                for i in 0..<4 { file[slot + 156 + i] = UInt8(truncatingIfNeeded: sum >> (8 * UInt32(i))) }
            }
            try writeFile(path, file)
            let note = try #require(
                try NoteFile(
                    DirectoryEntry(path), FileSystem(), isReadOnly: false, storeOwner: { nil }, makeDirectory: {},
                    cache: NoteCache(get: { nil })))
            #expect(try note.read() == bytes("newer"))
            try bytes("newest").withUnsafeBytes { try note.write($0) }
            #expect(try note.read() == bytes("newest"))
        }
    }

    @Test func aRoundIsOneCall() throws {
        let area = "round \(VersionID.random())"
        let a = try CoordinatorTests.coordinator(memoryStore(), area: area), b = try CoordinatorTests.coordinator(memoryStore(), area: area)
        try a.save(CoordinatorTests.change("a", "1"))
        #expect(try a.sync().after == nil)
        nonisolated(unsafe) var seen: [VersionID] = []
        let observation = b.observe { seen.append($0) }
        let first = try b.sync()
        #expect(
            first.before.move == first.move && first.move == .init(from: EmptyRoot.id, to: a.currentVersion) && seen == [a.currentVersion])
        observation.cancel()
        try a.save(CoordinatorTests.change("a", "2"))
        try a.sync()
        try b.save(CoordinatorTests.change("b", "2"))
        let second = try b.sync()
        #expect(
            second.before.exchanges[0].retrieved.versions.count == 1 && second.after?.exchanges[0].sent.versions.count == 1
                && second.move.isMove)
        #expect(try a.sync().move.to == b.currentVersion)
        #expect(try CoordinatorTests.text(a, "b") == "2")
    }
}
