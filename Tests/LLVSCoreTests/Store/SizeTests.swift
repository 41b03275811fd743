import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// The report of sizes: its sums agree with the bytes on the medium, and with a model of what was saved.
@Suite struct SizeTests {
    enum Kind: String, CaseIterable { case file, sqlite, memory, host }

    private static func open(_ kind: Kind, _ directory: String, _ host: ArrayHost, _ differences: Store.Differences = .off)
        throws -> Store
    {
        var options = Store.Options()
        options.differences = differences
        switch kind {
        case .file: return try Store(path: directory + "/store", options: options)
        case .sqlite: options.storage = .sqlite; return try Store(path: directory + "/store.sqlite", options: options)
        case .memory: options.storage = .memory; return try Store(path: "", options: options)
        case .host:
            return try Store(storage: CallbackStorage(inspector: Store.versionNamed, functions: host.functions), options: options)
        }
    }

    private static func rows(_ report: SizeReport, _ group: SizeReport.Group) -> [String: SizeReport.Counts] {
        Dictionary(
            uniqueKeysWithValues: report.rows.filter { $0.group == group }.map {
                ($0.combined > 0 ? "(others)" : String(decoding: $0.name, as: UTF8.self), $0.counts)
            })
    }
    private static func sum(_ rows: [String: SizeReport.Counts]) -> SizeReport.Counts {
        rows.values.reduce(into: SizeReport.Counts()) { $0 += $1 }
    }

    /// Checks that the groups add up as the report promises.
    private static func expectSums(_ report: SizeReport, _ seed: UInt64) {
        let kinds = rows(report, .kind), prefixes = sum(rows(report, .prefix))
        #expect(sum(kinds) == report.total, "\(seed)")
        var values = kinds["value"] ?? .init()
        values += kinds["blob"] ?? .init()
        #expect(values == prefixes, "\(seed)")
        values += kinds["record"] ?? .init()
        #expect(sum(rows(report, .month)) == values && sum(rows(report, .version)) == values, "\(seed)")
        #expect(values.currentBytes &+ values.pastBytes == prefixes.bytes, "\(seed)")
    }

    /// A value that a version stored, and the bytes that it takes. Random bytes are stored uncompressed.
    private struct Stored: Hashable {
        var version: VersionID, id: ValueID, size: Int
        func bytes(_ kind: Kind) -> UInt64 {
            isBlob(kind) ? UInt64(64 + 4 * ((size + 65_535) / 65_536) + size) : UInt64(8 + size)
        }
        func isBlob(_ kind: Kind) -> Bool { kind == .file && size > 1 << 20 }
    }

