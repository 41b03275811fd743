import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Members that are added and removed, and keys that compete.
@Suite("Encryption: members and epochs") struct KeyMembersTests {
    let crypto: Crypto, store = PackID(high: 0x0001_0203_0405_0607, low: 0x0809_0A0B_0C0D_0E0F)
    let clock = KeyClock(now: { 1_795_000_000 }, wait: { _ in })
    init() throws { crypto = try Crypto(for: "tests") }

    private func code(_ body: () throws -> Void) -> StoreError.Code? {
        do { try body(); return nil } catch { return (error as? StoreError)?.code }
    }
    private func device(_ name: String) throws -> (AgeIdentity, KeyMember) {
        let identity = try AgeIdentity(crypto)
        return (identity, KeyMember(name: name, kind: .device, recipient: identity.recipient, added: "2026-11-22T20:00:00Z"))
    }
    private func open(_ place: KeyDirectory, _ identity: AgeIdentity, pin: StoreKeys.Pin? = nil) throws -> StoreKeys {
        try StoreKeys.open(place, stores: [store], StoreKeys.Unlocking(identities: [identity]), pin: pin, crypto)
    }
    private func created(_ place: KeyDirectory, _ members: [KeyMember]) throws -> StoreKeys {
        try StoreKeys.create(in: place, store: store, passphrase: nil, members: members, hasRecovery: false, clock, crypto).keys
    }

    @Test func aDeviceIsAddedAndRemoved() throws {
        let place = MemoryKeyDirectory(), (a, memberA) = try device("a"), (b, memberB) = try device("b")
        let first = try created(place, [memberA])
        let second = try first.adding(memberB, in: place, crypto)
        #expect(second.pin == first.pin && place.rings.count == 2)
        #expect(try open(place, b).pin == first.pin && open(place, b).members.count == 2)
        #expect(try second.adding(memberB, in: place, crypto).members.count == 2 && place.rings.count == 2)

        let third = try second.rotating("b was lost", removing: [b.recipient], in: place, clock, crypto)
        #expect(third.current.number == 2 && third.members == [memberA] && third.removed == [b.recipient])
        let seen = try open(place, a, pin: first.pin)
        #expect(seen.pin == third.pin && seen.epochs.map(\.number) == [1, 2] && seen.current.why == "b was lost" && seen.fork == nil)
        // The former member keeps its epochs, and lacks the new one.
        #expect(try open(place, b).pin == first.pin)
        #expect(code { _ = try third.adding(memberB, in: place, crypto) } == .invalidArgument)
        #expect(code { _ = try third.rotating("", removing: [b.recipient], in: place, clock, crypto) } == .invalidArgument)
        #expect(code { _ = try third.rotating("", removing: [a.recipient], in: place, clock, crypto) } == .invalidArgument)
        // The result is the same without the older rings.
        for name in place.rings.dropLast() { place.files[name] = nil }
        #expect(try open(place, a, pin: first.pin).pin == third.pin && open(place, a).epochs.count == 2)
        #expect(code { _ = try open(place, b) } == .wrongKey)
    }

