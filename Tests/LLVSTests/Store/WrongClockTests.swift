import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCoordinator
@testable import LLVSCore
@testable import LLVSExchange

/// The times at which versions were made, with wrong clocks. Times are seconds since 2001.
@Suite struct WrongClockTests {
    static let today = 850_000_000.0, day = 86_400.0, year = 365 * 86_400.0

    /// A store with the clock of its device.
    final class Device {
        let store: Store
        private let time = Guarded(WrongClockTests.today)
        var now: Double {
            get { time.withLock { $0 } }
            set { time.withLock { $0 = newValue } }
        }
        init(_ store: Store, now: Double = WrongClockTests.today) {
            self.store = store
            let time = time
            store.environment = Environment(clock: { time.withLock { $0 } }, times: GivenTimes())
            self.now = now
        }
        func save(_ text: String, on base: Version?, device: String? = nil) throws -> Version {
            var metadata = Metadata()
            if let device { metadata[Metadata.deviceKey] = UndoMarks.json(bytes(device)) }
            return try store.makeVersion(basedOn: base?.id, changes: [.insert(id("note"), data: bytes(text))], metadata: metadata)
        }
        func take(_ versions: [Version], from other: Device) throws {
            let received = try versions.map { Store.ReceivedVersion(version: $0, changes: try other.store.changes(madeIn: $0.id)) }
            for addition in try store.add(received) { if case .problem(let error) = addition { throw error } }
        }
        func made(_ version: Version) throws -> Double { try #require(try store.version(version.id)).madeAt }
        /// The problems that a received link or pack would report.
        func told() -> [ExchangeProblem] { store.tellingOfClocks(ExchangeResult()).problems }
    }

    @Test func whereClocksAgreeNothingIsSaidOfThem() throws {
        let ann = Device(try memoryStore()), bob = Device(try memoryStore(), now: Self.today + 59)
        let first = try bob.save("1", on: nil)
        try ann.take([first], from: bob)
        let second = try ann.save("2", on: first)
        #expect(first.madeAt == first.timestamp && second.madeAt == second.timestamp && second.metadata.isEmpty)
        #expect(try ann.made(first) == first.timestamp && ann.told().isEmpty)
    }

    /// After reopening, with caches and without, the times are the same.
    @Test(arguments: [0, 1]) func aClockTenYearsAheadDatesNothingElse(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let ann = Device(try DiskStore.open(kind, directory)), bob = Device(try memoryStore())
            let first = try ann.save("1", on: nil)
            try bob.take([first], from: ann)
            bob.now += 10 * Self.year
            let ahead = try bob.save("2", on: first, device: "bob")
            ann.now += Self.day
            try ann.take([ahead], from: bob)
            let told = ann.told()
            #expect(told.map(\.error.code) == [.clockAhead] && told.first?.name == ahead.id.description)
            #expect(told.first?.error.message.contains("\"bob\" is 3649 days ahead") ?? false)

            var last = ahead, made = [first, ahead]
            for i in 3..<6 {
                ann.now += Self.day
                last = try ann.save("\(i)", on: last)
                made.append(last)
            }
            // The order is unchanged: each version is later than all before it.
            #expect(made.map(\.timestamp) == made.map(\.timestamp).sorted() && last.timestamp > ann.now + 9 * Self.year)
            let times = [0, 1, 2, 3, 4].map { Self.today + Double($0) * Self.day }
            #expect(try made.map { try ann.made($0) } == times && last.madeAt == times[4])
            #expect(last.metadata[MadeTime.clockKey] == bytes("850345600"))
            func check(_ store: Store) throws {
                #expect(try made.map { try #require(try store.version($0.id)).madeAt } == times)
                for (i, version) in made.enumerated() {
                    #expect(try store.version(at: times[i] + 1, head: last.id)?.id == version.id)
                    #expect(try store.version(at: times[i] - 1, head: last.id)?.id == (i > 0 ? made[i - 1].id : nil))
                }
            }
            try check(ann.store)
            try ann.store.close()
            for keepsCaches in [true, false] {
                if !keepsCaches, kind == 0 { TemporaryDirectory.remove(directory + "/store/cache") }
                let again = try DiskStore.open(kind, directory)
                try check(again)
                try again.close()
            }
        }
    }

