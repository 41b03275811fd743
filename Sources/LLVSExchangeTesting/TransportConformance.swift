import LLVSCore
import LLVSExchange
import LLVSTesting
import LLVSUpkeep

/// The requirements on every transport, for any medium: exactly those on which exchanges rely.
///
/// Runs without a test framework. Each check has a place of its own and returns a result; no behaviour of a transport makes it trap.
package enum TransportConformance: ConformanceSuite {
    /// One place for the other side's data, empty at first.
    package struct Subject {
        /// Opens a transport to the place.
        package var open: () throws -> any ExchangeTransport
        /// Whether several transports may use it at once.
        package var isShared: Bool
        /// Whether it carries snapshots.
        package var hasSnapshots: Bool
        /// Whether it notifies its observers of versions that another transport sent to the place.
        package var tells: Bool
        /// Makes the place unreachable, or reachable again; nil if that is impossible.
        package var disturb: ((Disturbance) throws -> Void)?
        package init(
            isShared: Bool = true, hasSnapshots: Bool = true, tells: Bool = false, disturb: ((Disturbance) throws -> Void)? = nil,
            open: @escaping () throws -> any ExchangeTransport
        ) {
            self.open = open; self.isShared = isShared; self.hasSnapshots = hasSnapshots; self.tells = tells; self.disturb = disturb
        }
    }

    package static let checks: [Check<Subject>] = [
        Check("a new place is empty", emptiness),
        Check("what was sent is listed, and nothing else", listing),
        Check("files come back byte for byte", roundTrip),
        Check("each name gets its own files", ownFiles),
        Check("missing files are reported as missing", absence),
        Check("files that are sent again are replaced", replacing),
        Check("all version ids can be names", names(_:)),
        Check("unusual bytes are sent unchanged", oddBytes),
        Check("large files are complete", largeFiles),
        Check("many files are listed and fetched", manyFiles),
        Check("complete files are not reported as unusable", unusable),
        Check("another transport on the place sees what was sent", sharing),
        Check("both files of a listed version can be fetched", publishing),
        Check("two transports that send at once lose nothing", sendingAtOnce),
        Check("equal marks imply equal listings", marks),
        Check("cancelling leaves only complete files", cancelling),
        Check("an unreachable place is an error", unreachable),
        Check("snapshot files are kept, replaced and deleted", snapshots),
        Check("snapshot files are not listed as versions", snapshotsApart),
        Check("state is kept", state),
        Check("observers get news", news),
        Check("two stores exchange through it", storesExchange),
        Check("a snapshot is restored through it", storeSnapshot),
    ]
}

// Reads and writes for the checks.
extension TransportConformance {
    /// Returns the two files of a version, with bytes that depend on a seed. The version file has as much of the real form as transports
    /// may require.
    static func files(_ name: String, seed: UInt64 = 1, size: Int = 200) -> ExchangeFiles {
        let version = Array("{\"version\":{\"a\":\"".utf8) + text(seed &* 2, 100 + size / 10) + Array("\"}}".utf8)
        return ExchangeFiles(name: name, version: version, changes: text(seed &* 2 &+ 1, size))
    }

    /// Returns printable text that begins and ends like a changes file: transports carry any bytes, but some check whether a file is
    /// complete.
    static func text(_ seed: UInt64, _ size: Int) -> [UInt8] {
        var bytes = StorageConformance.bytes(seed: seed, count: max(2, size))
        bytes.withUnsafeMutableBytes { raw in
            // Eight at a time: printable, without line ends.
            for at in stride(from: 0, to: raw.count & ~7, by: 8) {
                let word = raw.load(fromByteOffset: at, as: UInt64.self)
                raw.storeBytes(of: word & 0x0F0F_0F0F_0F0F_0F0F | 0x6060_6060_6060_6060, toByteOffset: at, as: UInt64.self)
            }
            for at in raw.count & ~7..<raw.count { raw[at] = raw[at] & 0x0F | 0x60 }
            raw[0] = UInt8(ascii: "[")
            raw[raw.count - 1] = UInt8(ascii: "]")
        }
        return bytes
    }

    static func list(_ transport: any ExchangeTransport) throws -> Set<String> {
        Set(try transport.list(OperationControl()).versions.map(\.description))
    }

    static func send(_ transport: any ExchangeTransport, _ files: [ExchangeFiles]) throws { try transport.send(files, OperationControl()) }

    /// Returns one file for each name; repeats the request until all were returned.
    static func fetch(_ names: [String], _ kind: String, _ body: ([String], OperationControl) throws -> [FetchedFile]) throws -> [[UInt8]?]
    {
        var answers: [[UInt8]?] = []
        while answers.count < names.count {
            let asked = Array(names[answers.count...])
            let files = try body(asked, OperationControl())
            try expect(!files.isEmpty, "fetching \(asked.count) \(kind) returns none")
            try expect(files.count <= asked.count, "fetching \(asked.count) \(kind) returns \(files.count)")
            for file in files {
                if case .unreadable(let error) = file { throw Checks.Problem(message: "one of the \(kind) cannot be read: \(error)") }
                answers.append(try FaultyTransport.bytes(file))
            }
        }
        return answers
    }
    static func versions(_ transport: any ExchangeTransport, _ names: [String]) throws -> [[UInt8]?] {
        try fetch(names, "version files", transport.fetchVersions)
    }
    static func changes(_ transport: any ExchangeTransport, _ names: [String]) throws -> [[UInt8]?] {
        try fetch(names, "changes files", transport.fetchChanges)
    }

    /// Requires that each file is as it was sent.
    static func compare(_ files: [ExchangeFiles], in transport: any ExchangeTransport, _ when: String) throws {
        let names = files.map(\.name)
        for (kind, found, sent) in [
            ("version", try versions(transport, names), files.map(\.version)),
            ("changes", try changes(transport, names), try files.map { try $0.changes.bytes() }),
        ] {
            for (name, (found, sent)) in zip(names, zip(found, sent)) {
                guard let found else { throw Checks.Problem(message: "\(when), the \(kind) file of \"\(name)\" is missing") }
                guard found != sent else { continue }
                let how = found.count == sent.count ? "is not as it was sent" : "has \(found.count) bytes of \(sent.count)"
                throw Checks.Problem(message: "\(when), the \(kind) file of \"\(name)\" \(how)")
            }
        }
    }
}
