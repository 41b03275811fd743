import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// The file storage beyond the conformance suite: tails, damage, failing disks, foreign directories.
@Suite struct StorageFileTests {
    let directory = TemporaryDirectory()
    var path: String { directory.path + "/store" }

    /// Records here begin with a version id in ASCII and a space.
    static let inspector: RecordInspector = { prefix in
        let word = prefix.prefix { $0 != 0x20 }
        return word.count < min(prefix.count, 40) ? VersionID(validating: UnsafeRawBufferPointer(rebasing: word)) : nil
    }

    func open(_ change: (inout FileStorage.Options) -> Void = { _ in }) throws -> FileStorage {
        var options = FileStorage.Options()
        options.inspector = StorageFileTests.inspector
        change(&options)
        return try FileStorage(path: path, options: options)
    }

    func record(_ name: String, _ count: Int = 30) -> [UInt8] {
        Array(name.utf8) + [0x20] + StorageConformance.bytes(seed: UInt64(count), count: count)
    }

    var segmentPaths: [String] { ((try? System.names(in: path + "/segments")) ?? []).sorted().map { path + "/segments/" + $0 } }

    func contents(_ file: String) throws -> [UInt8] {
        let open = try OpenFile(file, O_RDONLY)
        var bytes = [UInt8](repeating: 0, count: Int(try System.status(open.descriptor).size))
        let count = bytes.count
        #expect(try bytes.filled { (b) throws(Errno) in try System.pread(open.descriptor, b, at: 0) } == count)
        return bytes
    }

    func write(_ bytes: [UInt8], to file: String) throws {
        try? System.unlink(file)
        let open = try OpenFile(file, O_WRONLY | O_CREAT | O_TRUNC)
        try bytes.borrowed { (b) throws(Errno) in try FileSystem().write(open.descriptor, b, at: 0) }
    }

    func code(_ body: () throws -> Void) -> StoreError.Code? {
        do { try body() } catch { return (error as? StoreError)?.code }
        return nil
    }

    // MARK: Directories

    /// While a note is claimed, every other claim is refused. A refused claim does not release the first one.
    @Test func aClaimStaysWithItsHolder() throws {
        let folder = TemporaryDirectory(), identity = FileIdentity(try System.status(folder.path))
        var held: NoteClaim? = try NoteClaim("one", of: identity)
        for _ in 0..<2 {
            #expect { _ = try NoteClaim("one", of: identity) } throws: { ($0 as? StoreError)?.code == .busy }
        }
        #expect(held != nil)
        held = nil
        _ = try NoteClaim("one", of: identity)
    }

    @Test func makesTheStoreAndTheDirectoriesAboveIt() throws {
        let deep = try FileStorage(path: directory.path + "/a/b/c//")
        #expect(deep.directory.path == directory.path + "/a/b/c")
        #expect(try contents(directory.path + "/a/b/c/llvs-store") == Array("LLVS store\nformat 1\n".utf8))
        #expect(try System.names(in: directory.path + "/a/b/c/segments").isEmpty)
    }

    @Test func refusesWhatIsNoStore() throws {
        #expect(code { _ = try open { $0.create = false } } == .notFound)
        #expect(code { _ = try open { $0.readOnly = true } } == .notFound)
        try System.mkdir(path)
        #expect(code { _ = try open { $0.create = false } } == .notFound)
        try write([1], to: path + "/letter.txt")
        #expect(code { _ = try open() } == .notAStore)
        #expect(code { _ = try FileStorage(path: path + "/letter.txt") } == .notADirectory)
        #expect(code { _ = try FileStorage(path: path + "/letter.txt/store") } == .notADirectory)
        #expect(code { _ = try FileStorage(path: "") } == .invalidArgument)
        #expect(code { _ = try FileStorage(path: "a\u{0}b") } == .invalidArgument)
        #expect(code { _ = try FileStorage(path: directory.path + "/" + String(repeating: "x", count: 300)) } == .invalidArgument)
        #expect(try System.names(in: path) == ["letter.txt"])
    }

