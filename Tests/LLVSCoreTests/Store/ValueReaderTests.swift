import LLVSCore
import LLVSTestHelpers
import Testing

/// Values that are read in parts: the bytes are those of the whole value, verified, and no more is read than needed.
@Suite struct ValueReaderTests {
    private static let sizes = [0, 1, 65_535, 65_536, 65_537, 1 << 20, 1 << 20 + 1, 1_200_000]

    /// Incompressible bytes. With a mask they can be compressed.
    private func random(_ size: Int, _ seed: UInt64 = 1, mask: UInt64 = .max) -> [UInt8] {
        var random = SeededRandom(seed: seed)
        return [UInt8](unsafeUninitializedCapacity: size + 8) { buffer, count in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            for at in stride(from: 0, to: size, by: 8) { raw.storeBytes(of: random.next() & mask, toByteOffset: at, as: UInt64.self) }
            count = size
        }
    }
    private func text(_ size: Int) -> [UInt8] { random(size, 7, mask: 0x0F0F_0F0F_0F0F_0F0F) }

    private func open(_ folder: TemporaryFolder, _ name: String) throws -> (Store, CountingStorage) {
        let path = folder.path + "/" + name
        var base: any Storage = MemoryStorage()
        if name == "sqlite" { base = try SQLiteStorage(path: path) }
        if name == "file" { base = try FileStorage(path: path) }
        let storage = CountingStorage(base)
        var options = Store.Options()
        options.storage = .custom(storage)
        return (try Store(path: "", options: options), storage)
    }

