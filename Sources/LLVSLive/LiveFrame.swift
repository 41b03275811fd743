/// The frames of a link and their bytes: docs/live-protocol.md, section 3. All input is checked against the limits of section 6.
enum LiveFrame: Equatable {
    case hello(Hello)
    case have(Have)
    case list(Listed)
    case data(ordinal: UInt64, codec: UInt8, raw: Int, bytes: [UInt8])
    case ack(count: UInt64, ordinal: UInt64)
    case credit(UInt64)
    case want(sha256: [UInt8], offset: UInt64, length: UInt32)
    case blob(sha256: [UInt8], offset: UInt64, bytes: [UInt8])
    case news([VersionID])
    case ping(UInt64)
    case pong(UInt64)
    case bye
    case error(UInt16, String)
    case pairing([UInt8])
    case commitment([UInt8])
    case nonce([UInt8])
    case ask([VersionID])
    case ranges([VersionRange])
    /// A frame of an unknown type that readers must ignore.
    case unknown(UInt8)

    static let limit = 1 << 20
    static let headsLimit = 10_000, listedHeads = 256, samplesLimit = 512, hashesLimit = 65_536
    static let rawLimit = 64 << 20
    static let smallestWindow: UInt64 = 524_288, largestWindow: UInt64 = 16 << 20
    /// The first credit window. It grows up to the largest.
    static let firstWindow: UInt64 = 1 << 20
    static let wantLimit: UInt32 = 16 << 20
    static let protocolNumber: UInt16 = 1
    /// The most versions that one NEWS announces.
    static let newsLimit = 1_024
    /// A feature of HELLO: reads NEWS, and answers with ASK.
    static let asks: UInt32 = 1
    /// A feature: compares ranges if lists would be too long.
    static let comparesRanges: UInt32 = 2
    /// A feature: exchanges earlier incarnations, each with the ordinal up to which its order is the same as that of this incarnation.
    static let tellsEarlier: UInt32 = 4
    /// A feature: answers the HAVE of a known side with LIST.
    static let listsWhenKnown: UInt32 = 8
    /// A feature: identifies the outer connection that carries the link.
    static let tellsOuter: UInt32 = 16
    /// A feature: reads hollow changes.
    static let readsHollow: UInt32 = 32
    /// A feature: reads values that are differences from values of ancestors.
    static let readsDifferences: UInt32 = 128
    /// The most bytes of versions that are sent to a known side before it has said which of them it has.
    static let unaskedLimit = 64 << 10
    /// The most earlier incarnations in a HELLO.
    static let earlierLimit = 16

    struct Hello: Equatable {
        var first = LiveFrame.protocolNumber, last = LiveFrame.protocolNumber
        var software = "llvs", device = ""
        var incarnation = PackID.zero
        var arrivals: UInt64 = 1
        var since = Since()
        var features =
            LiveFrame.asks | LiveFrame.comparesRanges | LiveFrame.tellsEarlier | LiveFrame.listsWhenKnown | LiveFrame.readsDifferences
            | LiveFrame.readsHollow
        var window = LiveFrame.firstWindow
        /// Earlier incarnations that this one continues, each with the ordinal up to which the order is the same.
        var earlier: [Since] = []
        /// Proves that both sides are at the ends of one outer connection; empty if this side was given nothing to prove it with.
        var outer: [UInt8] = []
    }
    /// The ordinal up to which everything of a side is known.
    struct Since: Equatable, Sendable {
        var incarnation = PackID.zero
        var ordinal: UInt64 = 0
    }
    struct Have: Equatable {
        var headCount = 0, versionCount = 0
        var fingerprint: [UInt64] = [0, 0, 0, 0]
        var heads: [VersionID] = [], samples: [VersionID] = []
        var ids: [VersionID] { heads + samples }
        func isSame(_ other: Have) -> Bool {
            headCount == other.headCount && versionCount == other.versionCount && fingerprint == other.fingerprint
        }
    }
    struct Listed: Equatable {
        var hasAll = false, hasMore = false
        var bits: [Bool] = []
        /// Ascending, without duplicates.
        var hashes: [UInt64] = []
    }