    @Test func refusesANewerFormat() throws {
        try open().close(discarding: false)
        try write(Array("LLVS store\nformat 2\nand more\n".utf8), to: path + "/llvs-store")
        #expect(code { _ = try open() } == .newerFormat)
    }

    @Test func aLostOrDamagedMarkerIsDamageOnly() throws {
        let storage = try open()
        try StorageConformance.append(storage, [record("A")])
        try storage.close(discarding: false)
        for text in [nil, "", "LLVS st", "LLVS store\nformat x\n", "LLVS store\nformat 099\n", "\u{0}\u{0}"] as [String?] {
            if let text { try write(Array(text.utf8), to: path + "/llvs-store") } else { try System.unlink(path + "/llvs-store") }
            let again = try open()
            #expect(again.damages.map(\.file) == [path + "/llvs-store"])
            #expect(try StorageConformance.scan(again).count == 1)
            var met: [StorageDamage] = []
            try again.verify(OperationControl(), found: { _ in }, damage: { if $0.lost != .unfinished { met.append($0) } })
            #expect(met == again.damages)
            try again.close(discarding: false)
        }
    }

    @Test func openingAndReadingWriteNothing() throws {
        let storage = try open()
        try StorageConformance.append(storage, [record("A")])
        try storage.close(discarding: false)
        let before = try System.status(path + "/segments").changed
        let again = try open { $0.readOnly = true }
        #expect(try StorageConformance.scan(again).count == 1)
        try again.cachePut("x", [1])
        try again.close(discarding: false)
        #expect(try System.status(path + "/segments").changed == before)
        #expect(try System.names(in: path).sorted() == ["llvs-store", "segments"])
        #expect(segmentPaths.count == 1)
    }

    @Test func cachesGoElsewhereWhenAsked() throws {
        let elsewhere = directory.path + "/caches/x"
        let storage = try open { $0.cacheDirectory = elsewhere }
        try storage.cachePut("index", [1, 2])
        #expect(try System.names(in: elsewhere) == ["index.cache"])
        var bytes = try contents(elsewhere + "/index.cache")
        for i in bytes.indices {
            bytes[i] ^= 0x10
            try write(bytes, to: elsewhere + "/index.cache")
            #expect(try storage.cacheGet("index") == nil)
            bytes[i] ^= 0x10
        }
        for count in bytes.indices {
            try write(Array(bytes.prefix(count)), to: elsewhere + "/index.cache")
            #expect(try storage.cacheGet("index") == nil)
        }
        // The file is not accepted as a cache of another name either.
        try write(bytes, to: elsewhere + "/other.cache")
        #expect(try storage.cacheGet("other") == nil)
        try write(bytes, to: elsewhere + "/index.cache")
        #expect(try storage.cacheGet("index") == [1, 2])
    }

    // MARK: Tails and damage

    @Test func aTornTailIsNotThereYet() throws {
        // At `normal` there is no room after the frames: the file ends with them.
        let writer = try open { $0.durability = .normal }
        let first = [record("A"), record("B", 100)], last = [record("C"), record("D", 200_000)]
        try StorageConformance.append(writer, first)
        let whole = try contents(segmentPaths[0]).count
        try StorageConformance.append(writer, last)
        let file = segmentPaths[0], bytes = try contents(file)
        try writer.close(discarding: true)
        for count in [whole + 1, whole + 47, whole + 48, whole + 60, whole + 100, whole + 70_000, bytes.count - 1] {
            try write(Array(bytes.prefix(count)), to: file)
            let reader = try open()
            #expect(try StorageConformance.scan(reader) == first)
            #expect(reader.damages.isEmpty)
            #expect(try StorageConformance.scan(reader).isEmpty)
            // The rest arrives in another file that replaces it.
            try write(bytes, to: file)
            #expect(try StorageConformance.scan(reader) == last)
            #expect(try StorageConformance.scan(reader).isEmpty)
            #expect(reader.damages.isEmpty)
        }
        // A power cut may leave zeros or old bytes where the tail should be.
        for filler in [0, 0xA7] as [UInt8] {
            try write(bytes.prefix(whole) + [UInt8](repeating: filler, count: bytes.count - whole), to: file)
            let reader = try open()
            #expect(try StorageConformance.scan(reader) == first)
            #expect(reader.damages.isEmpty)
        }
    }

