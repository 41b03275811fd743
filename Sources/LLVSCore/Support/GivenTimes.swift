/// The timestamps that a process gave to versions. None is given twice, so that two saves never become the same version by accident.
///
/// Times from the clock only grow. A time ahead of the clock, because the predecessor's time is ahead, is remembered by itself: a version
/// from the far future thus only affects its descendants. After the largest number there is no later one, so it is given again. Safe from
/// all threads.
package final class GivenTimes: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    /// The times of this process.
    package static let ofProcess = GivenTimes()

    private let lock = Lock(.leaf)
    /// The last time from the clock.
    private var last = -Double.infinity
    /// Times given ahead of the clock, as runs in steps of `Clock.after`. In order, with gaps between them.
    private var runs: [(start: Double, end: Double)] = []
    private static let mostRuns = 1_024

    package init() {}

    /// Returns the time for a version.
    /// - Parameter behind: the time of its predecessor.
    package func next(_ clock: Double, behind: Double?) -> Double {
        lock.withLock {
            let now = clock > last ? clock : Clock.after(last)
            let least = behind.map(Clock.after) ?? -.infinity
            if least <= now {
                last = runs.isEmpty ? now : free(from: now)
                return last
            }
            runs.removeAll { $0.end <= last }
            let time = free(from: least)
            keep(time)
            return time
        }
    }

    /// Returns the first time from `time` on that was not given.
    private func free(from time: Double) -> Double {
        var time = time
        for run in runs where run.start <= time && time <= run.end { time = Clock.after(run.end) }
        return time
    }

    private func keep(_ time: Double) {
        let i = runs.firstIndex { $0.start > time } ?? runs.count
        if i > 0, time <= Clock.after(runs[i - 1].end) {
            runs[i - 1].end = max(runs[i - 1].end, time)
        } else {
            runs.insert((time, time), at: i)
        }
        guard runs.count > GivenTimes.mostRuns else { return }
        // If there are many, join the two runs that are closest to each other: the times between them then count as given, and nothing
        // else changes.
        var closest = 1
        for i in runs.indices.dropFirst() where runs[i].start - runs[i - 1].end < runs[closest].start - runs[closest - 1].end {
            closest = i
        }
        runs[closest - 1].end = runs[closest].end
        runs.remove(at: closest)
    }
}