    @Test(arguments: Kind.allCases, Sample.seeds(from: 1, usual: 2, deep: 25)) func sizesAreThoseOfTheModel(kind: Kind, seed: UInt64) throws
    {
        try withTemporaryDirectory { directory in
            var random = SeededRandom(seed: seed)
            let host = ArrayHost()
            var store = try Self.open(kind, directory, host)
            var states: [VersionID: [ValueID: Stored]] = [:], order: [VersionID] = [], all: [Stored] = [], times: [VersionID: Double] = [:]
            for step in 0..<40 {
                let base = order.isEmpty ? nil : random.next() % 4 == 0 ? order[Int(random.next() % UInt64(order.count))] : order.last
                var state = base.flatMap { states[$0] } ?? [:], changes: [Value.Change] = [], made: [(ValueID, Int)] = []
                for name in ["a/x/\(random.next() % 3)", "a/\(random.next() % 3)", "b/y/z/\(random.next() % 2)", "c\(random.next() % 2)"]
                where random.next() % 2 == 0 {
                    let key = try id(name)
                    if state[key] != nil, random.next() % 4 == 0 {
                        changes.append(.remove(key))
                        state[key] = nil
                        continue
                    }
                    let size = random.next() % 12 == 0 ? (1 << 20) + Int(random.next() % 200_000) : Int(random.next() % 5_000)
                    let data = Filling.noise(random.next(), size)
                    changes.append(state[key] == nil ? .insert(key, data: data) : .update(key, data: data))
                    made.append((key, size))
                }
                let time = 700_000_000 + Double(step) * 2_000_000
                let version = try store.makeVersion(basedOn: base, changes: changes, timestamp: time).id
                for (key, size) in made {
                    let stored = Stored(version: version, id: key, size: size)
                    state[key] = stored
                    all.append(stored)
                }
                (states[version], times[version]) = (state, time)
                order.append(version)
                if random.next() % 15 == 0, kind != .memory {
                    try store.close()
                    store = try Self.open(kind, directory, host)
                }
            }
            let current = Set(try store.headIDs().flatMap { states[$0].map { Array($0.values) } ?? [] })
            let report = try store.size()
            Self.expectSums(report, seed)
            #expect(report.versions == 40 && report.unread == 0)

            func expect(_ counts: SizeReport.Counts?, _ stored: [Stored], overhead: UInt64? = 0) {
                let counts = counts ?? .init()
                #expect(counts.values == UInt64(stored.count) && counts.valueBytes == stored.reduce(0) { $0 + UInt64($1.size) }, "\(seed)")
                #expect(counts.currentBytes == stored.filter(current.contains).reduce(0) { $0 + $1.bytes(kind) }, "\(seed)")
                #expect(counts.pastBytes == stored.filter { !current.contains($0) }.reduce(0) { $0 + $1.bytes(kind) }, "\(seed)")
                if let overhead { #expect(counts.bytes == counts.currentBytes + counts.pastBytes + overhead, "\(seed)") }
            }
            expect(report.total, all, overhead: nil)
            let kinds = Self.rows(report, .kind)
            expect(kinds["value"], all.filter { !$0.isBlob(kind) })
            expect(kinds["blob"], all.filter { $0.isBlob(kind) })
            for (name, counts) in Self.rows(report, .prefix) {
                expect(counts, all.filter { ($0.id.description.split(separator: "/").dropLast().first.map { $0 + "/" } ?? "") == name })
            }
            for (name, counts) in Self.rows(report, .version) {
                expect(counts, all.filter { $0.version.description == name }, overhead: nil)
            }
            for (name, counts) in Self.rows(report, .month) {
                expect(
                    counts,
                    all.filter { times[$0.version].map { String(decoding: CalendarMonth.text(month(of: $0)), as: UTF8.self) } == name },
                    overhead: nil)
            }
            // Below a prefix, each id is a group of its own.
            let below = try store.size(SizeQuery(prefix: Array("a/".utf8), depth: SizeQuery.eachID))
            Self.expectSums(below, seed)
            let ofA = all.filter { $0.id.description.hasPrefix("a/") }
            expect(below.total, ofA)
            #expect(Self.rows(below, .prefix).count == Set(ofA.map(\.id)).count)
            for (name, counts) in Self.rows(below, .prefix) { expect(counts, ofA.filter { $0.id.description == name }) }
            // Groups beyond the limit are combined.
            let short = try store.size(SizeQuery(limit: 2))
            Self.expectSums(short, seed)
            let versions = short.rows.filter { $0.group == .version }
            #expect(versions.count == 3 && versions.last?.combined == 38 && versions[0].counts.bytes >= versions[1].counts.bytes)

            // The sizes on the medium.
            switch kind {
            case .file:
                try store.close()
                store = try Self.open(kind, directory, host)
                let again = Self.rows(try store.size(), .kind)
                #expect(again["blob"]?.bytes == Self.bytes(in: directory + "/store/blobs"), "\(seed)")
                #expect(again["cache"]?.bytes == Self.bytes(in: directory + "/store/cache"), "\(seed)")
                let segments = ["record", "value", "other"].reduce(0) { $0 + (again[$1]?.bytes ?? 0) }
                #expect(segments == Self.bytes(in: directory + "/store/segments"), "\(seed)")
            case .sqlite, .memory: #expect(try report.total.bytes == store.statistics().storage.bytes, "\(seed)")
            case .host: #expect(report.total.bytes == host.records.reduce(0) { $0 + UInt64($1.count) }, "\(seed)")
            }
            try store.close()
        }
    }

    private func days(of month: Int) -> Int {
        let year = month / 12, isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month % 12]
    }
    /// Counts months up to a time.
    private func month(of time: Double) -> Int {
        var month = 2_001 * 12, left = Int(time) / 86_400
        while left >= days(of: month) {
            left -= days(of: month)
            month += 1
        }
        return month
    }

