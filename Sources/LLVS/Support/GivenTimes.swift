/// The timestamps that a process gave to versions: none is given twice, so that two saves are never one version by accident.
///
/// Those that the clock gives only grow. Those that lie ahead of it, since a predecessor does, are kept in mind one by one, so that a
/// version from the far future moves only what is built on it. Behind the largest number there is none: there one is given again.
/// Safe from all threads.
package final class GivenTimes: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// Of this process.
    package static let ofProcess = GivenTimes()

    private let lock = Lock(.leaf)
    /// The last that the clock gave.
    private var last = -Double.infinity
    /// Given ahead of the clock: from one to another in steps of `Clock.after`. In order, apart from each other.
    private var runs: [(start: Double, end: Double)] = []
    private static let mostRuns = 1_024

    package init() {}

    /// The time for a version.
    /// - Parameter behind: that of its predecessor.
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

    /// The first time from there on that was not given.
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
        // Of many the two that are closest to each other become one: what lies between them counts as given, and nothing else moves.
        var closest = 1
        for i in runs.indices.dropFirst() where runs[i].start - runs[i - 1].end < runs[closest].start - runs[closest - 1].end {
            closest = i
        }
        runs[closest - 1].end = runs[closest].end
        runs.remove(at: closest)
    }
}
