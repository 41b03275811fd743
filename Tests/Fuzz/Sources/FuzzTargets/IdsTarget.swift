import LLVS
@testable import LLVSCore
@testable import LLVSExchange
@testable import LLVSUpkeep

/// Versions with content ids, one of which was forged, received through a folder or a snapshot.
///
///     input   = way u8 (bit 0: a snapshot, else a folder; bit 1: the genuine version comes in the same call)
///               · which u8 · mutation u8 · where u16 · version ...
///     version = shape u8 (bits 0-1 predecessors, bit 2 metadata) · timestamp u64 · a predecessor u8 for each · metadata part
///               · changes u8 · change ...
///     change  = kind u8 · id u8 · value part
///
/// What must hold: versions that are neither forged nor build on the forged one are accepted. The forged one is reported by name. The
/// genuine one is accepted whenever it comes, with all its descendants.
enum IdsTarget {
    static let target = FuzzTarget(name: "ids", run: run, seeds: seeds)
    private typealias Made = (version: Version, changes: [Value.Change])

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let way = input.byte(), which = Int(input.byte()), mutation = input.byte(), place = input.uint16()
        Examining.attempt {
            var made: [Made] = []
            while made.count < 12, !input.isAtEnd || made.isEmpty { made.append(try version(&input, on: made)) }
            // Equal versions are one.
            var met: Set<VersionID> = []
            made = made.filter { met.insert($0.version.id).inserted }
            let at = which % made.count, forged = changed(made[at], mutation, place)
            // A folder holds one version for each id.
            let withGenuine = way & 2 != 0 && (way & 1 != 0 || forged.version.id != made[at].version.id)
            var given = made
            if withGenuine { given.insert(forged, at: place % 2 == 0 ? at : at + 1) } else { given[at] = forged }
            let store = try Examining.memoryStore()
            let problems = try way & 1 == 0 ? retrieve(given, into: store) : restore(given, into: store)
            let same = try isSame(forged, made[at])
            if !same {
                require(
                    problems.contains(forged.version.id.description),
                    "\(forged.version.id) was changed (\(mutation % 8)), and is not reported")
            }
            for (i, one) in made.enumerated() {
                let isHeldBack = !same && !withGenuine && (i == at || dependsOn(one, made[at].version.id, made))
                require(
                    try store.contains(one.version.id) != isHeldBack, "version \(i) \(isHeldBack ? "is here" : "is not here"): \(problems)")
            }
            // The versions that were held back arrive.
            for addition in try store.add(made.map { .init(version: $0.version, changes: $0.changes) }) {
                if case .problem(let error) = addition { fail("a genuine version is refused: \(error.message)") }
            }
            require(try store.verify().unvouched == 0, "not all that is here is vouched for")
            Examining.examine(store)
        }
    }

    /// A version with a valid content id.
    private static func version(_ input: inout FuzzInput, on made: [Made]) throws -> Made {
        let shape = input.byte(), time = Double(bitPattern: input.uint64())
        var predecessors: [VersionID] = []
        for _ in 0..<min(Int(shape & 3), 2) where !made.isEmpty {
            let id = made[Int(input.byte()) % made.count].version.id
            if !predecessors.contains(id) { predecessors.append(id) }
        }
        let metadata = try shape & 4 == 0 ? Metadata() : Metadata([(Array("note".utf8), input.part())])
        var changes: [ValueID: Value.Change] = [:]
        for _ in 0..<Int(input.byte() % 6) {
            let kind = input.byte(), id = try ValueID("id \(input.byte() % 8)")
            switch kind % 4 {
            case 0: changes[id] = .insert(id, data: input.part())
            case 1: changes[id] = .update(id, data: input.part())
            case 2: changes[id] = .remove(id)
            default: changes[id] = .preserveRemoval(id)
            }
        }
        let sorted = changes.values.sorted { $0.id < $1.id }
        var version = Version(
            id: EmptyRoot.id, predecessors: predecessors, timestamp: time.isFinite ? time : 1,
            valueDataSize: InterchangeOrder.valueDataSize(sorted), metadata: metadata)
        version.id = id(of: version, sorted)
        return (version, sorted)
    }

    private static func id(of version: Version, _ changes: [Value.Change]) -> VersionID {
        var digests: [UInt8] = []
        return changes.withBorrowed { borrowed in version.contentID(RecordChanges(borrowed), digests: &digests) }
    }

    /// The same version with one change, under the old id, or under that id spelled differently.
    private static func changed(_ made: Made, _ mutation: UInt8, _ place: Int) -> Made {
        var (version, changes) = made
        func flip(_ bytes: inout [UInt8]) {
            if bytes.isEmpty { bytes = [1] } else { bytes[place % bytes.count] ^= UInt8(1 << (place % 8)) }
        }
        switch mutation % 8 {
        case 0: version.timestamp += version.timestamp == 0 ? 1 : version.timestamp.ulp
        case 1: version.predecessors.reverse()
        case 2: version.metadata[Array("more".utf8)] = [UInt8(place & 255)]
        case 3: changes.append(.remove(ValueID(unchecked: Array("z".utf8))))
        case 4: if !changes.isEmpty { changes.remove(at: place % changes.count) }
        case 5:
            guard !changes.isEmpty else { break }
            let i = place % changes.count
            switch changes[i] {
            case .insert(let id, var data): flip(&data); changes[i] = .insert(id, data: data)
            case .update(let id, var data): flip(&data); changes[i] = .insert(id, data: data)
            case .remove(let id): changes[i] = .preserveRemoval(id)
            case .preserveRemoval(let id): changes[i] = .remove(id)
            case .preserve: break
            }
        case 6:
            // All letters, or one of them, in lower case: another id.
            var text = Array(version.id.description.utf8)
            for i in text.indices where text[i] >= 65 && text[i] <= 90 && (place % 2 == 0 || i == place % text.count) { text[i] |= 32 }
            version.id = text.withUnsafeBytes { VersionID(validating: $0) } ?? version.id
        default: break
        }
        version.valueDataSize = InterchangeOrder.valueDataSize(changes)
        return (version, changes)
    }

    private static func isSame(_ a: Made, _ b: Made) throws -> Bool {
        a.version.id == b.version.id && id(of: a.version, a.changes) == b.version.id
    }

    private static func dependsOn(_ one: Made, _ id: VersionID, _ made: [Made]) -> Bool {
        var open = one.version.predecessors, met: Set<VersionID> = []
        while let next = open.popLast() {
            if next == id { return true }
            if met.insert(next).inserted { open += made.first { $0.version.id == next }?.version.predecessors ?? [] }
        }
        return false
    }

    /// Returns the names of refused versions.
    private static func retrieve(_ versions: [Made], into store: Store) throws -> Set<String> {
        let transport = MemoryTransport(name: "fuzz ids")
        for (version, changes) in versions {
            transport.plant(
                version.id.description, version: InterchangeEncoder.version(version), changes: InterchangeEncoder.changes(changes))
        }
        let exchange = Exchange(store: store, transport: transport)
        return try Set(exchange.retrieve().problems.map(\.name))
    }

    private static func restore(_ versions: [Made], into store: Store) throws -> Set<String> {
        let transport = MemoryTransport(name: "fuzz ids")
        var manifest = SnapshotManifest(snapshotID: VersionID.random().description, createdAt: 1, latestVersionID: "")
        var writer = SnapshotWriter(id: manifest.snapshotID) { try transport.writeSnapshotFile(SnapshotLimits.chunkName($0), $1) }
        for (version, changes) in versions {
            try writer.begin(version, changeCount: changes.count)
            try changes.withBorrowed { for change in $0 { try writer.append(change) } }
        }
        try writer.finish()
        manifest.versionCount = UInt64(versions.count)
        manifest.chunkDigests = writer.digests
        manifest.chunkCount = UInt64(writer.digests.count)
        manifest.totalSize = writer.totalSize
        try transport.writeSnapshotFile("manifest.json", manifest.encoded())
        return Set(try Snapshots(store: store, transport: transport).restore().problems.map(\.name))
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        func version(_ shape: UInt8, _ time: Double, _ predecessors: [UInt8], _ changes: [[UInt8]]) -> [UInt8] {
            var out = ByteWriter(bytes: [shape])
            out.integer(time.bitPattern)
            out.raw(predecessors)
            if shape & 4 != 0 { out.raw(FuzzInput.part([1, 2, 3])) }
            out.raw([UInt8(changes.count)])
            for change in changes { out.raw(change) }
            return out.bytes
        }
        let history =
            version(0, 1, [], [[0, 1] + FuzzInput.part([7]), [0, 2] + FuzzInput.part([])])
            + version(5, 2, [0], [[1, 1] + FuzzInput.part([8, 9])]) + version(1, 3, [0], [[2, 2]])
            + version(2, 4, [2, 1], [[3, 2], [1, 1] + FuzzInput.part([5])]) + version(1, 5, [3], [])
        var seeds: [FuzzTarget.Seed] = []
        for mutation in UInt8(0)..<8 {
            for way in UInt8(0)..<4 {
                seeds.append(
                    FuzzTarget.Seed(name: "mutation-\(mutation)-way-\(way)", bytes: [way, mutation % 5, mutation, way, 0] + history))
            }
        }
        return seeds
    }
}
