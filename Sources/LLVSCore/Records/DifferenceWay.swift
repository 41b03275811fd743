import CLLVSShims

extension Records {
    /// Returns the version that stored the base of a value; nil if the value is not a difference, or cannot be read.
    func base(of entry: RecordTable.Entry, in place: RecordPlace, version: VersionID) throws -> VersionID? {
        let found: VersionID?? = try withStored(
            place, at: UInt64(entry.bodyOffset), size: entry.size, id: entry.id, stored: version, anew: true
        ) { form in
            guard case .difference(let bytes) = form, case .difference(let difference) = ValueDifference.read(bytes, size: entry.size)
            else { return nil }
            return difference.base
        }
        return found ?? nil
    }
}

/// Makes a value that is stored as a difference. It follows the way from the value to the value that is stored whole, and checks the limits
/// before it reserves memory. Then it applies the differences in the opposite order. docs/format.md, "Values as differences".
struct DifferenceWay {
    /// One difference on the way, with its stored bytes.
    private struct Step {
        var version: VersionID
        var place: RecordPlace
        var size: Int
        var bytes: [UInt8]
    }
    /// A base: the bytes of the value, or a further difference.
    private enum Base {
        case bytes([UInt8])
        case step(Step)
    }

    private let records: Records
    private let id: UnsafeRawBufferPointer
    private let size: Int
    /// Whether to read from the storage, not from caches.
    private let isAnew: Bool

    /// - Parameters:
    ///   - id: the id of all values on the way.
    ///   - size: the size of the value to make.
    ///   - anew: whether to read from the storage, not from caches.
    init(_ records: Records, id: UnsafeRawBufferPointer, size: Int, anew: Bool) {
        self.records = records; self.id = id; self.size = size; isAnew = anew
    }

    /// Makes the value and calls with it. Dynamic, as `Records.readBody`.
    /// - Parameters:
    ///   - stored: the stored bytes of the value.
    ///   - version: the version that stored the value.
    ///   - given: memory of `size` bytes to make it in; nil for temporary memory.
    /// - Throws: `.damaged` if the value cannot be made; if its base is damaged, the error names the version of the base. Also
    ///   `.newerFormat`, `.outOfMemory`, and the errors of the body.
    dynamic func withValue(
        _ stored: UnsafeRawBufferPointer, of version: VersionID, in place: RecordPlace, into given: UnsafeMutableRawBufferPointer?,
        _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let target = given?.count == size ? given : nil
        func withTarget(_ make: (UnsafeMutableRawBufferPointer) throws -> Bool) throws -> Bool {
            func call(_ target: UnsafeMutableRawBufferPointer) throws -> Bool {
                let isMade = try make(target)
                if isMade { try body(UnsafeRawBufferPointer(target)) }
                return isMade
            }
            return if let target { try call(target) } else { try withScratch(size, call) }
        }
        var steps = [Step(version: version, place: place, size: size, bytes: try Memory.copy(stored, "Reading a value"))]
        var total = size, base: [UInt8]?
        while base == nil, let step = steps.last {
            let wanted = try step.bytes.withUnsafeBytes { Wanted(try read($0, step)) }
            // Do not compare places: only writers need them. After a repair or a union a base may have another place than before.
            guard steps.count <= ValueDifference.mostSteps, wanted.size <= ValueDifference.largestBase(of: size),
                total + wanted.size <= ValueDifference.largestWay(of: size)
            else { throw damage(step, "has a value that is a difference beyond the limits") }
            total += wanted.size
            if !isAnew, let known = records.bases.find(wanted.version, id, size: wanted.size, checksum: wanted.checksum) {
                base = known
                break
            }
            switch try self.base(wanted, of: step, for: version) {
            case .bytes(let bytes):
                if !isAnew { records.bases.keep(wanted.version, id, bytes, checksum: wanted.checksum) }
                base = bytes
            case .step(let next): steps.append(next)
            }
        }
        guard var made = base else { throw StoreError(.internal, "A value that is a difference has no base.") }
        if steps.count > 1, try withTarget({ try makeAtOnce(steps, from: made, into: $0) }) { return }
        // Apply the steps from the base to the value. The last step is based on the base, which is no step itself.
        while let step = steps.popLast() {
            if steps.isEmpty {
                _ = try withTarget {
                    try make(step, from: made, into: $0)
                    return true
                }
                return
            }
            try Memory.expect(step.size, "Reading a value")
            made = try [UInt8](unsafeUninitializedCapacity: step.size) { buffer, count in
                let target = UnsafeMutableRawBufferPointer(buffer)
                try make(step, from: made, into: UnsafeMutableRawBufferPointer(rebasing: target[..<step.size]))
                count = step.size
            }
        }
        throw StoreError(.internal, "A value that is a difference was not made.")
    }