    private var type: UInt8 {
        switch self {
        case .hello: 1
        case .have: 2
        case .list: 3
        case .data: 4
        case .ack: 5
        case .credit: 6
        case .want: 7
        case .blob: 8
        case .news: 9
        case .ping: 10
        case .pong: 11
        case .bye: 12
        case .error: 13
        case .pairing: 14
        case .commitment: 15
        case .nonce: 16
        case .ask: 17
        case .ranges: 18
        case .unknown(let type): type
        }
    }

    /// Returns the bytes of the frame after its size.
    func encoded() -> [UInt8] {
        var out = ByteWriter()
        out.bytes.append(type)
        switch self {
        case .hello(let hello):
            out.integer(hello.first)
            out.integer(hello.last)
            LiveFrame.put(hello.software, into: &out)
            LiveFrame.put(hello.device, into: &out)
            out.raw(hello.incarnation.bytes)
            out.integer(hello.arrivals)
            out.raw(hello.since.incarnation.bytes)
            out.integer(hello.since.ordinal)
            out.integer(hello.features)
            out.integer(hello.window)
            if hello.features & LiveFrame.tellsEarlier != 0 {
                out.bytes.append(UInt8(truncatingIfNeeded: min(hello.earlier.count, LiveFrame.earlierLimit)))
                for one in hello.earlier.suffix(LiveFrame.earlierLimit) {
                    out.raw(one.incarnation.bytes)
                    out.integer(one.ordinal)
                }
            }
            if hello.features & LiveFrame.tellsOuter != 0 { out.raw(hello.outer) }
        case .have(let have):
            out.integer(UInt32(truncatingIfNeeded: have.headCount))
            out.integer(UInt32(truncatingIfNeeded: have.versionCount))
            for word in have.fingerprint { out.integer(word) }
            LiveFrame.put(have.heads, into: &out)
            LiveFrame.put(have.samples, into: &out)
        case .list(let list):
            out.bytes.append((list.hasAll ? 1 : 0) | (list.hasMore ? 2 : 0))
            out.integer(UInt16(truncatingIfNeeded: list.bits.count))
            var bitmap = [UInt8](repeating: 0, count: (list.bits.count + 7) / 8)
            for (i, bit) in list.bits.enumerated() where bit { bitmap[i / 8] |= 1 << UInt8(i % 8) }
            out.raw(bitmap)
            out.integer(UInt32(truncatingIfNeeded: list.hashes.count))
            // The order of these numbers is the order of their bytes.
            for hash in list.hashes { out.integer(hash.byteSwapped) }
        case .data(let ordinal, let codec, let raw, let bytes):
            out.integer(ordinal)
            out.bytes.append(codec)
            out.integer(UInt32(truncatingIfNeeded: raw))
            out.raw(bytes)
        case .ack(let count, let ordinal):
            out.integer(count)
            out.integer(ordinal)
        case .credit(let number), .ping(let number), .pong(let number): out.integer(number)
        case .want(let sha256, let offset, let length):
            out.raw(sha256)
            out.integer(offset)
            out.integer(length)
        case .blob(let sha256, let offset, let bytes):
            out.raw(sha256)
            out.integer(offset)
            out.raw(bytes)
        case .news(let ids), .ask(let ids): LiveFrame.put(ids, into: &out)
        case .ranges(let ranges):
            out.integer(UInt16(truncatingIfNeeded: ranges.count))
            for range in ranges { LiveFrame.put(range, into: &out) }
        case .error(let code, let text):
            out.integer(code)
            LiveFrame.put(text, into: &out)
        case .pairing(let bytes), .commitment(let bytes), .nonce(let bytes): out.raw(bytes)
        case .bye, .unknown: break
        }
        return out.bytes
    }

