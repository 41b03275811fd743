import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Compacting many small segments into a few large ones changes nothing for readers, even if it stops halfway.
@Suite struct CompactionTests {
    let directory = TemporaryDirectory()
    var path: String { directory.path + "/store" }

    // MARK: Tools

    func open(_ path: String? = nil, _ change: (inout FileStorage.Options) -> Void = { _ in }) throws -> FileStorage {
        var options = FileStorage.Options()
        options.durability = .normal
        options.compactionGrace = 0
        options.inspector = StorageFileTests.inspector
        change(&options)
        return try FileStorage(path: path ?? self.path, options: options)
    }

    func record(_ number: Int, _ count: Int = 40) -> [UInt8] {
        Array("V\(number) ".utf8) + StorageConformance.bytes(seed: UInt64(number), count: count)
    }

    /// Writes a segment for each record.
    @discardableResult func fill(_ numbers: Range<Int>, _ path: String? = nil, sealed: Bool = true, size: Int = 40) throws -> [[UInt8]] {
        try numbers.map { number in
            let storage = try open(path)
            try StorageConformance.append(storage, [record(number, size)])
            try storage.close(discarding: !sealed)
            return record(number, size)
        }
    }

    func names(_ path: String? = nil) throws -> [String] { try System.names(in: (path ?? self.path) + "/segments").sorted() }
    func contents(_ file: String) throws -> [UInt8] {
        let open = try OpenFile(file, O_RDONLY)
        var bytes = [UInt8](repeating: 0, count: Int(try System.status(open.descriptor).size))
        _ = try bytes.filled { (b) throws(Errno) in try System.pread(open.descriptor, b, at: 0) }
        return bytes
    }
    func write(_ bytes: [UInt8], to file: String) throws {
        try? System.unlink(file)
        let open = try OpenFile(file, O_WRONLY | O_CREAT | O_TRUNC)
        try bytes.borrowed { (b) throws(Errno) in try FileSystem().write(open.descriptor, b, at: 0) }
    }
    func copy(to other: String) throws {
        try? System.mkdir(other)
        try? System.mkdir(other + "/segments")
        try write(contents(path + "/llvs-store"), to: other + "/llvs-store")
        for name in try names() { try write(contents(path + "/segments/" + name), to: other + "/segments/" + name) }
    }
    func makeOld(_ file: String, seconds: Int) {
        var times = [timeval(tv_sec: time(nil) - seconds, tv_usec: 0), timeval(tv_sec: time(nil) - seconds, tv_usec: 0)]
        #expect(utimes(file, &times) == 0)
    }
    /// Returns each record once, however many copies exist.
    func records(_ storage: FileStorage) throws -> Set<[UInt8]> { Set(try StorageConformance.scan(storage)) }
    func records(_ path: String? = nil) throws -> Set<[UInt8]> {
        let storage = try open(path)
        let records = try records(storage)
        #expect(storage.damages.isEmpty)
        try storage.close(discarding: true)
        return records
    }
    @discardableResult func compact(_ path: String? = nil, _ change: (inout FileStorage.Options) -> Void = { _ in }) throws
        -> CompactionReport
    {
        let storage = try open(path, change)
        defer { try? storage.close(discarding: true) }
        _ = try StorageConformance.scan(storage)
        return try storage.compact(.request, OperationControl())
    }
    func damages(_ storage: FileStorage) throws -> [StorageDamage] {
        var met: [StorageDamage] = []
        try storage.verify(OperationControl(), found: { _ in }, damage: { if $0.lost != .unfinished { met.append($0) } })
        return met
    }

    // MARK: What it does

