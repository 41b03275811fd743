import Foundation
import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Keys of encrypted remotes: who can create, open and change them.
@Suite("Encryption: keys") struct StoreKeysTests {
    let crypto: Crypto, store = PackID(high: 0x0001_0203_0405_0607, low: 0x0809_0A0B_0C0D_0E0F)
    init() throws { crypto = try Crypto(for: "tests") }

    private func clock(_ waited: @escaping (Double) throws -> Void = { _ in }) -> KeyClock {
        KeyClock(now: { 1_795_000_000 }, wait: waited)
    }
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
    private func open(_ place: KeyDirectory, passphrase: String) throws -> StoreKeys {
        try StoreKeys.open(place, stores: [store], StoreKeys.Unlocking(passphrase: Secret(passphrase)), crypto)
    }
    private func created(_ place: KeyDirectory, _ members: [KeyMember]) throws -> StoreKeys {
        try StoreKeys.create(in: place, store: store, passphrase: nil, members: members, hasRecovery: false, clock(), crypto).keys
    }

    @Test(arguments: [false, true]) func createAndOpen(isFolder: Bool) throws {
        let folder = TemporaryDirectory()
        let place: KeyDirectory = isFolder ? FolderKeyDirectory(folder.path) : MemoryKeyDirectory()
        var waits: [Double] = []
        let (phone, phoneMember) = try device("phone")
        let (keys, recovery) = try StoreKeys.create(
            in: place, store: store, passphrase: Secret("one two three"), members: [phoneMember], hasRecovery: true,
            clock { waits.append($0) }, crypto)
        #expect(waits == [10] && keys.members.count == 3 && keys.current.number == 1)
        let byPassphrase = try open(place, passphrase: "one two three")
        for found in [byPassphrase, try open(place, #require(recovery)), try open(place, phone)] {
            #expect(found.pin == keys.pin && found.epochs.map(\.number) == [1] && found.members == keys.members)
            #expect(AgeTools.plain(found.current.macKey) == AgeTools.plain(keys.current.macKey))
            #expect(found.problems.isEmpty && found.forked.isEmpty && found.fork == nil && found.store == store)
        }
        let derived = [keys.current.macKey, keys.current.nameKey, keys.current.identity.secret].map(AgeTools.plain)
        #expect(Set(derived).count == 3)
        // A wrong passphrase, which creates nothing.
        let before = try place.keyFiles().sorted()
        #expect(code { _ = try open(place, passphrase: "one two four") } == .wrongKey)
        #expect(code { _ = try open(place, AgeIdentity(crypto)) } == .wrongKey)
        #expect(code { _ = try open(place, passphrase: "") } == .invalidArgument)
        #expect(try place.keyFiles().sorted() == before)
    }

    /// `age` opens the ring and the file of the passphrase with what a person has, so this library is not needed.
    @Test func theToolOpensTheKeys() throws {
        let place = MemoryKeyDirectory(), folder = TemporaryDirectory()
        let (keys, recovery) = try StoreKeys.create(
            in: place, store: store, passphrase: Secret("one two three"), hasRecovery: true, clock(), crypto)
        let pass = try #require(place.files[place.passphrases[0]]), ring = try #require(place.files[place.rings[0]])
        let opened = try #require(try AgeTools.open(pass, passphrase: "one two three", in: folder.path))
        let object = try #require(try JSONSerialization.jsonObject(with: Data(opened)) as? [String: Any])
        let member = try AgeIdentity(#require(object["identity"] as? String), crypto)
        let epoch = String(decoding: AgeTools.plain(try keys.current.identity.text()), as: UTF8.self)
        for identity in [member, try #require(recovery)] {
            let text = try #require(try AgeTools.open(ring, identity, in: folder.path))
            let lines = text.split(separator: 0x0A)
            let object = try #require(try JSONSerialization.jsonObject(with: Data(lines[0])) as? [String: Any])
            let epochs = try #require(object["epochs"] as? [[String: Any]])
            #expect(epochs.map { $0["identity"] as? String } == [epoch] && object["store"] as? String == store.description)
            #expect(lines.count == 2 && lines[1].starts(with: Array("age1".utf8)))
        }
    }

    @Test func keysAreMadeInAnEmptyPlaceOnly() throws {
        let place = MemoryKeyDirectory()
        place.hasData = true
        #expect(code { _ = try created(place, [try device("a").1]) } == .storeNotEmpty)
        place.hasData = false
        // Another device creates keys while this one waits.
        let (other, member) = try device("other")
        let clock = clock { _ in _ = try created(place, [member]) }
        #expect(
            code {
                _ = try StoreKeys.create(
                    in: place, store: store, passphrase: Secret("mine"), hasRecovery: true, clock, crypto)
            } == .storeNotEmpty)
        #expect(place.rings.count == 1 && place.passphrases.isEmpty)
        #expect(try open(place, other).members.map(\.name) == ["other"])
        #expect(code { _ = try created(place, [try device("a").1]) } == .storeNotEmpty)
        #expect(code { _ = try created(MemoryKeyDirectory(), []) } == .invalidArgument)
    }

    @Test func anInterruptedCreationIsFinished() throws {
        struct Stopped: Error {}
        let place = MemoryKeyDirectory()
        var count = 0
        place.beforeCreating = {
            count += 1; if count == 2 { throw Stopped() }
        }
        #expect(throws: Stopped.self) {
            _ = try StoreKeys.create(in: place, store: store, passphrase: Secret("one"), hasRecovery: false, clock(), crypto)
        }
        #expect(place.passphrases.count == 1 && place.rings.isEmpty)
        #expect(code { _ = try open(place, passphrase: "one") } == .keyMissing)
        #expect(code { _ = try open(place, passphrase: "two") } == .wrongKey)
        #expect(
            code {
                _ = try StoreKeys.create(in: place, store: store, passphrase: Secret("two"), hasRecovery: false, clock(), crypto)
            } == .wrongKey)
        #expect(place.files.count == 1)
        let keys = try StoreKeys.create(in: place, store: store, passphrase: Secret("one"), hasRecovery: false, clock(), crypto).keys
        #expect(try open(place, passphrase: "one").pin == keys.pin && place.passphrases.count == 1)
    }

    @Test func missingDamagedAndOtherFilesAreDistinguished() throws {
        let place = MemoryKeyDirectory(), (mine, member) = try device("mine")
        #expect(code { _ = try open(place, mine) } == .keyMissing)
        _ = try created(place, [member])
        let name = place.rings[0], good = try #require(place.files[name])
        #expect(code { _ = try open(place, passphrase: "one") } == .keyMissing)
        for i in stride(from: 0, to: good.count, by: 11) {
            place.files[name]![i] ^= 4
            #expect(code { _ = try open(place, mine) } == .damaged, "\(i)")
            place.files[name] = good
        }
        for size in stride(from: 0, to: good.count, by: 7) {
            place.files[name] = Array(good[..<size])
            #expect(code { _ = try open(place, mine) } == .damaged, "\(size)")
        }
        place.files[name] = good
        let unlocking = StoreKeys.Unlocking(identities: [mine])
        #expect(code { _ = try StoreKeys.open(place, stores: [.zero], unlocking, crypto) } == .identifierMismatch)
        // An unreadable file beside a readable one is a problem, not an error.
        place.files["ring-aaaaaai-" + PackID.zero.description] = [1, 2, 3]
        place.files["notes.txt"] = [1]
        let keys = try open(place, mine)
        #expect(keys.problems.map(\.error.code) == [.damaged])
        // A passphrase whose file was altered.
        _ = try PassphraseFile.make(mine, store: store, Secret("one"), in: place, clock(), crypto)
        let pass = place.passphrases[0]
        place.files[pass]![150] ^= 1
        #expect(code { _ = try open(place, passphrase: "one") } == .damaged)
    }

    /// A file for another passphrase.
    private func otherPassphrase(_ n: Int, like whole: [UInt8]) -> (name: KeyFileName, bytes: [UInt8]) {
        let bytes = whole + Array("\(n)".utf8)
        return (.passphrase(id: KeyFileName.id(of: bytes)), bytes)
    }

    /// An attacker who puts eight files of other passphrases with smaller names prevents the passphrase from opening, as if its file had
    /// been deleted, and costs no more than eight tries. A device that opened it before tries its file first. Files that are none of a
    /// passphrase do not count as tries.
    @Test func eightFilesForPassphrasesAreTried() throws {
        let place = MemoryKeyDirectory(), (mine, _) = try device("mine")
        let name = try PassphraseFile.make(mine, store: store, Secret("one"), in: place, clock(), crypto)
        let other = try AgeWriter.encrypt(Secret("nothing"), for: .passphrase(Secret("two")), crypto)
        for n in 0..<40 {
            let bytes = Array("no file of age \(n)".utf8)
            place.files[KeyFileName.passphrase(id: KeyFileName.id(of: bytes)).description] = bytes
        }
        var others = 0, n = 0
        while others < PassphraseFile.triedLimit {
            n += 1
            let made = otherPassphrase(n, like: other)
            guard made.name.id < name.id else { continue }
            others += 1
            place.files[made.name.description] = made.bytes
            // Each try takes 64 MiB and a fifth of a second.
            guard others == 1 || others >= PassphraseFile.triedLimit - 1 else { continue }
            let names = try KeyFiles.list(place).passphrases
            let opened = try? PassphraseFile.openAll(names, Secret("one"), in: place, crypto)
            #expect((opened?.count == 1) == (others < PassphraseFile.triedLimit))
            #expect(try PassphraseFile.openAll(names, Secret("one"), in: place, first: [name], crypto).map(\.name) == [name])
        }
    }

    /// If there are more files than are tried, the newest are tried, provided that the place reports times.
    @Test func theNewestFilesForPassphrasesAreTried() throws {
        let place = MemoryKeyDirectory(), (mine, _) = try device("mine")
        let name = try PassphraseFile.make(mine, store: store, Secret("one"), in: place, clock(), crypto)
        let other = try AgeWriter.encrypt(Secret("nothing"), for: .passphrase(Secret("two")), crypto)
        var n = 0
        while place.files.count < 20 {
            n += 1
            let made = otherPassphrase(n, like: other)
            if made.name.id < name.id { place.files[made.name.description] = made.bytes }
        }
        let names = try KeyFiles.list(place).passphrases
        #expect((try? PassphraseFile.openAll(names, Secret("one"), in: place, crypto)) == nil)
        place.newest = name.description
        #expect(try PassphraseFile.openAll(names, Secret("one"), in: place, crypto).count == 1)
    }

    /// If there are too many names, three groups remain: those that counted before, those of passphrases, and a part of the others, which
    /// moves on with each call.
    @Test func namesOfKeysAreBounded() throws {
        let place = MemoryPlace(), ring = KeyFileName.ring(epoch: 1, id: .zero), pass = KeyFileName.passphrase(id: PackID(high: 9, low: 9))
        let limit = RemoteKeyDirectory.namesLimit
        for n in 1...limit + 1 {
            place.put("pack1/keys/" + KeyFileName.ring(epoch: 9, id: PackID(high: UInt64(n), low: 1)).description, [])
        }
        for name in ["notes.txt", ring.description, pass.description] { place.put("pack1/keys/" + name, []) }
        var notes = KeyFileNotes()
        notes.remember([ring], strange: [])
        for next in [1, UInt64(limit)] {
            notes.next = .ring(epoch: 9, id: PackID(high: next, low: 1))
            let names = try RemoteKeyDirectory(MemoryFiles(place), {}, notes).keyFiles()
            #expect(names.count == limit + 2 && names.contains(ring.description) && names.contains(pass.description))
            let last = KeyFileName.ring(epoch: 9, id: PackID(high: UInt64(limit) + 1, low: 1)).description
            #expect(names.contains(last))
            #expect(!names.contains(KeyFileName.ring(epoch: 9, id: PackID(high: next, low: 1)).description))
        }
        // Names that are to be read again are always among them.
        let again = KeyFileName.ring(epoch: 9, id: PackID(high: UInt64(limit), low: 1))
        notes.note(again, .open)
        #expect(try RemoteKeyDirectory(MemoryFiles(place), {}, notes).keyFiles().contains(again.description))
    }

    /// A ring that a listing lacks once, or shows under another epoch, counts again when it is back.
    @Test func aRingThatComesBackCounts() throws {
        let place = MemoryKeyDirectory(), (mine, member) = try device("mine"), (_, other) = try device("other")
        let first = try created(place, [member]), old = Set(place.rings)
        let added = try first.adding(other, in: place, crypto)
        let name = try #require(Set(place.rings).subtracting(old).first), ring = try #require(KeyFileName(name))
        var notes = KeyFileNotes()
        func open() throws -> StoreKeys {
            try StoreKeys.open(place, stores: [], StoreKeys.Unlocking(identities: [mine]), pin: first.pin, &notes, crypto)
        }
        let whole = try open()
        #expect(whole.members.count == 2 && whole.isWhole)
        let bytes = place.files.removeValue(forKey: name)
        #expect(try open().members.count == 1)
        // Listed, but not readable yet: the next call reads the same listing again.
        place.ghosts = [name]
        #expect(try !open().isWhole)
        place.ghosts = []
        place.files[name] = bytes
        #expect(try open().members.count == 2, "absent once")
        place.files[name] = Array("cut".utf8)
        #expect(try open().members.count == 1)
        place.files[name] = bytes
        #expect(try open().members.count == 2, "cut once")
        // A ring that is first listed under another epoch.
        _ = try added.rotating("removed", removing: [other.recipient], in: place, clock(), crypto)
        let next = try #require(place.rings.compactMap(KeyFileName.init).first { $0.epoch == 2 }), second = place.files[next.description]
        let wrong = KeyFileName.ring(epoch: 9, id: next.id)
        place.files[next.description] = nil
        place.files[wrong.description] = second
        #expect(try open().current.number == 1)
        place.files[wrong.description] = nil
        place.files[next.description] = second
        #expect(try open().current.number == 2 && ring.epoch == 1, "under another epoch once")
    }

    /// A ring that was truncated when it was first read is read again beside any number of unreadable files, even if these are named after
    /// it.
    @Test func aRingIsReadAgainBesideUnreadableFiles() throws {
        let place = MemoryKeyDirectory(), (mine, member) = try device("mine"), (_, other) = try device("other")
        let first = try created(place, [member, other]), old = Set(place.rings), junk = 300
        var notes = KeyFileNotes()
        func open() throws -> StoreKeys {
            try StoreKeys.open(place, stores: [], StoreKeys.Unlocking(identities: [mine]), pin: first.pin, &notes, crypto)
        }
        #expect(try open().current.number == 1)
        _ = try first.rotating("removed", removing: [other.recipient], in: place, clock(), crypto)
        let name = try #require(Set(place.rings).subtracting(old).first), ring = try #require(KeyFileName(name))
        for n in 0..<junk {
            let id = n % 2 == 0 ? ring.id : PackID(high: UInt64(n) << 55, low: 1)
            place.files[KeyFileName.ring(epoch: UInt32(n) + (n % 2 == 0 ? 3 : 1), id: id).description] = Array("junk \(n)".utf8)
        }
        let bytes = place.files[name]
        place.files[name] = Array("cut".utf8)
        for _ in 0..<3 { #expect(try open().current.number == 1) }
        place.files[name] = bytes
        var calls = 1
        while calls <= (junk + 1) / KeyFileNotes.again + 1, try open().current.number == 1 { calls += 1 }
        #expect(calls <= (junk + 1) / KeyFileNotes.again + 1)
    }

    /// Rings of an outsider who knows the devices displace no ring of a member.
    @Test func ringsOfAnOutsiderDisplaceNone() throws {
        let place = MemoryKeyDirectory(), (mine, member) = try device("mine"), (_, other) = try device("other")
        let (_, third) = try device("third")
        let first = try created(place, [member, other, third])
        // Two devices begin an epoch at once, each without the other's ring.
        let before = place.files
        let ours = try first.rotating("removed", removing: [other.recipient], in: place, clock(), crypto)
        var made = place.files
        place.files = before
        let theirs = try first.rotating("removed", removing: [third.recipient], in: place, clock(), crypto)
        let competing = place.files.filter { before[$0.key] == nil }
        place.files = before
        var strange: [KeyFileName] = []
        for _ in 0..<KeyFileNotes.strangeLimit + 40 {
            let epoch = try KeyEpoch(number: 1, identity: AgeIdentity(crypto), made: "", why: "", crypto)
            let ring = try KeyRing(store: store, epochs: [epoch], members: [member], removed: [])
            let bytes = try AgeWriter.encrypt(ring.encoded(crypto), for: .recipients([member.recipient]), crypto)
            strange.append(.ring(epoch: 1, id: KeyFileName.id(of: bytes)))
            made[strange[strange.count - 1].description] = bytes
        }
        place.files = made
        var notes = KeyFileNotes()
        func open() throws -> StoreKeys {
            try StoreKeys.open(place, stores: [], StoreKeys.Unlocking(identities: [mine]), pin: ours.pin, &notes, crypto)
        }
        for _ in 0..<2 { _ = try open() }
        place.files.merge(competing) { $1 }
        for round in 0..<3 {
            let found = try open()
            #expect(found.epochs.contains { $0.recipient == theirs.current.recipient }, "\(round)")
            #expect(found.pin == ours.pin && found.forked.contains { $0.recipient == theirs.current.recipient }, "\(round)")
        }
        // When the outsider's rings are gone, the two epochs can be joined.
        for name in strange { place.files[name.description] = nil }
        let found = try open()
        #expect(found.forked.map(\.recipient) == [theirs.current.recipient])
        #expect(try found.joining(in: place, clock(), crypto).epochs.contains { $0.recipient == theirs.current.recipient })
    }

    /// A removed member, who has the keys of an earlier epoch, writes a ring of that epoch which removes the others.
    @Test func aRingOfAnEarlierEpochRemovesNobody() throws {
        let place = MemoryKeyDirectory(), (_, member) = try device("mine"), (_, former) = try device("former")
        let (new, newMember) = try device("new")
        let first = try created(place, [member, former, newMember])
        _ = try first.rotating("removed", removing: [former.recipient], in: place, clock(), crypto)
        let ring = try KeyRing(
            store: store, epochs: first.epochs, members: first.members, removed: [member.recipient, newMember.recipient])
        let bytes = try AgeWriter.encrypt(ring.encoded(crypto), for: .recipients(first.members.map(\.recipient)), crypto)
        place.files[KeyFileName.ring(epoch: 1, id: KeyFileName.id(of: bytes)).description] = bytes
        let found = try open(place, new)
        #expect(found.current.number == 2 && found.removed == [former.recipient])
        #expect(Set(found.members.map(\.recipient)) == [member.recipient, newMember.recipient])
    }

    @Test func aFileThatIsNotThereAsItWasWrittenReplacesNothing() throws {
        let place = MemoryKeyDirectory(), (mine, member) = try device("mine")
        _ = try created(place, [member])
        _ = try PassphraseFile.make(mine, store: store, Secret("old"), in: place, clock(), crypto)
        place.lost = 1
        #expect(code { try StoreKeys.changePassphrase(from: Secret("old"), to: Secret("new"), in: place, clock(), crypto) } == .transport)
        place.lost = 0
        #expect(try open(place, passphrase: "old").members == [member] && place.passphrases.count == 1)
    }

    @Test func thePassphraseIsChanged() throws {
        let place = MemoryKeyDirectory()
        let keys = try StoreKeys.create(in: place, store: store, passphrase: Secret("old"), hasRecovery: false, clock(), crypto).keys
        let rings = place.rings
        #expect(code { try StoreKeys.changePassphrase(from: Secret("other"), to: Secret("new"), in: place, clock(), crypto) } == .wrongKey)
        #expect(place.passphrases.count == 1)
        try StoreKeys.changePassphrase(from: Secret("old"), to: Secret("new"), in: place, clock(), crypto)
        #expect(place.passphrases.count == 1 && place.rings == rings)
        #expect(try open(place, passphrase: "new").pin == keys.pin)
        #expect(code { _ = try open(place, passphrase: "old") } == .wrongKey)
        // The passphrase leaked: a copy of its file opens nothing new.
        let leaked = place.files
        let next = try open(place, passphrase: "new").replacingPassphrase(by: Secret("newer"), in: place, clock(), crypto)
        #expect(next.current.number == 2 && place.passphrases.count == 1)
        #expect(try open(place, passphrase: "newer").pin == next.pin)
        place.files.merge(leaked) { $1 }
        #expect(try open(place, passphrase: "new").pin == keys.pin)
    }
    /// A device changes the passphrase beside any number of files of other passphrases, and opens the new one beside them: it tries the
    /// files first that it opened before.
    @Test(arguments: [false, true]) func thePassphraseIsChangedBesideOthers(hasLeaked: Bool) throws {
        let place = MemoryKeyDirectory()
        let keys = try StoreKeys.create(in: place, store: store, passphrase: Secret("old"), hasRecovery: false, clock(), crypto).keys
        var notes = KeyFileNotes()
        func open(_ words: String) throws -> StoreKeys {
            try StoreKeys.open(place, stores: [], StoreKeys.Unlocking(passphrase: Secret(words)), pin: keys.pin, &notes, crypto)
        }
        _ = try open("old")
        let other = try AgeWriter.encrypt(Secret("nothing"), for: .passphrase(Secret("two")), crypto)
        func lay() {
            let last = place.passphrases.max() ?? ""
            var n = 0
            while place.passphrases.filter({ $0 < last }).count < PassphraseFile.triedLimit {
                n += 1
                let made = otherPassphrase(n, like: other)
                if made.name.description < last { place.files[made.name.description] = made.bytes }
            }
        }
        lay()
        if hasLeaked {
            _ = try open("old").replacingPassphrase(by: Secret("new"), in: place, clock(), &notes, crypto)
        } else {
            try StoreKeys.changePassphrase(from: Secret("old"), to: Secret("new"), in: place, clock(), &notes, crypto)
        }
        lay()
        #expect(try open("new").current.number == (hasLeaked ? 2 : 1))
    }

    /// A flood of files that are no rings is one problem that names the place and their number, also when most were read before.
    @Test func aFloodOfFilesIsOneProblem() throws {
        let place = MemoryKeyDirectory(), (mine, member) = try device("mine")
        _ = try created(place, [member])
        var notes = KeyFileNotes()
        func problems() throws -> [ExchangeProblem] {
            try StoreKeys.open(place, stores: [], StoreKeys.Unlocking(identities: [mine]), pin: nil, &notes, crypto).problems
        }
        for n in 0..<40 {
            let bytes = Array("no file of age \(n)".utf8)
            place.files[KeyFileName.ring(epoch: 9, id: KeyFileName.id(of: bytes)).description] = bytes
        }
        for _ in 0..<2 {
            let found = try problems()
            #expect(found.count == 1 && found.first?.name == "pack1/keys", "\(found.count)")
            #expect(found.first?.error.message.contains("40 files of keys in \(place.description)") == true)
        }
    }
}
