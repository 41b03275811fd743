/// How to forget values by a policy.
public struct ForgetQuery: Sendable {
    /// Whether to change nothing, and only report what would be forgotten.
    public var isDryRun = false
    /// For a dry run: a policy, as `Store.setForgetting` takes it, instead of the one of this device. Versions count as come to the device
    /// when they were made.
    public var policy: [UInt8]?
    /// Forgets values by the policy of this device.
    public init() {}
}

/// What was forgotten, or would be.
public struct ForgetReport: Sendable {
    /// What keeps a value.
    public enum Rule: UInt32, CaseIterable, Sendable {
        /// It prevails at a head.
        case heads = 1
        /// It prevails at a version that came in the last days.
        case days
        /// It prevails at the newest version of a day.
        case daily
        /// It prevails at the newest version of a week.
        case weekly
        /// It prevails at the newest version of a month.
        case monthly
        /// It is one of the newest values of its id.
        case count
        /// A merge of heads, or with what others have made meanwhile, may need it; or a merge with conflicts that are not old yet.
        case merges
        /// No place, and no other device, is known to have its version.
        case unsent
        /// The name of its row.
        public var name: String { "\(self)" }
    }
    /// The values that only one rule keeps: they would be forgotten without it.
    public struct Row: Hashable, Sendable {
        /// The rule.
        public var rule: Rule
        /// Values that no other rule keeps, and the bytes that they have.
        public var values: UInt64, bytes: UInt64
    }
    /// Values that were forgotten, the versions that stored them, and the bytes that they had.
    public var values: UInt64 = 0, versions: UInt64 = 0, bytes: UInt64 = 0
    /// Other values that are stored in another way, because they were differences from forgotten ones.
    public var rewritten: UInt64 = 0
    /// For each rule what only it keeps.
    public var rows: [Row] = []
    /// Where bytes still are, and what has to happen so that they go. They go with a later call.
    public var waiting: [String] = []
}
