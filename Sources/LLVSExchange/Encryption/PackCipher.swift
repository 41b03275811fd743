/// Encrypts packs for an encrypted remote: the file of docs/pack-format.md is the plaintext of a file of age, for the identity of one
/// epoch. Name, pack id and size are those of the file of age.
struct PackCipher: Sendable {
    private let crypto: Crypto
    /// The epoch of new packs.
    private let current: KeyEpoch
    private let epochs: [KeyEpoch]

    init(_ keys: StoreKeys, _ crypto: Crypto) {
        self.crypto = crypto
        current = keys.current
        epochs = keys.epochs
    }

    /// Where the trailer holds the digest and the tag.
    private static let digest = 72..<104, tag = 104..<136

    // MARK: Writing

    /// Returns the file to upload: tagged, encrypted, and named by its encrypted bytes.
    func seal(_ made: MadePack) throws -> MadePack {
        guard var trailer = made.pieces.last, trailer.count == PackFormat.trailerSize else {
            throw StoreError(.internal, "A pack that is to be encrypted has no trailer.")
        }
        trailer.replaceSubrange(PackCipher.tag, with: try crypto.hmac(current.macKey, Array(trailer[PackCipher.digest])))
        // The trailer contains the digest, which covers all but the salt, and the salt, which distinguishes attempts.
        var writer = try AgeWriter(for: .recipients([current.recipient]), crypto, mixing: trailer)
        var hash = SHA256(), pieces: [[UInt8]] = [], size = 0
        func take(_ bytes: UnsafeRawBufferPointer) throws {
            hash.update(bytes)
            size += bytes.count
            pieces.append(try Memory.copy(bytes, "Encrypting a pack"))
        }
        for piece in made.pieces.dropLast() + [trailer] { try piece.withUnsafeBytes { try writer.append($0, take) } }
        try writer.finish(take)
        var name = made.name
        guard let id = PackID(hash.finish()) else { throw StoreError(.internal, "A digest has too few bytes.") }
        name.id = id
        return MadePack(name: name, pieces: pieces, size: size)
    }

    /// Returns the digest in the names of a blob's parts. Without the key it does not identify the value.
    /// - Parameter sha256: the value's digest.
    func blobDigest(_ sha256: [UInt8], in epoch: KeyEpoch? = nil) throws -> PackID {
        PackID(try crypto.hmac((epoch ?? current).nameKey, sha256)) ?? .zero
    }

    /// The functions by which packs are written and read at a remote. If no key opens a pack, that is a fault of its own.
    var sealing: PackSealing {
        @Sendable func told<R>(_ body: () throws -> R) throws -> R {
            do { return try body() } catch let error as StoreError where error.code == .keyMissing {
                throw PackFault(kind: .keyMissing, why: "it is encrypted with keys that this device lacks")
            }
        }
        return PackSealing(
            seal: { try seal($0) }, open: { name, bytes in try told { try open(name, bytes).bytes } },
            openParts: { name, size, head in try told { try EncryptedPack(name, size: size, head: head, self) } },
            blobDigests: { sha256 in
                // The current epoch first.
                let others = epochs.filter { $0.recipient != current.recipient }.reversed()
                return try ([current] + others).map { try blobDigest(sha256, in: $0) }
            },
            isCurrent: { name, head in try told { try epoch(of: name, head).recipient == current.recipient } })
    }

    // MARK: Reading

    /// Returns the most bytes of a file at the remote.
    static func fileLimit(_ kind: PackKind) -> Int {
        AgePayload.sealedSize(PackFormat.fileLimit(kind)) + AgeHeader.sizeLimit + AgePayload.nonceSize
    }

    /// Decrypts a file, and checks it from its pack id to the tag.
    /// - Returns: the plaintext with the tag zeroed, its name as plaintext, and its epoch.
    /// - Throws: `PackFault`; `StoreError.keyMissing` if the epoch is unknown.
    func open(_ name: PackName, _ bytes: [UInt8]) throws -> (name: PackName, bytes: [UInt8], epoch: KeyEpoch) {
        guard bytes.count <= PackCipher.fileLimit(name.kind) else {
            throw PackFault.tooLarge("it has \(bytes.count) bytes; at most \(PackCipher.fileLimit(name.kind)) are read")
        }
        guard bytes.withUnsafeBytes({ PackID(SHA256.digest($0)) }) == name.id else {
            throw PackFault.notThere("its bytes do not match its name")
        }
        let file = try EncryptedPack(name, size: bytes.count, head: bytes, self)
        var plain = try file.open(0..<file.plainSize, Array(bytes[file.sealedRange(of: 0..<file.plainSize)]))
        try file.check(&plain)
        var inner = name
        inner.id = plain.withUnsafeBytes { PackID(SHA256.digest($0)) } ?? .zero
        return (inner, plain, file.epoch)
    }

    /// Returns the epoch of a file.
    private func epoch(of name: PackName, _ head: [UInt8]) throws -> KeyEpoch { try head.withUnsafeBytes { try payload($0, name).1 } }