    @Test func foldsSmallSegmentsAndDeletesThemLater() throws {
        let all = try fill(0..<30)
        let report = try compact()
        #expect(report.folded == 30 && report.made == 1 && report.deleted == 0)
        #expect(try names().count == 31)
        // The compacted segment replaces them.
        let reader = try open()
        #expect(try StorageConformance.scan(reader) == all)
        #expect(reader.filesOpened == 2)
        #expect(try StorageConformance.scan(reader).isEmpty)

        let second = try compact()
        #expect(second.deleted == 30 && second.made == 0)
        #expect(try names().count == 1)
        #expect(try StorageConformance.scan(open()) == all)
        #expect(try compact() == CompactionReport())
        #expect(try damages(open()).isEmpty)
        #expect(try damages(reader).isEmpty)
    }

    @Test func aBatchStaysABatchAndLargeRecordsAreCopied() throws {
        var all: [[UInt8]] = []
        for i in 0..<5 {
            let storage = try open()
            let batch = (0..<4).map { record(i * 10 + $0, $0 == 2 ? 700_000 : 30) } + [[]]
            try StorageConformance.append(storage, batch)
            try StorageConformance.append(storage, [record(i * 10 + 5, 100)])
            try storage.close(discarding: false)
            all += batch + [record(i * 10 + 5, 100)]
        }
        try compact()
        #expect(try compact().deleted == 5)
        #expect(try StorageConformance.scan(open()) == all)
        #expect(try damages(open()).isEmpty)
    }

    @Test func aWriterThatLivesIsLeftAlone() throws {
        let all = try fill(0..<4)
        let writer = try open()
        try StorageConformance.append(writer, [record(100)])
        let mine = try names().filter { !$0.hasPrefix("0000") }
        #expect(try compact().folded == 4)
        #expect(try writer.compact(.request, OperationControl()).deleted == 4)
        try StorageConformance.append(writer, [record(101)])
        #expect(try records() == Set(all + [record(100), record(101)]))
        #expect(try names().count == 2 && mine.count == 5)
        try writer.close(discarding: false)
        #expect(try compact().folded == 2)
        try compact()
        #expect(try names().count == 1)
        #expect(try records() == Set(all + [record(100), record(101)]))
    }

