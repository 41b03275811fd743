/// The history of a store, and its lock. Readers hold the lock for reading, writers for writing.
final class SharedHistory: @unchecked Sendable {
    // Sendable: `lock` guards its state.
    /// After this many versions a walk releases the lock, so that writers get a turn.
    static let versionsAtATime = 8_192

    let lock = ReadWriteLock(.history)
    /// Guarded by `lock`.
    var dag = History() { didSet { dagReference = .passUnretained(dag) } }
    /// The same object unretained. Readers on all threads would otherwise contend for its reference count.
    private(set) var dagReference: Unmanaged<History>

    init() { dagReference = .passUnretained(dag) }

    func id(_ ordinal: UInt32) -> VersionID { lock.withRead { dag.id(ordinal) } }
    /// Returns the place of a version's record.
    func place(of ordinal: UInt32) -> RecordPlace { lock.withRead { dag.rows[Int(ordinal)].place } }
}
