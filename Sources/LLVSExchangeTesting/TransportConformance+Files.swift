import LLVSCore
import LLVSExchange
import LLVSTesting

// Checks of files that are sent.
extension TransportConformance {
    static func emptiness(_ subject: Subject) throws {
        let transport = try subject.open()
        try expect(try list(transport).isEmpty, "a new place lists \(try list(transport).sorted().prefix(3))")
        try expect(!transport.description.isEmpty, "it has no description")
        transport.close()
        transport.close()
    }

    static func listing(_ subject: Subject) throws {
        let transport = try subject.open()
        var sent: Set<String> = []
        for round in 0..<4 {
            let batch = (0...round * 3).map { files("R\(round)-\($0)") }
            try send(transport, batch)
            sent.formUnion(batch.map(\.name))
            let listed = try list(transport)
            try expect(
                sent.subtracting(listed).isEmpty,
                "not listed: \(sent.subtracting(listed).sorted().prefix(3)), of \(sent.count) sent")
            try expect(listed.subtracting(sent).isEmpty, "listed, but not sent: \(listed.subtracting(sent).sorted().prefix(3))")
        }
        transport.close()
    }

    static func roundTrip(_ subject: Subject) throws {
        let transport = try subject.open()
        let all = (0..<20).map { files("V\($0)", seed: UInt64($0), size: $0 * 97) }
        for file in all.prefix(3) { try send(transport, [file]) }
        try send(transport, Array(all.dropFirst(3)))
        try compare(all, in: transport, "after sending")
        try compare(all, in: transport, "fetched again")
        transport.close()
    }

    static func ownFiles(_ subject: Subject) throws {
        let transport = try subject.open()
        let all = (0..<60).map { files("N\($0)", seed: UInt64($0)) }
        try send(transport, all)
        var random = SeededRandom(seed: 3)
        for _ in 0..<5 { try compare(Array(all.shuffled(using: &random).prefix(17)), in: transport, "fetched in random order") }
        for file in all.prefix(5) { try compare([file], in: transport, "fetched in a call of its own") }
        transport.close()
    }

    static func absence(_ subject: Subject) throws {
        let transport = try subject.open()
        try expect(
            try versions(transport, ["NEVER"]) == [nil] && changes(transport, ["NEVER"]) == [nil],
            "an empty place has a file that was not sent")
        let there = [files("A", seed: 1), files("B", seed: 2)]
        try send(transport, there)
        let names = ["C", "A", "AA", "B", "a1", "NEVER"]
        for (kind, found, sent) in [
            ("version", try versions(transport, names), there.map { Optional($0.version) }),
            ("changes", try changes(transport, names), try there.map { Optional(try $0.changes.bytes()) }),
        ] {
            for i in [0, 2, 4, 5] { try expect(found[i] == nil, "the \(kind) file of \"\(names[i])\" is fetched, but was not sent") }
            try expect(found[1] == sent[0] && found[3] == sent[1], "among missing files, the other \(kind) files are not as they were sent")
        }
        transport.close()
    }

    static func replacing(_ subject: Subject) throws {
        let transport = try subject.open()
        for (round, size) in [300, 5000, 40, 300].enumerated() {
            let batch = [files("SAME", seed: UInt64(round + 10), size: size), files("R\(round)", seed: 5)]
            try send(transport, batch)
            try compare(batch, in: transport, "sent \(round + 1) times, now with \(size) bytes")
        }
        try expect(try list(transport).count == 5, "5 versions, one of them sent 4 times, are listed as \(try list(transport).count)")
        transport.close()
    }

    static func names(_ subject: Subject) throws {
        let transport = try subject.open()
        var all = ["a", "-", "_", "--", "0", "con", "NUL", "aux", "tmp", "versions", "changes", "manifest", "lost-found", "__llvs_root"]
        all += [String(repeating: "x", count: 128), String(repeating: "-", count: 127) + "y", String(repeating: "_", count: 128)]
        all += [VersionID.random().description, "prefix", "prefix-1", "prefix-11", "prefix_1"]
        let batch = all.enumerated().map { files($1, seed: UInt64($0)) }
        try send(transport, batch)
        try expect(try list(transport) == Set(all), "not listed: \(Set(all).subtracting(try list(transport)).sorted().prefix(3))")
        try compare(batch, in: transport, "with unusual names")
        transport.close()
    }

    static func oddBytes(_ subject: Subject) throws {
        let transport = try subject.open()
        let every = (0...255).map { UInt8($0) }
        let odd: [[UInt8]] = [
            every, Array("[\r\n\r\n]".utf8), Array("[\u{0}]".utf8), Array("\u{FEFF}[]".utf8), [0xFF, 0xFE, 0x80], Array("[]   \n\n".utf8),
            [0x5B],
        ]
        let batch = odd.enumerated().map { ExchangeFiles(name: "ODD\($0)", version: $1, changes: $1) }
        try send(transport, batch)
        try compare(batch, in: transport, "sent with unusual bytes")
        transport.close()
    }

    static func largeFiles(_ subject: Subject) throws {
        let transport = try subject.open()
        // Around the sizes at which exchanges split: pieces of 1 MiB, batches of 5 MB.
        let batch = [1 << 20, (1 << 20) + 1, 5_000_001, 12 << 20].enumerated().map { files("LARGE\($0)", seed: UInt64($0), size: $1) }
        for file in batch { try send(transport, [file]) }
        try compare(batch, in: transport, "sent as large files")
        transport.close()
    }

    static func unusable(_ subject: Subject) throws {
        let transport = try subject.open()
        // Well-formed files, since a transport may judge completeness by their contents.
        let whole = (0..<10).map {
            ExchangeFiles(
                name: "W\($0)", version: Array("{\"version\":{\"identifier\":\"W\($0)\"}}".utf8),
                changes: Array("[{\"remove\":\"x\"}]".utf8))
        }
        let names = whole.map(\.name)
        func called() throws -> [String] { try transport.unusable(among: names, OperationControl()) }
        try send(transport, whole)
        try expect(try called().isEmpty, "\(try called().prefix(3)) are reported as unusable, but their files are complete")
        // The transport may, but need not, notice that two were cut short.
        let cut = [
            ExchangeFiles(name: "W3", version: whole[3].version, changes: Array("[{\"remove\"".utf8)),
            ExchangeFiles(name: "W7", version: Array("{\"vers".utf8), changes: try whole[7].changes.bytes()),
        ]
        try send(transport, cut)
        try expect(
            try Set(called()).isSubset(of: cut.map(\.name)),
            "\(try called().prefix(3)) are reported as unusable, but only the files of W3 and W7 were cut short")
        try send(transport, [whole[3], whole[7]])
        try expect(try called().isEmpty, "\(try called().prefix(3)) are reported as unusable after complete files replaced theirs")
        transport.close()
    }

    static func manyFiles(_ subject: Subject) throws {
        let transport = try subject.open()
        let all = (0..<ExchangeLimits.batchCount + 600).map { files("M\($0)", seed: UInt64($0), size: 60) }
        try send(transport, Array(all.prefix(ExchangeLimits.batchCount)))
        try send(transport, Array(all.dropFirst(ExchangeLimits.batchCount)))
        let listed = try list(transport)
        try expect(listed.count == all.count, "\(listed.count) of \(all.count) versions are listed")
        try compare(Array(all.prefix(ExchangeLimits.batchCount)), in: transport, "of many")
        try compare(Array(all.suffix(700)), in: transport, "of many")
        transport.close()
    }
}