    @Test func monthsAreThoseOfTheCalendar() {
        var month = 2_001 * 12, first = 0
        while month < 3_000 * 12 {
            let days = days(of: month)
            for day in [first, first + days - 1] {
                #expect(CalendarMonth.number(ofSecondsSince2001: Double(day) * 86_400 + 86_399) == month)
            }
            first += days
            month += 1
        }
        for (time, name) in [
            (-1.0, "2000-12"), (-63_113_904_000, "0001-01"), (-63_113_904_001, "0001-01"), (-1e300, "0001-01"),
            (252_423_993_599, "9999-12"),
            (252_423_993_600, "9999-12"), (1e300, "9999-12"), (-31_622_401, "1999-12"), (-31_622_400, "2000-01"),
        ] {
            #expect(String(decoding: CalendarMonth.text(CalendarMonth.number(ofSecondsSince2001: time)), as: UTF8.self) == name)
        }
    }

    private static func bytes(in directory: String) -> UInt64 {
        var bytes: UInt64 = 0
        try? Folder(directory).forEachName(.none) { name in
            bytes += (try? System.status(directory + "/" + String(decoding: name, as: UTF8.self)).size) ?? 0
        }
        return bytes
    }

    /// A difference counts with its own bytes, so the report gives the bytes of the bodies of all records.
    @Test(arguments: [Kind.file, .sqlite]) func differencesCountWithTheirBytes(kind: Kind) throws {
        try withTemporaryDirectory { directory in
            let store = try Self.open(kind, directory, ArrayHost(), .on)
            var text = Filling.words(60_000, 3), head: VersionID?
            for i in 0..<30 {
                text.replaceSubrange(i * 1_000..<i * 1_000 + 5, with: Array("edit \(i)".utf8))
                head = try store.makeVersion(basedOn: head, changes: [i == 0 ? .insert(id("n"), data: text) : .update(id("n"), data: text)])
                    .id
            }
            #expect(try store.statistics().differences == 29)
            let report = try store.size(), value = Self.rows(report, .kind)["value"]
            var bodies: UInt64 = 0, last: UInt64 = 0
            try store.forEachLive({}) { ordinal, dag in
                last = UInt64(try store.records.header(dag.rows[Int(ordinal)].place).bodiesSize)
                bodies += last
            }
            #expect(value?.bytes == bodies && value?.currentBytes == last && value?.pastBytes == bodies - last)
            #expect(value?.valueBytes ?? 0 > 10 * bodies && value?.values == 30)
            try store.close()
        }
    }