    @Test func twoThatAddAtOnceBothCount() throws {
        let place = MemoryKeyDirectory(), (a, memberA) = try device("a"), (b, memberB) = try device("b"), (c, memberC) = try device("c")
        let keys = try created(place, [memberA])
        _ = try keys.adding(memberB, in: place, crypto)
        _ = try keys.adding(memberC, in: place, crypto)
        for identity in [a, b, c] { #expect(try open(place, identity).pin == keys.pin) }
        #expect(Set(try open(place, a).members.map(\.name)) == ["a", "b", "c"])
        // A member that was added while another device began an epoch is reported as left out.
        let place2 = MemoryKeyDirectory(), begun = try created(place2, [memberA])
        _ = try begun.rotating("regular", in: place2, clock, crypto)
        _ = try begun.adding(memberB, in: place2, crypto)
        let seen = try open(place2, a)
        #expect(seen.current.number == 2 && seen.members == [memberA] && seen.leftOut == [memberB])
    }

    @Test func twoRotationsAtOnceAreJoined() throws {
        let place = MemoryKeyDirectory(), (a, memberA) = try device("a"), (b, memberB) = try device("b"), (c, memberC) = try device("c")
        let first = try created(place, [memberA, memberB, memberC])
        let one = try first.rotating("by a", removing: [c.recipient], in: place, clock, crypto)
        let two = try first.rotating("by b", in: place, clock, crypto)
        #expect(one.pin != two.pin && one.current.number == 2 && two.current.number == 2)
        // Each device continues with its own epoch, and reads the other's.
        for (identity, keys, other) in [(a, one, two), (b, two, one)] {
            let seen = try open(place, identity, pin: keys.pin)
            #expect(seen.pin == keys.pin && seen.fork?.code == .keysForked && seen.forked.map(\.recipient) == [other.pin.recipient])
            #expect(seen.epochs.count == 3)
        }
        // Devices that know neither epoch all choose the same one.
        #expect(try open(place, a, pin: first.pin).pin == open(place, b, pin: first.pin).pin)
        let joined = try open(place, a, pin: one.pin).joining(in: place, clock, crypto)
        #expect(joined.current.number == 3 && joined.epochs.count == 4 && joined.fork == nil)
        for (identity, pin) in [(a, one.pin), (b, two.pin), (a, first.pin)] {
            let seen = try open(place, identity, pin: pin)
            #expect(seen.pin == joined.pin && seen.fork == nil && seen.epochs.count == 4 && Set(seen.members.map(\.name)) == ["a", "b"])
        }
        // The member was removed on one side, so it stays removed.
        #expect(try open(place, c).pin == two.pin && joined.removed == [c.recipient])
    }

    /// Keys of two first devices are joined if the passphrase opens both: without one the other device may be a stranger, who knows the
    /// recipients.
    @Test(arguments: [false, true]) func twoFirstDevicesAreJoined(byPassphrase: Bool) throws {
        let place = MemoryKeyDirectory(), (a, memberA) = try device("a"), (b, memberB) = try device("b")
        let other = MemoryKeyDirectory(), words = "one two three"
        func made(_ place: KeyDirectory) throws -> StoreKeys {
            try StoreKeys.create(
                in: place, store: store, passphrase: byPassphrase ? Secret(words) : nil, members: [memberA, memberB], hasRecovery: false,
                clock, crypto
            ).keys
        }
        func opened(_ identity: AgeIdentity, pin: StoreKeys.Pin) throws -> StoreKeys {
            let unlocking = StoreKeys.Unlocking(passphrase: byPassphrase ? try Secret(words) : nil, identities: [identity])
            return try StoreKeys.open(place, stores: [store], unlocking, pin: pin, crypto)
        }
        let one = try made(place), two = try made(other)
        place.files.merge(other.files) { $1 }
        let seenA = try opened(a, pin: one.pin), seenB = try opened(b, pin: two.pin)
        #expect(seenA.pin == one.pin && seenB.pin == two.pin && seenA.fork?.code == .keysForked)
        // No epoch that the device knows vouches for the other one.
        #expect(seenA.epochs.map(\.recipient) == [one.pin.recipient])
        guard byPassphrase else {
            let before = place.files
            #expect(code { _ = try seenA.joining(in: place, clock, crypto) } == .keysForked && place.files == before)
            #expect(seenA.fork?.message.contains(place.rings.first { one.files.map(\.description) != [$0] } ?? "none") == true)
            return
        }
        let joined = try seenA.joining(in: place, clock, crypto)
        #expect(joined.current.number == 2 && joined.epochs.count == 3)
        for (identity, pin) in [(a, one.pin), (b, two.pin)] {
            let seen = try opened(identity, pin: pin)
            #expect(seen.pin == joined.pin && seen.fork == nil && seen.epochs.count == 3)
            // The passphrase has two identities, of which this device's stays a member.
            #expect(seen.members == one.members && seen.leftOut.map(\.kind) == [.passphrase])
        }
    }

    /// A former member adds a device of its own under old keys, and makes keys that compete. Joining takes neither, and both are reported.
    @Test func joiningTakesNoMemberOfTheOtherSide() throws {
        let place = MemoryKeyDirectory(), (a, memberA) = try device("a"), (b, memberB) = try device("b"), (_, spare) = try device("spare")
        let (_, late) = try device("late")
        let first = try created(place, [memberA, memberB])
        let second = try first.rotating("b left", removing: [b.recipient], in: place, clock, crypto)
        _ = try first.adding(spare, in: place, crypto)
        let seen = try open(place, a, pin: second.pin)
        #expect(seen.leftOut == [spare] && seen.lacking?.message.contains("\(spare.recipient)") == true)
        _ = try first.adding(late, in: place, crypto).rotating("forged", in: place, clock, crypto)
        let joined = try open(place, a, pin: second.pin).joining(in: place, clock, crypto)
        #expect(joined.members == [memberA])
        let after = try open(place, a, pin: joined.pin)
        #expect(after.fork == nil && after.members == [memberA] && Set(after.leftOut) == [spare, late])
        #expect(code { _ = try open(place, b, pin: joined.pin) } != nil)
        // Either is added by a person, or removed.
        _ = try after.adding(spare, in: place, crypto)
        _ = try open(place, a, pin: joined.pin).rotating("unknown", removing: [late.recipient], in: place, clock, crypto)
        let settled = try open(place, a, pin: joined.pin)
        #expect(settled.leftOut.isEmpty && Set(settled.members) == [memberA, spare] && settled.lacking == nil)
    }

    /// A former member makes competing keys in which another member is removed. Joining keeps that member, and reports it until the file is
    /// gone.
    @Test func joiningTakesNoRemovalOfAFormerMember() throws {
        let place = MemoryKeyDirectory(), (a, memberA) = try device("a"), (b, memberB) = try device("b"), (h, memberH) = try device("h")
        let first = try created(place, [memberA, memberB, memberH])
        let second = try first.rotating("b left", removing: [b.recipient], in: place, clock, crypto), before = Set(place.rings)
        _ = try first.rotating("forged", removing: [h.recipient], in: place, clock, crypto)
        let joined = try open(place, a, pin: second.pin).joining(in: place, clock, crypto)
        #expect(Set(joined.members) == [memberA, memberH] && joined.removed == [b.recipient])
        #expect(try open(place, h, pin: second.pin).pin == joined.pin)
        let seen = try open(place, a, pin: joined.pin)
        #expect(seen.pin == joined.pin && seen.fork == nil && seen.contested?.message.contains("\(h.recipient)") == true)
        for name in place.rings where !before.contains(name) && !joined.files.prefix(1).map(\.description).contains(name) {
            #expect(try open(place, a, pin: joined.pin).contested?.message.contains(name) == true)
            place.files[name] = nil
        }
        #expect(try open(place, a, pin: joined.pin).contested == nil)
    }

    /// A device that has used no keys of the place sends nothing while keys compete: a former member may have made those that it finds.
    /// Once a member joins them it sends.
    @Test func aNewDeviceAndKeysThatCompete() throws {
        let place = MemoryKeyDirectory(), (a, memberA) = try device("a"), (b, memberB) = try device("b"), (c, memberC) = try device("c")
        let first = try created(place, [memberA, memberB])
        let second = try first.rotating("b left", removing: [b.recipient], in: place, clock, crypto).adding(memberC, in: place, crypto)
        #expect(try open(place, c).doubt == nil)
        let forged = try first.adding(memberC, in: place, crypto).rotating("forged", in: place, clock, crypto)
        let new = try open(place, c)
        #expect([second.pin, forged.pin].contains(new.pin) && new.doubt?.code == .keysForked)
        // A device that has used the keys goes on.
        #expect(try open(place, a, pin: second.pin).doubt == nil)
        let joined = try open(place, a, pin: second.pin).joining(in: place, clock, crypto)
        var notes = KeyFileNotes()
        let later = try StoreKeys.open(
            place, stores: [store], StoreKeys.Unlocking(identities: [c]), pin: new.pin, isNew: true, &notes, crypto)
        #expect(later.pin == joined.pin && later.doubt == nil)
    }

    /// A stranger who knows the recipient of a device stops no new device that opens the place by the passphrase.
    @Test func aNewDeviceWithThePassphraseBesideAStranger() throws {
        let place = MemoryKeyDirectory(), (a, memberA) = try device("a"), (_, stranger) = try device("stranger"), words = "one two three"
        _ = try StoreKeys.create(
            in: place, store: store, passphrase: Secret(words), members: [memberA], hasRecovery: false, clock, crypto)
        // Later keys are found behind those of the members.
        let other = MemoryKeyDirectory()
        _ = try created(MemoryKeyDirectory(), [memberA, stranger]).rotating("a stranger's", in: other, clock, crypto)
        place.files.merge(other.files) { $1 }
        let unlocking = StoreKeys.Unlocking(passphrase: try Secret(words), identities: [a])
        let seen = try StoreKeys.open(place, stores: [store], unlocking, pin: nil, crypto)
        #expect(seen.members.contains { $0.kind == .passphrase } && seen.doubt == nil && seen.fork != nil)
        #expect(try open(place, a).doubt?.code == .keysForked)
    }

    /// The passphrase of keys that were joined stays one when it is added again, and goes with the other one after a leak.
    @Test func aJoinedPassphraseIsOne() throws {
        let place = MemoryKeyDirectory(), other = MemoryKeyDirectory(), words = "one two three"
        func made(_ place: KeyDirectory) throws -> StoreKeys {
            try StoreKeys.create(in: place, store: store, passphrase: Secret(words), hasRecovery: false, clock, crypto).keys
        }
        let one = try made(place), two = try made(other)
        place.files.merge(other.files) { $1 }
        func seen(_ words: String, _ pin: StoreKeys.Pin) throws -> StoreKeys {
            try StoreKeys.open(place, stores: [store], StoreKeys.Unlocking(passphrase: try Secret(words)), pin: pin, crypto)
        }
        let joined = try seen(words, one.pin).joining(in: place, clock, crypto), late = try #require(two.members.first)
        let added = try seen(words, joined.pin).adding(
            KeyMember(name: "the other", kind: .device, recipient: late.recipient, added: ""), in: place, crypto)
        #expect(added.members.map(\.kind) == [.passphrase, .passphrase])
        let changed = try seen(words, added.pin).replacingPassphrase(by: Secret("another"), in: place, clock, crypto)
        #expect(changed.members.count == 1 && changed.removed.count == 2)
    }

    /// A ring whose number no sequence of changes gives is no ring: after a join, few numbers would be left. Keys of very many epochs are
    /// not joined.
    @Test func numbersThatAreTooHigh() throws {
        let place = MemoryKeyDirectory(), (a, memberA) = try device("a"), keys = try created(place, [memberA])
        func add(_ numbers: [UInt32]) throws -> String {
            let more = try numbers.map { try KeyEpoch(number: $0, identity: AgeIdentity(crypto), made: "", why: "", crypto) }
            let ring = try KeyRing(store: store, epochs: keys.epochs + more, members: [memberA], removed: [])
            let bytes = try AgeWriter.encrypt(ring.encoded(crypto), for: .recipients([a.recipient]), crypto)
            let name = KeyFileName.ring(epoch: try #require(numbers.last), id: KeyFileName.id(of: bytes)).description
            place.files[name] = bytes
            return name
        }
        for number in [3, UInt32.max - 1] {
            let name = try add([number]), seen = try open(place, a)
            #expect(seen.pin == keys.pin && seen.fork == nil && seen.problems.map(\.error.code) == [.damaged], "\(number)")
            place.files[name] = nil
        }
        let first = try keys.rotating("regular", in: place, clock, crypto)
        _ = try add(Array(2...(1 + UInt32(KeyRing.joinedLimit))))
        #expect(try open(place, a, pin: first.pin).others.count == 1)
        _ = try add(Array(2...(2 + UInt32(KeyRing.joinedLimit))))
        #expect(try open(place, a, pin: first.pin).others.count == 1)
    }

    /// Members without the newest keys are reported on after the passphrase leaked: the new one opens no older ring.
    @Test func membersWithoutKeysAfterALeak() throws {
        let place = MemoryKeyDirectory(), (b, memberB) = try device("b"), words = "one two three"
        let first = try StoreKeys.create(in: place, store: store, passphrase: Secret(words), hasRecovery: false, clock, crypto).keys
        _ = try first.rotating("regular", in: place, clock, crypto)
        _ = try first.adding(memberB, in: place, crypto)
        func seen(_ words: String) throws -> StoreKeys {
            try StoreKeys.open(place, stores: [store], StoreKeys.Unlocking(passphrase: try Secret(words)), crypto)
        }
        let before = try seen(words)
        #expect(before.leftOut == [memberB])
        let after = try before.replacingPassphrase(by: Secret("another"), in: place, clock, crypto)
        #expect(after.leftOut == [memberB])
        let later = try seen("another")
        #expect(later.pin == after.pin && later.leftOut == [memberB] && later.lacking?.message.contains("\(b.recipient)") == true)
        _ = try later.rotating("b is unknown", removing: [b.recipient], in: place, clock, crypto)
        #expect(try seen("another").leftOut.isEmpty)
    }

    /// A new device reads each file once, however many there are and whatever it remembers, and a bounded number in one call.
    @Test func aTurnThroughAllFiles() throws {
        var notes = KeyFileNotes(), count: [KeyFileName: Int] = [:], calls = 0, left = 1, random = TestRandom(state: 7)
        let names = (0..<30_000).map { _ in
            KeyFileName.ring(epoch: 1, id: PackID(high: UInt64.random(in: 0...UInt64.max, using: &random), low: 1))
        }
        notes.next = names[5]
        while left > 0, calls < 20 {
            calls += 1
            let chosen = notes.chosen(names, isNew: true)
            #expect(chosen.new.count <= KeyFileNotes.filesOfNew)
            // Rings that open are not remembered for which there is no room; nor are files beyond the limit.
            for (n, name) in chosen.new.enumerated() {
                count[name, default: 0] += 1
                if n % 2 == 0 { notes.note(name, .others) }
            }
            notes.next = chosen.new.last ?? notes.next
            left = chosen.left
        }
        #expect(left == 0 && calls == 8 && count.count == names.count && count.values.allSatisfy { $0 == 1 })
    }

    /// Two devices make keys at once, and each sees the other's before it writes anything. Both use the same keys, and no others remain.
    @Test(arguments: [false, true]) func twoFirstDevicesAgree(byPassphrase: Bool) throws {
        // Each use of a passphrase costs a fifth of a second, so the usual run has two rounds: neither set of keys was used, or one of them
        // was.
        for round in byPassphrase ? sample(usual: [1, 2], deep: [0, 1, 2, 3]) : [0, 1, 2, 3] {
            let place = MemoryKeyDirectory(), other = MemoryKeyDirectory(), (a, memberA) = try device("a"), (b, memberB) = try device("b")
            func made(_ place: KeyDirectory, _ members: [KeyMember]) throws -> StoreKeys {
                try StoreKeys.create(
                    in: place, store: store, passphrase: byPassphrase ? Secret("one two three") : nil, members: members,
                    hasRecovery: false, clock, crypto
                ).keys
            }
            // With a passphrase, neither device needs to know the other's recipient.
            let one = try made(place, byPassphrase ? [memberA] : [memberA, memberB])
            let two = try made(other, byPassphrase ? [memberB] : [memberA, memberB])
            place.files.merge(other.files) { $1 }
            func agreed(_ keys: StoreKeys, _ identity: AgeIdentity, used: StoreKeys.Pin?) throws -> StoreKeys {
                let unlocking = StoreKeys.Unlocking(passphrase: byPassphrase ? try Secret("one two three") : nil, identities: [identity])
                var notes = KeyFileNotes()
                return try keys.agreed(in: place, unlocking, clock, crypto, &notes) { $0.pin == used }
            }
            // Keys that were used prevail; otherwise those with the smaller recipient.
            let used = round < 2 ? nil : round == 2 ? one.pin : two.pin
            let expected = try #require(used ?? [one.pin, two.pin].min { $0.recipient < $1.recipient })
            let first = try agreed(round == 0 ? one : two, round == 0 ? a : b, used: used)
            let second = try agreed(round == 0 ? two : one, round == 0 ? b : a, used: used)
            #expect(first.pin == expected && second.pin == expected && second.fork == nil && second.leftOut.isEmpty)
            #expect(place.passphrases.count == (byPassphrase ? 1 : 0))
            for identity in [a, b] {
                let seen = try open(place, identity)
                #expect(seen.pin == expected && seen.fork == nil && seen.epochs.count == 1)
                #expect(Set(seen.members.map(\.name)) == (byPassphrase ? ["a", "b", "passphrase"] : ["a", "b"]))
            }
        }
    }

    /// A removed member knows the old keys and all recipients, and can write to the place.
    @Test func aFormerMemberMisleadsNoDevice() throws {
        let place = MemoryKeyDirectory(), (a, memberA) = try device("a"), (b, memberB) = try device("b")
        let first = try created(place, [memberA, memberB])
        let second = try first.rotating("b left", removing: [b.recipient], in: place, clock, crypto)
        // The former member writes as a device that does not know of the second epoch.
        let forged = try first.rotating("forged", in: place, clock, crypto)
        let further = try forged.rotating("forged", in: place, clock, crypto)
        let seen = try open(place, a, pin: second.pin)
        #expect(seen.pin == second.pin && seen.fork?.code == .keysForked && seen.members == [memberA])
        #expect(Set(seen.forked.map(\.recipient)) == [forged.pin.recipient, further.pin.recipient])
        // New keys, as if no keys existed.
        let anew = MemoryKeyDirectory()
        _ = try created(anew, [memberA, memberB])
        #expect(code { _ = try open(anew, a, pin: second.pin) } == .keysForked)
        // A wrong tag.
        var ring = try KeyRing(store: store, epochs: second.epochs, members: [memberA], removed: [])
        ring.members.append(memberB)
        let lines = AgeTools.plain(try ring.encoded(crypto))
        var bad = lines
        bad[lines.firstIndex(of: UInt8(ascii: "b"))!] ^= 1
        #expect(throws: AgeFault.self) { _ = try KeyRing(Secret(bad), crypto) }
        #expect(try KeyRing(Secret(lines), crypto).members.count == 2)
    }

    @Test func ringsOfAnyFormAreRefusedOrRead() throws {
        let (_, member) = try device("a"), place = MemoryKeyDirectory()
        let keys = try created(place, [member])
        let good = AgeTools.plain(try KeyRing(store: store, epochs: keys.epochs, members: keys.members, removed: []).encoded(crypto))
        var random = TestRandom(state: 11)
        for _ in 0..<sample(usual: 400, deep: 1_500) {
            var bad = good
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let at = Int.random(in: 0..<bad.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bad[at] = UInt8.random(in: 0...255, using: &random)
                case 1: bad.remove(at: at)
                default: bad.insert(UInt8.random(in: 32...126, using: &random), at: at)
                }
            }
            if bad == good { continue }
            do {
                let ring = try KeyRing(Secret(bad), crypto)
                // Only bytes that no tag covers can differ: another spelling of the lines of tags.
                #expect(bad.split(separator: 0x0A).first == good.split(separator: 0x0A).first && ring.members == keys.members)
            } catch let fault as AgeFault { #expect(fault.kind != .wrongKey) }
        }
    }
}
