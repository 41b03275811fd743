import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Encrypted remotes, on a place in memory: docs/encryption.md.
@Suite("Packed: encrypted") struct EncryptedExchangeTests {
    private let mine = Identity(), other = Identity()

    /// The two halves of an identity, as texts.
    private struct Identity {
        let secret: [UInt8], recipient: String
        init() {
            guard let made = try? RemoteIdentity() else { fatalError("no libcrypto") }
            secret = made.withSecret { Array($0) }
            recipient = made.recipient
        }
        func keys(_ recipients: [String] = []) throws -> RemoteKeys {
            try secret.withUnsafeBytes { try RemoteKeys(identities: [$0], recipients: recipients) }
        }
    }
    private func words(_ text: String) throws -> RemoteKeys { try Array(text.utf8).withUnsafeBytes { try RemoteKeys(passphrase: $0) } }
    private func device(_ place: MemoryPlace, fanIn: Int = 8) throws -> PackedDevice {
        try PackedDevice(place, fanIn: fanIn, keys: mine.keys([other.recipient]))
    }
    private func expectRefusal(_ code: StoreError.Code, _ device: PackedDevice, _ place: MemoryPlace, _ what: String = "") {
        let before = place.files
        for step in 0..<2 {
            do {
                if step == 0 { _ = try device.exchange.retrieve() } else { _ = try device.exchange.send() }
                Issue.record("it was not refused: \(what)")
            } catch let error as StoreError { #expect(error.code == code, "\(what): \(error.message)") } catch { Issue.record("\(error)") }
        }
        #expect(place.files == before, "\(what): something was written")
    }

    @Test func nothingIsThereInClear() throws {
        let place = MemoryPlace(), a = try device(place, fanIn: 2), b = try PackedDevice(place, keys: other.keys())
        let large = Array("SECRETLARGE".utf8) + Filling.pattern(PackFormat.inlineValue)
        let version = try a.save("SECRETID", large)
        for n in 0..<4 {
            try a.exchangeOnce()
            try a.save("SECRETID\(n)", Array("SECRETVALUE".utf8))
        }
        try a.exchangeOnce()
        #expect(place.names(.base).count > 0 && place.names(.blob).count == 1)
        try b.exchangeOnce()
        #expect(b.ids == a.ids && a.ids.count == 5)
        #expect(try b.store.value(ValueID("SECRETID"), at: version)?.data == large)
        for (name, bytes) in place.files {
            #expect(bytes.starts(with: AgeHeader.magic), "\(name)")
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(!text.contains("SECRET") && !name.contains("SECRET") && !text.contains(mine.recipient), "\(name)")
            #expect(!a.ids.contains { text.contains($0.description) }, "\(name)")
        }
        // Each request takes 12 simulated minutes, so keys are listed again and merged packs are deleted.
        let asked = try a.exchangeOnce()
        #expect(asked.first == "list pack1/keys" && !asked.contains { $0.hasPrefix("publish") }, "nothing new: \(asked)")
        try b.save()
        try b.exchangeOnce()
        try a.exchangeOnce()
        #expect(a.ids == b.ids && a.ids.count == 6)
        #expect(try a.exchange.retrieve(verifyKnown: true).problems.isEmpty)
    }

    /// If several devices create the place at once, one of them may have sent under keys that were then given up. It starts again with the
    /// keys that are at the place. If it has used its own keys for longer, they may have been replaced, so it refuses.
    @Test(arguments: [false, true]) func keysThatGaveWay(isLater: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place, keys: words("six words"))
        let b = try PackedDevice(place, keys: words("six words"))
        place.pace = 1
        try a.save("a")
        try b.save("b")
        try a.exchangeOnce()
        let lost = place.files.filter { !$0.key.hasPrefix("pack1/keys/") }
        place.files = [:]
        try b.exchangeOnce()
        let others = place.files
        place.files.merge(lost) { one, _ in one }
        if isLater {
            place.clock += 7_200
            return expectRefusal(.keysForked, a, place, "keys that were used for long")
        }
        a.restart()
        for device in [a, b, a] { try device.exchangeOnce() }
        #expect(a.ids == b.ids && a.ids.count == 2)
        #expect(!place.files.keys.contains { lost[$0] != nil } && others.keys.allSatisfy { place.files[$0] != nil })
        #expect(try a.exchange.retrieve().problems.isEmpty && b.exchange.retrieve().problems.isEmpty)
    }

