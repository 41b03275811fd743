/// Reports for bindings, as JSON.
extension Projection {
    private static func quoted(_ text: String) -> [UInt8] {
        var out: [UInt8] = []
        Array(text.utf8).withUnsafeBytes { CanonicalText.append($0, to: &out) }
        return out
    }
    private static func object(_ members: [(StaticString, [UInt8])]) -> [UInt8] {
        let parts = members.map { Array("\"\($0.0)\":".utf8) + $0.1 }
        return [UInt8(ascii: "{")] + Array(parts.joined(separator: [UInt8(ascii: ",")])) + [UInt8(ascii: "}")]
    }

    /// `{"version":"…","failure":{"code":-30,"message":"…"}}`, with null for missing values.
    package var statusJSON: [UInt8] {
        get throws {
            let version = try version, null = Array("null".utf8)
            let failure = failure.map {
                Projection.object([("code", Array("\($0.code.rawValue)".utf8)), ("message", Projection.quoted($0.message))])
            }
            return Projection.object([("version", version.map { Projection.quoted($0.description) } ?? null), ("failure", failure ?? null)])
        }
    }

    /// `[{"number":1,"table":"…","id":"…","pointer":"…","reason":"…"},…]`
    package static func json(_ problems: [Problem]) -> [UInt8] {
        let objects = problems.map { problem in
            object([
                ("number", Array("\(problem.number)".utf8)), ("table", quoted(problem.table)), ("id", quoted(problem.id)),
                ("pointer", quoted(problem.pointer)), ("reason", quoted(problem.reason)),
            ])
        }
        return [UInt8(ascii: "[")] + Array(objects.joined(separator: [UInt8(ascii: ",")])) + [UInt8(ascii: "]")]
    }
}
