import Foundation
import LLVSTestSupport
import Testing

@testable import LLVS

/// Keys of encrypted remotes: made, opened, changed, and by whom they can be.
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
        // Wrong, and nothing is made by it.
        let before = try place.keyFiles().sorted()
        #expect(code { _ = try open(place, passphrase: "one two four") } == .wrongKey)
        #expect(code { _ = try open(place, AgeIdentity(crypto)) } == .wrongKey)
        #expect(code { _ = try open(place, passphrase: "") } == .invalidArgument)
        #expect(try place.keyFiles().sorted() == before)
    }

    /// The ring and the file of the passphrase, opened by `age` with what a person has: the way out without this library.
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
        // Another device begins while this one waits.
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

    @Test func missingDamagedAndOthersAreToldApart() throws {
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
        // A file that cannot be read is a problem beside one that can.
        place.files["ring-aaaaaai-" + PackID.zero.description] = [1, 2, 3]
        place.files["notes.txt"] = [1]
        let keys = try open(place, mine)
        #expect(keys.problems.map(\.error.code) == [.damaged])
        // A passphrase whose file was changed, and one that was not.
        _ = try PassphraseFile.make(mine, store: store, Secret("one"), in: place, clock(), crypto)
        let pass = place.passphrases[0]
        place.files[pass]![150] ^= 1
        #expect(code { _ = try open(place, passphrase: "one") } == .damaged)
    }

    /// Who lays eight others there, of smaller names, keeps a passphrase from opening, as who deletes its file does, and costs no more than
    /// eight tries.
    @Test func eightFilesForPassphrasesAreTried() throws {
        let place = MemoryKeyDirectory(), (mine, _) = try device("mine")
        let name = try PassphraseFile.make(mine, store: store, Secret("one"), in: place, clock(), crypto)
        var others = 0, n = 0
        while others < PassphraseFile.triedLimit {
            n += 1
            let bytes = Array("no file of age \(n)".utf8), id = KeyFileName.id(of: bytes)
            guard id < name.id else { continue }
            others += 1
            place.files[KeyFileName.passphrase(id: id).description] = bytes
            let names = try KeyFiles.list(place).passphrases
            let opened = try? PassphraseFile.openAll(names, Secret("one"), in: place, crypto)
            #expect((opened?.count == 1) == (others < PassphraseFile.triedLimit))
        }
    }

    /// If there are more files than are tried, the newest are tried, provided that the place reports times.
    @Test func theNewestFilesForPassphrasesAreTried() throws {
        let place = MemoryKeyDirectory(), (mine, _) = try device("mine")
        let name = try PassphraseFile.make(mine, store: store, Secret("one"), in: place, clock(), crypto)
        var n = 0
        while place.files.count < 20 {
            n += 1
            let bytes = Array("no file of age \(n)".utf8), id = KeyFileName.id(of: bytes)
            if id < name.id { place.files[KeyFileName.passphrase(id: id).description] = bytes }
        }
        let names = try KeyFiles.list(place).passphrases
        #expect((try? PassphraseFile.openAll(names, Secret("one"), in: place, crypto)) == nil)
        place.newest = name.description
        #expect(try PassphraseFile.openAll(names, Secret("one"), in: place, crypto).count == 1)
    }

    /// Of too many names those remain that counted before, those of passphrases, and a part of the others that goes on from call to call.
    @Test func namesOfKeysAreBounded() throws {
        let place = MemoryPlace(), ring = KeyFileName.ring(epoch: 1, id: .zero), pass = KeyFileName.passphrase(id: PackID(high: 9, low: 9))
        let limit = RemoteKeyDirectory.namesLimit
        for n in 1...limit + 1 {
            place.put("pack1/keys/" + KeyFileName.ring(epoch: 9, id: PackID(high: UInt64(n), low: 1)).description, [])
        }
        for name in ["notes.txt", ring.description, pass.description] { place.put("pack1/keys/" + name, []) }
        var notes = KeyFileNotes()
        notes.rings = [ring]
        for next in [1, UInt64(limit)] {
            notes.next = PackID(high: next, low: 1)
            let names = try RemoteKeyDirectory(MemoryFiles(place), {}, notes).keyFiles()
            #expect(names.count == limit + 2 && names.contains(ring.description) && names.contains(pass.description))
            let last = KeyFileName.ring(epoch: 9, id: PackID(high: UInt64(limit) + 1, low: 1)).description
            #expect(names.contains(last))
            #expect(!names.contains(KeyFileName.ring(epoch: 9, id: PackID(high: next, low: 1)).description))
        }
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
        // One that leaked: a copy of its file opens nothing that is new.
        let leaked = place.files
        let next = try open(place, passphrase: "new").replacingPassphrase(by: Secret("newer"), in: place, clock(), crypto)
        #expect(next.current.number == 2 && place.passphrases.count == 1)
        #expect(try open(place, passphrase: "newer").pin == next.pin)
        place.files.merge(leaked) { $1 }
        #expect(try open(place, passphrase: "new").pin == keys.pin)
    }
}
