/// Files with the identity of the member "passphrase": docs/encryption.md, section 4.
enum PassphraseFile {
    static let sizeLimit = 4 << 10
    /// The most files to try, the newest first: each costs a fifth of a second or more.
    static let triedLimit = 8
    /// The most files to read: one that is no file of a passphrase costs no try.
    static let readLimit = 256
    /// The most bytes of a passphrase.
    static let passphraseLimit = 1_024

    /// - Throws: `.invalidArgument` for one that is empty or too long.
    static func check(_ passphrase: Secret) throws {
        guard (1...passphraseLimit).contains(passphrase.count) else {
            throw StoreError(.invalidArgument, "A passphrase has 1 to \(passphraseLimit) bytes. Choose six random words or more.")
        }
    }

    /// Writes a file, and opens it to verify it.
    static func make(
        _ identity: AgeIdentity, store: PackID, _ passphrase: Secret, in place: KeyDirectory, _ clock: KeyClock, _ crypto: Crypto
    ) throws -> KeyFileName {
        let plain = try Secret(capacity: sizeLimit)
        try plain.append("{\"format\":1,\"store\":\"\(store)\",\"identity\":\"")
        try identity.text().withBytes { try plain.append($0) }
        try plain.append("\",\"made\":\"\(clock.text())\"}\n")
        let bytes = try AgeWriter.encrypt(plain, for: .passphrase(passphrase), crypto)
        let name = KeyFileName.passphrase(id: KeyFileName.id(of: bytes))
        try KeyFiles.create(name, bytes, in: place)
        return name
    }

    /// - Throws: `AgeFault`, `KeyFiles.Gone`, `KeyFiles.Withheld`.
    static func open(_ name: KeyFileName, _ passphrase: Secret, in place: KeyDirectory, _ crypto: Crypto) throws -> (AgeIdentity, PackID) {
        let bytes = try KeyFiles.read(name, in: place, limit: sizeLimit)
        let plain = try AgeReader.decrypt(bytes, .passphrase(passphrase), crypto, limit: sizeLimit).plain
        var identity: AgeIdentity?, store: PackID?
        try plain.withBytes { bytes in
            var json = KeyJSON(bytes)
            do {
                try json.members { name, json in
                    switch name {
                    case "format": try json.checkFormat()
                    case "store": store = try json.storeID()
                    case "identity": identity = try json.identity(crypto)
                    default: try json.skip()
                    }
                }
                try json.end()
            } catch is JSONReader.Failure { throw AgeFault.damaged("it is not JSON of its form") }
        }
        guard let identity, let store else { throw AgeFault.damaged("it has no identity") }
        return (identity, store)
    }

    /// Returns the identities that a passphrase opens, from the existing files.
    /// - Parameter first: those that it opened before, which are tried first.
    /// - Throws: `.wrongKey` if it opens none, `.keyMissing` if there is none, `.damaged` and others if none can be read.
    static func openAll(
        _ names: [KeyFileName], _ passphrase: Secret, in place: KeyDirectory, first: [KeyFileName] = [], _ crypto: Crypto
    ) throws -> [(name: KeyFileName, identity: AgeIdentity, store: PackID)] {
        try check(passphrase)
        var opened: [(name: KeyFileName, identity: AgeIdentity, store: PackID)] = [], isWrong = false, fault: AgeFault?
        var withheld: StoreError?
        // If nothing may be deleted, each change of the passphrase leaves a file.
        var ordered = names, tries = 0
        if names.count > triedLimit {
            let known = Set(first)
            ordered = names.filter(known.contains) + (try place.newestFirst(names.filter { !known.contains($0) }))
        }
        for name in ordered.prefix(readLimit) where tries < triedLimit {
            do {
                let (identity, store) = try open(name, passphrase, in: place, crypto)
                opened.append((name, identity, store))
                tries += 1
            } catch let found as AgeFault {
                if found.kind == .wrongKey { (isWrong, tries) = (true, tries + 1) } else { fault = fault ?? found }
            } catch let found as KeyFiles.Withheld { withheld = withheld ?? found.error } catch is KeyFiles.Gone {}
        }
        if !opened.isEmpty { return opened }
        if isWrong {
            let why = fault.map { $0.why + "." } ?? withheld?.message
            let further = why.map { " (One further file for a passphrase cannot be read: \($0))" } ?? ""
            throw StoreError(
                .wrongKey,
                "The passphrase is not the one of \(place.description). Nothing was changed: try again, or use the recovery key.\(further)")
        }
        if let withheld { throw withheld }
        if let fault {
            let error = fault.error("The file of the passphrase in \(place.description)")
            throw StoreError(
                error.code,
                error.message + " Or open the place with the recovery key, or the identity of a device, and set a passphrase as after one "
                    + "that leaked.")
        }
        throw KeyFiles.missing(
            "There is no file for a passphrase in \(place.description). Use the recovery key, or the identity of a device; or restore "
                + "the files in keys/ from a copy.")
    }
}

/// Functions common to all key files.
enum KeyFiles {
    /// A listed file is missing.
    struct Gone: Error {}
    /// The place does not return the bytes of one file, and may return those of others.
    struct Withheld: Error { let error: StoreError }

    static func missing(_ message: String) -> StoreError { StoreError(.keyMissing, message) }

    /// Returns the existing key files in order: rings by epoch, and passphrases.
    static func list(_ place: KeyDirectory) throws -> (rings: [KeyFileName], passphrases: [KeyFileName]) {
        var rings: [(UInt32, KeyFileName)] = [], passphrases: [KeyFileName] = []
        for text in try place.keyFiles() {
            switch KeyFileName(text) {
            case .ring(let epoch, let id)?: rings.append((epoch, .ring(epoch: epoch, id: id)))
            case .passphrase(let id)?: passphrases.append(.passphrase(id: id))
            case nil: break
            }
        }
        rings.sort { ($0.0, $0.1.id) < ($1.0, $1.1.id) }
        return (rings.map(\.1), passphrases.sorted { $0.id < $1.id })
    }

    /// Returns the bytes of a file, if they match its name.
    /// - Throws: `AgeFault`, `Gone`, `Withheld`, errors of the place.
    static func read(_ name: KeyFileName, in place: KeyDirectory, limit: Int) throws -> [UInt8] {
        guard let bytes = try place.read(name.description, limit: limit) else { throw Gone() }
        guard bytes.count <= limit else { throw AgeFault.tooLarge("it has more than \(limit) bytes") }
        guard id(of: bytes) == name.id else { throw AgeFault.damaged("its bytes do not match its name") }
        return bytes
    }
    private static func id(of bytes: [UInt8]) -> PackID { KeyFileName.id(of: bytes) }

    /// Writes a file, and reads it back. Files that it replaces must be deleted only afterwards.
    static func create(_ name: KeyFileName, _ bytes: [UInt8], in place: KeyDirectory) throws {
        try place.create(name.description, bytes)
        let written: [UInt8]?
        do { written = try place.read(name.description, limit: bytes.count) } catch let found as Withheld { throw found.error }
        guard written == bytes else {
            try? place.delete(name.description)
            throw StoreError(
                .transport,
                "Keys that were written to \(place.description) differ from what was written. The earlier keys are "
                    + "unchanged; try again.")
        }
    }
}