    @Test func passphrases() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, keys: words("six words"))
        try a.save()
        try a.exchangeOnce()
        let b = try PackedDevice(place, keys: words("six words"))
        try b.exchangeOnce()
        #expect(b.ids == a.ids)
        let c = try PackedDevice(place, keys: words("seven words"))
        try c.save()
        expectRefusal(.wrongKey, c, place)
    }

    @Test func bothSidesAgreeWhetherThereAreKeys() throws {
        let place = MemoryPlace(), a = try device(place)
        try a.save()
        try a.exchangeOnce()
        let plain = try PackedDevice(place)
        try plain.save()
        expectRefusal(.keyMissing, plain, place, "new, without keys")
        let stranger = try PackedDevice(place, keys: Identity().keys())
        try stranger.save()
        expectRefusal(.wrongKey, stranger, place, "new, with others")
        // The same device, with its memory of the place but without its keys.
        let forgetful = try a.clone(random: { 7 }, keys: nil)
        try forgetful.save()
        expectRefusal(.keyMissing, forgetful, place, "known, without keys")
        // An unencrypted place, for a new device and for a device that knows the place.
        let clear = MemoryPlace(), b = try PackedDevice(clear)
        try b.save()
        try b.exchangeOnce()
        let new = try device(clear)
        try new.save()
        expectRefusal(.keyMissing, new, clear, "in clear")
        let known = try b.clone(random: { 8 }, keys: mine.keys())
        try known.save()
        expectRefusal(.keyMissing, known, clear, "in clear, and known so")
        let single = MemoryPlace(), c = try device(single)
        single.put("versions/\(try c.save())", [1])
        #expect(throws: StoreError.self) { try c.exchangeOnce() }
        #expect(single.files.count == 1)
        // The keys are gone: for a device that had them, and for a new one.
        for name in place.files.keys where name.hasPrefix("pack1/keys/") { place.remove(name) }
        a.restart()
        try a.save()
        expectRefusal(.keyMissing, a, place, "keys are gone")
        let late = try device(place)
        try late.save()
        expectRefusal(.keyMissing, late, place, "keys are gone, new")
    }

    @Test func anyByteThatIsChangedIsNoticed() throws {
        let place = MemoryPlace(), a = try device(place)
        try a.save()
        try a.exchangeOnce()
        for (name, good) in place.files {
            for i in stride(from: 0, to: good.count, by: sample(usual: 53, deep: 7)) {
                for isNamed in [false, true] {
                    let now = MemoryPlace()
                    now.files = place.files
                    var bad = good, text = name
                    bad[i] ^= 0x20
                    if isNamed {
                        text = String(name.dropLast(26)) + (PackID(SHA256.digest(bad))?.description ?? "")
                        now.files[name] = nil
                    }
                    now.files[text] = bad
                    let b = try device(now), before = now.files
                    do {
                        let problems = try b.exchange.retrieve().problems
                        let isRoot = name.contains("root-")
                        #expect(b.ids.isEmpty || (isRoot && !isNamed), "\(name) \(i)")
                        if isNamed { #expect(!problems.isEmpty, "\(name) \(i)") }
                    } catch let error as StoreError {
                        #expect([.damaged, .cutShort, .foreignFile, .wrongKey, .keyMissing, .newerFormat, .tooLarge].contains(error.code))
                    }
                    #expect(b.ids.isEmpty && now.files == before, "\(name) \(i)")
                }
            }
        }
    }

    @Test func filesThatAreSwappedOrReplayed() throws {
        let place = MemoryPlace(), a = try device(place)
        for n in 0..<2 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        let logs = place.names(.log).sorted { $0.last < $1.last }
        let one = try #require(place.files[logs[0].description]), two = try #require(place.files[logs[1].description])
        // Each file has the other's name.
        let swapped = MemoryPlace()
        swapped.files = place.files
        swapped.files[logs[0].description] = two
        swapped.files[logs[1].description] = one
        let b = try device(swapped)
        _ = try b.exchange.retrieve()
        #expect(b.ids.isEmpty)
        // The first pack's bytes as a later pack of the writer, under a matching name.
        let replayed = MemoryPlace()
        replayed.files = place.files
        var name = logs[0]
        name.first = 9
        name.last = 9
        replayed.files[name.description] = one
        let c = try device(replayed)
        #expect(try c.exchange.retrieve().problems.map(\.error.code) == [.damaged])
        #expect(c.ids == a.ids)
        // A file that was merged and deleted returns.
        let d = try device(place)
        try d.exchangeOnce()
        for n in 2..<20 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        place.clock += 1_000
        try a.exchangeOnce()
        #expect(place.files[logs[0].description] == nil)
        place.put(logs[0].description, one)
        for device in [d, try self.device(place)] {
            #expect(try device.exchange.retrieve().problems.isEmpty)
            #expect(device.ids == a.ids)
        }
    }

    @Test func rootsOfAnotherStore() throws {
        let place = MemoryPlace(), a = try device(place)
        try a.save()
        try a.exchangeOnce()
        let right = try #require(place.names(.root).first)
        // Roots of an unencrypted place and of other keys, and many files that are no packs, with the smallest ids.
        let clear = MemoryPlace(), b = try PackedDevice(clear)
        try b.save()
        try b.exchangeOnce()
        let others = MemoryPlace(), c = try PackedDevice(others, keys: other.keys())
        try c.save()
        try c.exchangeOnce()
        for from in [clear, others] {
            let root = try #require(from.names(.root).first).description
            place.files[root] = from.files[root]
        }
        for n in 0..<60 {
            let root = PackName(kind: .root, id: PackID(high: 0, low: UInt64(n)))
            place.files[root.description] = [1, 2, 3]
        }
        let d = try device(place)
        _ = try d.exchange.retrieve()
        #expect(d.ids == a.ids)
        try d.save()
        _ = try d.exchange.send()
        _ = try a.exchange.retrieve()
        #expect(a.ids == d.ids && a.ids.count == 2)
        // Without the right root, nothing is sent and no new one is created.
        place.remove(right.description)
        let e = try device(place), before = place.files
        try e.save()
        _ = try e.exchange.retrieve()
        #expect(throws: StoreError.self) { try e.exchange.send() }
        #expect(place.files == before)
    }

    @Test func twoAtOnceMakeOneSetOfKeys() throws {
        let place = MemoryPlace(), b = try PackedDevice(place, keys: other.keys([mine.recipient]))
        try b.save("b")
        let a = try PackedDevice(place, keys: mine.keys(), wait: { if place.files.isEmpty { try b.exchangeOnce() } })
        try a.save("a")
        try a.exchangeOnce()
        #expect(place.files.keys.filter { $0.hasPrefix("pack1/keys/") }.count == 1)
        try b.exchangeOnce()
        try a.exchangeOnce()
        #expect(a.ids == b.ids && a.ids.count == 2)
    }

    /// One device is a moment later than the other, which has already sent when the first writes its keys. The first continues with the
    /// keys of the other.
    @Test(arguments: [false, true]) func twoAtTheSameMomentMakeOneSetOfKeys(byPassphrase: Bool) throws {
        let place = MemoryPlace()
        let b = try PackedDevice(place, keys: byPassphrase ? words("one two three") : other.keys([mine.recipient]))
        let a = try PackedDevice(place, keys: byPassphrase ? words("one two three") : mine.keys([other.recipient]))
        let c = try PackedDevice(place, keys: byPassphrase ? words("one two three") : mine.keys())
        try a.save("a")
        try b.save("b")
        var isFirst = true
        a.files.before = { [unowned a] in
            guard isFirst, a.files.asked.last?.hasPrefix("publish pack1/keys/") ?? false else { return }
            isFirst = false
            try b.exchangeOnce()
        }
        for device in [a, b, a, b] {
            _ = try device.exchange.retrieve()
            #expect(try device.exchange.send().problems.isEmpty)
        }
        #expect(!isFirst && a.ids == b.ids && a.ids.count == 2 && a.known?.pin == b.known?.pin)
        #expect(place.files.keys.filter { $0.hasPrefix("pack1/keys/ring-") }.count == 1)
        #expect(try c.exchange.retrieve().problems.isEmpty && c.ids == a.ids)
    }

    /// A device makes keys at the same moment as another, and its call ends before it has checked the other's keys. Its next call does.
    @Test(arguments: [false, true]) func keysThatWereNotAgreedOnYet(isStartedAnew: Bool) throws {
        let place = MemoryPlace(), b = try PackedDevice(place, keys: other.keys([mine.recipient]))
        let a = try PackedDevice(place, keys: mine.keys([other.recipient]))
        try a.save("a")
        try b.save("b")
        var isCut = false
        a.files.before = { [unowned a] in
            let asked = a.files.asked.last ?? ""
            if asked.hasPrefix("publish pack1/keys/"), place.files.isEmpty { try b.exchangeOnce() }
            let rings = place.files.keys.filter { $0.hasPrefix("pack1/keys/ring-") }
            guard asked == "list pack1/keys", rings.count == 2, !isCut else { return }
            isCut = true
            throw MemoryFiles.lost
        }
        _ = try a.exchange.retrieve()
        #expect(throws: StoreError.self) { try a.exchange.send() }
        #expect(isCut)
        if isStartedAnew { a.restart() }
        for device in [a, b, a, b] {
            _ = try device.exchange.retrieve()
            #expect(try device.exchange.send().problems.isEmpty)
        }
        #expect(a.ids == b.ids && a.ids.count == 2 && a.known?.pin == b.known?.pin)
        #expect(place.files.keys.filter { $0.hasPrefix("pack1/keys/ring-") }.count == 1)
    }

    @Test func members() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, keys: mine.keys())
        #expect(throws: StoreError.self) { try a.exchange.members() }
        try a.save("one")
        try a.exchangeOnce()
        #expect(try a.exchange.members().map(\.recipient) == [mine.recipient])
        let b = try PackedDevice(place, keys: other.keys())
        expectRefusal(.wrongKey, b, place)
        try a.exchange.addMember(other.recipient, name: "the phone")
        try b.exchangeOnce()
        #expect(b.ids == a.ids)
        #expect(try b.exchange.members().first { $0.recipient == other.recipient }?.name == "the phone")
        let rings = place.files.filter { $0.key.contains("/ring-") }
        // Later versions are not readable for a former member.
        try a.exchange.removeMember(other.recipient)
        #expect(throws: StoreError.self) { try a.exchange.removeMember(other.recipient) }
        #expect(throws: StoreError.self) { try a.exchange.addMember(other.recipient) }
        try a.save("two")
        try a.exchangeOnce()
        #expect(try b.exchange.retrieve().problems.map(\.error.code) == [.keyMissing])
        #expect(b.ids.count == 1)
        let late = try PackedDevice(place, keys: other.keys())
        #expect(try late.exchange.retrieve().problems.contains { $0.error.code == .keyMissing })
        #expect(late.ids.count == 1)
        // The others continue, and an old state of the keys readmits no former member.
        let c = try PackedDevice(place, keys: mine.keys())
        try c.exchangeOnce()
        #expect(c.ids == a.ids && c.ids.count == 2)
        for name in place.files.keys where name.contains("/ring-") && rings[name] == nil { place.remove(name) }
        c.restart()
        try c.save("three")
        expectRefusal(.keysForked, c, place, "an old state of the keys")
    }

    /// The files that an identity of an epoch opens.
    private func opened(_ place: MemoryPlace, by keys: StoreKeys) throws -> Set<String> {
        let crypto = try RemoteKeys.crypto()
        var found: Set<String> = []
        for (name, bytes) in place.files where !name.contains("/keys/") && !name.contains("root-") {
            guard let parsed = try bytes.withUnsafeBytes({ try AgeHeader.parse($0, isWhole: true) }) else { continue }
            if (try? parsed.fileKey(keys.epochs.map(\.identity), crypto)) != nil { found.insert(name) }
        }
        return found
    }

    @Test func rekeying() throws {
        let place = MemoryPlace(), day = 86_400 / Int(MemoryPlace.step)
        let a = try PackedDevice(place, fanIn: 3, keys: mine.keys()), b = try PackedDevice(place, fanIn: 3, keys: mine.keys())
        let large = Filling.pattern(PackFormat.partSize + 1_000)
        let version = try a.save("large", large)
        for n in 0..<7 {
            try a.save("a\(n)")
            try a.exchangeOnce()
            try b.exchangeOnce()
            try b.save("b\(n)")
            try b.exchangeOnce()
        }
        try a.exchangeOnce()
        let old = try keysOf(place)
        #expect(try opened(place, by: old).count == place.files.filter { !$0.key.contains("/keys/") && !$0.key.contains("root-") }.count)
        // Nothing to do without newer keys.
        #expect(try a.exchange.rekey() == 0)
        let left = try a.exchange.rekey(renewing: true)
        #expect(left > 0)
        // Other devices continue meanwhile, with the new keys.
        try b.save("meanwhile")
        try b.exchangeOnce()
        for _ in 0..<5 {
            place.clock += day + 1
            for device in [a, b] { try device.exchangeOnce() }
            #expect(try place.versions(opening: keysOf(place)).isSuperset(of: a.ids))
        }
        #expect(try opened(place, by: old) == [], "no file remains that older keys open")
        #expect(try a.exchange.rekey() == 0)
        #expect(a.ids == b.ids && a.ids.count == 16)
        let c = try PackedDevice(place, keys: mine.keys())
        #expect(try c.exchange.retrieve().problems.isEmpty)
        #expect(c.ids == a.ids)
        #expect(try c.store.value(ValueID("large"), at: version)?.data == large)
        // A value that existed before is sent with the new keys, or named by a part that has them.
        let again = try b.save("again", large)
        try b.exchangeOnce()
        #expect(try c.exchange.retrieve().problems.isEmpty)
        #expect(try c.store.value(ValueID("again"), at: again)?.data == large)
    }

    /// A device knows a large value by parts with older keys. Another device has resent everything and deleted these parts. When the first
    /// merges the other's packs, it names parts that exist.
    @Test func whoMergesWhatWasSentAnewNamesNoOlderParts() throws {
        let place = MemoryPlace(), day = 86_400 / Int(MemoryPlace.step)
        let a = try PackedDevice(place, fanIn: 3, keys: mine.keys()), b = try PackedDevice(place, fanIn: 3, keys: mine.keys())
        let large = [UInt8](repeating: 7, count: 2 << 20), version = try a.save("large", large)
        for device in [a, b, a] { try device.exchangeOnce() }
        let old = try keysOf(place)
        _ = try b.exchange.rekey(renewing: true)
        for _ in 0..<5 {
            place.clock += day + 1
            for device in [a, b] { try device.exchangeOnce() }
        }
        #expect(try opened(place, by: old) == [])
        let packs = Set(place.names(.log) + place.names(.base)).filter { $0.writer != a.writer }
        _ = try b.exchange.retire()
        for _ in 0..<6 {
            place.clock += day + 1
            try a.exchangeOnce()
        }
        #expect(packs.isDisjoint(with: Set(place.names(.log) + place.names(.base))), "those of the other are merged, and gone")
        let c = try PackedDevice(place, keys: mine.keys())
        #expect(try c.exchange.retrieve().problems.isEmpty)
        #expect(try c.store.value(ValueID("large"), at: version)?.data == large)
    }

    /// A pack that an outdated listing lacked names parts with older keys, since its writer did not know the new keys yet. These parts
    /// stay.
    @Test func partsOfAPackThatCameMeanwhileStay() throws {
        let place = MemoryPlace(), day = 86_400 / Int(MemoryPlace.step)
        let a = try PackedDevice(place, keys: mine.keys()), b = try PackedDevice(place, keys: mine.keys())
        try a.save("small")
        for device in [a, b] { try device.exchangeOnce() }
        let large = [UInt8](repeating: 7, count: 2 << 20), version = try b.save("large", large), before = Set(place.names(.log))
        try b.exchangeOnce()
        let late = try #require(Set(place.names(.log)).subtracting(before).first).description
        place.hides = [late]
        var looked = false
        a.files.before = {
            guard a.files.asked.last == "list pack1/blob" else { return }
            looked = true
            place.hides = []
        }
        _ = try a.exchange.rekey(renewing: true)
        for _ in 0..<4 where !looked {
            place.clock += day + 1
            try a.exchangeOnce()
        }
        #expect(looked)
        let c = try PackedDevice(place, keys: mine.keys())
        #expect(try c.exchange.retrieve().problems.isEmpty)
        #expect(try c.store.value(ValueID("large"), at: version)?.data == large)
    }

    /// A device that has resent everything names no older parts later, even if another device had resent them before.
    @Test func olderPartsAreForgotten() throws {
        let place = MemoryPlace(), day = 86_400 / Int(MemoryPlace.step)
        let a = try PackedDevice(place, keys: mine.keys()), b = try PackedDevice(place, keys: mine.keys())
        let large = [UInt8](repeating: 7, count: 2 << 20)
        try a.save("large", large)
        for device in [a, b, a] { try device.exchangeOnce() }
        let old = try keysOf(place)
        _ = try b.exchange.rekey(renewing: true)
        try a.exchangeOnce()
        _ = try a.exchange.rekey()
        for _ in 0..<4 {
            place.clock += day + 1
            for device in [b, a] { try device.exchangeOnce() }
        }
        #expect(try opened(place, by: old) == [] && a.known?.rekeying == nil && b.known?.rekeying == nil)
        let again = try a.save("again", large)
        try a.exchangeOnce()
        let c = try PackedDevice(place, keys: mine.keys())
        #expect(try c.exchange.retrieve().problems.isEmpty)
        #expect(try c.store.value(ValueID("again"), at: again)?.data == large)
    }

    /// If deleting parts with older keys fails, it is retried later.
    @Test func olderPartsThatCouldNotBeDeletedGoLater() throws {
        let place = MemoryPlace(), day = 86_400 / Int(MemoryPlace.step), a = try PackedDevice(place, keys: mine.keys())
        try a.save("large", [UInt8](repeating: 7, count: 2 << 20))
        try a.exchangeOnce()
        let old = try keysOf(place)
        _ = try a.exchange.rekey(renewing: true)
        var fails = true, failures = 0
        a.files.before = { [unowned a] in
            guard fails, a.files.asked.last?.hasPrefix("delete pack1/blob/") ?? false else { return }
            failures += 1
            throw MemoryFiles.lost
        }
        for fault in [true, false] {
            fails = fault
            for _ in 0..<4 {
                place.clock += day + 1
                try a.exchangeOnce()
            }
            #expect(try (a.known?.rekeying != nil) == fault && opened(place, by: old).isEmpty != fault)
        }
        #expect(failures > 1)
    }

    /// A file whose keys no device has counts as one with older keys. It delays the end of the rekeying for a month, not for ever.
    @Test func aFileThatNoDeviceKnowsDelaysItForAMonth() throws {
        let place = MemoryPlace(), elsewhere = MemoryPlace(seed: 1), day = 86_400 / Int(MemoryPlace.step)
        let a = try PackedDevice(place, keys: mine.keys()), foreign = try PackedDevice(elsewhere, keys: other.keys())
        for device in [a, foreign] {
            try device.save()
            try device.exchangeOnce()
        }
        let theirs = try #require(elsewhere.names(.log).first).description
        place.put(theirs, try #require(elsewhere.files[theirs]))
        #expect(try a.exchange.rekey(renewing: true) == 2)
        for days in [1, 1, 8, 15] {
            place.clock += days * day + 1
            try a.exchangeOnce()
            #expect(a.known?.rekeying != nil)
        }
        for _ in 0..<2 {
            place.clock += 20 * day
            try a.exchangeOnce()
        }
        #expect(a.known?.rekeying == nil && place.files[theirs] != nil)
    }

    /// Devices exchange while others resend everything or retire. In the end each version and each large value is at the place.
    @Test func rekeyingAmongOthers() throws {
        let day = 86_400 / Int(MemoryPlace.step)
        var rekeyed = 0, retired = 0
        for seed in Sample.seeds(usual: 3, deep: 8) {
            var random = SeededRandom(seed: 900 + seed)
            let place = MemoryPlace(seed: seed)
            let large = [UInt8](repeating: UInt8(truncatingIfNeeded: seed), count: PackFormat.inlineValue + 1)
            var devices = try (0..<3).map { _ in try PackedDevice(place, fanIn: 3, keys: mine.keys()) }
            var saved: [(name: String, version: VersionID)] = []
            saved.append(("small", try devices[0].save("small")))
            for device in devices { try device.exchangeOnce() }
            for step in 0..<60 {
                guard let device = devices.randomElement(using: &random) else { continue }
                switch Int.random(in: 0..<12, using: &random) {
                case 0, 1: saved.append(("large\(step)", try device.save("large\(step)", large)))
                case 2, 3: saved.append(("small\(step)", try device.save("small\(step)")))
                case 4:
                    _ = try device.exchange.rekey(renewing: true)
                    rekeyed += 1
                case 5: place.clock += Int.random(in: 1...2 * day, using: &random)
                case 6 where devices.count > 2 && step > 20:
                    for _ in 0..<2 { try device.exchangeOnce() }
                    _ = try device.exchange.retire()
                    devices.removeAll { $0 === device }
                    retired += 1
                default: try device.exchangeOnce()
                }
            }
            for _ in 0..<8 {
                place.clock += day + 1
                for device in devices { try device.exchangeOnce() }
            }
            let reader = try PackedDevice(place, keys: mine.keys())
            #expect(try reader.exchange.retrieve().problems.isEmpty, "\(seed)")
            #expect(devices.allSatisfy { $0.ids == reader.ids }, "\(seed)")
            for (name, version) in saved where name.hasPrefix("large") {
                #expect(try reader.store.value(ValueID(name), at: version)?.data == large, "\(seed): \(name)")
            }
        }
        #expect(Sample.seed != nil || rekeyed > 10 && retired > 1, "\(rekeyed), \(retired)")
    }

    /// Puts forged rings of a late epoch into a place. Every other one is for other identities; the rest are no files of age.
    private func forge(_ count: Int, in place: MemoryPlace, seed: Int = 0) throws {
        let crypto = try RemoteKeys.crypto(), stranger = try AgeIdentity(crypto), plain = try Secret("nothing")
        let whole = try AgeWriter.encrypt(plain, for: .recipients([stranger.recipient]), crypto)
        for n in 0..<count {
            let bytes = n % 2 == 0 ? whole + Array("\(seed) \(n)".utf8) : Array("no file of age \(seed) \(n)".utf8)
            place.put("pack1/keys/" + KeyFileName.ring(epoch: 1_000, id: KeyFileName.id(of: bytes)).description, bytes)
        }
    }
    private func readsOfKeys(_ asked: [String]) -> Int { asked.count { $0.hasPrefix("read pack1/keys/") } }

    /// Forged rings stop no device: rings that counted before are read first, and each forged one is read once.
    @Test func forgedFilesOfKeysStopNoDevice() throws {
        let place = MemoryPlace(), a = try device(place), b = try PackedDevice(place, keys: other.keys())
        place.pace = 1
        try a.save("a")
        for device in [a, b] { try device.exchangeOnce() }
        try forge(700, in: place)
        place.clock += 86_400
        var reads: [Int] = []
        for round in 0..<4 {
            // A new process knows only what was saved.
            if round % 2 == 0 { a.restart() }
            try b.save("b\(round)")
            place.clock += 3_600
            try b.exchangeOnce()
            place.clock += 3_600
            reads.append(readsOfKeys(try a.exchangeOnce()))
            #expect(a.ids == b.ids, "\(round)")
        }
        #expect(reads[0] == 1 + KeyFileNotes.files && reads[2] < KeyFileNotes.files && reads[3] == 0, "\(reads)")
        // A new ring is found among the forged ones, by a new device too.
        _ = try a.exchange.rekey(renewing: true)
        try a.save("later")
        try a.exchangeOnce()
        place.clock += 3_600
        try b.exchangeOnce()
        #expect(a.ids == b.ids && b.known?.pin?.number == 2)
        let c = try PackedDevice(place, keys: other.keys())
        try c.exchangeOnce()
        #expect(c.ids == a.ids)
    }

    /// A ring that one listing lacks, or that is truncated once, counts again in the next exchange, also in a new process and beside forged
    /// files.
    @Test func aRingThatIsAbsentOnce() throws {
        let place = MemoryPlace(), a = try device(place), b = try PackedDevice(place, keys: other.keys()), c = Identity()
        try a.save("a")
        for device in [a, b] { try device.exchangeOnce() }
        let before = Set(place.files.keys)
        try b.exchange.addMember(c.recipient, name: "the phone")
        let ring = try #require(Set(place.files.keys).subtracting(before).first { $0.contains("ring-") }), whole = place.files[ring]
        for n in 0..<40 {
            let id = PackID(high: UInt64(n) << 55, low: 1)
            place.put("pack1/keys/" + KeyFileName.ring(epoch: 7, id: id).description, Array("junk \(n)".utf8))
        }
        func count() throws -> Int {
            place.clock += 86_400
            try a.exchangeOnce()
            return try a.exchange.members().count
        }
        for isNew in [false, true] {
            func next() { if isNew { a.restart() } }
            next()
            #expect(try count() == 3)
            place.files[ring] = nil
            next()
            #expect(try count() == 2)
            place.files[ring] = whole
            next()
            #expect(try count() == 3, "absent once")
            place.files[ring] = Array("cut".utf8)
            // An unchanged listing causes no process to read the ring again.
            a.restart()
            #expect(try count() == 2)
            place.files[ring] = whole
            next()
            #expect(try count() == 3, "cut once")
        }
    }

    /// With any number of forged rings, a new device finds the keys after a bounded number of exchanges. Until then its errors say what to
    /// do.
    @Test func anyNumberOfForgedFilesOfKeys() throws {
        let place = MemoryPlace(), a = try device(place)
        place.pace = 0
        try a.save("a")
        try a.exchangeOnce()
        try forge(KeyFileNotes.triedLimit + 5_000, in: place)
        place.clock += 86_400
        a.restart()
        try a.save("b")
        #expect(readsOfKeys(try a.exchangeOnce()) == 1 + KeyFileNotes.files)
        let found = try a.exchange.retrieve().problems
        #expect(found.contains { $0.name == "pack1/keys" && $0.error.message.contains("remove from pack1/keys/") })
        let c = try PackedDevice(place, keys: other.keys())
        var exchanges = 0
        while exchanges < 10, c.known?.pin == nil {
            exchanges += 1
            c.files.asked = []
            do { _ = try c.exchange.retrieve() } catch let error as StoreError {
                #expect(error.code == .tooLarge && error.message.contains("remove from pack1/keys/"), "\(error.message)")
            }
            #expect(readsOfKeys(c.files.asked) <= KeyFileNotes.filesOfNew)
            c.restart()
        }
        #expect(c.ids == a.ids)
        // It sends once it has read all of them, although it does not remember all.
        try c.save("c")
        while exchanges < 10, c.known?.mayHaveOldKeys != false {
            exchanges += 1
            _ = try? c.exchangeOnce()
            c.restart()
        }
        try c.exchangeOnce()
        try a.exchangeOnce()
        #expect(a.ids == c.ids && a.ids.count == 3 && exchanges <= 8, "\(exchanges)")
    }

    /// A file of keys that the place does not return stops no device that has used the keys: it reports the file. A new device receives,
    /// and sends once the file can be read, or is gone, unless its keys would be older than those that it found.
    @Test(arguments: [false, true]) func aFileOfKeysThatIsWithheld(isOlder: Bool) throws {
        let place = MemoryPlace(), a = try device(place), b = try PackedDevice(place, keys: other.keys())
        place.pace = 1
        try a.save("a")
        for device in [a, b] { try device.exchangeOnce() }
        _ = try a.exchange.rekey(renewing: true)
        for device in [a, b] { try device.exchangeOnce() }
        let name = "pack1/keys/" + KeyFileName.ring(epoch: isOlder ? 1 : 2, id: PackID(high: 1, low: 2)).description
        place.put(name, Array("nothing".utf8))
        func withhold(_ device: PackedDevice, _ code: StoreError.Code = .permission) {
            device.files.withholds = { $0 == name ? StoreError(code, "The file may not be read.") : nil }
        }
        for (n, device) in [a, b, a, b].enumerated() {
            place.clock += 3_600
            if n == 2 { device.restart() }
            withhold(device)
            try device.save("\(n)")
            let found = try device.exchange.retrieve().problems.filter { $0.error.code == .permission }
            #expect(found.map(\.name) == [String(name.dropFirst("pack1/keys/".count))])
            try device.exchangeOnce()
        }
        try a.exchangeOnce()
        #expect(a.ids == b.ids && a.ids.count == 5)
        // A service that fails may answer next time.
        let second = "pack1/keys/" + KeyFileName.ring(epoch: 2, id: PackID(high: 1, low: 3)).description
        place.put(second, Array("nothing".utf8))
        place.clock += 3_600
        a.files.withholds = { $0 == second ? StoreError(.transport, "The service fails.") : nil }
        #expect(throws: StoreError.self) { try a.exchange.retrieve() }
        #expect(try a.exchange.retrieve().problems.contains { $0.error.code == .transport })
        place.remove(second)

        let c = try PackedDevice(place, keys: other.keys())
        withhold(c)
        try c.save("c")
        _ = try c.exchange.retrieve()
        #expect(c.ids.isSuperset(of: a.ids))
        let before = place.files
        if !isOlder {
            do { _ = try c.exchange.send(); Issue.record("it was sent") } catch let error as StoreError {
                #expect(error.code == .keyMissing && error.message.contains(name.dropFirst("pack1/keys/".count)), "\(error.message)")
            }
            #expect(place.files == before)
            place.remove(name)
            c.restart()
        }
        #expect(try c.exchange.send().versions.count == 1)
        // No file of keys can be read: the error says so, and does not say that the key is wrong.
        let d = try PackedDevice(place, keys: other.keys())
        d.files.withholds = { $0.hasPrefix("pack1/keys/") ? StoreError(.permission, "The file may not be read.") : nil }
        expectRefusal(.permission, d, place)
    }

    /// A device that has not read all files of keys yet receives, and sends nothing: a ring among those that it has not read may have newer
    /// keys, made after a member was removed.
    @Test func aNewDeviceSendsNothingWithKeysThatMayBeOld() throws {
        var place = MemoryPlace(), a = try device(place), old: KeyFileName?, new: KeyFileName?
        func rings() -> [KeyFileName] { place.files.keys.compactMap { KeyFileName(String($0.dropFirst("pack1/keys/".count))) } }
        // Repeat until the ring with the newer keys is read after the other ring.
        repeat {
            place = MemoryPlace()
            place.pace = 0
            a = try device(place)
            try a.save("a")
            try a.exchangeOnce()
            old = rings().first
            try a.exchange.removeMember(other.recipient)
            new = rings().first { $0.epoch == 2 }
        } while try #require(new).id < #require(old).id
        try a.save("b")
        try a.exchangeOnce()
        let first = try #require(old).id
        for n in 1...UInt64(KeyFileNotes.filesOfNew + 1_000) {
            let id = PackID(high: first.high, low: first.low &+ n)
            place.put("pack1/keys/" + KeyFileName.ring(epoch: 7, id: id).description, Array("junk \(n)".utf8))
        }
        let before = place.files
        func fresh() throws -> PackedDevice { try PackedDevice(place, keys: mine.keys()) }
        func code(_ body: () throws -> Void) -> StoreError.Code? {
            do { try body(); return nil } catch { return (error as? StoreError)?.code }
        }
        let receiving = try fresh()
        #expect(try receiving.exchange.retrieve().problems.contains { $0.error.message.contains("were not read") })
        #expect(receiving.ids.count == 1 && receiving.known?.pin?.number == 1)
        #expect(code { _ = try receiving.exchange.memberPairing.current() } == .keyMissing)
        #expect(try fresh().exchange.send().versions.isEmpty, "nothing to send is no error")
        let changing = try fresh()
        #expect(code { try changing.exchange.addMember(other.recipient) } == .tooLarge)
        let c = try fresh()
        try c.save("c")
        #expect(code { _ = try c.exchange.send() } == .tooLarge)
        #expect(place.files == before)
        // The next exchange reads the others, also in a new process.
        c.restart()
        try c.exchangeOnce()
        #expect(c.known?.pin?.number == 2 && c.ids.isSuperset(of: a.ids) && c.ids.count == 3 && place.files != before)
        let late = try PackedDevice(place, keys: other.keys())
        _ = try? late.exchange.retrieve()
        #expect(late.ids.count <= 1, "the former member reads nothing that a new device sends")
    }

    /// A member is reported if it was added while another device made newer keys, or by a former member.
    @Test func membersWithoutTheNewestKeysAreReported() throws {
        let place = MemoryPlace(), a = try device(place), b = try PackedDevice(place, keys: other.keys()), c = Identity()
        try a.save("a")
        for device in [a, b] { try device.exchangeOnce() }
        let before = Set(place.files.keys)
        try b.exchange.addMember(c.recipient, name: "the phone")
        let name = try #require(Set(place.files.keys).subtracting(before).first { $0.contains("ring-") }), ring = place.files[name]
        place.files[name] = nil
        _ = try a.exchange.rekey(renewing: true)
        place.files[name] = ring
        for device in [a, b] {
            for _ in 0..<2 {
                place.clock += 86_400
                device.restart()
                let found = try device.exchange.retrieve().problems.filter { $0.error.code == .keysForked }
                #expect(found.count == 1 && found.first?.name == "pack1/keys")
                #expect(found.first?.error.message.contains(c.recipient) == true)
            }
        }
        try a.exchange.addMember(c.recipient, name: "the phone")
        #expect(try !a.exchange.retrieve().problems.contains { $0.error.code == .keysForked })
        let new = try PackedDevice(place, keys: c.keys())
        try new.exchangeOnce()
        #expect(new.ids == a.ids)
    }

    /// The keys of a place, read by who has them.
    private func keysOf(_ place: MemoryPlace) throws -> StoreKeys {
        let files = MemoryFiles(place), crypto = try RemoteKeys.crypto()
        return try StoreKeys.open(RemoteKeyDirectory(files, {}), stores: [], mine.keys().unlocking, pin: nil, crypto)
    }

    /// Saves and sends versions of two devices. One of them has a large value.
    private func fill(_ a: PackedDevice, _ b: PackedDevice) throws {
        for n in 0..<4 {
            try a.save("a\(n)", n == 1 ? [UInt8](repeating: 7, count: PackFormat.inlineValue + 1) : [1])
            try a.exchangeOnce()
            try b.exchangeOnce()
            try b.save("b\(n)")
            try b.exchangeOnce()
        }
        try a.exchangeOnce()
    }

    /// The numbers of the requests at which a device dies. Of the requests of one kind, the usual run takes the first and the last one. The
    /// final number lies behind the last request, so the device survives.
    private func requestsOfRekeying() throws -> [Int] {
        let place = MemoryPlace(seed: 1), a = try PackedDevice(place, fanIn: 3, keys: mine.keys())
        try fill(a, PackedDevice(place, fanIn: 3, keys: mine.keys()))
        a.files.asked = []
        _ = try a.exchange.rekey(renewing: true)
        let kinds = a.files.asked.map { $0.split(separator: "/").dropLast().joined(separator: "/") }
        #expect(Set(kinds).count > 4, "\(kinds)")
        let ends = Set(kinds).flatMap { [kinds.firstIndex(of: $0), kinds.lastIndex(of: $0)] }.compactMap { $0.map { $0 + 1 } }
        return sample(usual: Set(ends).sorted(), deep: Array(1...kinds.count)) + [kinds.count + 1]
    }

    /// The device dies at any request. Later exchanges, or another call, finish the rekeying, and nothing is lost.
    @Test func rekeyingThatIsInterrupted() throws {
        let day = 86_400 / Int(MemoryPlace.step)
        var deaths = 0
        for dying in try requestsOfRekeying() {
            let place = MemoryPlace(seed: UInt64(dying)), a = try PackedDevice(place, fanIn: 3, keys: mine.keys())
            let b = try PackedDevice(place, fanIn: 3, keys: mine.keys())
            try fill(a, b)
            let old = try keysOf(place)
            var left = dying
            a.files.before = {
                left -= 1
                guard left == 0 else { return }
                a.storage.isDead = true
                throw MemoryFiles.died
            }
            do { _ = try a.exchange.rekey(renewing: true) } catch {
                deaths += 1
                a.storage.isDead = false
                a.restart()
            }
            a.files.before = {}
            #expect(try place.versions(opening: keysOf(place)) == a.ids, "\(dying)")
            _ = try a.exchange.rekey(renewing: try keysOf(place).epochs.count == 1)
            for _ in 0..<5 {
                place.clock += day + 1
                for device in [a, b] { try device.exchangeOnce() }
            }
            #expect(try opened(place, by: old) == [], "\(dying)")
            #expect(try place.versions(opening: keysOf(place)) == a.ids && a.ids == b.ids, "\(dying)")
            let c = try PackedDevice(place, keys: mine.keys())
            #expect(try c.exchange.retrieve().problems.isEmpty, "\(dying)")
            #expect(c.ids == a.ids, "\(dying)")
            if left > 0 { break }
        }
        #expect(deaths > 5)
    }

    @Test func secretsPrintAsNothing() throws {
        let keys = try mine.keys(), secret = String(decoding: mine.secret, as: UTF8.self)
        var dumped = ""
        dump(keys, to: &dumped)
        for text in ["\(keys)", String(reflecting: keys), dumped] {
            #expect(!text.contains(secret) && !text.contains("SECRET-KEY"))
        }
        #expect(throws: StoreError.self) { try RemoteKeys(recipients: [mine.recipient]) }
    }
}
