import Foundation
import LLVS
import LLVSTestHelpers
import Testing

/// The vectors in Tests/Vectors (see the README there), made from the reference model in Tests/Python.
@Suite("Vectors") struct VectorTests {
    @Test("of merging") func merging() throws { try run("merging") }
    @Test("of random histories") func random() throws { try run("random") }

    private func run(_ name: String) throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors")
        let file = try JSONDecoder().decode(VectorFile.self, from: Data(contentsOf: folder.appendingPathComponent("\(name).json")))
        #expect(file.format == 1 && file.vectors.count >= 10)
        for vector in file.vectors { try check(vector) }
    }

    private func check(_ vector: VectorFile.Vector) throws {
        var options = Store.Options()
        options.storage = .memory
        let store = try Store(path: "", options: options)
        defer { try? store.close() }
        for (index, addition) in try store.add(vector.versions.map { try $0.received() }).enumerated() {
            guard case .added = addition else {
                Issue.record("\(vector.name): \(vector.versions[index].id) is not added: \(addition)")
                return
            }
        }
        #expect(try store.heads().map(\.id.description) == vector.heads, "\(vector.name)")
        for state in vector.states { try check(store, state.version, state.values, vector.name) }
        for pair in vector.bases {
            let found = try store.mergeBases(VersionID(pair.a), VersionID(pair.b))
            #expect(found.map(\.description) == pair.bases, "\(vector.name): bases of \(pair.a) and \(pair.b)")
        }
        for pair in vector.differences {
            let found = try store.differences(from: VersionID(pair.from), to: VersionID(pair.to))
            #expect(
                found.map { "\($0.kind) \(hex($0.id.bytes)) \($0.reference?.version.description ?? "")" }
                    == pair.changes.map { "\($0.kind) \($0.id) \($0.version ?? "")" }, "\(vector.name): from \(pair.from) to \(pair.to)")
        }
        for merge in vector.merges { try check(store, merge, "\(vector.name): \(merge.ours) with \(merge.theirs), \(merge.arbiter)") }
    }

    private func check(_ store: Store, _ merge: VectorFile.Merge, _ name: String) throws {
        let arbiter = Watching(try builtIn(merge.arbiter))
        let metadata = try Metadata(merge.metadata.map { (unhex($0.key), unhex($0.value)) })
        let result = try store.merge(VersionID(merge.ours), with: VersionID(merge.theirs), arbiter: arbiter, metadata: metadata)
        let expected = try merge.result.received()
        #expect(result.id == expected.version.id, "\(name)")
        #expect(result.predecessors == expected.version.predecessors, "\(name)")
        #expect(result.timestamp.bitPattern == expected.version.timestamp.bitPattern, "\(name)")
        #expect(result.metadata == expected.version.metadata, "\(name)")
        #expect(try store.changes(madeIn: result.id) == expected.changes, "\(name)")
        try check(store, merge.result.id, merge.state, name)

        let seen = arbiter.seen.withLock { $0 }
        #expect(seen.count == (merge.asksArbiter ? 1 : 0), "\(name): the arbiter was asked \(seen.count) times")
        for asked in seen {
            #expect(asked.bases.map(\.id.description) == merge.bases, "\(name)")
            #expect(asked.ours.id.description == merge.ours && asked.theirs.id.description == merge.theirs, "\(name)")
            let found = asked.forks.map { id, fork in
                [hex(id.bytes), snakeCase("\(fork.kind)"), fork.side.map { "\($0)" } ?? ""]
                    + [fork.first, fork.second, fork.ancestor].map { $0?.version.description ?? "" }
            }
            #expect(
                found == merge.forks.map { [$0.id, $0.kind, $0.side ?? "", $0.first ?? "", $0.second ?? "", $0.ancestor ?? ""] }, "\(name)")
        }
    }

    private func check(_ store: Store, _ version: String, _ values: [VectorFile.StoredValue], _ name: String) throws {
        let at = try VersionID(version)
        let found = try store.values(at: at, in: .all, after: nil, limit: .max)
        #expect(
            found.map { [hex($0.id.bytes), $0.storedVersion.description, hex($0.data)] } == values.map { [$0.id, $0.version, $0.data] },
            "\(name): state at \(version)")
        #expect(try store.count(at: at) == values.count, "\(name)")
    }

    private func builtIn(_ name: String) throws -> BuiltInArbiter {
        switch name {
        case "most_recent_change": .mostRecentChange
        case "most_recent_branch": .mostRecentBranch
        case "ours": .ours
        case "theirs": .theirs
        default: throw VectorFile.Problem.unknown(name)
        }
    }
}

