import Testing

@testable import LLVSCoordinator

/// When rounds are due, with simulated time.
@Suite struct SyncScheduleTests {
    /// Every random number is in the middle of its range.
    private func schedule(_ places: String..., conditions: Syncer.Conditions = []) -> SyncSchedule {
        var schedule = SyncSchedule(draw: { 0.5 })
        schedule.conditions = conditions
        schedule.attach(places.map { ($0, $0) })
        return schedule
    }
    private func whole(_ places: String...) -> SyncSchedule.Next { .now(SyncSchedule.Round(places: places, onlySends: false)) }
    private func sending(_ places: String...) -> SyncSchedule.Next { .now(SyncSchedule.Round(places: places, onlySends: true)) }

    /// Places that do not answer cost a round no more than two turns, however many they are.
    @Test func slowPlacesShareThePause() {
        let pace = SyncSchedule.Pace(), pauses = (0..<100).map(pace.pause)
        #expect(pauses[0] == pace.turn && pauses.allSatisfy { $0 > 0 } && pauses.reduce(0, +) <= 2 * pace.turn)
    }

    /// If a round continued without a place, that place is not due until its exchange ends, whatever the trigger; the others are.
    @Test func aPlaceThatARoundWentOnWithoutIsNotDue() throws {
        var schedule = schedule("a", "b")
        #expect(schedule.next(0) == whole("a", "b"))
        _ = try run(&schedule, 0)
        schedule.leave("a")
        schedule.wait()
        #expect(schedule.next(1) == whole("b"))
        _ = try run(&schedule, 1)
        schedule.tell(.save, at: 2)
        #expect(schedule.next(4) == sending("b"))
        _ = try run(&schedule, 4)
        // The versions of the detached exchange are merged when it ends. Other arrivals are merged before that, but not every second.
        schedule.finishMerging(at: 5)
        schedule.tell(.arrival, at: 5)
        #expect(schedule.next(7) == .at(5 + schedule.pace.turn) && schedule.next(35) == .now(.merging))
        schedule.comeBack("a")
        #expect(schedule.next(7) == .now(.merging))
        schedule.wait()
        #expect(schedule.next(7) == whole("a", "b"))
        // Without another place, nothing is due.
        schedule.leave("a")
        schedule.leave("b")
        #expect(schedule.next(1_000) == .now(.merging))
        schedule.begin(.merging)
        #expect(schedule.next(1_000) == .whenTold)
        schedule.forget("a")
        schedule.attach([("a", "a"), ("b", "b")])
        #expect(schedule.next(1_000) == whole("a"))
    }

    /// Does the round that is due and returns it.
    private func run(
        _ schedule: inout SyncSchedule, _ now: Double, failing: [String: SyncSchedule.Outcome] = [:], moved: Bool = false
    ) throws -> SyncSchedule.Round {
        guard case .now(let round) = schedule.next(now) else {
            Issue.record("at \(now): \(schedule.next(now))")
            return SyncSchedule.Round(places: [], onlySends: false)
        }
        schedule.begin(round)
        schedule.finish(
            round.places.map {
                failing[$0] ?? SyncSchedule.Outcome(name: $0, retrieved: !round.onlySends, moved: moved)
            }, at: now)
        return round
    }