    /// A device that receives versions from another one sees the clocks of all that made them. Its own notes about clocks are not sent.
    @Test func whatADeviceSaysOfItsClockTravels() throws {
        let ann = Device(try memoryStore()), bob = Device(try memoryStore(), now: Self.today + Self.year), eve = Device(try memoryStore())
        let ahead = try bob.save("1", on: nil)
        try ann.take([ahead], from: bob)
        ann.now += 10
        let later = try ann.save("2", on: ahead)
        eve.now += 3 * Self.day
        try eve.take([ahead, later], from: ann)
        #expect(try ann.made(ahead) == Self.today)
        #expect(try eve.made(ahead) == eve.now && eve.made(later) == eve.made(ahead))
        // The later version was not made before its predecessor, and both had arrived by then.
        let after = try eve.save("3", on: later)
        #expect(after.madeAt == eve.now && after.metadata[MadeTime.clockKey] != nil)
    }

    /// The device's own clock was ahead and is corrected: its times count from the first save afterwards.
    @Test func aClockThatIsPutRightIsBelieved() throws {
        let bob = Device(try memoryStore(), now: Self.today + Self.year)
        let before = try bob.save("1", on: nil), ahead = try bob.save("2", on: before)
        #expect(try bob.made(ahead) >= Self.today + Self.year)
        bob.now = Self.today
        let right = try bob.save("3", on: ahead)
        #expect(try [before, ahead, right].map { try bob.made($0) } == [Self.today, Self.today, Self.today])
        bob.now = Self.today + Self.day
        #expect(try bob.made(bob.save("4", on: right)) == bob.now)
    }

    /// A clock that shows a time before this format existed proves nothing about other clocks.
    @Test func aClockThatIsKnownToBeWrongIsNot() throws {
        let ann = Device(try memoryStore()), bob = Device(try memoryStore(), now: -5 * Self.year)
        let first = try ann.save("1", on: nil)
        try bob.take([first], from: ann)
        #expect(try bob.made(first) == Self.today && bob.told().isEmpty)
        let second = try bob.save("2", on: first)
        #expect(second.madeAt == second.timestamp && second.metadata.isEmpty)
    }

    @Test func aMergeWasMadeWhenTheNewerOfItsSidesWas() throws {
        let ann = Device(try memoryStore()), bob = Device(try memoryStore(), now: Self.today + Self.year)
        let base = try ann.save("0", on: nil)
        try bob.take([base], from: ann)
        let ahead = try bob.save("1", on: base)
        try ann.take([ahead], from: bob)
        ann.now += Self.day
        let left = try ann.save("2", on: ahead), right = try ann.store.set(["other": "3"], ahead)
        let merged = try ann.store.merge(left.id, with: right.id, arbiter: BuiltInArbiter.mostRecentChange)
        #expect(merged.metadata.isEmpty && merged.timestamp > ann.now + 300 * Self.day)
        #expect(merged.madeAt == ann.now && left.madeAt == ann.now)
    }

    /// A version that is saved again under an id that the caller chose is the same version, whatever the clock shows.
    @Test func madeAgainUnderItsIDItIsTheSame() throws {
        let ann = Device(try memoryStore()), bob = Device(try memoryStore(), now: Self.today + Self.year)
        let ahead = try bob.save("1", on: nil)
        try ann.take([ahead], from: bob)
        ann.now += 100
        let own = try VersionID("save-17"), made = try ann.store.set(["note": "2"], ahead, id: own)
        ann.now += 100
        #expect(try ann.store.set(["note": "2"], ahead, id: own) == made && made.metadata[MadeTime.clockKey] == bytes("850000100"))
        #expect(throws: StoreError.self) { try ann.store.set(["note": "3"], ahead, id: own) }
    }