    private func part(_ reader: ValueReader, _ offset: Int, _ count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = try reader.read(
                at: offset, into: UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[..<count])))
        }
    }

    @Test(arguments: ["memory", "file", "sqlite"], [true, false])
    func partsAreThoseOfTheWhole(_ name: String, _ isText: Bool) throws {
        let folder = TemporaryFolder(), (store, storage) = try open(folder, name)
        let values = ValueReaderTests.sizes.map { isText ? text($0) : random($0) }
        let made = try store.makeVersion(basedOn: nil, changes: values.map { .insert(try ValueID("\($0.count)"), data: $0) })
        // Preserved values, whose sizes the map does not record. Here only merges make preserves; in received versions they are kept as
        // they are.
        let ids = try values.map { try ValueID("\($0.count)") }
        let removed = try store.makeVersion(basedOn: made.id, changes: ids.map { .remove($0) })
        let preserving = Version(
            id: .random(), predecessors: [removed.id], timestamp: removed.timestamp + 1, valueDataSize: 0, metadata: Metadata())
        _ = try store.add([.init(version: preserving, changes: ids.map { .preserve(.init(id: $0, version: made.id)) })])
        for version in [made.id, preserving.id] {
            for value in values {
                let id = try ValueID("\(value.count)"), before = storage.bytesRead
                let reader = try #require(try store.openValue(id, at: version))
                #expect(reader.size == value.count && reader.storedVersion == made.id && reader.id == id)
                #expect(storage.bytesRead - before < 64 << 10, "opening reads no value")
                #expect(try part(reader, 0, value.count + 100) == value)
                #expect(try part(reader, value.count, 10).isEmpty && part(reader, .max, 10).isEmpty && part(reader, 0, 0).isEmpty)
                var random = SeededRandom(seed: UInt64(value.count))
                for _ in 0..<6 {
                    let offset = Int(random.next() % UInt64(value.count + 1)), limit: UInt64 = random.next() % 4 == 0 ? 500_000 : 70_000
                    let count = Int(random.next() % limit)
                    #expect(
                        try part(reader, offset, count) == Array(value[offset..<min(value.count, offset + count)]),
                        "\(count) at \(offset) of \(value.count)")
                }
                // Forwards in steps that do not fit the blocks, then backwards.
                let steps = Array(stride(from: 0, to: value.count, by: 150_001))
                let again = try #require(try store.openValue(.init(id: id, version: made.id)))
                #expect(try steps.map { try part(again, $0, 150_001) }.flatMap { $0 } == value)
                #expect(try steps.reversed().map { try part(again, $0, 150_001) }.reversed().flatMap { $0 } == value)
                #expect(try store.value(id, at: version)?.data == value)
                var copied: [UInt8] = Array(repeating: 0, count: value.count)
                let fetched = try copied.withUnsafeMutableBytes { target in
                    try id.bytes.withUnsafeBytes { try store.fetch($0, at: version) { $0 == value.count ? target.baseAddress : nil } }
                }
                guard case .copied(value.count, made.id) = fetched else { Issue.record("\(fetched)"); continue }
                #expect(copied == value)
            }
        }
        #expect(try store.openValue(ValueID("absent"), at: made.id) == nil)
        #expect(try store.openValue(.init(id: ValueID("1"), version: removed.id)) == nil)
        #expect(throws: StoreError.self) { try store.openValue(ValueID("1"), at: VersionID("unknown")) }
        let reader = try #require(try store.openValue(ValueID("1"), at: made.id))
        #expect(code { _ = try part(reader, -1, 1) } == .invalidArgument)
        try store.close()
        #expect(code { _ = try part(reader, 0, 1) } == .closed)
    }

    @Test func ofABlobThatIsReadWhichIsWanted() throws {
        let folder = TemporaryFolder(), (store, storage) = try open(folder, "file"), value = random(3 << 20)
        let made = try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("v"), data: value)])
        let reader = try #require(try store.openValue(ValueID("v"), at: made.id))
        _ = try part(reader, 0, 1)
        var before = storage.bytesRead
        #expect(try part(reader, 2_000_000, 10) == Array(value[2_000_000..<2_000_010]))
        #expect(storage.bytesRead - before == 64 << 10)
        before = storage.bytesRead
        for at in stride(from: 2_000_010, to: 2_020_000, by: 10) { #expect(try part(reader, at, 10) == Array(value[at..<at + 10])) }
        #expect(storage.bytesRead == before, "who reads on within a block reads it once")
        // If there is no memory for a value, it is not read.
        let id = Array("v".utf8)
        let told = try id.withUnsafeBytes { try store.fetch($0, at: made.id) { _ in nil } }
        guard case .copied(value.count, _) = told else { Issue.record("\(told)"); return }
        #expect(storage.bytesRead - before < 4_096)

        // Damage costs the block in which it lies.
        let blob = try #require(try folder.names("file/blobs").first), path = folder.path + "/file/blobs/" + blob
        let at = 64 + 4 * 48 + 1_000_000
        let file = fopen(path, "r+")
        #expect(fseek(file, at, SEEK_SET) == 0 && fputc(Int32(value[1_000_000] ^ 1), file) >= 0 && fclose(file) == 0)
        let block = 1_000_000 / 65_536 * 65_536
        #expect(try part(reader, block - 1_000, 1_000) == Array(value[block - 1_000..<block]))
        #expect(try part(reader, block + 65_536, 1_000) == Array(value[block + 65_536..<block + 66_536]))
        #expect(code { _ = try part(reader, block, 1) } == .damaged)
        #expect(code { _ = try part(reader, block - 1, 2) } == .damaged)
        #expect(code { _ = try part(reader, 0, value.count) } == .damaged)
        #expect(code { _ = try store.value(ValueID("v"), at: made.id) } == .damaged)
        #expect(try part(reader, 0, 1_000) == Array(value[..<1_000]))
        try store.close()
    }

    @Test(arguments: [true, false])
    func withinARecordNothingUncheckedIsGivenOut(_ isText: Bool) throws {
        let (store, storage) = try open(TemporaryFolder(), "memory"), value = isText ? text(3 << 20) : random(3 << 20)
        let made = try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("v"), data: value)])
        let place = store.place(of: try store.requireOrdinal(made.id)), far = place.length - 1_000
        /// Changes the byte at `far` in what is read.
        func spoil(_ offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer) {
            if offset <= far, far < offset + UInt64(buffer.count) { buffer[Int(far - offset)] ^= 1 }
        }
        storage.meddleWithRecords(spoil)
        var reader = try #require(try store.openValue(ValueID("v"), at: made.id))
        #expect(code { _ = try part(reader, 0, 10) } == .damaged, "the first part is given out when all is known to be whole")
        #expect(code { _ = try store.value(ValueID("v"), at: made.id) } == .damaged)
        let id = Array("v".utf8)
        var target = [UInt8](repeating: 0, count: value.count)
        let fetched = code {
            _ = try id.withUnsafeBytes { id in
                try target.withUnsafeMutableBytes { to in _ = try store.fetch(id, at: made.id) { _ in to.baseAddress } }
            }
        }
        #expect(fetched == .damaged)
        // The bytes become right again, and wrong again after the value was found whole.
        storage.meddleWithRecords(nil)
        #expect(try part(reader, 0, 10) == Array(value[..<10]))
        storage.meddleWithRecords(spoil)
        #expect(try part(reader, 100_000, 10) == Array(value[100_000..<100_010]))
        #expect(code { _ = try part(reader, value.count - 2_000, 2_000) } == .damaged)
        storage.meddleWithRecords(nil)
        #expect(try part(reader, value.count - 2_000, 2_000) == Array(value[(value.count - 2_000)...]))
        // The value is read once, not for each part.
        reader = try #require(try store.openValue(ValueID("v"), at: made.id))
        _ = try part(reader, 0, 65_536)
        let before = storage.bytesRead
        for at in stride(from: 65_536, to: value.count, by: 65_536) {
            #expect(try part(reader, at, 65_536) == Array(value[at..<min(value.count, at + 65_536)]))
        }
        #expect(storage.bytesRead - before <= value.count)
        try store.close()
    }

    @Test func aReaderGoesOnBesideWritersAndCompaction() throws {
        let folder = TemporaryFolder(), path = folder.path + "/store"
        var options = Store.Options()
        options.compaction = .onRequest
        options.compactionGrace = 0
        let small = random(200_000), large = random(2 << 20)
        let writer = try Store(path: path, options: options)
        let made = try writer.makeVersion(
            basedOn: nil, changes: [.insert(ValueID("small"), data: small), .insert(ValueID("large"), data: large)])
        try writer.close()
        let reading = try Store(path: path, options: options)
        let unread = try #require(try reading.openValue(ValueID("small"), at: made.id)),
            opened = try #require(try reading.openValue(ValueID("large"), at: made.id))
        #expect(try part(opened, 0, 100) == Array(large[..<100]))
        var head = made
        for i in 0..<5 {
            let other = try Store(path: path, options: options)
            head = try other.makeVersion(
                basedOn: head.id,
                changes: [.update(ValueID("small"), data: random(1_000, UInt64(i + 2))), .remove(ValueID("large"))].prefix(i == 0 ? 2 : 1)
                    .map { $0 })
            for _ in 0..<2 { _ = try other.compact() }
            try other.close()
            #expect(try part(opened, i * 300_000, 100_000) == Array(large[i * 300_000..<i * 300_000 + 100_000]))
        }
        #expect(try part(unread, 150_000, 100_000) == Array(small[150_000...]))
        try reading.close()
    }

    @Test func manyThreadsShareAReader() throws {
        let folder = TemporaryFolder()
        for name in ["file", "memory"] {
            let (store, _) = try open(folder, name), value = text(2 << 20)
            let made = try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("v"), data: value)])
            let reader = try #require(try store.openValue(ValueID("v"), at: made.id))
            let errors = Parallel.run(threads: 4, times: 6) { thread, turn in
                let offset = (thread * 1_234_567 + turn * 456_789) % value.count
                if try part(reader, offset, 90_000) != Array(value[offset..<min(value.count, offset + 90_000)]) {
                    throw StoreError(.internal, "wrong bytes at \(offset)")
                }
            }
            #expect(errors.isEmpty, "\(errors)")
            try store.close()
        }
    }
}
