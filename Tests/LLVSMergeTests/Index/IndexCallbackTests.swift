import LLVSCore
import LLVSDocuments
import LLVSTestHelpers
import Testing

@testable import LLVSMerge

/// Indexes whose keys come from a callback.
@Suite struct IndexCallbackTests {
    private struct Failed: Error {}

    /// Returns each word of a value with its length. The values are no JSON.
    private static let words: IndexDefinition.Keys = { _, data, keys in
        for word in data.split(separator: UInt8(ascii: " ")) {
            try add("[\"\(String(decoding: word, as: UTF8.self))\",\(word.count)]", keys)
        }
    }
    private static func add(_ tuple: String, _ keys: IndexKeys) throws { try Array(tuple.utf8).withUnsafeBytes { try keys.add($0) } }

    private func index(
        _ store: Store, parts: Int = 2, name: String = "", version: UInt32 = 0, _ keys: @escaping IndexDefinition.Keys = words
    ) throws -> ValueIndex {
        try ValueIndex(store, IndexDefinition(prefix: Array("v/".utf8), parts: parts, name: name, version: version, keys: keys))
    }
    private func insert(_ values: [String: String], into store: Store, basedOn version: VersionID? = nil) throws -> VersionID {
        let changes: [Value.Change] = try values.map { .insert(try id($0), data: Array($1.utf8)) }
        return try store.makeVersion(basedOn: version, changes: changes).id
    }
    private func equal(_ tuple: String) -> IndexQuestion {
        var question = IndexQuestion()
        (question.equal, question.wantsKeys, question.wantsCount) = (Array(tuple.utf8), true, true)
        return question
    }
    private func found(_ page: IndexPage) -> [String] { page.ids.texts.map { String(decoding: $0, as: UTF8.self) } }