    fileprivate func payload(_ head: UnsafeRawBufferPointer, _ name: PackName) throws -> (AgePayload, KeyEpoch, Int) {
        do {
            guard let header = try AgeHeader.parse(head, isWhole: true) else { throw AgeFault.cutShort }
            let (key, identity) = try header.fileKey(epochs.reversed().map(\.identity), crypto)
            let end = header.size + AgePayload.nonceSize
            guard head.count >= end, let epoch = epochs.first(where: { $0.recipient == identity.recipient }) else {
                throw AgeFault.cutShort
            }
            return (try AgePayload(key, nonce: Array(head[header.size..<end]), crypto), epoch, end)
        } catch let fault as AgeFault {
            guard fault.kind != .wrongKey else {
                throw StoreError(
                    .keyMissing,
                    "The pack \(name) is held back: it is encrypted with keys that this device lacks. They may come with the next "
                        + "exchange, or this device was removed.")
            }
            throw PackCipher.fault(fault)
        }
    }

    fileprivate func isRight(_ tag: [UInt8], of digest: [UInt8], _ epoch: KeyEpoch) throws -> Bool {
        Crypto.equal(try crypto.hmac(epoch.macKey, digest), tag)
    }
    fileprivate static func fault(_ fault: AgeFault) -> PackFault {
        switch fault.kind {
        case .cutShort: .notThere(fault.why)
        case .newer: .newer(fault.why)
        case .tooLarge: .tooLarge(fault.why)
        case .foreign: .damaged("it is not encrypted, as all at its place must be")
        case .wrongKey, .damaged: .damaged(fault.why)
        }
    }

    /// Checks the tag in a trailer, and zeroes it, as reading an index requires.
    fileprivate func takeTag(_ tail: inout [UInt8], _ epoch: KeyEpoch) throws {
        let start = tail.count - PackFormat.trailerSize
        guard start >= 0, tail.suffix(8).elementsEqual(PackFormat.end) else { throw PackFault.notThere("it has no end") }
        func part(_ range: Range<Int>) -> Range<Int> { start + range.lowerBound..<start + range.upperBound }
        guard try isRight(Array(tail[part(PackCipher.tag)]), of: Array(tail[part(PackCipher.digest)]), epoch) else {
            throw PackFault.damaged("no holder of the keys made it")
        }
        tail.replaceSubrange(part(PackCipher.tag), with: repeatElement(0, count: PackCipher.tag.count))
    }
}

/// A file at an encrypted remote that is read in parts.
struct EncryptedPack: Sendable {
    /// The epoch of the file.
    let epoch: KeyEpoch
    /// The size of the plaintext.
    let plainSize: Int
    private let name: PackName
    private let payload: AgePayload
    private let cipher: PackCipher
    /// Where the segments begin, and their bytes.
    private let start: Int
    private let sealedSize: Int

    /// How many bytes from the beginning of a file suffice: one recipient and the nonce, as writers produce.
    static let headSize = 184

    /// - Parameters:
    ///   - size: the listed bytes of the file.
    ///   - head: its first bytes, including the whole header.
    /// - Throws: as `PackCipher.open`.
    init(_ name: PackName, size: Int, head: [UInt8], _ cipher: PackCipher) throws {
        (payload, epoch, start) = try head.withUnsafeBytes { try cipher.payload($0, name) }
        guard size >= start, let plain = AgePayload.plainSize(size - start) else { throw PackFault.notThere("it is cut short") }
        guard plain <= PackFormat.fileLimit(name.kind) else {
            throw PackFault.tooLarge("it has \(plain) bytes; at most \(PackFormat.fileLimit(name.kind)) are read")
        }
        self.name = name
        self.cipher = cipher
        plainSize = plain
        sealedSize = size - start
    }

    /// Returns the last bytes of the plaintext, from the beginning of a segment: about as many as requested, at least half of them.
    func tail(_ count: Int) -> Range<Int> {
        let least = max(0, plainSize - count / 2)
        return least - least % AgePayload.segmentSize..<plainSize
    }

    /// Returns which bytes of the file hold a range of the plaintext: whole segments.
    func sealedRange(of range: Range<Int>) throws -> Range<Int> {
        do {
            let place = try AgePayload.sealedRange(of: range, size: sealedSize)
            return start + place.lowerBound..<start + place.upperBound
        } catch let fault as AgeFault { throw PackCipher.fault(fault) }
    }

    /// Decrypts a range of the plaintext.
    /// - Parameter bytes: the bytes that `sealedRange` returns.
    func open(_ range: Range<Int>, _ bytes: [UInt8]) throws -> [UInt8] {
        do {
            return try bytes.withUnsafeBytes { try payload.open(range, $0, size: sealedSize) }
        } catch let fault as AgeFault { throw PackCipher.fault(fault) }
    }

    /// Checks the tag in the last bytes of the plaintext, and zeroes it, as `PackIndex.read` requires.
    func check(_ tail: inout [UInt8]) throws { try cipher.takeTag(&tail, epoch) }
}