    private static func put(_ text: String, into out: inout ByteWriter) {
        let bytes = Array(text.utf8.prefix(255))
        out.bytes.append(UInt8(truncatingIfNeeded: bytes.count))
        out.raw(bytes)
    }
    private static func put(_ ids: [VersionID], into out: inout ByteWriter) {
        out.integer(UInt16(truncatingIfNeeded: ids.count))
        for id in ids { out.versionID(id) }
    }
    private static func put(_ range: VersionRange, into out: inout ByteWriter) {
        func hashes(_ hashes: [UInt64]) {
            out.integer(UInt16(truncatingIfNeeded: hashes.count))
            for hash in hashes { out.integer(hash.byteSwapped) }
        }
        switch range.contents {
        case .settled: out.bytes.append(0)
        case .sum(let count, let fingerprint):
            out.bytes.append(1)
            out.integer(UInt32(truncatingIfNeeded: count))
            for word in fingerprint { out.integer(word) }
        case .list(let listed):
            out.bytes.append(2)
            hashes(listed)
        case .here(let listed):
            out.bytes.append(3)
            hashes(listed)
        case .unknown: out.bytes.append(4)
        }
        guard let end = range.end else { return }
        out.integer(end.generation)
        out.versionID(end.id)
    }

    /// - Throws: `LiveFault`.
    init(_ bytes: [UInt8]) throws { self = try bytes.withUnsafeBytes { try LiveFrame.read($0) } }

