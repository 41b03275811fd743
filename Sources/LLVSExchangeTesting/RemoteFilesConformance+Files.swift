import LLVSCore
import LLVSExchange
import LLVSTesting

// Checks of published files.
extension RemoteFilesConformance {
    static func emptiness(_ subject: Subject) throws {
        let files = try subject.open()
        try expect(!files.description.isEmpty, "it has no description")
        for directory in [log, "pack1/base", "versions"] { try expectListed([], in: files, directory, "in a new place") }
        try expect(try read(files, [file(1).name, "versions/A"]) == [nil, nil], "a new place has a file that was not published")
        try files.delete([file(1).name]) {}
        try files.prepareUploads {}
        try expectListed([], in: files, log, "after uploads were prepared")
        files.close()
        files.close()
    }

    static func listing(_ subject: Subject) throws {
        let files = try opened(subject)
        var all: [File] = []
        for round in 0..<4 {
            let batch = (0...round * 3).map { file(round * 100 + $0, size: 50 + round * 777 + $0) }
            try publish(files, batch)
            all += batch
            try expectListed(all, in: files, log, "after \(all.count) files were published")
        }
        files.close()
    }

    static func roundTrip(_ subject: Subject) throws {
        let files = try opened(subject)
        let every: [UInt8] = (0...255).map { UInt8($0) }
        let odd: [[UInt8]] = [every, Array("\r\n\r\n".utf8), [0], [0xEF, 0xBB, 0xBF], [0xFF, 0xFE, 0x80], Array("<?xml?> \n\n".utf8)]
        var all = (1..<20).map { file($0, size: $0 * 97) }
        for (number, bytes) in odd.enumerated() { all.append((file(900 + number).name, bytes)) }
        for file in all.prefix(3) { try publish(files, [file]) }
        try publish(files, Array(all.dropFirst(3)))
        try compare(all, in: files, "after publishing")
        try compare(all, in: files, "read again")
        try expectListed(all, in: files, log, "after publishing")
        files.close()
    }

    static func ownFiles(_ subject: Subject) throws {
        let files = try opened(subject)
        let all = (0..<60).map { file($0) }
        try publish(files, all)
        var random = SeededRandom(seed: 3)
        for _ in 0..<5 { try compare(Array(all.shuffled(using: &random).prefix(17)), in: files, "read in random order") }
        for file in all.prefix(5) { try compare([file], in: files, "read in a call of its own") }
        files.close()
    }

    static func ranges(_ subject: Subject) throws {
        let files = try opened(subject)
        let size = 200_000, file = file(1, size: size), other = RemoteFilesConformance.file(2, size: 5_000)
        try publish(files, [file, other])
        // Read as base packs are read: the end of the file, then blocks of it. The last two ranges extend past the end.
        let wanted = [0..<100, size - 65_536..<size, 100_000..<165_537, 7..<8, size - 10..<size + 90, size..<size + 10]
        // The limit must allow for services that return the whole file.
        var all = wanted.map { RemoteRead(name: file.name, range: $0, limit: size) }
        all.append(RemoteRead(name: other.name, range: 1_000..<1_100, limit: size))
        all.append(RemoteRead(name: "\(log)/never", range: 0..<9, limit: size))
        for (asked, answer) in zip(all, try read(files, all)) {
            let range = asked.range ?? 0..<0
            if asked.name == "\(log)/never" {
                guard case .missing = answer else { throw Checks.Problem(message: "a part of a file that was not published is read") }
                continue
            }
            let (answered, isWhole) = try bytes(answer, asked.name)
            let whole = asked.name == file.name ? file.bytes : other.bytes
            let part = isWhole ? whole : Array(whole[min(range.lowerBound, whole.count)..<min(range.upperBound, whole.count)])
            guard let found = answered else {
                throw Checks.Problem(message: "bytes \(range) of a file of \(whole.count): reported as missing")
            }
            let how = isWhole ? " as the whole file" : ""
            try expect(found == part, "bytes \(range) of a file of \(whole.count) are read\(how) as \(found.count) other bytes")
        }
        try compare([file, other], in: files, "after parts of them were read")
        files.close()
    }

    static func limits(_ subject: Subject) throws {
        let files = try opened(subject)
        let small = file(1, size: 1_000), large = file(2, size: 3_000_000)
        try publish(files, [small, large])
        let answers = try read(
            files,
            [
                RemoteRead(name: small.name, range: nil, limit: 1_000), RemoteRead(name: small.name, range: nil, limit: 999),
                RemoteRead(name: large.name, range: nil, limit: 2_000_000),
            ])
        try expect(try bytes(answers[0], small.name).0 == small.bytes, "a file of 1000 bytes is not read where 1000 are the limit")
        for (answer, file) in zip(answers.dropFirst(), [small, large]) {
            guard case .unreadable(let error) = answer else {
                throw Checks.Problem(message: "a file of \(file.bytes.count) bytes is read where the limit is below that")
            }
            try expect(error.code == .tooLarge, "reading a file above the limit fails with the code \(error.code.rawValue): \(error)")
        }
        try compare([small, large], in: files, "after reads with a limit")
        files.close()
    }

