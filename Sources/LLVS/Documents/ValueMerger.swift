/// What an app is asked that merges values itself.
public struct ValueQuestion: Sendable {
    /// Of the value.
    public let id: [UInt8]
    /// Where in it, as a JSON array of names, `{"key":…}` and `{"index":n}`; `[]` is the value as a whole.
    public let path: [UInt8]
    /// What both sides had: the bytes of a whole value, JSON of a part; nil where there was nothing.
    public let base: [UInt8]?
    /// What the side has whose value is the more recent. A side where nothing is left is the older one.
    public let newer: [UInt8]?
    /// What the other side has.
    public let older: [UInt8]?

    /// Whether it is about the value as a whole.
    public var isWhole: Bool { path.elementsEqual("[]".utf8) }
}

/// What it answers.
public enum ValueAnswer: Sendable {
    /// Bytes of a whole value, or JSON of a part; nil: there is to be nothing.
    case value([UInt8]?)
    /// As if nobody had been asked.
    case pass
}

/// Merges values in place of rules: those that no rules are for, and places that rules leave to it (`"pick":"arbiter"`).
///
/// It is asked for the bases of merges as well, where several versions are the common ancestors. All devices are to answer alike, and the
/// same each time: it looks at the question alone. Called without any lock of the store held, on the thread that merges.
public protocol ValueMerger: Sendable {
    /// - Throws: what it throws ends the merge, which stores nothing.
    func merge(_ question: ValueQuestion) throws -> ValueAnswer
}

/// A value merger in one merge of one value.
struct AskedMerger {
    let merger: any ValueMerger
    let id: [UInt8]
    /// Told when it answers.
    let hasAnswered: () -> Void

    func ask(_ path: [UInt8], _ base: [UInt8]?, _ newer: [UInt8]?, _ older: [UInt8]?) throws -> ValueAnswer {
        let answer = try merger.merge(ValueQuestion(id: id, path: path, base: base, newer: newer, older: older))
        if case .value = answer { hasAnswered() }
        return answer
    }
}