    /// Makes the value from the base without making the values between, so that each byte is copied once. It takes at most three quarters
    /// of the size of the value, and 1 KiB, in memory.
    /// - Parameter steps: the differences, the one of the base last.
    /// - Returns: false if the value is to be made step by step: the differences are large, something is damaged, or a digest must be
    ///   compared. The contents of the buffer are then undefined.
    private func makeAtOnce(_ steps: [Step], from base: [UInt8], into target: UnsafeMutableRawBufferPointer) throws -> Bool {
        let piece = MemoryLayout<llvs_shim_piece>.stride, room = 2 * (32 + size / 128)
        var streams = 0
        for step in steps {
            let difference = try step.bytes.withUnsafeBytes { bytes in
                let difference = try read(bytes, step)
                return (size: difference.streamsSize, isSure: difference.base.hasContentForm)
            }
            guard difference.isSure else { return false }
            streams += difference.size
        }
        guard streams <= size / 2 else { return false }
        return try withScratch(room * piece + streams) { scratch in
            guard let memory = scratch.baseAddress else { return false }
            var at = room * piece, checksum: UInt32 = 0
            return try withUnsafeTemporaryAllocation(of: llvs_shim_difference.self, capacity: steps.count) { all in
                for (i, step) in steps.reversed().enumerated() {
                    let count: Int? = try step.bytes.withUnsafeBytes { bytes in
                        let difference = try read(bytes, step)
                        checksum = difference.checksum
                        let target = UnsafeMutableRawBufferPointer(start: memory + at, count: difference.streamsSize)
                        return difference.readStreams(into: target) ? target.count : nil
                    }
                    guard let count else { return false }
                    all.initializeElement(at: i, to: llvs_shim_difference(streams: memory + at, streams_size: count, size: step.size))
                    at += count
                }
                return base.withUnsafeBytes {
                    llvs_shim_difference_apply_all(
                        all.baseAddress, steps.count, $0.baseAddress, $0.count, target.baseAddress,
                        memory.bindMemory(to: llvs_shim_piece.self, capacity: room), room) == 1
                } && Bytes.crc32c(UnsafeRawBufferPointer(target)) == checksum
            }
        }
    }

    /// The fields of a difference that describe its base.
    private struct Wanted {
        var version: VersionID
        var size: Int
        var checksum: UInt32
        var hint: UInt64
        init(_ difference: ValueDifference) {
            version = difference.base; size = difference.baseSize; checksum = difference.baseChecksum
            hint = UInt64(difference.baseBody)
        }
    }

    private func read(_ bytes: UnsafeRawBufferPointer, _ step: Step) throws -> ValueDifference {
        switch ValueDifference.read(bytes, size: step.size) {
        case .difference(let difference): return difference
        case .damaged: throw damage(step, "has a value that is a damaged difference")
        case .newer:
            throw StoreError(
                .newerFormat,
                "The value of \"\(ValueID(unchecked: id))\" that version \(step.version) stored was made by a newer version of the "
                    + "library. Use a newer version of the library.",
                valueID: ValueID(unchecked: id), versionID: step.version.description)
        }
    }

    private func damage(_ step: Step, _ why: String) -> StoreError {
        records.damaged(step.place, why, version: step.version, value: id)
    }

    private func make(_ step: Step, from base: [UInt8], into target: UnsafeMutableRawBufferPointer) throws {
        let (isMade, needsDigest) = try step.bytes.withUnsafeBytes { bytes in
            let difference = try read(bytes, step)
            let isMade = try base.withUnsafeBytes { try difference.apply(to: $0, into: target, isBaseChecked: true) }
            return (isMade, !difference.base.hasContentForm)
        }
        guard isMade else { throw damage(step, "has a value that does not match its difference") }
        // If the base's version has no content id, two contents may be recorded under its id. So compare the digest.
        guard needsDigest else { return }
        let digest = try records.findChange(step.place, id, anew: isAnew)?.body.digest
        guard let digest, digest == SHA256.digest(UnsafeRawBufferPointer(target)) else {
            throw damage(step, "has a value without the digest that its difference needs, or with a wrong one")
        }
    }