    @Test func withoutPlacesNothingIsDue() { #expect(schedule().next(0) == .whenTold) }

    /// Versions that arrive outside of rounds are merged at once, whatever the places do, unless the syncer is `paused`.
    @Test func whatComesIsMergedAtOnce() throws {
        let merging = SyncSchedule.Next.now(.merging)
        var none = schedule(conditions: [.offline, .background])
        none.tell(.arrival, at: 1)
        #expect(none.next(1) == merging)
        none.begin(.merging)
        none.finishMerging(at: 1)
        #expect(none.next(1) == .whenTold)
        // At most once a second.
        none.tell(.arrival, at: 1.2)
        #expect(none.next(1.2) == .at(2) && none.next(2) == merging)
        none.conditions = .paused
        #expect(none.next(2) == .whenTold)

        // A full round merges as well. A round that only sends does not, and leaves saves made meanwhile to the next one.
        var schedule = schedule("a")
        schedule.tell(.arrival, at: 0)
        #expect(try run(&schedule, 0, moved: true) == SyncSchedule.Round(places: ["a"], onlySends: false))
        #expect(schedule.next(0.5) == .at(30))
        schedule.tell(.save, at: 1)
        schedule.tell(.arrival, at: 1)
        #expect(schedule.next(1) == merging)
        schedule.begin(.merging)
        schedule.finishMerging(at: 1.5)
        #expect(schedule.next(1.5) == .at(3))
        schedule.tell(.arrival, at: 2)
        #expect(schedule.next(2) == .at(2.5))
        #expect(schedule.next(3) == merging)
        schedule.begin(.merging)
        schedule.finishMerging(at: 3)
        #expect(try run(&schedule, 3) == SyncSchedule.Round(places: ["a"], onlySends: true))
    }

    @Test func itBeginsWithARoundAndPollsEverMoreSeldom() throws {
        var schedule = schedule("a")
        #expect(try run(&schedule, 0, moved: true) == SyncSchedule.Round(places: ["a"], onlySends: false))
        var now = 0.0, pauses: [Double] = []
        while now < 10_000 {
            guard case .at(let next) = schedule.next(now) else { Issue.record("nothing"); return }
            pauses.append(next - now)
            now = next
            #expect(schedule.next(now - 0.001) == .at(now))
            _ = try run(&schedule, now)
        }
        #expect(pauses.first == 30 && pauses.prefix(10).allSatisfy { $0 == 30 })
        #expect(pauses.last == 900 && pauses == pauses.sorted())
    }

    /// Versions that were left to their maker are sent when the time is over, also in the background.
    @Test func whatWasLeftToOthersGoesOutLater() throws {
        var schedule = schedule("a", conditions: .background)
        _ = try run(&schedule, 0)
        schedule.lateSend = 600
        #expect(schedule.next(10) == .at(600))
        #expect(try run(&schedule, 601).places == ["a"])
        #expect(schedule.next(602) == .whenTold)
    }

    @Test func savesGoOutTogether() throws {
        var schedule = schedule("a")
        _ = try run(&schedule, 0)
        for second in 1...9 {
            schedule.tell(.save, at: Double(second))
            #expect(schedule.next(Double(second)) == .at(min(Double(second) + 2, 11)))
        }
        schedule.tell(.save, at: 10.5)
        #expect(schedule.next(11) == sending("a"))
        _ = try run(&schedule, 11)
        // If the last retrieve was more than half a minute ago, a whole round is due.
        var late = self.schedule("a", conditions: .background)
        _ = try run(&late, 0)
        late.tell(.save, at: 100)
        #expect(late.next(102) == whole("a"))
    }

    @Test func theFrontAndNewsAreSpaced() throws {
        var schedule = schedule("a")
        _ = try run(&schedule, 0)
        schedule.tell(.front, at: 1)
        #expect(schedule.next(1) == .at(5))
        schedule.tell(.news, at: 1.5)
        #expect(schedule.next(1.5) == whole("a"))
        _ = try run(&schedule, 1.5)
        schedule.tell(.news, at: 1.6)
        #expect(schedule.next(1.6) == .at(2.5))
    }

    @Test func failuresWaitLongerAndLonger() throws {
        var schedule = schedule("a", "b")
        let failed = SyncSchedule.Outcome(name: "a", reason: .unreachable)
        _ = try run(&schedule, 0, failing: ["a": failed])
        var now = 0.0, pauses: [Double] = []
        for _ in 0..<14 {
            // A failing place does not cause more visits to another place.
            while case .at(let next) = schedule.next(now) { now = next }
            let before = now
            let round = try run(&schedule, now, failing: ["a": failed])
            if round.places == ["a"] { pauses.append(schedule.places[0].retryAt - before) }
        }
        #expect(pauses.prefix(5) == [1, 2, 4, 8, 16])
        #expect(schedule.places[0].failures >= 10 && schedule.places[1].failures == 0)
        // Coming to the front retries at once; a success resets everything.
        schedule.tell(.front, at: now + 10)
        #expect(schedule.next(now + 10) == whole("a", "b"))
        _ = try run(&schedule, now + 10)
        #expect(schedule.places[0].failures == 0 && schedule.places[0].reason == .none)
        #expect(schedule.places.allSatisfy { $0.retryAt == -.infinity })
    }

    @Test func theLongestPauseIsKept() throws {
        var schedule = schedule("a")
        for i in 0..<60 {
            schedule.tell(.user, at: Double(i))
            _ = try run(&schedule, Double(i), failing: ["a": SyncSchedule.Outcome(name: "a", reason: .failed)])
        }
        #expect(schedule.places[0].retryAt == 59 + 450)
    }

    @Test func whatOnlyAPersonCanAnswerIsNotTriedByTheClock() throws {
        for reason in [Syncer.Reason.signIn, .passphrase] {
            var schedule = schedule("a")
            _ = try run(&schedule, 0, failing: ["a": SyncSchedule.Outcome(name: "a", reason: reason, needsUser: true)])
            #expect(schedule.next(1e6) == .whenTold)
            schedule.tell(.save, at: 1)
            #expect(schedule.next(1e6) == .whenTold)
            schedule.tell(.user, at: 2)
            #expect(schedule.next(2) == whole("a"))
            _ = try run(&schedule, 2, failing: ["a": SyncSchedule.Outcome(name: "a", reason: reason, needsUser: true)])
            schedule.tell(.front, at: 3)
            #expect(schedule.next(3) == whole("a"))
        }
    }

    /// Every other failure may pass by itself, unless only a person can resolve it: a right that was withdrawn for a moment, keys that a
    /// program provides later, a place that was empty because a drive was missing.
    @Test func allElseIsTriedByTheClock() throws {
        for reason in [Syncer.Reason.signIn, .updateApp, .passphrase, .remoteReset, .failed, .unreachable] {
            var schedule = schedule("a")
            for _ in 0..<40 {
                schedule.tell(.user, at: 0)
                _ = try run(&schedule, 0, failing: ["a": SyncSchedule.Outcome(name: "a", reason: reason)])
            }
            #expect(schedule.next(0) == .at(450), "\(reason)")
            #expect(schedule.next(450) == whole("a"), "\(reason)")
            #expect(!schedule.places[0].waitsForUser)
        }
    }

    /// If sending is refused, receiving continues, and sending is retried an hour later.
    @Test func sendingThatIsRefusedIsTriedAnHourLater() throws {
        var schedule = schedule("a")
        _ = try run(&schedule, 0, failing: ["a": SyncSchedule.Outcome(name: "a", reason: .signIn, failedToSend: true)])
        guard case .at(let poll) = schedule.next(0) else { Issue.record("nothing"); return }
        #expect(schedule.next(poll) == .now(SyncSchedule.Round(places: ["a"], onlySends: false, onlyReceive: ["a"])))
        schedule.begin(SyncSchedule.Round(places: ["a"], onlySends: false, onlyReceive: ["a"]))
        schedule.finish([SyncSchedule.Outcome(name: "a", sends: false)], at: poll)
        #expect(schedule.places[0].reason == .signIn && schedule.places[0].mayNotSend)
        #expect(schedule.next(3_600) == whole("a"))
    }

    /// Another process exchanges with the place. That is no failure, and only what was to be sent is retried by the clock.
    @Test func whatAnotherProcessDoesIsWaitedFor() throws {
        let busy = ["a": SyncSchedule.Outcome(name: "a", reason: .alreadyRunning)]
        var schedule = schedule("a"), background = self.schedule("a", conditions: .background)
        for _ in 0..<5 { schedule.tell(.user, at: 0); _ = try run(&schedule, 0, failing: busy) }
        #expect(schedule.places[0].failures == 0 && schedule.places[0].reason == .alreadyRunning)
        #expect(schedule.next(0) == .at(30), "the next poll, and nothing before it")
        _ = try run(&background, 0, failing: busy)
        #expect(background.next(1e6) == .whenTold)
        schedule.tell(.save, at: 5)
        #expect(try run(&schedule, 7, failing: busy).places == ["a"])
        #expect(schedule.next(7) == .at(17))
        _ = try run(&schedule, 17, failing: busy)
        #expect(schedule.next(17) == .at(27), "the pending send is not forgotten")
        _ = try run(&schedule, 27)
        #expect(schedule.next(27) == .at(57) && schedule.places[0].reason == .none)
    }

    /// A place without room is sent nothing for an hour; polls still receive from it.
    @Test(arguments: [false, true]) func withoutRoomOnlySendsWaitAnHour(saves: Bool) throws {
        var schedule = schedule("a")
        _ = try run(&schedule, 0, failing: ["a": SyncSchedule.Outcome(name: "a", reason: .noSpace, failedToSend: true)])
        #expect(schedule.places[0].reason == .noSpace && schedule.places[0].sendAt == 3_600)
        var now = 0.0, rounds = 0
        while now < 3_600 {
            if saves { schedule.tell(.save, at: now) }
            guard case .at(let next) = schedule.next(now) else { Issue.record("nothing at \(now)"); return }
            now = next
            guard now < 3_600 else { break }
            guard case .now(let round) = schedule.next(now) else { Issue.record("nothing at \(now)"); return }
            #expect(round == SyncSchedule.Round(places: ["a"], onlySends: false, onlyReceive: ["a"]), "at \(now)")
            schedule.begin(round)
            schedule.finish([SyncSchedule.Outcome(name: "a", sends: false)], at: now)
            #expect(schedule.places[0].reason == .noSpace && schedule.places[0].sendAt == 3_600)
            rounds += 1
        }
        #expect(rounds > 8 && now == 3_600)
        #expect(try run(&schedule, now) == SyncSchedule.Round(places: ["a"], onlySends: false))
        #expect(schedule.places[0].reason == .none && schedule.places[0].sendAt == -.infinity)
    }

    /// A request of the user, or coming to the front, sends at once. If the place cannot be reached meanwhile, receiving is retried first.
    @Test func anExplicitCallSendsAlthoughThereWasNoRoom() throws {
        var schedule = schedule("a", "b")
        let full = ["a": SyncSchedule.Outcome(name: "a", reason: .noSpace, failedToSend: true)]
        _ = try run(&schedule, 0, failing: full)
        schedule.tell(.user, at: 1)
        #expect(schedule.next(1) == whole("a", "b"))
        _ = try run(&schedule, 1, failing: full)
        schedule.tell(.front, at: 10)
        #expect(schedule.next(10) == whole("a", "b"))
        _ = try run(&schedule, 10, failing: full)
        // Saves are sent only to the place that is not full.
        schedule.tell(.save, at: 11)
        #expect(try run(&schedule, 13) == SyncSchedule.Round(places: ["b"], onlySends: true))
        guard case .at(let poll) = schedule.next(14), case .now(let round) = schedule.next(poll) else { Issue.record("nothing"); return }
        #expect(poll < 200 && round.places == ["a", "b"] && round.onlyReceive == ["a"])
        schedule.begin(round)
        schedule.finish([SyncSchedule.Outcome(name: "a", reason: .unreachable, sends: false), SyncSchedule.Outcome(name: "b")], at: poll)
        #expect(schedule.places[0].reason == .unreachable && schedule.places[0].retryAt < poll + 10)
        guard case .now(let again) = schedule.next(poll + 10) else { Issue.record("nothing"); return }
        #expect(again.places == ["a"] && again.onlyReceive == ["a"])
        schedule.begin(again)
        schedule.finish([SyncSchedule.Outcome(name: "a", sends: false)], at: poll + 10)
        #expect(schedule.places[0].reason == .noSpace && schedule.places[0].sendAt == 3_610)
    }

    /// If this device has no room, everything waits. In the background, saves are sent when the hour is over.
    @Test func withoutRoomHere() throws {
        var schedule = schedule("a")
        _ = try run(&schedule, 0, failing: ["a": SyncSchedule.Outcome(name: "a", reason: .noSpace)])
        #expect(schedule.next(10) == .at(3_600))
        var background = self.schedule("a", conditions: .background)
        _ = try run(&background, 0, failing: ["a": SyncSchedule.Outcome(name: "a", reason: .noSpace, failedToSend: true)])
        background.tell(.save, at: 5)
        #expect(background.next(10) == .at(3_600))
    }

    /// Without the right to write, polls continue to receive, and sending waits for a request. If reading is refused, too, everything
    /// waits.
    @Test func whoMayOnlyReadReceives() throws {
        let refused = ["a": SyncSchedule.Outcome(name: "a", reason: .signIn, needsUser: true, failedToSend: true)]
        var schedule = schedule("a")
        _ = try run(&schedule, 0, failing: refused)
        #expect(schedule.places[0].reason == .signIn && schedule.places[0].mayNotSend)
        var now = 0.0
        for _ in 0..<20 {
            schedule.tell(.save, at: now)
            guard case .at(let poll) = schedule.next(now), case .now(let round) = schedule.next(poll) else {
                Issue.record("nothing at \(now)")
                return
            }
            #expect(poll > now && round == SyncSchedule.Round(places: ["a"], onlySends: false, onlyReceive: ["a"]))
            schedule.begin(round)
            schedule.finish([SyncSchedule.Outcome(name: "a", sends: false)], at: poll)
            #expect(schedule.places[0].reason == .signIn)
            now = poll
        }
        for trigger in [SyncSchedule.Trigger.user, .front] {
            now += 10
            schedule.tell(trigger, at: now)
            #expect(schedule.next(now) == whole("a"))
            _ = try run(&schedule, now, failing: refused)
        }
        schedule.begin(SyncSchedule.Round(places: ["a"], onlySends: false, onlyReceive: ["a"]))
        schedule.finish([SyncSchedule.Outcome(name: "a", reason: .signIn, needsUser: true, sends: false)], at: now)
        schedule.tell(.save, at: now)
        #expect(schedule.next(now + 10_000) == .whenTold)
        schedule.tell(.user, at: now)
        _ = try run(&schedule, now)
        #expect(schedule.places[0].reason == .none && !schedule.places[0].mayNotSend)
    }

    /// A round that was triggered by coming to the front ends before it has sent. Without the right to write, receiving continues.
    @Test func whoMayOnlyReadReceivesAfterARoundThatWasInterrupted() throws {
        var schedule = schedule("a")
        _ = try run(&schedule, 0, failing: ["a": SyncSchedule.Outcome(name: "a", reason: .signIn, needsUser: true, failedToSend: true)])
        schedule.tell(.front, at: 10)
        #expect(schedule.next(10) == whole("a"), "it is tried whether writing is allowed by now")
        schedule.begin(SyncSchedule.Round(places: ["a"], onlySends: false))
        schedule.finish([], at: 10, isInterrupted: true)
        guard case .at(let poll) = schedule.next(10) else { Issue.record("nothing"); return }
        #expect(schedule.next(poll) == .now(SyncSchedule.Round(places: ["a"], onlySends: false, onlyReceive: ["a"])))
    }

    @Test func theRetryTimeOfAServerHoldsForAllRequests() throws {
        var schedule = schedule("a")
        _ = try run(&schedule, 0, failing: ["a": SyncSchedule.Outcome(name: "a", reason: .rateLimited, retryAfter: 60)])
        for trigger in [SyncSchedule.Trigger.user, .front, .news, .save] {
            schedule.tell(trigger, at: 1)
            #expect(schedule.next(1) == .at(60))
        }
        #expect(schedule.next(60) == whole("a"))
        // A server that asks for a year gets a day.
        _ = try run(&schedule, 60, failing: ["a": SyncSchedule.Outcome(name: "a", reason: .rateLimited, retryAfter: 1e9)])
        #expect(schedule.places[0].notBefore == 86_460)
    }

    @Test func conditions() throws {
        var offline = schedule("a", conditions: .offline), paused = schedule("a", conditions: .paused)
        #expect(offline.next(0) == .whenTold && paused.next(0) == .whenTold)
        offline.tell(.user, at: 0)
        paused.tell(.user, at: 0)
        #expect(offline.next(0) == whole("a") && paused.next(0) == whole("a"))
        var metered = schedule("a", conditions: [.metered, .lowBattery])
        _ = try run(&metered, 0, moved: true)
        #expect(metered.next(0) == .at(120))
        var background = schedule("a", conditions: .background)
        _ = try run(&background, 0, failing: ["a": SyncSchedule.Outcome(name: "a", reason: .failed)])
        #expect(background.next(1e6) == .whenTold)
        background.tell(.save, at: 1)
        #expect(background.next(2.9) == .at(3))
    }

    @Test func anInterruptedRoundIsGoneOnWith() throws {
        var schedule = schedule("a")
        schedule.begin(SyncSchedule.Round(places: ["a"], onlySends: false))
        schedule.finish([], at: 1, isInterrupted: true)
        #expect(schedule.next(1) == .at(3) && schedule.next(3) == whole("a"))
    }

    /// The saves that triggered the round are sent by the next one, even without polls.
    @Test func anInterruptedRoundLosesNoSaves() throws {
        var schedule = schedule("a", conditions: .background)
        _ = try run(&schedule, 0)
        schedule.tell(.save, at: 10)
        schedule.begin(SyncSchedule.Round(places: ["a"], onlySends: true))
        schedule.finish([], at: 13, isInterrupted: true)
        #expect(schedule.next(13) == .at(15))
    }

    /// A caller that gives up before its round begins withdraws the request. Requests of other callers remain.
    @Test func aRequestIsWithdrawn() throws {
        var schedule = schedule("a", conditions: .offline)
        schedule.wait()
        #expect(schedule.next(0) == whole("a"))
        schedule.withdraw()
        #expect(schedule.next(0) == .whenTold)
        schedule.wait()
        schedule.wait()
        schedule.withdraw()
        #expect(schedule.next(0) == whole("a"))
        schedule.tell(.user, at: 0)
        schedule.withdraw()
        #expect(schedule.next(0) == whole("a"))
    }

    @Test func placesThatStayKeepTheirState() throws {
        var schedule = schedule("a", "b")
        _ = try run(&schedule, 0, failing: ["b": SyncSchedule.Outcome(name: "b", reason: .unreachable)])
        schedule.attach([("b", "b"), ("c", "c")])
        #expect(schedule.places.map(\.name) == ["b", "c"] && schedule.places.map(\.failures) == [1, 0])
    }

    /// In any sequence of events, a round that is due remains due until it is done, and none is due earlier than announced.
    @Test func whateverHappens() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var schedule = SyncSchedule()
            schedule.attach([("a", "a"), ("b", "b")])
            var now = 0.0
            for _ in 0..<200 {
                now += Double.random(in: 0...20, using: &random)
                switch Int.random(in: 0..<8, using: &random) {
                case 0: schedule.tell(.save, at: now)
                case 1: schedule.tell(.front, at: now)
                case 2: schedule.tell(.news, at: now)
                case 3: schedule.tell(.user, at: now)
                case 4: schedule.conditions = Syncer.Conditions(rawValue: UInt32.random(in: 0..<32, using: &random))
                default: break
                }
                switch schedule.next(now) {
                case .at(let next):
                    #expect(next > now)
                    let middle = now + (next - now) / 2
                    if middle > now && middle < next { #expect(schedule.next(middle) == .at(next)) }
                    if case .now = schedule.next(next) {} else { Issue.record("nothing at \(next), as was said at \(now)") }
                case .now(let round):
                    #expect(!round.places.isEmpty)
                    schedule.begin(round)
                    let reasons: [Syncer.Reason] = [.none, .none, .unreachable, .rateLimited, .signIn, .noSpace, .alreadyRunning]
                    schedule.finish(
                        round.places.map {
                            SyncSchedule.Outcome(
                                name: $0, reason: reasons.randomElement(using: &random) ?? .none,
                                retryAfter: Bool.random(using: &random) ? 5 : nil, retrieved: !round.onlySends,
                                moved: Bool.random(using: &random))
                        }, at: now)
                case .whenTold: break
                }
            }
        }
    }
}