    @Test(arguments: [true, false]) func aFlippedByteCostsItsVersionAlone(sealed: Bool) throws {
        let writer = try open()
        let names = ["A", "B", "C", "D"]
        for name in names { try StorageConformance.append(writer, [record(name)]) }
        try writer.close(discarding: !sealed)
        let file = segmentPaths[0], bytes = try contents(file)
        let frame = 48 + 16 + 32
        for offset in 0..<frame {
            var flipped = bytes
            flipped[64 + frame + offset] ^= 0x01 // In the frame of B.
            try write(flipped, to: file)
            let reader = try open()
            #expect(try StorageConformance.scan(reader) == ["A", "C", "D"].map { record($0) }, "offset \(offset)")
            #expect(reader.damages.count == 1, "offset \(offset)")
            // If the length or the id of the record itself is damaged, the version is unknown.
            if offset != 65, !(48..<60).contains(offset) {
                #expect(reader.damages.first?.version?.description.count == 1, "offset \(offset)")
            }
            _ = try StorageConformance.scan(reader)
            #expect(reader.damages.count == 1)
            var met: [StorageDamage] = [], found = 0
            try reader.verify(OperationControl(), found: { _ in found += 1 }, damage: { if $0.lost != .unfinished { met.append($0) } })
            #expect(met.count == 1 && found == 3, "offset \(offset)")
        }
    }

    @Test func inASealedBatchAFlippedByteCostsOneRecord() throws {
        let writer = try open()
        try StorageConformance.append(writer, ["A", "B", "C"].map { record($0) } + [record("D", 300_000)])
        try writer.close(discarding: false)
        let file = segmentPaths[0], bytes = try contents(file)
        var flipped = bytes
        flipped[64 + 48 + 4 + 4 * 12 + 32 + 10] ^= 0x80
        flipped[bytes.count - 64 - 1000] ^= 0x80
        try write(flipped, to: file)
        let reader = try open()
        #expect(try StorageConformance.scan(reader).count == 3) // D is too large to be checked on opening.
        #expect(reader.damages.map { $0.version?.description } == ["B"])
        var met: [StorageDamage] = [], found = 0
        try reader.verify(OperationControl(), found: { _ in found += 1 }, damage: { if $0.lost != .unfinished { met.append($0) } })
        #expect(met.map { $0.version?.description } == ["B", "D"])
        #expect(found == 2)
    }

    @Test func everyFlippedByteIsDetectedOrHarmless() throws {
        let records = [record("A"), record("B", 5), [], record("D", 300)]
        for sealed in [true, false] {
            TemporaryDirectory.remove(path)
            let writer = try open()
            try StorageConformance.append(writer, [records[0]])
            try StorageConformance.append(writer, Array(records[1...2]))
            let last = try StorageConformance.append(writer, [records[3]])[0]
            try writer.close(discarding: !sealed)
            let file = segmentPaths[0], bytes = try contents(file)
            // Of the room after the last frame of an unsealed segment, a part suffices.
            for offset in bytes.indices.prefix(Int(last.offset + last.length) + 100) {
                for bit in [0x01, 0x80] as [UInt8] {
                    var flipped = bytes
                    flipped[offset] ^= bit
                    try write(flipped, to: file)
                    let reader = try open()
                    let found = try StorageConformance.scan(reader)
                    #expect(found.allSatisfy { records.contains($0) }, "offset \(offset)")
                    #expect(found.count >= 2, "offset \(offset): more than one frame is lost")
                    // Only the last frame of an unsealed segment may be lost silently, since it looks like an unfinished one.
                    let lastFrame = Int(last.offset) - 64
                    #expect(found.count == 4 || !reader.damages.isEmpty || offset >= lastFrame, "offset \(offset)")
                }
            }
        }
    }