    static func absence(_ subject: Subject) throws {
        let files = try opened(subject)
        let there = [file(1), file(2)]
        let names = [file(3).name, there[0].name, "versions/A", there[1].name, "\(log)/never", "pack1/base/never"]
        try publish(files, there)
        let found = try read(files, names)
        for i in [0, 2, 4, 5] { try expect(found[i] == nil, "\"\(names[i])\" is read, but was not published") }
        try expect(found[1] == there[0].bytes && found[3] == there[1].bytes, "among missing files, others are not as they were published")
        files.close()
    }

    static func names(_ subject: Subject) throws {
        let files = try opened(subject)
        var all = ["a", "-", "_", "--", "0", "con", "NUL", "aux", "tmp", "versions", "changes", "manifest", "lost-found", "__llvs_root"]
        all += [String(repeating: "x", count: 128), String(repeating: "-", count: 127) + "y", String(repeating: "_", count: 128)]
        all += [VersionID.random().description, "prefix", "prefix-1", "prefix-11", "prefix_1", "with.dot"]
        let versions: [File] = all.enumerated().map { ("versions/\($1)", StorageConformance.bytes(seed: UInt64($0), count: 90 + $0)) }
        try publish(files, versions)
        try compare(versions, in: files, "with unusual names")
        try expectListed(versions, in: files, "versions", "with unusual names")
        // The longest names of packs: parts of large values.
        let parts = (0..<5).map { part -> File in
            let name = packName(part)
            return ("pack1/blob/\(name.suffix(26))-aaa\(part == 0 ? "a" : "q")-\(packName(part + 50).suffix(26))", [UInt8(part)])
        }
        try publish(files, parts)
        try expectListed(parts, in: files, "pack1/blob", "with the longest names of packs")
        files.close()
    }

    static func staying(_ subject: Subject) throws {
        let files = try opened(subject)
        let first = file(1, size: 400), second: File = (first.name, StorageConformance.bytes(seed: 99, count: 300)), beside = file(2)
        try publish(files, [first])
        let outcomes = try files.publish(uploads([second, beside])) {}
        try expect(outcomes.count == 2, "publishing 2 files returns \(outcomes.count) results")
        guard case .published = outcomes[1] else { throw Checks.Problem(message: "beside a file that exists, another is not published") }
        switch outcomes[0] {
        case .exists: try compare([first, beside], in: files, "published again, without replacing")
        case .refused(let error): throw Checks.Problem(message: "publishing again, without replacing, is refused: \(error)")
        case .published:
            try expect(!files.capabilities.isExclusive, "a file that exists is reported as published, but was not to be replaced")
            let found = try read(files, [first.name])[0]
            try expect(found == first.bytes || found == second.bytes, "published twice, a file is neither the first nor the second")
        }
        try expect(try list(files, log).count == 2, "a file that was published twice is listed as \(try list(files, log).count - 1)")
        files.close()
    }

    static func replacing(_ subject: Subject) throws {
        let files = try opened(subject)
        let other: File = ("versions/OTHER", Array("other".utf8))
        try publish(files, [other])
        for (round, size) in [300, 5_000, 40, 2_000_000, 300].enumerated() {
            let now: File = ("versions/SAME", StorageConformance.bytes(seed: UInt64(round), count: size))
            try publish(files, [now], replaces: true)
            try compare([now, other], in: files, "published \(round + 1) times, now with \(size) bytes")
            try expectListed([now, other], in: files, "versions", "published \(round + 1) times")
        }
        files.close()
    }

    static func deleting(_ subject: Subject) throws {
        let files = try opened(subject)
        let all = (0..<50).map { file($0) }
        try publish(files, all)
        try files.delete([all[0].name]) {}
        try expect(try read(files, [all[0].name]) == [nil], "a deleted file is read")
        try files.delete(all[0..<30].map(\.name) + ["\(log)/never", "pack1/base/never"]) {}
        try files.delete([]) {}
        try expectListed(Array(all[30...]), in: files, log, "after 30 of 50 files were deleted, one of them twice")
        try compare(Array(all[30...]), in: files, "after others were deleted")
        try expect(try read(files, all[0..<30].map(\.name)).allSatisfy { $0 == nil }, "deleted files are read")
        try publish(files, [all[3]])
        try compare([all[3]], in: files, "published again after it was deleted")
        files.close()
    }
}
