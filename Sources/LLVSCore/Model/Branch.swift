/// A branch is a name in the metadata of a version; children and merges do not inherit it.
extension Metadata {
    /// The name under `__llvs_branch`, a JSON string; nil if there is none or if it is no JSON string.
    public var branch: String? {
        get { self[Metadata.branchKey].flatMap(JSONString.decode) }
        set { self[Metadata.branchKey] = newValue.map(JSONString.encode) }
    }
}