    @Test func randomGarbageIsSurvived() throws {
        let writer = try open()
        for i in 0..<20 { try StorageConformance.append(writer, [record("V\(i)", i * 10), record("W\(i)", 3)]) }
        try writer.close(discarding: false)
        let file = segmentPaths[0], bytes = try contents(file)
        var random = SeededRandom(seed: 11)
        for _ in 0..<200 {
            var changed = bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let at = Int.random(in: 0..<changed.count, using: &random),
                    count = min(changed.count - at, Int.random(in: 1...300, using: &random))
                switch Int.random(in: 0..<4, using: &random) {
                case 0: changed.replaceSubrange(at..<at + count, with: StorageConformance.bytes(seed: random.next(), count: count))
                case 1: changed.removeSubrange(at..<at + count)
                case 2: changed.insert(contentsOf: changed[at..<at + count], at: at)
                default: changed.removeLast(count)
                }
                if changed.isEmpty { changed = [1] }
            }
            try write(changed, to: file)
            let reader = try open()
            _ = try StorageConformance.scan(reader)
            try reader.verify(OperationControl(), found: { _ in }, damage: { _ in })
        }
    }

    @Test func aStoreWithinAValueIsNotTakenForFrames() throws {
        let inner = try open()
        try StorageConformance.append(inner, [record("INNER")])
        try inner.close(discarding: false)
        let innerBytes = try contents(segmentPaths[0])
        TemporaryDirectory.remove(path)
        let writer = try open()
        try StorageConformance.append(writer, [innerBytes])
        try StorageConformance.append(writer, [record("A")])
        try writer.close(discarding: true)
        var bytes = try contents(segmentPaths[0])
        bytes[64] ^= 1
        try write(bytes, to: segmentPaths[0])
        #expect(try StorageConformance.scan(open()) == [record("A")])
    }

    @Test func aShorterCopyPutInPlaceIsReported() throws {
        let writer = try open()
        for name in ["A", "B", "C"] { try StorageConformance.append(writer, [record(name)]) }
        try writer.close(discarding: false)
        let bytes = try contents(segmentPaths[0])
        let reader = try open { $0.openFiles = 1 }
        var places: [RecordPlace] = []
        try reader.scan { places.append($0.place) }
        try write(Array(bytes.prefix(170)), to: segmentPaths[0])
        // Another segment takes the only file descriptor.
        try StorageConformance.append(reader, [record("D")])
        #expect(try StorageConformance.read(reader, places[0]) == record("A"))
        #expect(code { _ = try StorageConformance.read(reader, places[2]) } == .damaged)
        var met: [StorageDamage] = []
        try reader.verify(OperationControl(), found: { _ in }, damage: { if $0.lost != .unfinished { met.append($0) } })
        #expect(met.count == 1)
        try write(bytes, to: segmentPaths.first { $0.hasSuffix(reader.segments[0].name) } ?? "")
        #expect(try StorageConformance.read(reader, places[2]) == record("C"))
    }

    @Test func aSegmentThatIsGoneIsNamed() throws {
        let writer = try open()
        try StorageConformance.append(writer, [record("A")])
        try writer.close(discarding: false)
        let file = segmentPaths[0]
        let reader = try open { $0.openFiles = 1 }
        var places: [RecordPlace] = []
        try reader.scan { places.append($0.place) }
        try StorageConformance.append(reader, [record("B")])
        try System.unlink(file)
        do {
            _ = try StorageConformance.read(reader, places[0])
            Issue.record("it was read")
        } catch let error as StoreError {
            #expect(error.code == .damaged && error.path == file)
        }
    }

    @Test func renamedAndSetAsideSegments() throws {
        let writer = try open()
        try StorageConformance.append(writer, [record("A")])
        try writer.close(discarding: false)
        let bytes = try contents(segmentPaths[0]), other = path + "/segments/" + String(repeating: "0", count: 32) + ".seg"
        try write(bytes, to: other)
        try write(bytes, to: path + "/segments/.x.seg")
        try write(bytes, to: segmentPaths[1].dropLast(4) + " (conflict).seg")
        let reader = try open()
        // The copy that a syncing program made is read as well: it might hold more.
        #expect(try StorageConformance.scan(reader) == [record("A"), record("A")])
        #expect(reader.damages.map(\.file) == [other])
    }

    @Test func ourSegmentReplacedWhileWeWrite() throws {
        let writer = try open()
        try StorageConformance.append(writer, [record("A")])
        let file = segmentPaths[0], older = try contents(file)
        let place = try StorageConformance.append(writer, [record("B")])[0]
        try write(older, to: file)
        _ = try StorageConformance.scan(writer)
        try StorageConformance.append(writer, [record("C")])
        #expect(try StorageConformance.read(writer, place) == record("B"))
        try writer.close(discarding: false)
        #expect(Set(try StorageConformance.scan(open())) == [record("A"), record("B"), record("C")])
    }

    /// Commits to a deleted file would be lost when the handle is closed.
    @Test(arguments: [Durability.full, .normal]) func aDeletedStoreTakesNoVersions(_ durability: Durability) throws {
        for isMadeAnew in [false, true] {
            let writer = try open { $0.durability = durability }
            try StorageConformance.append(writer, [record("A")])
            try writer.sync()
            TemporaryDirectory.remove(path)
            if isMadeAnew { try open().close(discarding: false) }
            #expect(code { try StorageConformance.append(writer, [record("B")]) } == .notFound)
            #expect(code { try writer.close(discarding: false) } == nil)
            // Deleted files are not recreated.
            #expect(segmentPaths.isEmpty && isMadeAnew == ((try? System.status(path)) != nil))
            TemporaryDirectory.remove(path)

            let unsynced = try open { $0.durability = durability }
            try StorageConformance.append(unsynced, [record("A")])
            TemporaryDirectory.remove(path)
            #expect(code { try unsynced.close(discarding: false) } == .unknownOutcome)
        }
    }

    @Test func aNewSegmentDoesNotGoIntoAnotherStore() throws {
        let writer = try open()
        TemporaryDirectory.remove(path)
        let other = try open()
        #expect(code { try StorageConformance.append(writer, [record("A")]) } == .notFound)
        #expect(try StorageConformance.scan(other).isEmpty)
    }

    @Test func ourSegmentDeletedWhileWeWrite() throws {
        let writer = try open { $0.durability = .normal }
        try StorageConformance.append(writer, [record("A")])
        try System.unlink(segmentPaths[0])
        try StorageConformance.append(writer, [record("B")])
        #expect(Set(try StorageConformance.scan(open())) == [record("A"), record("B")])
        try System.unlink(segmentPaths[0])
        try writer.close(discarding: false)
        #expect(Set(try StorageConformance.scan(open())) == [record("A"), record("B")])
    }

    // MARK: Failing disks

    /// Fails the n-th call and all later ones until it is reset. Half of a failing write is done.
    final class Faults: @unchecked Sendable {
        let lock = Lock()
        var writesLeft = Int.max
        var syncsLeft = Int.max
        var writesWholly = false
        /// The error of failing writes.
        var failure = Errno(ENOSPC)
        var system: FileSystem {
            var system = FileSystem()
            system.pwrite = { [self] (fd, bytes, offset) throws(Errno) in
                if lock.withLock({
                    writesLeft -= 1; return writesLeft >= 0
                }) {
                    return try System.pwrite(fd, bytes, at: offset)
                }
                let some = writesWholly ? bytes : UnsafeRawBufferPointer(rebasing: bytes[0..<bytes.count / 2])
                _ = try System.pwrite(fd, some, at: offset)
                throw failure
            }
            system.fdatasync = { [self] (fd) throws(Errno) in
                if lock.withLock({
                    syncsLeft -= 1; return syncsLeft >= 0
                }) {
                    return try System.fdatasync(fd)
                }
                throw Errno(EIO)
            }
            return system
        }
    }

    /// Opening a pipe instead of a file would wait; a directory cannot be read.
    @Test func whatIsNoFileIsPassedOver() throws {
        let storage = try open()
        try StorageConformance.append(storage, [record("A")])
        try storage.close(discarding: false)
        mkfifo(path + "/segments/" + String(repeating: "0", count: 32) + ".seg", 0o600)
        mkfifo(path + "/segments/" + String(repeating: "f", count: 32) + ".seg", 0o600)
        for isPipe in [false, true] {
            unlink(path + "/llvs-store")
            rmdir(path + "/llvs-store")
            #expect((isPipe ? mkfifo(path + "/llvs-store", 0o600) : mkdir(path + "/llvs-store", 0o700)) == 0)
            expectEnd {
                let storage = try open()
                #expect(try StorageConformance.scan(storage) == [record("A")])
                #expect(storage.damages.map(\.lost) == [.nothing])
                try storage.close(discarding: false)
            }
        }
    }

    /// Another process creates the store, and saves, right after this one has listed the directory.
    @Test func aStoreThatAnotherMakesMeanwhileIsHealthy() throws {
        let before = ["segments"]
        try System.mkdir(path)
        try System.mkdir(path + "/segments")
        let storage = try open { options in
            options.system.names = { [path] (folder) throws(Errno) in
                guard folder.path == path, (try? System.status(path + "/llvs-store")) == nil else { return try folder.names() }
                do {
                    let other = try FileStorage(path: path)
                    _ = try StorageConformance.append(other, [Array("A".utf8)])
                    try other.close(discarding: false)
                } catch { throw Errno(EIO) }
                return before
            }
        }
        #expect(storage.damages.isEmpty)
        try storage.close(discarding: false)
    }

    /// If the medium was full, the segment continues: see `aFullMediumKeepsNothingOfWhatWasRefused`.
    @Test(arguments: [EIO, ENOSPC]) func afterAFailedWriteTheSegmentIsAbandoned(failure: Int32) throws {
        let faults = Faults(), isFull = failure == ENOSPC, expected: StoreError.Code = isFull ? .noSpace : .io
        faults.failure = Errno(failure)
        let storage = try open { $0.system = faults.system }
        let first = try StorageConformance.append(storage, [record("A")])[0]
        for size in [30, 1000, 400_000] {
            faults.writesLeft = size > 300_000 ? 1 : 0
            #expect(code { try StorageConformance.append(storage, [record("LOST", size), record("LOST", 10)]) } == expected)
        }
        faults.writesLeft = .max
        #expect(try StorageConformance.scan(storage).isEmpty)
        try StorageConformance.append(storage, [record("B")])
        try storage.sync()
        #expect(try StorageConformance.read(storage, first) == record("A"))
        // Segments without a whole frame are removed; the one that holds A stays as it is.
        #expect(segmentPaths.count == (isFull ? 1 : 2))
        let reader = try open()
        #expect(Set(try StorageConformance.scan(reader)) == [record("A"), record("B")])
        #expect(reader.damages.isEmpty)
        try storage.close(discarding: false)
        #expect(Set(try StorageConformance.scan(open())) == [record("A"), record("B")])
    }

    @Test func aWriteThatFailedButWasDoneHasAnUnknownOutcome() throws {
        let faults = Faults()
        let storage = try open { $0.system = faults.system }
        try StorageConformance.append(storage, [record("A")])
        faults.writesLeft = 0
        faults.writesWholly = true
        #expect(code { try StorageConformance.append(storage, [record("B")]) } == .unknownOutcome)
        faults.writesLeft = .max
        try StorageConformance.append(storage, [record("C")])
        #expect(try StorageConformance.scan(storage) == [record("B")])
        #expect(Set(try StorageConformance.scan(open())) == [record("A"), record("B"), record("C")])
    }

    /// Damage from before a failed sync does not count as what the sync lost.
    @Test(arguments: [false, true]) func earlierDamageDoesNotPreventContinuingAfterAFailedSync(isSealed: Bool) throws {
        let theirs = try open()
        try StorageConformance.append(theirs, [record("A", 100_000)])
        try StorageConformance.append(theirs, [record("B")])
        try theirs.sync()
        try theirs.close(discarding: !isSealed)
        var bytes = try contents(segmentPaths[0])
        bytes[50_000] ^= 1
        try writeFile(segmentPaths[0], bytes)
        let faults = Faults(), storage = try open { $0.system = faults.system }
        #expect(try StorageConformance.scan(storage).contains(record("B")))
        try StorageConformance.append(storage, [record("C")])
        faults.syncsLeft = 0
        #expect(throws: StoreError.self) { try storage.sync() }
        faults.syncsLeft = .max
        try StorageConformance.append(storage, [record("D")])
        try storage.sync()
        try storage.close(discarding: false)
        // B, too, has a copy in a segment whose sync succeeded.
        try System.unlink(segmentPaths.first { try contents($0).count == bytes.count } ?? "")
        #expect(try Set(StorageConformance.scan(open())) == [record("B"), record("C"), record("D")])
    }

    @Test func afterAFailedSyncWhatWasNotDurableIsWrittenAnew() throws {
        let faults = Faults()
        let storage = try open { $0.system = faults.system }
        try StorageConformance.append(storage, [record("A")])
        try storage.sync()
        let place = try StorageConformance.append(storage, [record("B"), record("B2", 400_000)])[0]
        faults.syncsLeft = 0
        #expect(code { try storage.sync() } == .unknownOutcome)
        #expect(code { try storage.sync() } == .unknownOutcome)
        faults.syncsLeft = .max
        try StorageConformance.append(storage, [record("C")])
        try storage.sync()
        #expect(try StorageConformance.read(storage, place) == record("B"))
        #expect(try StorageConformance.scan(storage).isEmpty)
        try storage.close(discarding: false)
        // Simulates a disk that lost everything unsynced: B must have another copy.
        let reader = try open()
        var count: [[UInt8]: Int] = [:]
        for record in try StorageConformance.scan(reader) { count[record, default: 0] += 1 }
        #expect(
            count[record("A")] == 1 && count[record("C")] == 1 && (count[record("B")] ?? 0) >= 2 && (count[record("B2", 400_000)] ?? 0) >= 2
        )
        #expect(reader.damages.isEmpty)
    }

    @Test func aBlobThatCannotBeWrittenLeavesNothing() throws {
        let faults = Faults()
        let storage = try open { $0.system = faults.system }
        let data = [UInt8](repeating: 7, count: 2 << 20)
        faults.writesLeft = 1
        #expect(code { _ = try data.withUnsafeBytes { try storage.storeBlob($0) } } == .noSpace)
        faults.writesLeft = .max
        #expect(try System.names(in: path + "/blobs").isEmpty)
        faults.syncsLeft = 0
        #expect(code { _ = try data.withUnsafeBytes { try storage.storeBlob($0) } } == .io)
        #expect(try System.names(in: path + "/blobs").isEmpty)
    }

    // MARK: Blobs and segments

    @Test func blobsAreCheckedBlockByBlock() throws {
        let storage = try open()
        let data = StorageConformance.bytes(seed: 3, count: 200_000)
        let id = try data.withUnsafeBytes { try storage.storeBlob($0) }
        try storage.close(discarding: false)
        let file = path + "/blobs/" + RandomName(id).hex + ".blob", bytes = try contents(file)
        #expect(bytes.count == 64 + 4 * 4 + 200_000)
        var flipped = bytes
        flipped[80 + 70_000] ^= 1
        try write(flipped, to: file)
        let reader = try open()
        var out = [UInt8](repeating: 0, count: 65_536)
        try out.withUnsafeMutableBytes { try reader.readBlob(id, at: 0, into: $0) }
        #expect(out == Array(data.prefix(65_536)))
        #expect(code { try out.withUnsafeMutableBytes { try reader.readBlob(id, at: 1, into: $0) } } == .damaged)
        #expect(try reader.hasBlob(id))
        var met: [StorageDamage] = []
        try reader.verify(OperationControl(), found: { _ in }, damage: { if $0.lost != .unfinished { met.append($0) } })
        #expect(met.count == 1 && met.first?.file == file)
        for offset in 0..<80 {
            flipped = bytes
            flipped[offset] ^= 0x40
            try write(flipped, to: file)
            #expect(try !open().hasBlob(id), "offset \(offset)")
        }
        for count in [0, 10, 64, 79, 80, 1000, bytes.count - 1] {
            try write(Array(bytes.prefix(count)), to: file)
            #expect(try !open().hasBlob(id), "\(count) bytes")
        }
    }

    @Test func segmentsAreSealedAtTheirLimitAndAtClose() throws {
        let storage = try open { $0.segmentLimit = 1000 }
        for i in 0..<30 { try StorageConformance.append(storage, [record("V\(i)", 100)]) }
        try StorageConformance.append(storage, [record("LARGE", 5000)])
        try storage.close(discarding: false)
        #expect(segmentPaths.count == 7) // Six with five small records each, and one with the large record.
        for file in segmentPaths {
            let bytes = try contents(file)
            let id = try #require(RandomName(hex: file.dropLast(4).suffix(32)))
            bytes.withUnsafeBytes {
                #expect(
                    FrameFormat.isSeal(
                        UnsafeRawBufferPointer(rebasing: $0[(bytes.count - 64)...]), id: id, offset: UInt64(bytes.count - 64)))
            }
        }
        #expect(try StorageConformance.scan(open()).count == 31)
    }

    @Test func aNewSegmentIsLockedWhileItIsWritten() throws {
        let storage = try open()
        try StorageConformance.append(storage, [record("A")])
        let other = try OpenFile(segmentPaths[0], O_RDONLY)
        #expect(throws: Errno(EWOULDBLOCK)) { try System.lockExclusively(other.descriptor) }
        try storage.close(discarding: false)
        try System.lockExclusively(other.descriptor)
    }

    /// The first sync ends when all have appended. In any schedule, the next sync covers all of them.
    @Test func commitsThatWaitAtOnceShareSyncs() throws {
        let slow = FileSystemCounter()
        let storage = try open { $0.system = slow.system }
        try StorageConformance.append(storage, [[9]])
        try storage.sync()
        slow.lock.withLock {
            slow.syncs = 0; slow.awaited = 8
        }
        let failures = Parallel.run(threads: 8, times: 1) { thread, _ in
            try slow.appending.withLock { _ = try StorageConformance.append(storage, [[UInt8(thread)]]) }
            slow.lock.withLock { slow.appended += 1 }
            try storage.sync()
        }
        #expect(failures.isEmpty)
        #expect(slow.lock.withLock { slow.syncs } <= 2, "\(slow.syncs) syncs for 8 commits")
    }

    final class FileSystemCounter: @unchecked Sendable {
        let lock = Lock(), appending = Lock()
        var syncs = 0, appended = 0, awaited = 0
        var system: FileSystem {
            var system = FileSystem()
            system.fdatasync = { [self] _ throws(Errno) in
                lock.withLock { syncs += 1 }
                _ = Parallel.becomes { lock.withLock { appended >= awaited } }
            }
            return system
        }
    }
}