    @Test func valuesThatAreNoJSONAreFoundByTheirKeys() throws {
        let store = try memoryStore(), index = try index(store)
        let first = try insert(["v/1": "b a b", "v/2": "a cc", "v/3": "", "w/4": "a"], into: store)
        let second = try store.makeVersion(basedOn: first, changes: [.update(try id("v/2"), data: Array("b".utf8))]).id
        #expect(try found(index.find(equal("[\"a\"]"), at: first)) == ["v/1", "v/2"])
        #expect(try found(index.find(equal("[\"a\",1]"), at: second)) == ["v/1"])
        #expect(try found(index.find(equal("[\"b\"]"), at: second)) == ["v/1", "v/2"])
        var all = equal("")
        let page = try index.find(all, at: first)
        #expect(
            page.total == 4
                && page.keys.texts.map { String(decoding: $0, as: UTF8.self) }
                    == ["[\"a\",1]", "[\"a\",1]", "[\"b\",1]", "[\"cc\",2]"]
        )
        all.isUnique = true
        #expect(try found(index.find(all, at: first)) == ["v/1", "v/2"])
        #expect(try index.find(all, at: first).total == 2)
        for (name, why) in [("v/1", nil), ("v/3", "no-keys"), ("w/4", "prefix"), ("v/9", "no-value")] as [(String, String?)] {
            #expect(try index.explain(id(name), at: first).why == why)
        }
        let told = try index.explain(id("v/1"), at: first)
        #expect(told.tuples.count == 2 && told.declaredAt == nil)
        #expect(String(decoding: told.definition, as: UTF8.self) == #"{"callback":"","parts":2,"prefix":"v/","version":0}"#)
    }

    /// At each version of a random history, the index gives what a scan finds.
    @Test(arguments: 0..<6 as Range<UInt64>) func itIsWhatAScanFinds(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let store = try memoryStore(), index = try index(store)
        var versions: [(id: VersionID, values: [String: [String]])] = []
        for _ in 0..<30 {
            let base = versions.randomElement(using: &random)
            var values = base?.values ?? [:], changes: [Value.Change] = []
            for name in Set((0..<5).map { _ in "v/\(Int.random(in: 0..<40, using: &random))" }).sorted() {
                if values[name] != nil, Bool.random(using: &random) {
                    values[name] = nil
                    changes.append(.remove(try id(name)))
                    continue
                }
                let words = (0..<Int.random(in: 0..<5, using: &random)).map { _ in "w\(Int.random(in: 0..<6, using: &random))" }
                let data = Array(words.joined(separator: " ").utf8)
                changes.append(values[name] == nil ? .insert(try id(name), data: data) : .update(try id(name), data: data))
                values[name] = words
            }
            versions.append((try store.makeVersion(basedOn: base?.id, changes: changes).id, values))
        }
        for version in versions.shuffled(using: &random) {
            for word in (0..<6).map({ "w\($0)" }) {
                let expected = version.values.filter { $0.value.contains(word) }.keys
                    .sorted { Array($0.utf8).lexicographicallyPrecedes($1.utf8) }
                #expect(try found(index.find(equal("[\"\(word)\"]"), at: version.id)) == expected)
            }
        }
    }

    @Test func whatACallbackThrowsComesOutOfTheQuestion() throws {
        let store = try memoryStore(), fails = Guarded(true)
        let index = try index(store) { id, data, keys in
            if id.elementsEqual("v/2".utf8), fails.withLock({ $0 }) { throw Failed() }
            try IndexCallbackTests.words(id, data, keys)
        }
        let version = try insert(["v/1": "a", "v/2": "a"], into: store)
        #expect(throws: Failed.self) { try index.find(self.equal("[\"a\"]"), at: version) }
        #expect(throws: Failed.self) { try index.explain(id("v/2"), at: version) }
        #expect(IndexProvider.of(store).kept.trees == 0)
        fails.withLock { $0 = false }
        #expect(try found(index.find(equal("[\"a\"]"), at: version)) == ["v/1", "v/2"])
        // The callback is called only for values that have changed.
        fails.withLock { $0 = true }
        let next = try store.makeVersion(basedOn: version, changes: [.update(try id("v/1"), data: Array("b".utf8))]).id
        #expect(try found(index.find(equal("[\"a\"]"), at: next)) == ["v/2"])
    }

    /// Also if the callback ignores the error.
    @Test(arguments: [
        ("[\"a\"]", "1 parts"), ("[\"a\",1,2]", "3 parts"), ("", "0 parts"), ("[]", "0 parts"), ("[{},1]", "first part"),
        ("[[],1]", "array"), ("[{\"a\":1},1]", "object"), ("{}", "array"), ("[\"a\",1", "array"), ("[\"a\",1e10000]", "invalid key"),
        ("[\"\\ud800\",1]", "array"),
    ]) func aKeyThatIsNoneFailsTheQuestion(tuple: String, why: String) throws {
        let store = try memoryStore()
        let index = try index(store) { _, _, keys in
            try IndexCallbackTests.add("[\"a\",1]", keys)
            #expect(throws: StoreError.self) { try IndexCallbackTests.add(tuple, keys) }
            try IndexCallbackTests.add("[\"b\",1]", keys)
        }
        let version = try insert(["v/1": "a"], into: store)
        let error = try #require(throws: StoreError.self) { try index.find(self.equal(""), at: version) }
        #expect(error.code == .invalidArgument && error.valueIDBytes == Array("v/1".utf8))
        #expect(error.message.contains(text: why) && error.message.contains(text: "\"v/1\""), "\(error.message)")
    }

    @Test(arguments: [10_000, 10_001]) func manyKeysForOneValue(count: Int) throws {
        let store = try memoryStore()
        let index = try index(store, parts: 1) { _, _, keys in for i in 0..<count { try IndexCallbackTests.add("[\(i)]", keys) } }
        let version = try insert(["v/1": "a"], into: store)
        if count == 10_000 {
            #expect(try index.find(equal(""), at: version).total == 10_000)
        } else {
            let error = try #require(throws: StoreError.self) { try index.find(self.equal(""), at: version) }
            #expect(error.code == .invalidArgument && error.message.contains(text: "10001"))
        }
    }

    /// Keys that agree in their first 1,023 bytes are stored as one. The callback distinguishes them.
    @Test func keysThatAreTooLongAreCut() throws {
        let store = try memoryStore(), long = String(repeating: "x", count: 5_000)
        let index = try index(store)
        let version = try insert(["v/1": long + "a", "v/2": long + "b", "v/3": long + "a b"], into: store)
        #expect(try found(index.find(equal("[\"\(long)a\"]"), at: version)) == ["v/1", "v/3"])
        let page = try index.find(equal("[\"\(long)b\"]"), at: version)
        #expect(found(page) == ["v/2"] && page.total == 1)
        #expect(page.keys.texts == [Array("[\"\(long)b\",5001]".utf8)])
        #expect(try index.find(equal(""), at: version).total == 4)
    }

    @Test func aCallbackThatQueriesTheIndexBeingBuiltIsRefused() throws {
        let store = try memoryStore(), own = Guarded<ValueIndex?>(nil), codes = Guarded<[StoreError.Code]>([])
        let other = try index(store), first = try insert(["v/1": "a"], into: store)
        let second = try insert(["v/2": "b"], into: store, basedOn: first)
        let asking = try index(store) { id, data, keys in
            let index = own.withLock { $0 }
            // At another version too.
            for version in [first, second] {
                do { _ = try index?.find(IndexQuestion(), at: version) } catch let error as StoreError {
                    codes.withLock { $0.append(error.code) }
                }
            }
            #expect(try other.find(IndexQuestion(), at: second).count == 2)
            try IndexCallbackTests.words(id, data, keys)
        }
        own.withLock { $0 = asking }
        #expect(try asking.find(equal("[\"a\"]"), at: first).total == 1)
        #expect(codes.withLock { $0 } == [.busy, .busy])
        own.withLock { $0 = nil }
    }

    /// A callback that returns other keys than before is noticed, or the index gives the keys it returned last, but never an invalid entry.
    @Test func aCallbackThatIsNoFunction() throws {
        let store = try memoryStore(), calls = Guarded(0), long = String(repeating: "x", count: 2_000)
        let index = try index(store, parts: 1) { _, _, keys in
            let call = calls.withLock {
                $0 += 1; return $0
            }
            try IndexCallbackTests.add("[\"\(call)\(long)\"]", keys)
        }
        let first = try insert(["v/1": "a"], into: store)
        let error = try #require(throws: StoreError.self) { try index.find(self.equal(""), at: first) }
        #expect(error.code == .invalidArgument && error.message.contains(text: "other keys"))
        let second = try store.makeVersion(basedOn: first, changes: [.update(try id("v/1"), data: [0])]).id
        #expect(try index.find(IndexQuestion(), at: second).count == 1)
    }

    @Test func aNamedCallbackIsKeptInTheCaches() throws {
        let directory = TemporaryDirectory(), path = directory.path + "/store", calls = Guarded(0)
        let counted: IndexDefinition.Keys = { id, data, keys in
            calls.withLock { $0 += 1 }
            try IndexCallbackTests.words(id, data, keys)
        }
        func asked(_ name: String, _ version: UInt32) throws -> Int {
            let store = try Store(path: path)
            defer { try? store.close() }
            let before = calls.withLock { $0 }
            #expect(try index(store, name: name, version: version, counted).find(equal("")).total == 300)
            #expect(try store.verify().isWhole)
            return calls.withLock { $0 } - before
        }
        let store = try Store(path: path)
        _ = try insert(Dictionary(uniqueKeysWithValues: (0..<300).map { ("v/\($0)", "w\($0)") }), into: store)
        try store.close()
        #expect(try asked("words", 1) == 300)
        #expect(try asked("words", 1) == 0)
        #expect(try asked("words", 2) == 300)
        for (name, version) in [("words", 0), ("", 1), ("", 0)] as [(String, UInt32)] {
            #expect(try asked(name, version) == 300)
            #expect(try asked(name, version) == 300)
        }
    }

    @Test func wrongDefinitionsAreRefused() throws {
        let store = try memoryStore()
        for parts in [0, 9, -1, .max] { #expect(throws: StoreError.self) { try self.index(store, parts: parts) } }
        #expect(throws: StoreError.self) { try self.index(store, name: String(repeating: "n", count: 129), version: 1) }
        #expect(throws: StoreError.self) { try IndexDefinition(prefix: [0xFF], keys: IndexCallbackTests.words) }
    }
}