    /// A file counts once, for the value that prevails.
    @Test func aFileThatSeveralChangesNameCountsOnce() throws {
        let data = [UInt8](repeating: 7, count: 200), size: UInt64 = 64 + 4 + 200
        let (store, storage) = try hookedStore()
        storage.isThere = { _ in true }
        storage.inject(
            try hostileRecord(
                plainVersion("one"), [.insert(id("a/1"), data: data), .insert(id("a/2"), data: data), .insert(id("b/3"), data: data)],
                blobThreshold: 100))
        try store.reloadHistory()
        // All three values prevail: the file counts for the first of them.
        let all = try store.size()
        Self.expectSums(all, 0)
        #expect(Self.rows(all, .prefix)["a/"]?.currentBytes == size && Self.rows(all, .prefix)["b/"]?.bytes == 0)
        #expect(all.total.pastBytes == 0 && Self.rows(all, .kind)["blob"]?.bytes == size)
        storage.inject(
            try hostileRecord(
                plainVersion("two", ["one"], timestamp: 2), [.update(id("a/1"), data: data), .remove(id("a/2"))], blobThreshold: 100))
        storage.inject(try hostileRecord(plainVersion("three", ["two"], timestamp: 3), [.remove(id("a/1")), .remove(id("b/3"))]))
        try store.reloadHistory()
        // None of the values prevails: the file counts for the first of them.
        var blobs = Self.rows(try store.size(), .kind)["blob"]
        #expect(blobs?.bytes == size && blobs?.pastBytes == size && blobs?.values == 4 && blobs?.valueBytes == 800)
        storage.inject(try hostileRecord(plainVersion("four", ["one"], timestamp: 3), [.remove(id("a/1")), .remove(id("a/2"))]))
        try store.reloadHistory()
        // Only b/3 of the first version prevails.
        let report = try store.size()
        Self.expectSums(report, 0)
        blobs = Self.rows(report, .kind)["blob"]
        #expect(blobs?.bytes == size && blobs?.currentBytes == size)
        let prefixes = Self.rows(report, .prefix)
        #expect(prefixes["b/"]?.currentBytes == size && prefixes["a/"]?.bytes == 0 && prefixes["a/"]?.values == 3)
    }

    /// Headers and tables of changes are read, but no values.
    @Test func noValueIsRead() throws {
        let storage = CountingStorage(MemoryStorage())
        let store = try Store(storage: storage, options: Store.Options())
        let many = try (0..<200).map { Value.Change.insert(try id("v/\($0)"), data: Filling.noise(UInt64($0), 50_000)) }
        _ = try store.makeVersion(basedOn: nil, changes: many)
        let before = storage.bytesRead
        #expect(try store.size().total.valueBytes == 10_000_000)
        #expect(storage.bytesRead - before < 40_000)
    }

    /// A damaged table is reported as unread, and everything else counts.
    @Test func damagedTablesAreCounted() throws {
        let storage = CountingStorage(MemoryStorage())
        let store = try Store(storage: storage, options: Store.Options())
        let first = try store.makeVersion(basedOn: nil, changes: [.insert(id("a"), data: [1, 2, 3])])
        _ = try store.makeVersion(basedOn: first.id, changes: [.insert(id("b"), data: [4])])
        let whole = try store.size()
        nonisolated(unsafe) var isSecond = false
        storage.meddleWithRecords { offset, buffer in
            // The id in the table of the second version.
            guard let at = buffer.lastIndex(of: UInt8(ascii: "b")), buffer.count > 28, offset == 0, buffer.contains(4), isSecond else {
                isSecond = true
                return
            }
            buffer[at] ^= 1
        }
        let report = try store.size()
        storage.meddleWithRecords(nil)
        #expect(report.versions == 2 && report.unread == 1 && report.total.bytes == whole.total.bytes)
        #expect(report.total.values == 1 && report.total.valueBytes == 3)
    }

    @Test func itEndsWhenCancelled() throws {
        let store = try Store.inMemory()
        let first = try store.makeVersion(basedOn: nil, changes: [.insert(id("a"), data: [1])])
        _ = try store.makeVersion(basedOn: first.id, changes: [.remove(id("a"))])
        let token = CancelToken()
        token.cancel()
        #expect(code { _ = try store.size(SizeQuery(), control: OperationControl(token: token)) } == .cancelled)
        nonisolated(unsafe) var stages: Set<UInt32> = []
        _ = try store.size(
            SizeQuery(),
            control: OperationControl(progress: {
                stages.insert($0.stage.rawValue); return true
            }))
        #expect(stages == [OperationProgress.Stage.reading.rawValue])
        try store.close()
        #expect(code { _ = try store.size() } == .closed)
    }
}