    // MARK: The base

    /// Returns the base of a step, from any record of its version.
    /// - Parameter version: the version of the value to make, for the error message.
    private func base(_ wanted: Wanted, of step: Step, for version: VersionID) throws -> Base {
        var failure: StoreError?
        for place in records.findVersion(wanted.version) {
            do { return try base(wanted, in: place) } catch let error as StoreError where error.code.isDamage || error.code.isGone {
                if failure?.code != .forgotten { failure = error }
            }
        }
        guard var error = failure else {
            throw damage(step, "has a value that is a difference from that of version \(wanted.version), which is not in the store")
        }
        // Name the version of the base: its bytes are gone by intent, and nothing is to be repaired.
        if error.code.isGone {
            error.message =
                "The value of \"\(ValueID(unchecked: id))\" that version \(version) stored is a difference, and stands on that of version "
                + "\(wanted.version). \(error.message)"
            throw error
        }
        // Name the version of the base: it is damaged, and only it must be repaired.
        error.message =
            "The value of \"\(ValueID(unchecked: id))\" that version \(version) stored is a difference from that of version "
            + "\(wanted.version), which is damaged. \(error.message)"
        error.valueID = ValueID(unchecked: id)
        error.versionID = wanted.version.description
        throw error
    }

    /// Returns the base from one record of its version.
    /// - Throws: `.damaged` also if the record holds another value. Another record of the version may have the right one.
    private func base(_ wanted: Wanted, in place: RecordPlace) throws -> Base {
        if wanted.hint != 0, let found = try stored(wanted, in: place, at: wanted.hint, anew: isAnew) { return found }
        let another = "lacks the base of another value"
        guard let found = try records.findChange(place, id, anew: isAnew), found.kind == .insert || found.kind == .update,
            found.body.size == wanted.size
        else { throw records.damaged(place, another, version: wanted.version, value: id) }
        if found.body.isHollow { throw records.forgotten(id, wanted.version) }
        if let blob = found.body.blob {
            try records.check(blob, found.body, place, id: id, stored: wanted.version)
            let bytes = try bytes(wanted.size) { try records.readBlob(blob, at: 0, into: $0, id: id, stored: wanted.version) }
            guard bytes.withUnsafeBytes({ Bytes.crc32c($0) }) == wanted.checksum else {
                throw records.damaged(place, another, version: wanted.version, value: id)
            }
            return .bytes(bytes)
        }
        guard let base = try stored(wanted, in: place, at: UInt64(found.body.bodyOffset), anew: true) else {
            throw records.damaged(place, "has a damaged value", version: wanted.version, value: id)
        }
        return base
    }

    /// Returns the base from the body at an offset. Returns nil if there is no such body, or it is of another value.
    private func stored(_ wanted: Wanted, in place: RecordPlace, at offset: UInt64, anew: Bool) throws -> Base? {
        let found: Base?? = try records.withStored(
            place, at: offset, size: wanted.size, id: id, stored: wanted.version, anew: anew, isScattered: true
        ) { form in
            switch form {
            case .whole(let bytes): return Bytes.crc32c(bytes) == wanted.checksum ? .bytes(try Memory.copy(bytes, "Reading a value")) : nil
            case .deflated(let deflated):
                var isWanted = false
                let made = try bytes(wanted.size) { out in
                    isWanted =
                        Inflated.fill(out.baseAddress, size: wanted.size, from: deflated)
                        && Bytes.crc32c(UnsafeRawBufferPointer(out)) == wanted.checksum
                }
                return isWanted ? .bytes(made) : nil
            case .difference(let bytes):
                if case .difference(let difference) = ValueDifference.read(bytes, size: wanted.size), difference.checksum != wanted.checksum
                {
                    return nil
                }
                return .step(
                    Step(
                        version: wanted.version, place: place, size: wanted.size, bytes: try Memory.copy(bytes, "Reading a value")))
            }
        }
        return found ?? nil
    }

    private func bytes(_ size: Int, _ fill: (UnsafeMutableRawBufferPointer) throws -> Void) throws -> [UInt8] {
        try Memory.expect(size, "Reading a value")
        return try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            try fill(UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<size]))
            count = size
        }
    }
}
