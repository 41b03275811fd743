/// The history of a store, and the lock that guards it. Whoever reads it holds the lock for reading, who changes it for writing.
final class SharedHistory: @unchecked Sendable {
    // Sendable: `lock` guards what is in it.
    /// A walk over many versions lets go of the lock behind so many, for those who wait to write.
    static let versionsAtATime = 8_192

    let lock = ReadWriteLock(.history)
    /// Guarded by `lock`.
    var dag = History() { didSet { dagReference = .passUnretained(dag) } }
    /// The same, for readers who would else write its reference count, all of them in one place.
    private(set) var dagReference: Unmanaged<History>

    init() { dagReference = .passUnretained(dag) }

    func id(_ ordinal: UInt32) -> VersionID { lock.withRead { dag.id(ordinal) } }
    /// Where the record of a version is.
    func place(of ordinal: UInt32) -> RecordPlace { lock.withRead { dag.rows[Int(ordinal)].place } }
}
