import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Merged packs whose uploads never succeed. The device's own versions are sent nevertheless, and the next merged pack is smaller.
@Suite("Packed: merges that come to no end") struct PackedUnfinishedTests {
    private static let day = 86_400, limit = 1_000 << 10

    /// The ways in which the upload of a large merged pack ends.
    enum Trouble: CaseIterable {
        /// The connection breaks.
        case line
        /// The host cancels the call.
        case cancelled
        /// The server refuses the file.
        case refused
        /// The process is killed.
        case killed

        var error: StoreError {
            switch self {
            case .line: return StoreError(.transport, "The line broke.")
            case .cancelled: return StoreError(.cancelled, "The time is over.")
            case .killed: return MemoryFiles.died
            case .refused:
                var error = StoreError(.permission, "The server answers 403.")
                error.httpStatus = 403
                return error
            }
        }
        func end(_ device: PackedDevice, _ sizes: Sizes) {
            device.files.refuses = { [unowned device] name, size in
                guard name.hasPrefix("pack1/base/") else { return nil }
                sizes.all.append(size)
                guard size > PackedUnfinishedTests.limit else { return nil }
                if self == .killed { device.storage.isDead = true }
                return error
            }
        }
    }
    /// The sizes of the merged packs whose upload was tried.
    final class Sizes { var all: [Int] = [] }

    private func value(_ place: MemoryPlace) -> [UInt8] { StorageConformance.bytes(seed: place.random.next(), count: 300 << 10) }
    private func retired(_ place: MemoryPlace) throws -> [PackedDevice] {
        let devices = try (0..<2).map { _ in try PackedDevice(place) }
        for n in 0..<3 {
            for gone in devices {
                try gone.save("gone \(n)", value(place))
                try gone.exchangeOnce()
            }
        }
        for gone in devices { _ = try gone.exchange.retire() }
        return devices
    }
    /// - Returns: nil if it failed.
    private func exchange(_ device: PackedDevice) throws -> ExchangeResult? {
        defer {
            if device.storage.isDead {
                device.storage.isDead = false
                device.restart()
            }
        }
        do {
            _ = try device.exchange.retrieve()
            return try device.exchange.send()
        } catch let error as StoreError where [.transport, .cancelled, .user, .permission].contains(error.code) { return nil }
    }
    private func halves(_ sizes: [Int]) -> Bool {
        let tried = Array(sizes.filter { $0 > Self.limit })
        return zip(tried, tried.dropFirst()).allSatisfy { $1 <= $0 / 2 + (64 << 10) }
    }

    @Test(arguments: Trouble.allCases) func anAdoptionStandsBack(_ trouble: Trouble) throws {
        let place = MemoryPlace()
        place.pace = 1
        let gone = try retired(place), a = try PackedDevice(place), sizes = Sizes()
        trouble.end(a, sizes)
        try a.save("first")
        _ = try exchange(a)
        #expect(sizes.all.count == 1 && sizes.all[0] > 6 * (300 << 10))
        // The very next call sends the device's own versions, also in another process.
        for n in 0..<3 {
            if n == 1 { a.restart() }
            let id = try a.save("own \(n)")
            #expect(try exchange(a)?.versions == [id] && place.versions() == a.ids)
        }
        #expect(sizes.all.count == 2 && sizes.all[1] < 4 << 10, "a pack without inputs fills the number: \(sizes.all)")
        for _ in 0..<5 {
            place.clock += Self.day + 1
            _ = try exchange(a)
            _ = try exchange(a)
            #expect(place.versions() == a.ids)
        }
        #expect(halves(sizes.all) && sizes.all.contains { (300 << 10..<Self.limit).contains($0) }, "\(sizes.all)")
        let left = place.names(.log) + place.names(.base)
        #expect(left.allSatisfy { $0.writer == a.writer }, "\(left)")
        let new = try PackedDevice(place)
        try new.exchangeOnce()
        #expect(new.ids == a.ids && gone.allSatisfy { $0.ids.isSubset(of: new.ids) })
        #expect(try new.exchangeOnce() == ["list pack1/log"], "all numbers are covered")
    }

