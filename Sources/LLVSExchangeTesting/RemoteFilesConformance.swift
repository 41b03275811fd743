import LLVSCore
import LLVSExchange
import LLVSTesting

/// The requirements on every place that holds named files, for any service: exactly those on which both layouts rely
/// (docs/remote-files.md).
package enum RemoteFilesConformance: ConformanceSuite {
    /// One place, empty at first.
    package struct Subject {
        /// Opens the files of the place.
        package var open: () throws -> any RemoteFiles
        /// Whether several handles may use it at once.
        package var isShared: Bool
        /// Makes the place unreachable, or reachable again; nil if that is impossible.
        package var disturb: ((Disturbance) throws -> Void)?
        package init(
            isShared: Bool = true, disturb: ((Disturbance) throws -> Void)? = nil, open: @escaping () throws -> any RemoteFiles
        ) {
            self.open = open; self.isShared = isShared; self.disturb = disturb
        }
    }

    package static let checks: [Check<Subject>] = [
        Check("a new place is empty", emptiness),
        Check("what was published is listed with its size, and nothing else", listing),
        Check("files come back byte for byte", roundTrip),
        Check("each name gets its own file", ownFiles),
        Check("parts of files are read", ranges),
        Check("a file above the limit is not read", limits),
        Check("missing files are reported as missing", absence),
        Check("all names of both layouts can be used", names(_:)),
        Check("an existing file is replaced only on request", staying),
        Check("a file is replaced completely", replacing),
        Check("deleted files are gone, and no others", deleting),
        Check("directories are separate", directories),
        Check("large files are complete", largeFiles),
        Check("many files are listed and read", manyFiles),
        Check("another handle sees published files", sharing),
        Check("a listed file can be read completely", publishing),
        Check("if two handles publish one name at once, one of them wins", publishingAtOnce),
        Check("cancelling leaves only complete files", cancelling),
        Check("an unreachable place is an error", unreachable),
        Check("two stores exchange single files through it", storesExchangeFiles),
        Check("two stores exchange packs through it, and a third reads them", storesExchangePacks),
    ]
}

// Reads and writes for the checks.
extension RemoteFilesConformance {
    typealias File = (name: String, bytes: [UInt8])
    /// The directory of log packs.
    static let log = "pack1/log"

    /// Returns a file of arbitrary bytes, under a name like those of packs.
    static func file(_ number: Int, size: Int = 200) -> File {
        ("\(log)/\(packName(number))", StorageConformance.bytes(seed: UInt64(number), count: size))
    }

    /// Returns a name as in docs/pack-format.md: a writer, a number and an id.
    static func packName(_ number: Int) -> String {
        let letters = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)
        var random = SeededRandom(seed: UInt64(number) &* 7 &+ 1)
        // The unused bits of a last character are zero.
        func field(_ count: Int, last: String) -> String {
            String(decoding: (1..<count).map { _ in letters.randomElement(using: &random) ?? letters[0] }, as: UTF8.self) + last
        }
        return "\(field(13, last: "a"))-aaaaaaq-\(field(26, last: "a"))"
    }

    /// Opens the files, ready for uploads.
    static func opened(_ subject: Subject) throws -> any RemoteFiles {
        let files = try subject.open()
        try files.prepareUploads {}
        return files
    }

    static func uploads(_ all: [File], replaces: Bool = false) -> [RemoteUpload] {
        all.map { RemoteUpload(name: $0.name, data: OutgoingFile($0.bytes), replaces: replaces) }
    }

    /// Publishes files, and requires that each is reported as published.
    static func publish(_ files: any RemoteFiles, _ all: [File], replaces: Bool = false) throws {
        let outcomes = try files.publish(uploads(all, replaces: replaces)) {}
        try expect(outcomes.count == all.count, "publishing \(all.count) files returns \(outcomes.count) results")
        for (file, outcome) in zip(all, outcomes) {
            switch outcome {
            case .published: break
            case .exists: throw Checks.Problem(message: "\"\(file.name)\" is reported as existing already")
            case .refused(let error): throw Checks.Problem(message: "\"\(file.name)\" is refused: \(error)")
            }
        }
    }

    static func read(_ files: any RemoteFiles, _ reads: [RemoteRead]) throws -> [RemoteContents] {
        let answers = try files.read(reads) {}
        try expect(answers.count == reads.count, "reading \(reads.count) files returns \(answers.count)")
        return answers
    }

    /// Returns the whole files of these names; nil for missing ones.
    static func read(_ files: any RemoteFiles, _ names: [String]) throws -> [[UInt8]?] {
        try zip(names, read(files, names.map { RemoteRead(name: $0, range: nil, limit: 64 << 20) })).map { name, contents in
            let (bytes, isWhole) = try bytes(contents, name)
            try expect(isWhole, "\"\(name)\" was requested as a whole, but is returned as a part")
            return bytes
        }
    }

    /// Returns the result, and whether it is reported as the whole file.
    static func bytes(_ contents: RemoteContents, _ name: String) throws -> ([UInt8]?, isWhole: Bool) {
        switch contents {
        case .missing: return (nil, true)
        case .bytes(let bytes, let isWhole): return (bytes, isWhole)
        case .unreadable(let error): throw Checks.Problem(message: "\"\(name)\" cannot be read: \(error)")
        case .large(let reader): return (try FaultyTransport.bytes(.pieces(reader)), true)
        }
    }

    /// Requires that each file is as it was published.
    static func compare(_ all: [File], in files: any RemoteFiles, _ when: String) throws {
        for (file, found) in zip(all, try read(files, all.map(\.name))) {
            guard let found else { throw Checks.Problem(message: "\(when), \"\(file.name)\" is missing") }
            guard found != file.bytes else { continue }
            let how = found.count == file.bytes.count ? "is not as it was published" : "has \(found.count) bytes of \(file.bytes.count)"
            throw Checks.Problem(message: "\(when), \"\(file.name)\" \(how)")
        }
    }

    /// Returns the files of a directory, each listed once, by their paths in the place, with their sizes if known.
    static func list(_ files: any RemoteFiles, _ directory: String) throws -> [String: Int?] {
        var found: [String: Int?] = [:]
        for entry in try files.list(directory, withTimes: false, {}) ?? [] where !entry.isDirectory {
            let name = "\(directory)/\(entry.name)"
            try expect(found.updateValue(entry.size, forKey: name) == nil, "\"\(name)\" is listed twice")
        }
        return found
    }

    /// Requires that exactly these files are listed, with these sizes.
    static func expectListed(_ all: [File], in files: any RemoteFiles, _ directory: String, _ when: String) throws {
        let listed = try list(files, directory), wanted = Set(all.map(\.name)), names = Set(listed.keys)
        let missing = wanted.subtracting(names).sorted(), strange = names.subtracting(wanted).sorted()
        try expect(missing.isEmpty, "\(when), \(missing.count) of \(all.count) files are not listed: \(missing.prefix(3))")
        try expect(strange.isEmpty, "\(when), files are listed that were not published: \(strange.prefix(3))")
        for file in all {
            guard let told = listed[file.name], let size = told, size != file.bytes.count else { continue }
            throw Checks.Problem(message: "\(when), \"\(file.name)\" is listed with \(size) bytes, but has \(file.bytes.count)")
        }
    }
}