    @Test(.enabled(if: WriterMachine.current.boot != 0)) func aDeadWritersSegmentIsFoldedWithoutItsTornEnd() throws {
        let all = try fill(0..<4, sealed: false)
        let torn = path + "/segments/" + (try names()[1])
        let bytes = try contents(torn)
        try write(bytes + bytes[64..<100], to: torn)
        #expect(try compact().folded == 4)
        #expect(try records() == Set(all))
        #expect(try compact().deleted == 4)
        #expect(try records() == Set(all))
        // Whether a writer on another machine still runs is unknown.
        var foreign = bytes
        foreign[40] ^= 1
        foreign.withUnsafeMutableBytes { b in
            let crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<60]))
            b.storeBytes(of: crc.littleEndian, toByteOffset: 60, as: UInt32.self)
        }
        try write(foreign, to: torn)
        try fill(10..<11)
        #expect(try compact().folded == 2) // The new segment and the compacted one.
        #expect(try names().contains { torn.hasSuffix($0) })
    }

    @Test func automaticallyWhenItPaysOnly() throws {
        try fill(0..<70)
        for (limit, trigger, folded) in [(100, .closing, 0), (60, .opened, 0), (60, .closing, 70)] as [(Int, CompactionTrigger, UInt64)] {
            let storage = try open { $0.compactionThreshold = limit }
            _ = try StorageConformance.scan(storage)
            #expect(try storage.compact(trigger, OperationControl()).folded == folded)
            try storage.close(discarding: false)
        }
        try fill(100..<170)
        let storage = try open { $0.compaction = .onRequest }
        _ = try StorageConformance.scan(storage)
        #expect(try storage.compact(.closing, OperationControl()) == CompactionReport())
        #expect(try open(nil) { $0.readOnly = true }.compact(.closing, OperationControl()) == CompactionReport())
        #expect(throws: StoreError.self) { try open(nil) { $0.readOnly = true }.compact(.request, OperationControl()) }
    }

    @Test func aRecordIsRewrittenAFewTimesOnly() throws {
        var written: UInt64 = 0, size: UInt64 = 0
        for i in 0..<24 {
            let storage = try open { $0.compactionThreshold = 8 }
            for j in 0..<8 {
                let one = try open()
                try StorageConformance.append(one, [record(i * 8 + j, 20_000)])
                try one.close(discarding: false)
                size += 20_000
            }
            _ = try StorageConformance.scan(storage)
            written += try storage.compact(.closing, OperationControl()).bytesWritten
            try storage.close(discarding: false)
        }
        #expect(try names().count < 30)
        #expect(written > size / 2 && written < size * 7, "\(written) of \(size)")
        #expect(try records().count == 192)
    }

    // MARK: Readers

    @Test func readersFindTheirRecordsWhereverTheyWent() throws {
        let all = try fill(0..<12)
        let reader = try open { $0.openFiles = 1 }
        var places: [RecordPlace] = []
        try reader.scan { places.append($0.place) }
        let before = try places.map { try StorageConformance.read(reader, $0) }
        #expect(Set(before) == Set(all))
        // Segments are compacted, deleted, compacted again with others, and the intermediate ones deleted, while this handle does not
        // check.
        try compact()
        #expect(try places.map { try StorageConformance.read(reader, $0) } == before)
        try compact()
        #expect(try names().count == 1)
        #expect(try places.map { try StorageConformance.read(reader, $0) } == before)
        let sleeper = try open { $0.openFiles = 1 }
        var others: [RecordPlace] = []
        try sleeper.scan { others.append($0.place) }
        try fill(20..<24)
        try compact()
        try compact()
        #expect(try names().count == 1)
        #expect(try places.map { try StorageConformance.read(reader, $0) } == before)
        #expect(try others.map { try StorageConformance.read(sleeper, $0) } == all)
        // Only new records are reported.
        #expect(try Set(StorageConformance.scan(reader)) == Set((20..<24).map { record($0) }))
        #expect(try StorageConformance.scan(sleeper).count == 4)
        #expect(try damages(reader).isEmpty && damages(sleeper).isEmpty)
        for place in places { #expect(reader.currentPlace(place).segment != place.segment) }
    }

    @Test func readersGoOnWhileOthersCompact() throws {
        let all = Set(try fill(0..<40))
        let reader = try open { $0.openFiles = 2 }
        var places: [RecordPlace] = []
        try reader.scan { places.append($0.place) }
        let known = places
        let wrong = Parallel.run(threads: 4, times: 1) { thread, _ in
            if thread == 0 {
                for round in 0..<6 {
                    try fill(100 + round * 4..<104 + round * 4)
                    try compact()
                }
            } else {
                for round in 0..<60 {
                    let read = try StorageConformance.read(reader, known[(round * 7 + thread) % known.count])
                    if !all.contains(read) { throw StoreError(.damaged, "other bytes") }
                }
            }
        }
        #expect(wrong.isEmpty)
        try compact()
        #expect(try records().count == 64)
    }

    @Test func twoCompactorsAtOnceAreNoProblem() throws {
        let all = Set(try fill(0..<40))
        let wrong = Parallel.run(threads: 4, times: 4) { _, _ in try compact() }
        #expect(wrong.isEmpty)
        try compact()
        #expect(try names().count == 1)
        #expect(try records() == all)
    }

    // MARK: Several machines

    @Test func twoMachinesMakeTheSameFile() throws {
        try fill(0..<10)
        let other = directory.path + "/other"
        try copy(to: other)
        try compact()
        try compact(other)
        let made = try names().filter { $0.hasPrefix("0000") }
        #expect(made.count == 1)
        #expect(try names() == names(other))
        #expect(try contents(path + "/segments/" + made[0]) == contents(other + "/segments/" + made[0]))
    }

    @Test func theUnionOfCopiesCompactedApartHasAll() throws {
        let other = directory.path + "/other"
        let shared = try fill(0..<6)
        try copy(to: other)
        let mine = try fill(10..<14), theirs = try fill(20..<23, other)
        for path in [path, other] { try compact(path); try compact(path) }
        #expect(try names().count == 1 && names(other).count == 1)
        for name in try names(other) { try write(contents(other + "/segments/" + name), to: path + "/segments/" + name) }
        let all = Set(shared + mine + theirs)
        #expect(try records() == all)
        try compact()
        try compact()
        #expect(try names().count == 1)
        #expect(try records() == all)
    }

    @Test func segmentsThatComeBackAreHarmless() throws {
        let other = directory.path + "/other"
        let all = Set(try fill(0..<6))
        try copy(to: other)
        try compact()
        try compact()
        let reader = try open()
        #expect(try records(reader) == all)
        for name in try names(other) { try write(contents(other + "/segments/" + name), to: path + "/segments/" + name) }
        #expect(try records(reader).isSubset(of: all))
        #expect(try records() == all)
        #expect(try compact().deleted == 6)
        #expect(try names().count == 1)
    }

    @Test func nothingIsDoneInASyncedFolderUnlessForced() throws {
        try fill(0..<6)
        try write([], to: directory.path + "/.stfolder")
        let report = try compact()
        #expect(report.made == 0 && report.syncMarker?.hasSuffix("/.stfolder") == true)
        #expect(try compact(nil) { $0.compaction = .always }.folded == 6)
        #expect(try compact().deleted == 0)
        try System.unlink(directory.path + "/.stfolder")
        #expect(try compact().deleted == 6)
    }

    @Test func foldedSegmentsAreKeptForTheTimeOfGrace() throws {
        let all = Set(try fill(0..<6))
        let keep: (inout FileStorage.Options) -> Void = { $0.compactionGrace = 900 }
        try compact(nil, keep)
        #expect(try compact(nil, keep).deleted == 0)
        let made = path + "/segments/" + (try #require(names().first))
        makeOld(made, seconds: 800)
        #expect(try compact(nil, keep).deleted == 0)
        makeOld(made, seconds: 1_000)
        #expect(try compact(nil, keep).deleted == 6)
        #expect(try records() == all)
    }

    // MARK: Damage and crashes

    /// From the n-th call on, every call that changes something fails, as if the process had been killed.
    final class Crash: @unchecked Sendable {
        private let lock = Lock()
        private var left: Int
        init(after calls: Int) { left = calls }
        private func step() throws(Errno) {
            if lock.withLock({
                left -= 1; return left < 0
            }) {
                throw Errno(EIO)
            }
        }
        var happened: Bool { lock.withLock { left < 0 } }
        var system: FileSystem {
            var system = FileSystem()
            system.pwrite = { [self] (fd, bytes, offset) throws(Errno) in
                do throws(Errno) { try step() } catch {
                    if lock.withLock({ left == -1 }) {
                        _ = try System.pwrite(fd, UnsafeRawBufferPointer(rebasing: bytes[0..<bytes.count / 2]), at: offset)
                    }
                    throw error
                }
                // Write small pieces, so that there are many points at which to stop.
                return try System.pwrite(fd, UnsafeRawBufferPointer(rebasing: bytes[0..<min(bytes.count, 300)]), at: offset)
            }
            system.fdatasync = { [self] (fd) throws(Errno) in
                try step(); try System.fdatasync(fd)
            }
            system.fsync = { [self] (fd) throws(Errno) in
                try step(); try System.fsync(fd)
            }
            system.rename = { [self] (a, b) throws(Errno) in
                try step(); try a.rename(to: b)
            }
            system.unlink = { [self] (path) throws(Errno) in
                try step(); try path.unlink()
            }
            return system
        }
    }

    @Test func itMayCrashAtEveryStep() throws {
        let master = try fill(0..<6), all = Set(master)
        var step = 0
        while true {
            let copied = directory.path + "/\(step)"
            try copy(to: copied)
            let crash = Crash(after: step)
            for _ in 0..<2 { _ = try? compact(copied) { $0.system = crash.system } }
            #expect(try records(copied) == all, "step \(step)")
            // Later handles finish the compaction, whatever its state.
            try compact(copied)
            #expect(try records(copied) == all, "step \(step)")
            try compact(copied)
            #expect(try records(copied) == all, "step \(step)")
            #expect(try names(copied).count == 1, "step \(step)")
            TemporaryDirectory.remove(copied)
            if !crash.happened { break }
            step += 1
            try #require(step < 200)
        }
        #expect(step > 12)
    }

    @Test func aCancelledCompactionChangesNothing() throws {
        let all = Set(try fill(0..<6))
        for calls in 0..<12 {
            let storage = try open()
            _ = try StorageConformance.scan(storage)
            let left = Lock()
            nonisolated(unsafe) var count = calls
            let control = OperationControl(progress: { _ in
                left.withLock {
                    count -= 1; return count >= 0
                }
            })
            #expect(throws: StoreError.self) { try storage.compact(.request, control) }
            try storage.close(discarding: true)
            #expect(try records() == all)
            #expect(try names().count == 6)
        }
    }

    @Test func aCancelIsObeyedAlsoWhileFoldedSegmentsAreScanned() throws {
        let all = Set(try fill(0..<3, size: 300_000))
        try compact()
        var calls = 0
        while true {
            let copied = directory.path + "/\(calls)"
            try copy(to: copied)
            let storage = try open(copied)
            _ = try StorageConformance.scan(storage)
            let lock = Lock()
            nonisolated(unsafe) var count = 0
            let control = OperationControl(progress: { [calls] _ in
                lock.withLock {
                    count += 1; return count != calls + 1
                }
            })
            var isStopped = false
            do { _ = try storage.compact(.request, control) } catch let error as StoreError where error.code == .cancelled {
                isStopped = true
            }
            try storage.close(discarding: true)
            #expect(try records(copied) == all)
            let isOver = lock.withLock { count <= calls }
            #expect(isStopped != isOver, "cancelled at call \(calls + 1)")
            TemporaryDirectory.remove(copied)
            if isOver { break }
            calls += 1
        }
        #expect(calls > 8)
    }

    /// During a compaction, a syncing program puts a shorter copy of a segment in its place, or truncates the present one.
    @Test(arguments: [false, true]) func aSegmentThatBecomesShorterMeanwhileIsFoldedAnotherTime(_ inPlace: Bool) throws {
        let all = Set(try fill(0..<4, size: 4_000))
        var givenUp = 0, made = 0
        // The usual run uses two of the four segments.
        for name in try names().enumerated().filter({ $0.offset % sample(usual: 2, deep: 1) == 0 }).map({ $0.element }) {
            var step = 1
            while true {
                let copied = directory.path + "/copy", file = copied + "/segments/" + name, whole = try contents(path + "/segments/" + name)
                try copy(to: copied)
                let storage = try open(copied)
                _ = try StorageConformance.scan(storage)
                let lock = Lock()
                nonisolated(unsafe) var count = 0
                let control = OperationControl(progress: { [step] _ in
                    guard
                        lock.withLock({
                            count += 1; return count == step
                        })
                    else { return true }
                    if inPlace {
                        #expect(truncate(file, 3_500) == 0)
                    } else {
                        #expect(throws: Never.self) { try write(Array(whole.prefix(3_500)), to: file) }
                    }
                    return true
                })
                let report = try storage.compact(.request, control)
                if report.made == 0 { givenUp += 1 } else { made += 1 }
                try storage.close(discarding: true)
                // Once the whole segment is back nothing is missing, and it is compacted as usual.
                try write(whole, to: file)
                #expect(try records(copied) == all, "\(name), call \(step)")
                var reports: [CompactionReport] = []
                for _ in 0..<3 { reports.append(try compact(copied)) }
                #expect(try records(copied) == all, "\(name), call \(step)")
                #expect(try names(copied).count == 1, "\(name), call \(step): \(reports)")
                TemporaryDirectory.remove(copied)
                if lock.withLock({ count < step }) { break }
                step += 1
            }
        }
        #expect(givenUp > 2 && made > 2, "\(givenUp) given up, \(made) made")
    }

    @Test func aDamagedSegmentStaysWhereItIs() throws {
        let all = try fill(0..<6)
        let damaged = try #require(names().first { name in try contents(path + "/segments/" + name).count > 100 })
        let file = path + "/segments/" + damaged
        var bytes = try contents(file)
        bytes[64 + 48 + 16 + 8] ^= 0x10
        try write(bytes, to: file)
        #expect(try compact().folded == 5)
        #expect(try compact().deleted == 5)
        #expect(try names().contains(damaged) && names().count == 2)
        let reader = try open()
        #expect(try records(reader).isSubset(of: all) && reader.damages.map(\.file) == [file])
        // The segment was damaged after the compaction. The compacted segment still has the record, and the damaged one is kept.
        TemporaryDirectory.remove(path)
        try fill(0..<6)
        try compact()
        let last = path + "/segments/" + (try #require(names().last))
        bytes = try contents(last)
        bytes[64 + 48 + 16 + 8] ^= 0x10
        try write(bytes, to: last)
        #expect(try compact().deleted == 5)
        #expect(try records() == Set(all))
    }

    @Test func aDamagedFoldedSegmentIsMadeAgain() throws {
        let all = Set(try fill(0..<6))
        try compact()
        let made = path + "/segments/" + (try #require(names().first)), good = try contents(made)
        for offset in [5, 40, 64 + 10, 64 + 60, good.count / 2, good.count - 100, good.count - 10] {
            var bytes = good
            bytes[offset] ^= 0x04
            try write(bytes, to: made)
            let reader = try open()
            #expect(try records(reader) == all, "offset \(offset)")
            // A damaged compacted segment causes no deletions.
            let report = try compact()
            #expect(report.deleted == 0 || bytes == good, "offset \(offset)")
            #expect(try contents(made) == good, "offset \(offset)")
            #expect(try records() == all, "offset \(offset)")
        }
    }

    @Test func everyFlippedByteOfAFoldedSegmentIsHarmless() throws {
        let all = Set(try fill(0..<3))
        try compact()
        try compact()
        let made = path + "/segments/" + (try #require(names().first)), good = try contents(made)
        for offset in good.indices {
            var bytes = good
            bytes[offset] ^= 0x41
            try write(bytes, to: made)
            let reader = try open()
            let found = try records(reader)
            #expect(found.isSubset(of: all) && found.count >= 2, "offset \(offset)")
            #expect(try found == all || !reader.damages.isEmpty || !damages(reader).isEmpty, "offset \(offset)")
        }
        for count in stride(from: 0, to: good.count, by: 7) {
            try write(Array(good.prefix(count)), to: made)
            #expect(try records(open()).isSubset(of: all))
        }
    }

    @Test func aListThatLiesIsRefused() throws {
        let id = RandomName(high: 1, low: 2)
        let fine = CompactionSource(id: id, length: 1_000, sealed: true, from: 64, size: 900, at: 100)
        #expect(CompactionSource.encode([fine]).withUnsafeBytes { CompactionSource.decode($0, available: 1_000) } == [fine])
        #expect(CompactionSource.encode([fine]).withUnsafeBytes { CompactionSource.decode($0, available: 999) } == nil)
        for change in [{ $0.from = 0 }, { $0.from = 1_001 }, { $0.size = 937 }, { $0.size = .max }, { $0.at = .max }]
            as [(inout CompactionSource) -> Void]
        {
            var wrong = fine
            change(&wrong)
            #expect(CompactionSource.encode([wrong]).withUnsafeBytes { CompactionSource.decode($0, available: 10_000) } == nil)
        }
        let whole = CompactionSource.encode([fine, fine])
        for count in 0..<whole.count {
            #expect(Array(whole.prefix(count)).withUnsafeBytes { CompactionSource.decode($0, available: 10_000) } == nil)
        }
        #expect((whole + [0]).withUnsafeBytes { CompactionSource.decode($0, available: 10_000) } == nil)
    }
}