    @Test(arguments: Trouble.allCases) func ownPacksAreMergedInSmallerOnes(_ trouble: Trouble) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), sizes = Sizes()
        place.pace = 1
        trouble.end(a, sizes)
        for n in 0..<9 {
            try a.save("\(n)", value(place))
            _ = try exchange(a)
            #expect(place.versions() == a.ids)
        }
        #expect(sizes.all.count == 1 && sizes.all[0] > 8 * (300 << 10))
        // Without new versions the merged pack is not rebuilt at once, and later it is smaller.
        for n in 0..<3 {
            if n == 1 { a.restart() }
            #expect(try exchange(a)?.problems.isEmpty == true && sizes.all.count == 1)
        }
        for _ in 0..<4 {
            place.clock += 601
            _ = try exchange(a)
        }
        #expect(halves(sizes.all) && sizes.all.count < 6 && place.names(.base).map(\.first).min() == 1, "\(sizes.all)")
        #expect(place.versions() == a.ids)
        let new = try PackedDevice(place)
        try new.exchangeOnce()
        #expect(new.ids == a.ids)
        // Later, merged packs are as large as ever.
        a.files.refuses = { _, _ in nil }
        place.clock += 8 * Self.day
        for n in 0..<9 {
            try a.save("later \(n)", value(place))
            _ = try exchange(a)
        }
        #expect(place.names(.base).contains { (place.files[$0.description]?.count ?? 0) > 5 * (300 << 10) } && place.versions() == a.ids)
    }

    /// A place that accepts merged packs but does not return them gets at most two. They are used once it returns them.
    @Test(arguments: [false, true]) func whatIsNotGivenIsNotMadeAgainAndAgain(isOwn: Bool) throws {
        let place = MemoryPlace()
        place.pace = 1
        if !isOwn { _ = try retired(place) }
        let a = try PackedDevice(place)
        a.files.withholds = { $0.hasPrefix("pack1/base/") ? Trouble.refused.error : nil }
        func large() -> Int { place.names(.base).count { (place.files[$0.description]?.count ?? 0) > 100 << 10 } }
        for n in 0..<9 {
            try a.save("\(n)", isOwn ? value(place) : [1])
            #expect(try exchange(a)?.versions.count == 1 && place.versions() == a.ids)
        }
        for n in 0..<10 {
            place.clock += isOwn ? 601 : Self.day + 1
            let id = try a.save("own \(n)")
            #expect(try exchange(a)?.versions == [id] && place.versions() == a.ids)
        }
        #expect(large() > 0 && large() <= 2)
        a.files.withholds = { _ in nil }
        for _ in 0..<8 {
            place.clock += Self.day + 1
            _ = try exchange(a)
            #expect(place.versions() == a.ids)
        }
        let left = place.names(.log) + place.names(.base)
        #expect(left.allSatisfy { $0.writer == a.writer } && left.count < 12, "\(left)")
        #expect(a.known?.attempts.values.contains { [.trying, .failed].contains($0.outcome) && $0.size > 100 << 10 } == false)
        let new = try PackedDevice(place)
        try new.exchangeOnce()
        #expect(new.ids == a.ids)
    }

    /// A merged pack is not rebuilt if its upload succeeds but reading it back always fails.
    @Test(arguments: [Trouble.line, .cancelled]) func whatIsReadBackHoldsUpNothing(_ trouble: Trouble) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        place.pace = 1
        a.files.before = { [unowned a] in if a.files.asked.last?.hasPrefix("read pack1/base/") == true { throw trouble.error } }
        for n in 0..<9 {
            try a.save("\(n)", value(place))
            _ = try exchange(a)
        }
        #expect(place.names(.base).count == 1 && a.known?.attempts.values.contains { $0.outcome == .trying } == true)
        for n in 0..<3 {
            let theirs = try b.save("theirs \(n)")
            try b.exchangeOnce()
            place.clock += Self.day + 1
            let own = try a.save("own \(n)")
            for _ in 0..<2 { _ = try exchange(a) }
            #expect(a.ids.contains(theirs) && place.versions().contains(own))
        }
        a.files.before = {}
        place.clock += Self.day + 1
        for _ in 0..<2 { _ = try exchange(a) }
        #expect(a.known?.attempts.values.contains { $0.outcome == .trying } == false && place.versions() == a.ids)
    }
}
