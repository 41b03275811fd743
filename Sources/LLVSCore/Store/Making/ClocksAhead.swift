/// Devices whose clocks are far ahead. Each is reported once while a store is open: in the log, and as a problem of the call that found
/// it.
package struct ClocksAhead {
    /// The devices that were reported.
    private var known: Set<[UInt8]> = []
    /// Problems that no exchange has reported yet.
    private var untold: [StoreError] = []
    private static let mostKnown = 1_000, mostUntold = 100
    /// The most bytes of a device's name with its quotes. A longer name counts as none, since it would be stored here and be in the
    /// message.
    private static let longestName = 1_024

    /// Records that a version was received from a device whose clock was ahead of this device's.
    /// - Returns: the problem to log, if the device was not reported before. Logging may call the host, so it needs the lock released.
    mutating func note(_ version: Version, by seconds: Double, in store: String) -> StoreError? {
        let device = version.metadata[Metadata.deviceKey].flatMap { $0.count <= ClocksAhead.longestName ? $0 : nil } ?? []
        guard known.count < ClocksAhead.mostKnown, known.insert(device).inserted else { return nil }
        let name = JSONString.decode(device).map { "The clock of the device \"\($0)\"" } ?? "The clock of a device without a name"
        let hours = Int(min(seconds / 3_600, 1e7))
        let ahead = hours < 48 ? "\(hours) h" : hours < 8_766_000 ? "\(hours / 24) days" : "more than a thousand years"
        let error = StoreError(
            .clockAhead,
            "\(name) is \(ahead) ahead of this one, by version \(version.id), which is in \(store) and counts as made when it arrived. "
                + "Set the clock there, or here: until then, changes made there count as newer than those of other devices.",
            versionID: version.id.description)
        if untold.count < ClocksAhead.mostUntold { untold.append(error) }
        return error
    }

    /// Returns and clears the problems. Each names the version that showed it.
    package mutating func take() -> [StoreError] { defer { untold = [] }; return untold }
}

extension Store {
    /// Checks which of the received drafts were made with a clock that is far ahead.
    func noteClocksAhead(_ drafts: some Sequence<Draft>) {
        for draft in drafts {
            guard let storedAt = draft.storedAt else { continue }
            let said = lock.withRead {
                dag.claim(
                    timestamp: draft.version.timestamp, clock: MadeTime.clock(draft.version.metadata), first: draft.first,
                    second: draft.second)
            }
            guard said > storedAt + MadeTime.farAhead else { continue }
            let new = clocksAhead.withLock { $0.note(draft.version, by: said - storedAt, in: description) }
            if let new { Log.write(.warning, new.message) }
        }
    }
}