/// Lets a built-in arbiter decide, and records the forks that it was shown.
private final class Watching: MergeArbiter {
    let arbiter: BuiltInArbiter
    let seen = NSLocking<[Merge]>([])
    init(_ arbiter: BuiltInArbiter) { self.arbiter = arbiter }
    func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
        seen.withLock { $0.append(merge) }
        return try arbiter.resolve(merge, in: store)
    }
}

/// A value behind a lock.
private final class NSLocking<Value>: @unchecked Sendable {
    private var value: Value
    private let lock = NSLock()
    init(_ value: Value) { self.value = value }
    func withLock<R>(_ body: (inout Value) throws -> R) rethrows -> R {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}

/// A file of vectors, as Tests/Vectors/README.md describes it.
private struct VectorFile: Decodable {
    var format: Int
    var vectors: [Vector]

    struct Vector: Decodable {
        var name: String
        var versions: [RecordedVersion]
        var states: [State]
        var heads: [String]
        var bases: [Bases]
        var differences: [Differences]
        var merges: [Merge]
    }
    struct RecordedVersion: Decodable {
        var id: String
        var predecessors: [String]
        var timestampBits: String
        var metadata: [Entry]
        var changes: [Change]
    }
    struct Entry: Decodable { var key, value: String }
    struct Change: Decodable {
        var kind, id: String
        var data, version: String?
    }
    struct StoredValue: Decodable { var id, version, data: String }
    struct State: Decodable {
        var version: String
        var values: [StoredValue]
    }
    struct Bases: Decodable {
        var a, b: String
        var bases: [String]
    }
    struct Differences: Decodable {
        var from, to: String
        var changes: [Change]
    }
    struct Fork: Decodable {
        var id, kind: String
        var side, first, second, ancestor: String?
    }
    struct Merge: Decodable {
        var ours, theirs, arbiter: String
        var metadata: [Entry]
        var bases: [String]
        var asksArbiter: Bool
        var forks: [Fork]
        var result: RecordedVersion
        var state: [StoredValue]
    }
    enum Problem: Error { case unknown(String) }
}

extension VectorFile.RecordedVersion {
    func received() throws -> Store.ReceivedVersion {
        guard let bits = UInt64(timestampBits, radix: 16) else { throw VectorFile.Problem.unknown(timestampBits) }
        let recorded = try changes.map { try $0.change() }
        let size = changes.reduce(UInt64(0)) { $0 + UInt64(($1.data?.count ?? 0) / 2) }
        let version = try Version(
            id: VersionID(id), predecessors: predecessors.map { try VersionID($0) }, timestamp: Double(bitPattern: bits),
            valueDataSize: size,
            metadata: Metadata(metadata.map { (unhex($0.key), unhex($0.value)) }))
        return Store.ReceivedVersion(version: version, changes: recorded)
    }
}

extension VectorFile.Change {
    func change() throws -> Value.Change {
        let value = try ValueID(utf8: unhex(id))
        switch (kind, data, version) {
        case ("insert", let data?, _): return .insert(value, data: unhex(data))
        case ("update", let data?, _): return .update(value, data: unhex(data))
        case ("remove", _, _): return .remove(value)
        case ("preserve", _, let version?): return .preserve(.init(id: value, version: try VersionID(version)))
        case ("preserveRemoval", _, _): return .preserveRemoval(value)
        default: throw VectorFile.Problem.unknown(kind)
        }
    }
}

private func hex(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}

private func unhex(_ text: String) -> [UInt8] {
    func digit(_ c: UInt8) -> UInt8 { c < 0x3A ? c &- 0x30 : c &- 0x57 }
    let digits = Array(text.utf8)
    return stride(from: 0, to: digits.count - 1, by: 2).map { digit(digits[$0]) << 4 | digit(digits[$0 + 1]) }
}

/// Turns "twiceUpdated" into "twice_updated".
private func snakeCase(_ name: String) -> String {
    name.reduce(into: "") { $0 += $1.isUppercase ? "_" + $1.lowercased() : String($1) }
}