    private static func read(_ bytes: UnsafeRawBufferPointer) throws -> LiveFrame {
        var reader = ByteReader(bytes)
        guard let type = reader.integer(UInt8.self) else { throw LiveFault(.frame, "a frame is empty") }
        let short = LiveFault(.frame, "a frame of type \(type) has another form")
        func word() throws -> UInt64 { try reader.integer(UInt64.self) ?? { throw short }() }
        func half() throws -> UInt32 { try reader.integer(UInt32.self) ?? { throw short }() }
        func quarter() throws -> UInt16 { try reader.integer(UInt16.self) ?? { throw short }() }
        func octet() throws -> UInt8 { try reader.integer(UInt8.self) ?? { throw short }() }
        func take(_ count: Int) throws -> [UInt8] { try reader.take(count).map(Array.init) ?? { throw short }() }
        func packID() throws -> PackID { try PackID(take(PackID.size)) ?? { throw short }() }
        func text() throws -> String { PrintableText.escaping(String(decoding: try take(Int(octet())), as: UTF8.self)) }
        func ids(_ limit: Int) throws -> [VersionID] {
            let count = Int(try quarter())
            guard count <= limit else { throw LiveFault(.bound, "a frame of type \(type) lists \(count) ids") }
            var found: [VersionID] = []
            for _ in 0..<count { found.append(try reader.versionID() ?? { throw short }()) }
            return found
        }
        func hashes() throws -> [UInt64] {
            let count = Int(try quarter())
            guard count <= VersionRange.listed else { throw LiveFault(.bound, "a range lists \(count) hashes") }
            return try (0..<count).map { _ in try word().byteSwapped }
        }
        func range(isLast: Bool) throws -> VersionRange {
            let contents: VersionRange.Contents
            switch try octet() {
            case 0: contents = .settled
            case 1: contents = .sum(count: Int(try half()), fingerprint: [try word(), try word(), try word(), try word()])
            case 2: contents = .list(try hashes())
            case 3: contents = .here(try hashes())
            case 4: contents = .unknown
            default: throw short
            }
            guard !isLast else { return VersionRange(contents: contents) }
            return VersionRange(
                contents: contents,
                end: VersionRange.Place(
                    generation: try half(), id: try reader.versionID() ?? { throw short }()))
        }
        let frame: LiveFrame
        switch type {
        case 1:
            var hello = Hello()
            (hello.first, hello.last) = (try quarter(), try quarter())
            (hello.software, hello.device) = (try text(), try text())
            (hello.incarnation, hello.arrivals) = (try packID(), try word())
            hello.since = Since(incarnation: try packID(), ordinal: try word())
            (hello.features, hello.window) = (try half(), try word())
            guard hello.window >= smallestWindow, hello.window <= largestWindow else {
                throw LiveFault(.bound, "a window has \(hello.window) bytes")
            }
            if hello.features & tellsEarlier != 0 {
                let count = Int(try octet())
                guard count <= earlierLimit else { throw LiveFault(.bound, "there are \(count) earlier incarnations") }
                for _ in 0..<count { hello.earlier.append(Since(incarnation: try packID(), ordinal: try word())) }
            }
            if hello.features & tellsOuter != 0 { hello.outer = try take(Crypto.keySize) }
            return .hello(hello)
        case 2:
            var have = Have()
            (have.headCount, have.versionCount) = (Int(try half()), Int(try half()))
            for i in 0..<4 { have.fingerprint[i] = try word() }
            guard have.headCount <= headsLimit else { throw LiveFault(.bound, "there are \(have.headCount) heads") }
            (have.heads, have.samples) = (try ids(listedHeads), try ids(samplesLimit))
            guard have.heads.count <= have.headCount, have.headCount <= have.versionCount else { throw short }
            frame = .have(have)
        case 3:
            var list = Listed()
            let flags = try octet()
            (list.hasAll, list.hasMore) = (flags & 1 != 0, flags & 2 != 0)
            let count = Int(try quarter())
            guard count <= listedHeads + samplesLimit else { throw LiveFault(.bound, "a bitmap has \(count) bits") }
            let bitmap = try take((count + 7) / 8)
            list.bits = (0..<count).map { bitmap[$0 / 8] >> UInt8($0 % 8) & 1 == 1 }
            let hashes = Int(try half())
            guard hashes <= hashesLimit else { throw LiveFault(.bound, "a list has \(hashes) hashes") }
            guard flags < 3, reader.remaining == 8 * hashes, flags == 0 || hashes == 0 else { throw short }
            list.hashes.reserveCapacity(hashes)
            for _ in 0..<hashes { list.hashes.append(try word().byteSwapped) }
            for i in list.hashes.indices.dropFirst() where list.hashes[i - 1] >= list.hashes[i] { throw short }
            frame = .list(list)
        case 4:
            let ordinal = try word(), codec = try octet(), raw = Int(try half())
            guard raw <= rawLimit else { throw LiveFault(.bound, "a frame inflates to \(raw) bytes") }
            frame = .data(ordinal: ordinal, codec: codec, raw: raw, bytes: try take(reader.remaining))
        case 5: frame = .ack(count: try word(), ordinal: try word())
        case 6: frame = .credit(try word())
        case 7:
            frame = .want(sha256: try take(32), offset: try word(), length: try half())
            if case .want(_, _, let length) = frame, length > wantLimit {
                throw LiveFault(.bound, "\(length) bytes of a value are requested")
            }
        case 8: frame = .blob(sha256: try take(32), offset: try word(), bytes: try take(reader.remaining))
        case 9: frame = .news(try ids(newsLimit))
        case 10: frame = .ping(try word())
        case 11: frame = .pong(try word())
        case 12: frame = .bye
        case 13: frame = .error(try quarter(), try text())
        case 14: frame = .pairing(try take(Pairing.size))
        case 15: frame = .commitment(try take(DigitComparison.size))
        case 16: frame = .nonce(try take(DigitComparison.size))
        case 17: frame = .ask(try ids(newsLimit))
        case 18:
            let count = Int(try quarter())
            guard count <= VersionRange.most else { throw LiveFault(.bound, "a frame has \(count) ranges") }
            guard count > 0 else { throw short }
            frame = .ranges(try (1...count).map { try range(isLast: $0 == count) })
        case 128...: return .unknown(type)
        default: throw LiveFault(.newer, "a frame has the type \(type)")
        }
        guard reader.remaining == 0 else { throw short }
        return frame
    }
}
