/// What a store takes from the world around it: the time, and which times were given. Tests that must be the same each time
/// put their own here, before they use the store.
package struct Environment: Sendable {
    /// Seconds since 2001-01-01 UTC.
    package var clock: @Sendable () -> Double
    /// The timestamps that the process gave.
    package var times: GivenTimes

    /// False: takes whatever comes under whichever id, to see that tests notice.
    package var checksIDs = true

    /// False: as where the file system does not tell of changes.
    package var asksForChanges = true
    /// Milliseconds after which it is looked for changes there.
    package var lookInterval: Int32 = 2_000

    package init(clock: @escaping @Sendable () -> Double = { Clock.now() }, times: GivenTimes = .ofProcess) {
        self.clock = clock
        self.times = times
    }
}
