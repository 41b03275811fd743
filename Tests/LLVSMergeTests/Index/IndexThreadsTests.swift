import LLVSCore
import LLVSDocuments
import LLVSMerge
import LLVSTestHelpers
import Testing

/// Several threads build and query indexes, each with further threads, while versions are saved. Each answer is that of its version.
/// ThreadSanitizer checks the concurrent accesses here (`scripts/sanitize threads`).
@Suite struct IndexThreadsTests {
    private let directory = TemporaryDirectory()
    private static let count = 1_500, changed = 15

    private static func value(_ a: Int) -> [UInt8] {
        let text = String(repeating: "some text that is deflated ", count: 12)
        return Array(#"{"a":\#(a),"b":"\#(a) as text","c":[\#(a),"\#(text)"]}"#.utf8)
    }

    @Test(arguments: [64 << 20, 1]) func manyThreadsAskWhileVersionsAreSaved(budget: Int) throws {
        var options = Store.Options()
        options.memoryBudget = budget
        let store = try Store(path: directory.path + "/store", options: options)
        defer { try? store.close() }
        let indexes = try [#"["/a"]"#, #"["/a","/b"]"#, #"["/c/*"]"#].map { on in
            try ValueIndex(store, try Array(#"{"prefix":"v","on":\#(on)}"#.utf8).withUnsafeBytes { try IndexDefinition($0) })
        }
        let first = try store.makeVersion(
            basedOn: nil, changes: try (0..<Self.count).map { .insert(try id("v\($0)"), data: Self.value($0)) })
        // Versions, and the number of values with -1 at each.
        let versions = Guarded([(first.id, 0)]), asked = Guarded(0)
        var next = 0
        try SharedWork.run(threads: 4, .none) {
            guard next < 80 else { return nil }
            defer { next += 1 }
            return (next, bytes: 1)
        } make: { (number: Int, _: PacedControl) in
            let (base, count) = versions.withLock { versions in versions[number * 7 % versions.count] }
            guard number % 4 == 0 else {
                var question = IndexQuestion()
                question.equal = Array("[-1]".utf8)
                question.wantsCount = true
                let page = try indexes[number % indexes.count].find(question, at: base)
                #expect(page.total == UInt64(count) && page.count == count)
                asked.withLock { $0 += 1 }
                return
            }
            let changes: [Value.Change] = try (number * Self.changed..<(number + 1) * Self.changed).map {
                .update(try id("v\($0)"), data: Self.value(-1))
            }
            let version = try store.makeVersion(basedOn: base, changes: changes)
            versions.withLock { $0.append((version.id, count + Self.changed)) }
        } take: { (_: Void) in
        }
        #expect(asked.withLock { $0 } == 60)
        for index in indexes {
            for (version, count) in versions.withLock({ $0 }) {
                var question = IndexQuestion()
                question.equal = Array("[-1]".utf8)
                question.wantsCount = true
                #expect(try index.find(question, at: version).total == UInt64(count))
            }
        }
    }
}
