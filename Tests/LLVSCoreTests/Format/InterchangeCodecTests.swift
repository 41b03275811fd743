import LLVSCore
import LLVSTestHelpers
import Testing

@Suite struct InterchangeCodecTests {
    let id: VersionID
    init() throws { id = try VersionID("1C227BD7-33B2-4C90-B042-F1C952ED3183") }

    private func version(_ text: String) throws -> Version { try InterchangeDecoder.version(Array(text.utf8), name: id) }
    private func changes(_ text: String) throws -> [Value.Change] { try InterchangeDecoder.changes(Array(text.utf8), of: id) }
    private func code(_ body: () throws -> Void) -> StoreError.Code? {
        do { try body(); return nil } catch let error as StoreError {
            #expect(!error.message.isEmpty)
            return error.code
        } catch { return .internal }
    }

    /// The vectors of docs/interchange.md.
    @Test func canonicalForm() throws {
        let version = Version(
            id: id, predecessors: [try VersionID("B"), try VersionID("A")], timestamp: 816913493.5, valueDataSize: 3,
            metadata: try Metadata([(Array("z".utf8), [0xFF]), (Array("__llvs_branch".utf8), Array("\"draft\"".utf8))]))
        #expect(
            String(decoding: InterchangeEncoder.version(version), as: UTF8.self)
                == #"{"version":{"identifier":"1C227BD7-33B2-4C90-B042-F1C952ED3183","predecessors":{"idOfFirst":"B","#
                + #""idOfSecond":"A"},"timestamp":816913493.5,"valueDataSize":3,"metadata":["__llvs_branch","#
                + #"{"data":"ImRyYWZ0Ig=="},"z",{"data":"/w=="}]}}"#
        )
        #expect(
            String(decoding: InterchangeEncoder.version(version, digest: [UInt8](repeating: 0xA5, count: 2)), as: UTF8.self).hasSuffix(
                #""z",{"data":"/w=="}],"digest":"a5a5"}}"#))
        let root = Version(id: id, predecessors: [], timestamp: -1, valueDataSize: 0, metadata: Metadata())
        #expect(
            String(decoding: InterchangeEncoder.version(root), as: UTF8.self)
                == #"{"version":{"identifier":"1C227BD7-33B2-4C90-B042-F1C952ED3183","timestamp":-1,"valueDataSize":0,"metadata":[]}}"#)
        let changes: [Value.Change] = [
            .update(try ValueID("é/\"\\\n\u{1}"), data: [0xFF, 0xFF]), .insert(try ValueID("a"), data: []), .remove(try ValueID("b")),
            .preserve(.init(id: try ValueID("c"), version: try VersionID("X"))), .preserveRemoval(try ValueID("B")),
        ]
        #expect(
            String(decoding: InterchangeEncoder.changes(changes), as: UTF8.self)
                == #"[{"preserveRemoval":"B"},{"insert":{"id":"a","data":""}},{"remove":"b"},{"preserve":{"valueId":"c","#
                + #""storedVersionId":"X"}},{"update":{"id":"é/\"\\\n\u0001","data":"//8="}}]"#
        )
        #expect(InterchangeEncoder.changes([]) == Array("[]".utf8))
        #expect(try InterchangeDecoder.version(InterchangeEncoder.version(version), name: id) == version)
        #expect(try InterchangeDecoder.changes(InterchangeEncoder.changes(changes), of: id) == InterchangeOrder.sorted(changes))
    }

    @Test func readersAreLenient() throws {
        let read = try version(
            #" {"x":[{"y":null}], "version" : {"metadata":["a\/b",{"z":1,"data":"\/w=="}],"timestamp":5,"#
                + #""predecessors":{"idOfSecond":null,"idOfFirst":"P"},"identi\u0066ier":"1C227BD7-33B2-4C90-B042-F1C952ED3183","#
                + #""new":true}} "#
        )
        #expect(
            read.predecessors == [try VersionID("P")] && read.timestamp == 5 && read.metadata["a/b"] == [0xFF] && read.valueDataSize == 0)
        #expect(
            try version(#"{"version":{"identifier":"x","identifier":"1C227BD7-33B2-4C90-B042-F1C952ED3183","timestamp":5}}"#).predecessors
                .isEmpty)
        // The former and the present position of the digest.
        for (file, isOld) in [
            (#"{"digest":"a5","version":{"identifier":"1C227BD7-33B2-4C90-B042-F1C952ED3183","timestamp":5}}"#, true),
            (#"{"version":{"identifier":"1C227BD7-33B2-4C90-B042-F1C952ED3183","digest":"a5","timestamp":5}}"#, false),
        ] {
            let found = try InterchangeDecoder.versionFile(.bytes(Array(file.utf8)), name: id)
            #expect(found.digest == Array("a5".utf8) && found.isOldForm == isOld)
        }
        // A key that no file here has.
        #expect(
            try version(#"{"version":{"identifier":"1C227BD7-33B2-4C90-B042-F1C952ED3183","timestamp":5,"metadata":["",{"data":"/w=="}]}}"#)
                .metadata[""] == [0xFF])
        let last = try changes(
            #"[{"insert":{"id":"b","data":"YQ=="}},{"remove":"a"},{"u":1,"update":{"storedVersionId":"?","data":"YmI=","#
                + #""id":"b"}},{"remove":"e\u0301"},{"remove":"é"}]"#
        )
        #expect(
            last == [
                .remove(try ValueID("a")), .update(try ValueID("b"), data: Array("bb".utf8)), .remove(try ValueID("e\u{301}")),
                .remove(try ValueID("\u{E9}")),
            ])
        #expect(try changes(" [ ] ") == [])
    }

    @Test(arguments: [
        ("", StoreError.Code.cutShort), ("{", .cutShort), ("[]", .invalidJSON), ("{}", .invalidJSON), (#"{"version":{}}"#, .invalidJSON),
        (#"{"version":null}"#, .invalidJSON),
        (#"{"version":{"identifier":"OTHER","timestamp":1}}"#, .identifierMismatch),
        (#"{"version":{"identifier":"a/../b","timestamp":1}}"#, .invalidVersionID),
        (#"{"version":{"identifier":"ID"}}"#, .invalidJSON), (#"{"version":{"identifier":"ID","timestamp":1e400}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":NaN}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":"1"}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":1,"valueDataSize":-1}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":1,"valueDataSize":0.5}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":1,"predecessors":{"idOfFirst":"ID"}}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":1,"predecessors":{"idOfFirst":"A","idOfSecond":"A"}}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":1,"predecessors":{"idOfSecond":"A"}}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":1,"predecessors":{"idOfFirst":"é"}}}"#, .invalidVersionID),
        (#"{"version":{"identifier":"ID","timestamp":1,"metadata":["k"]}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":1,"metadata":["k",{}]}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":1,"metadata":{"k":1}}}"#, .invalidJSON),
        (#"{"version":{"identifier":"ID","timestamp":1,"metadata":["k",{"data":"Z"}]}}"#, .invalidBase64),
        (#"{"version":{"identifier":"ID","timestamp":1}}x"#, .invalidJSON),
    ])
    func refusesBadVersions(_ text: String, _ expected: StoreError.Code) {
        let whole = replacing(text, "\"ID\"", "\"\(id)\"")
        #expect(code { _ = try version(whole) } == expected, "\(whole)")
    }

    @Test(arguments: [
        ("", StoreError.Code.cutShort), ("{}", .invalidJSON), ("[1]", .invalidJSON), ("[{}]", .invalidJSON),
        (#"[{"insret":{}}]"#, .invalidJSON), (#"[{"insert":{"id":"a"}}]"#, .invalidJSON),
        (#"[{"insert":{"data":""}}]"#, .invalidJSON), (#"[{"insert":{"id":"a","data":"!!!!"}}]"#, .invalidBase64),
        (#"[{"insert":{"id":"a","data":"YQ"}}]"#, .invalidBase64),
        (#"[{"insert":{"id":"","data":""}}]"#, .invalidValueID), (#"[{"remove":""}]"#, .invalidValueID),
        (#"[{"preserve":{"valueId":"a"}}]"#, .invalidJSON),
        (#"[{"preserve":{"valueId":"a","storedVersionId":"../x"}}]"#, .invalidVersionID),
        (#"[{"remove":"a"}"#, .cutShort), (#"[{"remove":"a"]"#, .invalidJSON), (#"[{"remove":nul"#, .invalidJSON),
        (#"[{"x":nul"#, .cutShort), (#"[{"x":nil"#, .invalidJSON), (#"[{"x":1."#, .cutShort), (#"[{"x":1.x"#, .invalidJSON),
        (#"[{"remove":"a"},]"#, .invalidJSON), (#"[{"remove":"a","insert":{"id":"a","data":""}}]"#, .invalidJSON),
        (#"[{"remove":"\ud800"}]"#, .invalidJSON),
    ])
    func refusesBadChanges(_ text: String, _ expected: StoreError.Code) { #expect(code { _ = try changes(text) } == expected, "\(text)") }

    @Test func refusesIDsThatAreNoUTF8OrTooLong() {
        #expect(
            code { _ = try InterchangeDecoder.changes(Array(#"[{"remove":""#.utf8) + [0xFF] + Array(#""}]"#.utf8), of: id) } == .invalidUTF8
        )
        #expect(code { _ = try changes("[{\"remove\":\"\(String(repeating: "x", count: 4097))\"}]") } == .invalidValueID)
    }

    @Test func hostileBytesNeverTrap() throws {
        let wholeVersion = Array(
            (#"{"version":{"metadata":["k",{"data":"IiI="}],"timestamp":816913493.4794178,"#
                + #""identifier":"1C227BD7-33B2-4C90-B042-F1C952ED3183","predecessors":{"idOfFirst":"P","idOfSecond":"Q"},"#
                + #""valueDataSize":135}}"#).utf8)
        let wholeChanges = Array(
            (#"[{"insert":{"id":"é","data":"YmI="}},{"remove":"b"},{"preserve":{"valueId":"c","storedVersionId":"X"}},"#
                + #"{"preserveRemoval":"d"}]"#).utf8)
        var random = SeededRandom(seed: 4)
        for _ in 0..<sample(usual: 2_000, deep: 10_000) {
            for (whole, isVersion) in [(wholeVersion, true), (wholeChanges, false)] {
                var bytes = Array(whole.prefix(random.next() % 4 == 0 ? Int(random.next() % UInt64(whole.count)) : whole.count))
                for _ in 0..<Int(random.next() % 4) where !bytes.isEmpty {
                    bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
                }
                _ = code {
                    if isVersion {
                        _ = try InterchangeDecoder.version(bytes, name: id)
                    } else {
                        _ = try InterchangeDecoder.changes(bytes, of: id)
                    }
                }
            }
        }
    }

    private func replacing(_ text: String, _ old: String, _ new: String) -> String {
        var out: [UInt8] = [], rest = Array(text.utf8)[...]
        let old = Array(old.utf8)
        while !rest.isEmpty {
            if rest.starts(with: old) { out += Array(new.utf8); rest = rest.dropFirst(old.count) } else { out.append(rest.removeFirst()) }
        }
        return String(decoding: out, as: UTF8.self)
    }
}
