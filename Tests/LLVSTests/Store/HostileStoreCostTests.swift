import LLVSTestHelpers

#if DEBUG
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import LLVS
import LLVSTestHelpers
import Testing
@testable import LLVSCore

/// Counts the costs that a foreign or damaged store can cause, as `HostileCostTests` does.
@Suite struct HostileStoreCostTests {
    /// Lines of versions that cannot be salvaged as they are, since their common ancestor is damaged. What they have in common is read
    /// once.
    @Test func salvageOfManyHeads() throws {
        try HostileCostTests.isLinear(60) { size in
            let directory = TemporaryDirectory(), path = directory.path + "/store"
            var options = Store.Options()
            options.durability = .normal
            let store = try Store(path: path, options: options)
            var line = try store.set(["root": "bytes to be damaged"], nil)
            for i in 0..<size {
                line = try store.set(["k\(i)": "\(i)"], line)
                _ = try store.set(["end": "\(i)"], line)
            }
            try store.close()
            let name = try #require(System.names(in: path + "/segments").first), file = path + "/segments/" + name
            var content = try readFile(file)
            let at = try #require(content.indices.first { content[$0...].starts(with: bytes("bytes to be damaged")) })
            content[at] ^= 1
            try writeFile(file, content)
            var report = SalvageReport()
            let read = try Work.pages.counting { report = try Salvage.run(path, options, into: directory.path + "/new") }
            // The ends, and the common ancestor of each neighbouring pair.
            #expect(report.made.count == 2 * size - 1 && report.made.allSatisfy { !$0.isComplete })
            let new = try Store(path: directory.path + "/new", options: options)
            let ends = try new.heads()
            #expect(ends.count == size)
            for end in ends {
                let number = try #require(
                    try new.value(ValueID("end"), at: end.id).flatMap { Int(String(decoding: $0.data, as: UTF8.self)) })
                let ids = Set(try new.references(at: end.id, limit: .max).map(\.id.description))
                #expect(ids == Set(["end"] + (0...number).map { "k\($0)" }), "\(number)")
            }
            return read
        }
    }

    /// Versions of another implementation that name several large nodes of its index in turn.
    @Test func largeNodesInTurn() throws {
        let directory = TemporaryDirectory(), path = directory.path, count = 700, size = 1_000
        func put(_ file: String, _ text: String) throws {
            var made = path
            for part in file.split(separator: "/").dropLast() {
                made += "/" + part
                try? System.mkdir(made)
            }
            try writeFile(path + "/" + file, bytes(text))
        }
        func id(_ i: Int) -> String { "V" + String(10_000_000 + i) }
        let values = (0..<size).map { "{\"valueReference\":{\"valueId\":\"k\(100_000 + $0)\",\"storedVersionId\":\"\(id(0))\"}}" }
        for i in 0..<2 {
            try put(
                "maps/__llvs_values/ZZ/Z/\(id(i).prefix(1))/\(id(i).dropFirst()).json",
                "{\"children\":{\"values\":[\(values.joined(separator: ","))]}}")
        }
        for i in 0..<size { try put("values/k1/\(String(100_000 + i).dropFirst())/\(id(0).prefix(1))/\(id(0).dropFirst()).json", "") }
        for i in 0..<count {
            let before = i == 0 ? "" : ",\"predecessors\":{\"idOfFirst\":\"\(id(i - 1))\"}"
            try put(
                "versions/\(id(i).prefix(2))/\(id(i).dropFirst(2)).json",
                "{\"identifier\":\"\(id(i))\",\"timestamp\":\(i),\"metadata\":[]\(before)}")
            try put(
                "maps/__llvs_values/__/llvs_root/\(id(i).prefix(1))/\(id(i).dropFirst()).json",
                "{\"children\":{\"nodes\":[{\"key\":\"ZZZ\",\"version\":\"\(id(i % 2))\"}]}}")
        }
        let store = try memoryStore()
        let result = try StoreImporter.importStore(at: path, into: store)
        // Versions are imported as long as comparing them is affordable; each later one is a problem.
        #expect(result.versions.count > 400 && result.versions.count < 600)
        #expect(result.versions.count + result.problems.count == count)
        #expect(result.problems.contains { $0.error.code == .damaged && $0.error.message.contains("again and again") })
    }

    /// A cache contains a line of versions, or heads, with damaged records: they are withdrawn together.
    @Test(arguments: [true, false]) func versionsOfACacheThatCannotBeRead(areHeads: Bool) throws {
        try HostileCostTests.isLinear(1_010) { size in
            let directory = TemporaryDirectory(), path = directory.path + "/store"
            var options = Store.Options()
            options.durability = .normal
            let store = try Store(path: path, options: options)
            let root = try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("x"), data: [1])], id: VersionID("root"))
            var line = root
            for i in 0..<size {
                line = try store.makeVersion(
                    basedOn: areHeads ? root.id : line.id, changes: [.update(ValueID("x"), data: [2])], id: VersionID("damaged\(i)"))
            }
            try store.close()
            let name = try #require(System.names(in: path + "/segments").first), file = path + "/segments/" + name
            var content = try readFile(file)
            // The ids in the headers, each of which has a checksum.
            for i in content.indices.dropLast(7) where content[i] == UInt8(ascii: "d") && content[i...].starts(with: "damaged".utf8) {
                content[i] ^= 1
            }
            try writeFile(file, content)
            let again = try Store(path: path, options: options)
            #expect(try again.statistics().versions == UInt64(size + 1))
            var heads: [Version] = []
            let looked = try Work.versions.counting { heads = try again.heads() }
            #expect(heads.map(\.id) == [root.id])
            return looked
        }
    }

    /// Heads that are damaged, or that have damaged ancestors. They are excluded together, not one by one after a failed merge for each.
    @Test(arguments: [false, true]) func manyDamagedHeads(areBehind: Bool) throws {
        try HostileCostTests.isLinear(50) { size in
            let storage = CountingStorage(MemoryStorage()), store = try Store(storage: storage, options: Store.Options())
            let root = try store.set(["x": "0"], nil)
            var damaged: Set<VersionID> = []
            for i in 0..<size {
                _ = try store.set(["good \(i)": "1"], root)
                // Too many changes for the cache, so the merge reads them from the record.
                let changes = try (0...MapPolicy.longestKeptList).map { Value.Change.insert(try ValueID("bad \(i) \($0)"), data: [1]) }
                var made = try store.makeVersion(basedOn: root.id, changes: changes)
                if areBehind { made = try store.set(["top \(i)": "1"], made) }
                damaged.insert(made.id)
            }
            let into = try store.set(["into": "1"], root)
            storage.meddleWithRecords { _, buffer in
                guard let start = buffer.baseAddress else { return }
                var at = 0
                while let found = memchr(start + at, Int32(UInt8(ascii: "b")), buffer.count - at) {
                    at = found - start
                    if at + 3 <= buffer.count, memcmp(found, "bad", 3) == 0 { buffer[at] ^= 1 }
                    at += 1
                }
            }
            return try Work.versions.counting {
                let merged = try #require(try store.mergeHeads(into: into.id, arbiter: BuiltInArbiter.mostRecentChange))
                #expect(Set(try store.headIDs()) == damaged.union([merged.id]))
            }
        }
    }

    /// Ids beyond ASCII that many heads share are checked once for others that are easily confused with them.
    @Test func unportableIDsOfManyHeads() throws {
        try HostileCostTests.isLinear(100) { size in
            let store = try memoryStore(), transport = MemoryTransport(name: "costs \(UInt64.random(in: 0 ... .max))")
            let base = try store.set(Dictionary(uniqueKeysWithValues: (0..<size).map { ("\u{e9}\($0)", "") }), nil)
            for i in 0..<size { _ = try store.set(["\u{e9}1": "\(i)"], base) }
            var options = Exchange.Options()
            options.reportsUnportableIDs = true
            let exchange = Exchange(store: store, transport: transport, options: options)
            return try Work.comparisons.counting { _ = try exchange.send() }
        }
    }
}
#endif
