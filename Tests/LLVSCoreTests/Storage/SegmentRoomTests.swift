import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// The room that a segment has after its frames while each frame is synced.
@Suite struct SegmentRoomTests {
    let files = StorageFileTests()
    func record(_ name: String, _ count: Int = 30) -> [UInt8] { files.record(name, count) }
    func size() throws -> Int { try files.contents(files.segmentPaths[0]).count }

    @Test func framesGoIntoRoomThatSealingTakesAway() throws {
        let storage = try files.open()
        try StorageConformance.append(storage, [record("A")])
        let first = try size()
        #expect(first < 300)
        var places: [RecordPlace] = []
        for i in 0..<40 {
            places += try StorageConformance.append(storage, [record("V\(i)", 100)])
            let size = try size()
            #expect(size % 4096 == 0 && size - Int(places[i].offset + places[i].length) < 4096)
        }
        try StorageConformance.append(storage, [record("LARGE", 400_000)])
        // A reader of the file, or of a copy of it, finds all records and no damage.
        let reader = try files.open(), all = [record("A")] + (0..<40).map { record("V\($0)", 100) } + [record("LARGE", 400_000)]
        #expect(try StorageConformance.scan(reader) == all && reader.damages.isEmpty)
        var damages: [StorageDamage] = []
        try reader.verify(OperationControl(), found: { _ in }, damage: { damages.append($0) })
        #expect(damages.isEmpty)
        let copy = try files.contents(files.segmentPaths[0])
        #expect(copy.suffix(100) == [UInt8](repeating: 0, count: 100)[...])
        try storage.close(discarding: false)
        let sealed = try files.contents(files.segmentPaths[0])
        #expect(
            sealed.count % 4096 != 0 && sealed.count < copy.count
                && sealed.dropLast(FrameFormat.sealSize).elementsEqual(copy.prefix(sealed.count - FrameFormat.sealSize)))
        #expect(try StorageConformance.scan(files.open()) == all)
        try files.write(copy, to: files.segmentPaths[0])
        #expect(try StorageConformance.scan(files.open()) == all)
    }

    /// Only the file's change time, which is coarse, shows a frame that is written into the room.
    @Test func othersAreSeenThoughTheSizeStays() throws {
        let storage = try files.open(), reader = try files.open()
        for i in 0..<20 {
            let before = i > 2 ? try size() : 0
            try StorageConformance.append(storage, [record("V\(i)")])
            if i > 2 { #expect(try size() == before) }
            #expect(try StorageConformance.scan(reader) == [record("V\(i)")])
        }
        let now = try System.status(files.segmentPaths[0])
        var old = now
        old.modified &-= 3_000_000_000
        #expect(
            !Segment.isTelling(now, readTo: now.size - 1) && Segment.isTelling(now, readTo: now.size)
                && Segment.isTelling(old, readTo: now.size - 1))
        old.modified = now.modified &+ 3_600_000_000_000
        #expect(!Segment.isTelling(old, readTo: now.size - 1))
    }

    @Test func atNormalThereIsNone() throws {
        let storage = try files.open { $0.durability = .normal }
        for i in 0..<3 { try StorageConformance.append(storage, [record("V\(i)")]) }
        #expect(try size() < 600)
    }

    /// Not every file system can make room. Then a file ends with its frames.
    @Test func aFileSystemThatMakesNoRoomWillDo() throws {
        let storage = try files.open { $0.system.truncate = { _, _ throws(Errno) in throw Errno(EPERM) } }
        for i in 0..<3 { try StorageConformance.append(storage, [record("V\(i)")]) }
        #expect(try size() < 600)
        try storage.close(discarding: false)
        #expect(try StorageConformance.scan(files.open()).count == 3)
    }

    /// A long segment has more room, filled with zeros, so that most frames go into blocks that are already allocated.
    @Test func aLongSegmentHasMoreRoom() throws {
        nonisolated(unsafe) var isFull = false
        let storage = try files.open {
            $0.system.pwrite = { (fd, bytes, offset) throws(Errno) in
                // Half of the zeros are written before the medium is full.
                if isFull, bytes.count > 4_000 {
                    _ = try System.pwrite(fd, UnsafeRawBufferPointer(rebasing: bytes.prefix(bytes.count / 2)), at: offset);
                    throw Errno(ENOSPC)
                }
                return try System.pwrite(fd, bytes, at: offset)
            }
        }
        var all: [[UInt8]] = []
        func add(_ count: Int) throws {
            all.append(record("V\(all.count)", count))
            try StorageConformance.append(storage, [all[all.count - 1]])
        }
        for _ in 0..<2 { try add(40_000) }
        #expect(try size() == 128 << 10)
        for _ in 0..<12 { try add(3_900) }
        #expect(try size() == 128 << 10)
        isFull = true
        try add(3_900)
        let half = try size()
        #expect(half > 128 << 10 && half < 192 << 10)
        for _ in 0..<20 { try add(3_000) }
        let reader = try files.open()
        #expect(try StorageConformance.scan(reader) == all && reader.damages.isEmpty)
        try storage.close(discarding: false)
        #expect(try size() < all.reduce(0) { $0 + $1.count + 200 } && StorageConformance.scan(files.open()) == all)
    }

    /// The size does not show whether a frame whose write failed was written. Its bytes do.
    @Test(arguments: [0, 10, 90, Int.max]) func aFailedWriteIsReportedWithItsBytes(written: Int) throws {
        nonisolated(unsafe) var fails = false
        let storage = try files.open {
            $0.system.pwrite = { (fd, bytes, offset) throws(Errno) in
                guard fails else { return try System.pwrite(fd, bytes, at: offset) }
                if written > 0 { _ = try System.pwrite(fd, UnsafeRawBufferPointer(rebasing: bytes.prefix(written)), at: offset) }
                throw Errno(EIO)
            }
        }
        for name in ["A", "B"] { try StorageConformance.append(storage, [record(name)]) }
        fails = true
        #expect(files.code { try StorageConformance.append(storage, [record("C")]) } == (written == .max ? .unknownOutcome : .io))
        fails = false
        try StorageConformance.append(storage, [record("D")])
        #expect(files.segmentPaths.count == 2)
        try storage.close(discarding: false)
        let reader = try files.open()
        #expect(
            Set(try StorageConformance.scan(reader)) == Set(["A", "B", "D"].map { record($0) } + (written == .max ? [record("C")] : [])))
        #expect(reader.damages.isEmpty)
    }

    /// On a full medium, the part of a frame that was written is removed, and the next frame takes its place. A reader that scans in
    /// between returns no part of the frame.
    @Test func aFullMediumKeepsNothingOfWhatWasRefused() throws {
        let reader = try files.open()
        nonisolated(unsafe) var isFull = false, seen: [[UInt8]] = []
        let storage = try files.open {
            $0.system.pwrite = { (fd, bytes, offset) throws(Errno) in
                guard isFull else { return try System.pwrite(fd, bytes, at: offset) }
                _ = try System.pwrite(fd, UnsafeRawBufferPointer(rebasing: bytes.prefix(bytes.count - 5)), at: offset)
                seen += (try? StorageConformance.scan(reader)) ?? []
                throw Errno(ENOSPC)
            }
        }
        var whole: [[UInt8]] = []
        for (i, size) in [30, 50_000, 100, 400_000, 20].enumerated() {
            whole.append(record("V\(i)", 90))
            try StorageConformance.append(storage, [whole[i]])
            let end = try #require(storage.writer).end
            isFull = true
            #expect(files.code { try StorageConformance.append(storage, [record("W\(i)", size)]) } == .noSpace)
            isFull = false
            #expect(try self.size() == Int(end))
            seen += try StorageConformance.scan(reader)
        }
        #expect(files.segmentPaths.count == 1 && seen == whole && reader.damages.isEmpty)
        try storage.close(discarding: false)
        let again = try files.open()
        #expect(try StorageConformance.scan(again) == whole && again.damages.isEmpty)
    }

    /// A power cut during a close can leave the room after the seal, although it should have been removed before.
    @Test func aSealWithRoomBehindItIsFoldedAsOneThatWasNotSealed() throws {
        for name in ["A", "B"] {
            let storage = try files.open()
            try StorageConformance.append(storage, [record(name)])
            try storage.close(discarding: false)
        }
        try files.write(files.contents(files.segmentPaths[0]) + [UInt8](repeating: 0, count: 500), to: files.segmentPaths[0])
        let storage = try files.open()
        #expect(try StorageConformance.scan(storage).count == 2)
        #expect(try storage.compact(.request, OperationControl()).folded == 2)
        let reader = try files.open()
        #expect(Set(try StorageConformance.scan(reader)) == [record("A"), record("B")] && reader.damages.isEmpty)
    }
}
