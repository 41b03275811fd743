/// The environment of a store: the clock, and the timestamps given so far. Tests that must be reproducible replace them before
/// they use the store.
package struct Environment: Sendable {
    /// Seconds since 2001-01-01 UTC.
    package var clock: @Sendable () -> Double
    /// The timestamps that the process has given.
    package var times: GivenTimes

    /// Whether ids are checked. False to see that tests notice.
    package var checksIDs = true

    /// Whether the file system notifies of changes. False simulates one that does not.
    package var asksForChanges = true
    /// Milliseconds between two checks for changes in that case.
    package var lookInterval: Int32 = 2_000

    package init(clock: @escaping @Sendable () -> Double = { Clock.now() }, times: GivenTimes = .ofProcess) {
        self.clock = clock
        self.times = times
    }
}
