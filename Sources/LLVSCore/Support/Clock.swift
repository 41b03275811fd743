package enum Clock {
    /// The seconds between the system's epoch and that of timestamps.
    package static let secondsFrom1970To2001 = 978_307_200.0

    /// Returns the seconds since 2001-01-01 UTC.
    package static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) - Clock.secondsFrom1970To2001 + Double(time.tv_nsec) / 1e9
    }

    /// Returns the seconds of a monotonic clock with an arbitrary start, for measuring durations.
    package static func steady() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The steady time, accurate to a few milliseconds, for a third of the cost if the system has such a clock.
    package static func coarse() -> Double {
        #if canImport(Glibc) || canImport(Musl)
        var time = timespec()
        if clock_gettime(CLOCK_MONOTONIC_COARSE, &time) == 0 { return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9 }
        #endif
        return steady()
    }

    /// Returns the timestamp one microsecond later, or the next double if a microsecond is too little; always finite.
    package static func after(_ timestamp: Double) -> Double {
        let later = timestamp + 1e-6
        let next = later > timestamp ? later : timestamp.nextUp
        return next.isFinite ? next : timestamp
    }
}
