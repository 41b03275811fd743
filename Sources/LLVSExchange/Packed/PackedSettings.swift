/// The settings of an exchange in the packed layout. Tests use other values.
package struct PackedSettings: Sendable {
    /// Seconds since 1970.
    package var clock: @Sendable () -> Int64 = { Int64(Clock.now() + Clock.secondsFrom1970To2001) }
    /// A steady clock for durations within a call, in seconds.
    var steady: @Sendable () -> Double = { Clock.steady() }
    /// When this format was created. A clock with an earlier time was not set yet, and corrects no recorded times.
    var earliest: Int64 = 1_750_000_000
    /// The source of random numbers, and of the times written into files.
    var random = PackRandom.system
    /// Waits for this many seconds, or until the check throws.
    package var wait: @Sendable (Double, () throws -> Void) throws -> Void = { seconds, check in
        let end = Clock.steady() + seconds
        while Clock.steady() < end {
            try check()
            usleep(20_000)
        }
    }
    /// How many packs of one level are merged into one.
    package var fanIn = 8
    /// Seconds without a new number after which a writer's packs are adopted.
    package var silence: Int64 = 30 * PackedSettings.day

    /// If there are more names than this, packs of active writers are adopted as well: one page of most listings.
    package var mostNames = 900

    /// The display name of this device; nil: none.
    package var deviceName: String?

    package init() {}
    package init(deviceName: String?) { self.deviceName = deviceName }
    /// For simulations: all random numbers come from `word`, and files contain no time.
    package init(clock: @escaping @Sendable () -> Int64, random word: @escaping @Sendable () -> UInt64) {
        self.clock = clock
        earliest = .min
        random = PackRandom(word: word, milliseconds: { 0 })
    }

    /// Seconds from one full listing to the next.
    static let day: Int64 = 86_400
    /// Seconds between listings of `base/` while a gap is open, and between the first and second observation of a loss.
    static let pause: Int64 = 600
    /// Seconds before a replaced pack is deleted.
    static let logGrace: Int64 = 900, baseGrace: Int64 = 86_400
    /// The most seconds from the discovery of a loss to sending the versions again.
    static let longestWait: UInt64 = 3_600
    /// Seconds without merging after there was no room for it.
    static let roomWait: Int64 = 3_600
    /// The seconds during which merged packs are made smaller, after a merge was not finished.
    static let cutLife: Int64 = 7 * 86_400
    /// Seconds for which a failed attempt is remembered.
    static let attemptLife: Int64 = 30 * 86_400
    /// The least bytes to which packs are reduced after an unfinished upload.
    static let leastPack = 256 << 10
    /// Seconds for which parts of a large value remain that was never sent completely.
    static let partialLife: Int64 = 30 * 86_400
    /// Seconds since it was last seen for which a writer counts as active.
    static let activity: Int64 = 7 * 86_400
    /// Bytes at the end of a base pack that are read first; ranges closer than this are read as one.
    static let tail = 64 << 10
    /// Bytes at the beginning of an encrypted file that identify its keys.
    static let head = 4 << 10
    /// The most names of one request, and their bytes.
    static let filesAtOnce = 32, bytesAtOnce = 16 << 20
    /// The most bytes of packs in memory while their versions wait for others of the same exchange.
    static let mostKept = 32 << 20
    /// The most failed files that one exchange retries, and their bytes. Other devices may upload any number of them, and new files must
    /// not wait for these.
    static let retries = 32, retriedBytes = 16 << 20
    /// How often one exchange reads a pack again because versions that it waits for have arrived, and how often it reads a file of a large
    /// value.
    static let looks = 4, partReads = 4
    /// The most missing versions that are tracked for one waiting pack.
    static let followed = 4_096
    /// The most parts of large values that one exchange requests although no listing shows them, since a listing may be behind.
    static let unlistedParts = 4
    /// The most unusable files beyond `badLimit` that are not read again for a day.
    static let passedLimit = 1_000_000
    /// The most missing parts remembered for one pack.
    static let missingParts = 64
    /// Returns the seconds until an unusable file is retried: soon at first, then less and less often.
    /// - Parameter age: seconds since the file was first found unusable.
    static func wait(after kind: PackFault.Kind?, for age: Int64) -> Int64 {
        let least = wait(after: kind)
        return least >= day ? least : min(max(least, age / 8), longestWait(after: kind))
    }
    /// Returns the longest of these intervals.
    static func longestWait(after kind: PackFault.Kind?) -> Int64 {
        switch kind {
        case nil, .notThere: pause
        default: day
        }
    }
    /// The most unusable files, and the most unread names in `base/`, that the device remembers: others may upload any number of them.
    static let badLimit = 10_000, wantedLimit = 10_000
    static let rootsLimit = 16
    /// Limits for parts of large values that other devices report as damaged: how many are checked in one exchange, wait to be checked, and
    /// are remembered as intact.
    static let claimsRead = 2, claimsLimit = 16, claimsKept = 1_024
    /// Returns the seconds until a part that was found intact is read again because another device reports it as damaged.
    static func claimPause(after found: Int) -> Int64 { Int64(3_600) << Int64(min(max(0, found - 1), 7)) }
    static let longestClaimPause: Int64 = 3_600 << 7
    /// The most parts of large values to report as damaged.
    static let damagedPartsLimit = 64
    /// The most versions to leave to another device for copying to the other side of a bridged remote. This device copies further ones
    /// itself.
    static let bridgingLimit = 100_000
    /// The most root files to read, some of which may be invalid.
    static let rootsLookedAt = 256
    /// Returns the seconds until an unusable file is retried; 0 while it may still be arriving.
    static func wait(after kind: PackFault.Kind?) -> Int64 {
        switch kind {
        case nil, .notThere: 0
        case .otherStore, .keyMissing: pause
        case .damaged, .newer, .tooLarge: day
        }
    }
}
