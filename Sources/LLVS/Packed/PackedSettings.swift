/// The settings of an exchange in the packed layout. Tests use others.
package struct PackedSettings: Sendable {
    /// Seconds since 1970.
    package var clock: @Sendable () -> Int64 = { Int64(Clock.now() + Clock.secondsFrom1970To2001) }
    /// What time passes by within a call, in seconds.
    var steady: @Sendable () -> Double = { Clock.steady() }
    /// When this format was made. A clock that tells an earlier time was not set yet, and nothing is put right by it.
    var earliest: Int64 = 1_750_000_000
    /// Where random numbers come from, and the time that is written into files.
    var random = PackRandom.system
    /// Waits so many seconds, or until the check throws.
    package var wait: @Sendable (Double, () throws -> Void) throws -> Void = { seconds, check in
        let end = Clock.steady() + seconds
        while Clock.steady() < end {
            try check()
            usleep(20_000)
        }
    }
    /// How many packs of one level are folded into one.
    package var fanIn = 8
    /// Seconds without a new number after which a writer's packs are adopted.
    package var silence: Int64 = 30 * PackedSettings.day

    /// With more names than these packs of writers are adopted that go on: one page of most listings.
    package var mostNames = 900

    /// What this device is called, for people who look at who writes there; nil: it says nothing.
    package var deviceName: String?

    package init() {}
    package init(deviceName: String?) { self.deviceName = deviceName }
    /// For simulations: all that is random comes from `word`, and no file says when it was made.
    package init(clock: @escaping @Sendable () -> Int64, random word: @escaping @Sendable () -> UInt64) {
        self.clock = clock
        earliest = .min
        random = PackRandom(word: word, milliseconds: { 0 })
    }

    /// Seconds from one full listing to the next.
    static let day: Int64 = 86_400
    /// Seconds from one listing of `base/` to the next while a gap is open, and from one sight of a loss to the second.
    static let pause: Int64 = 600
    /// Seconds for which a pack stays that is to be deleted.
    static let logGrace: Int64 = 900, baseGrace: Int64 = 86_400
    /// Seconds at most from the discovery of a loss until it is sent anew.
    static let longestWait: UInt64 = 3_600
    /// Seconds for which nothing is put together where there was no room for it.
    static let roomWait: Int64 = 3_600
    /// Seconds for which packs that replace others are made smaller because one came to no end.
    static let cutLife: Int64 = 7 * 86_400
    /// Seconds for which an attempt that failed is kept in mind.
    static let attemptLife: Int64 = 30 * 86_400
    /// Bytes of a pack, about, below which none is made smaller because a larger one was not sent to its end.
    static let leastPack = 256 << 10
    /// Seconds for which parts of a large value stay that was never sent whole.
    static let partialLife: Int64 = 30 * 86_400
    /// Seconds for which a writer counts as active that was seen.
    static let activity: Int64 = 7 * 86_400
    /// Bytes at the end of a base pack that are looked at first; ranges that are closer than this are read as one.
    static let tail = 64 << 10
    /// Bytes at the beginning of an encrypted file that tell its keys.
    static let head = 4 << 10
    /// Names that one call asks for, and bytes of them at most.
    static let filesAtOnce = 32, bytesAtOnce = 16 << 20
    /// Bytes of packs that are kept while their versions wait for others of the same exchange.
    static let mostKept = 32 << 20
    /// Files that failed before and are tried again in one exchange, and bytes of them: others may lay any number of them there, and what
    /// is new is not to wait for these.
    static let retries = 32, retriedBytes = 16 << 20
    /// How often a pack is looked at in one exchange, since versions have come that some of it wait for; and how often a file of a large
    /// value is read.
    static let looks = 4, partReads = 4
    /// Versions of which one pack waits, and that are followed.
    static let followed = 4_096
    /// Parts of large values that no listing shows, and that are asked for all the same in one exchange, since a listing may be behind.
    static let unlistedParts = 4
    /// Files beyond `badLimit` that could not be taken, and that are not read again for a day.
    static let passedLimit = 1_000_000
    /// Missing parts of one pack that are kept in mind.
    static let missingParts = 64
    /// Seconds until a file that cannot be taken is looked at again: soon, and then less and less often.
    /// - Parameter age: seconds since it was first met.
    static func wait(after kind: PackFault.Kind?, for age: Int64) -> Int64 {
        let least = wait(after: kind)
        return least >= day ? least : min(max(least, age / 8), longestWait(after: kind))
    }
    /// The longest of these.
    static func longestWait(after kind: PackFault.Kind?) -> Int64 {
        switch kind {
        case nil, .notThere: pause
        default: day
        }
    }
    /// Files that cannot be taken, and names in `base/` that are not read yet, of which the device keeps each in mind: others may put any
    /// number of them there.
    static let badLimit = 10_000, wantedLimit = 10_000
    static let rootsLimit = 16
    /// Parts of large values that others say are damaged, and that are looked at in one exchange; and those that are told of.
    static let claimsLimit = 16, damagedPartsLimit = 64
    /// Versions of which the device keeps in mind that another is to bring them to the other side of a bridged remote; further ones it
    /// brings itself.
    static let bridgingLimit = 100_000
    /// Roots of which some may be none.
    static let rootsLookedAt = 256
    /// Seconds until a file that cannot be taken is looked at again; at once while it may be on its way.
    static func wait(after kind: PackFault.Kind?) -> Int64 {
        switch kind {
        case nil, .notThere: 0
        case .otherStore, .keyMissing: pause
        case .damaged, .newer, .tooLarge: day
        }
    }
}
