import Glibc

/// A function that takes bytes from outside, and must work with any bytes.
public struct FuzzTarget: Sendable {
    /// A small real input.
    public struct Seed {
        public var name: String
        public var bytes: [UInt8]
    }

    public let name: String
    /// Ends the process if a requirement is violated.
    public let run: @Sendable (UnsafeRawBufferPointer) -> Void
    /// Small real inputs from which a fuzzer starts.
    public let seeds: @Sendable () throws -> [Seed]

    public static let all = [
        RecordsTarget.target, StoresTarget.target, CachesTarget.target, SnapshotsTarget.target, InterchangeTarget.target,
        FoldersTarget.target, DatabasesTarget.target, ArgumentsTarget.target, DocumentsTarget.target,
        ConflictsTarget.target, IdsTarget.target, NotesTarget.target, PacksTarget.target, KeysTarget.target,
        LiveTarget.target, ListingsTarget.target, IndexesTarget.target, JSONTarget.target, RulesTarget.target, TextTarget.target,
        RemotesTarget.target, DifferencesTarget.target,
    ]
    public static func named(_ name: String) -> FuzzTarget? { (all + [selfTest]).first { $0.name == name } }

    /// Fails for the input "fail", which every runner of targets must notice.
    private static let selfTest = FuzzTarget(
        name: "self-test", run: { require(!$0.elementsEqual("fail".utf8), "as it should") }, seeds: { [] })
}

/// Ends the process like a trap, which a fuzzer reports as a finding.
func fail(_ message: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
    fputs("\(file):\(line): \(message)\n", stderr)
    abort()
}

func require(_ condition: Bool, _ message: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line) {
    if !condition { fail(message(), file: file, line: line) }
}
