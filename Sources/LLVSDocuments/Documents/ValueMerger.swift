/// A question to an app that merges values itself.
public struct ValueQuestion: Sendable {
    /// The id of the value.
    public let id: [UInt8]
    /// The place in the value, as a JSON array of names, `{"key":…}` and `{"index":n}`; `[]` is the value as a whole.
    public let path: [UInt8]
    /// The common base: the bytes of a whole value, or JSON of a part; nil if there was none.
    public let base: [UInt8]?
    /// The value of the newer side. A side that removed the value is the older one.
    public let newer: [UInt8]?
    /// The value of the other side.
    public let older: [UInt8]?

    /// Whether the question is about the value as a whole.
    public var isWhole: Bool { path.elementsEqual("[]".utf8) }
}

/// The answer to a `ValueQuestion`.
public enum ValueAnswer: Sendable {
    /// The bytes of a whole value, or JSON of a part; nil to remove it.
    case value([UInt8]?)
    /// Merge as if there were no value merger.
    case pass
}

/// Merges values instead of rules: values without rules, and places that rules leave to it (`"pick":"arbiter"`).
///
/// It is also asked for the bases of merges, if several versions are the common ancestors. All devices must give the same answer to the
/// same question each time, from the question alone. Called without any lock of the store, on the thread that merges.
public protocol ValueMerger: Sendable {
    /// - Throws: any error ends the merge, which stores nothing.
    func merge(_ question: ValueQuestion) throws -> ValueAnswer
}

/// A value merger in one merge of one value.
package struct AskedMerger {
    package let merger: any ValueMerger
    package let id: [UInt8]
    /// Called when it answers.
    let hasAnswered: () -> Void
    package init(merger: any ValueMerger, id: [UInt8], hasAnswered: @escaping () -> Void) {
        self.merger = merger; self.id = id; self.hasAnswered = hasAnswered
    }

    package func ask(_ path: [UInt8], _ base: [UInt8]?, _ newer: [UInt8]?, _ older: [UInt8]?) throws -> ValueAnswer {
        let answer = try merger.merge(ValueQuestion(id: id, path: path, base: base, newer: newer, older: older))
        if case .value = answer { hasAnswered() }
        return answer
    }
}