    @Test func eachDeviceIsReportedOnce() throws {
        let ann = Device(try memoryStore()), bob = Device(try memoryStore(), now: Self.today + Self.year)
        for (device, count) in [("bob", 1), ("bob", 0), ("carl", 1), (nil, 1), (nil, 0), ("carl", 0)] as [(String?, Int)] {
            let one = try bob.save("\(bob.now)", on: nil, device: device)
            try ann.take([one], from: bob)
            #expect(ann.told().count == count)
            bob.now += 1
        }
        // A name that is too long is ignored, and the device was already reported.
        let long = try bob.save("long", on: nil, device: String(repeating: "x", count: 100_000))
        try ann.take([long], from: bob)
        #expect(ann.told().isEmpty)
        // A deviation of an hour is not reported, but it counts.
        bob.now = ann.now + 3_000
        let hour = try bob.save("hour", on: nil, device: "dora")
        try ann.take([hour], from: bob)
        #expect(try ann.told().isEmpty && ann.made(hour) == ann.now)
    }

    /// A value that is no number counts as absent.
    @Test(arguments: ["", "x", "1 ", "[1]", "\"1\"", "1e999", "-", "NaN", "01"]) func whatIsNoClockIsPassedOver(text: String) throws {
        let ann = Device(try memoryStore())
        var metadata = Metadata()
        metadata[MadeTime.clockKey] = bytes(text)
        let made = try ann.store.makeVersion(basedOn: nil, changes: [], metadata: metadata)
        #expect(made.madeAt == made.timestamp)
        metadata[MadeTime.clockKey] = bytes("3")
        #expect(try ann.store.makeVersion(basedOn: nil, changes: [], metadata: metadata).madeAt == 3)
        metadata[MadeTime.clockKey] = bytes("8e9")
        let ahead = try ann.store.makeVersion(basedOn: nil, changes: [], metadata: metadata)
        #expect(ahead.madeAt == ahead.timestamp)
    }

    /// Histories of devices with any clocks. No version was made before its ancestors, nor more than a minute after this device received
    /// it. Reopening changes nothing.
    @Test(arguments: Sample.seeds(usual: 20, deep: 400)) func randomClocks(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            var random = SeededRandom(seed: seed)
            let devices = [Device(try DiskStore.open(0, directory)), Device(try memoryStore()), Device(try memoryStore())]
            var known: [[Version]] = [[], [], []], came: [VersionID: Double] = [:], now = Self.today
            for _ in 0..<60 {
                now += Double.random(in: 0..<2 * Self.day, using: &random)
                let i = Int.random(in: 0..<3, using: &random), device = devices[i]
                let wrong: [Double] = [0, 0, 0, 30, -Self.day, Self.year, -Self.year, 20 * Self.year]
                device.now = now + (i == 0 ? 0 : wrong[Int.random(in: wrong.indices, using: &random)])
                let new: [Version]
                switch Int.random(in: 0..<3, using: &random) {
                case 0:
                    new = [try device.save("\(now)", on: known[i].randomElement(using: &random))]
                case 1:
                    let heads = try device.store.heads()
                    guard heads.count > 1 else { continue }
                    new = [try device.store.merge(heads[0].id, with: heads[1].id, arbiter: BuiltInArbiter.mostRecentChange)]
                default:
                    let other = (i + 1) % 3, here = Set(known[i].map(\.id))
                    new = known[other].filter { !here.contains($0.id) }
                    try device.take(new, from: devices[other])
                }
                known[i] += new
                if i == 0 { for version in new where came[version.id] == nil { came[version.id] = device.now } }
            }
            func times(_ store: Store) throws -> [Double] {
                try known[0].map { version in
                    let made = try #require(try store.version(version.id)).madeAt
                    #expect(made <= (came[version.id] ?? -.infinity) + MadeTime.tolerance + 1e-5, "\(Sample.hint(seed))")
                    for before in version.predecessors {
                        #expect(try #require(try store.version(before)).madeAt <= made, "\(Sample.hint(seed))")
                    }
                    return made
                }
            }
            let before = try times(devices[0].store)
            let history = devices[0].store.dag
            let index = try #require(try HistoryIndex.decode(HistoryIndex.encode(history, nil, mark: [])) { _ in Array(0..<1_000) }).history
            #expect(index.rows.map(\.made) == history.rows.map { $0.state == .live ? $0.made : 0 }, "\(Sample.hint(seed))")
            try devices[0].store.close()
            let again = try DiskStore.open(0, directory)
            #expect(try times(again) == before, "\(Sample.hint(seed))")
            try again.close()
        }
    }
}
