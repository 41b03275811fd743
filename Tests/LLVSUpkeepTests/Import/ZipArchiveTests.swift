import CLLVSShims
import Glibc
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSExchange
@testable import LLVSUpkeep

/// Zips that no program writes. The Python tests read zips of other programs.
@Suite struct ZipArchiveTests {
    private static func integer<T: FixedWidthInteger>(_ value: T) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }

    /// Makes a zip of entries, stored or deflated.
    static func zip(_ entries: [(name: String, data: [UInt8], isDeflated: Bool)]) -> [UInt8] {
        var file: [UInt8] = [], directory: [UInt8] = []
        for entry in entries {
            var body = entry.data
            if entry.isDeflated {
                body = [UInt8](unsafeUninitializedCapacity: entry.data.count + 100) { buffer, count in
                    count = entry.data.withUnsafeBytes { llvs_shim_deflate($0.baseAddress, $0.count, buffer.baseAddress, buffer.count) }
                }
            }
            let name = Array(entry.name.utf8), checksum = entry.data.withUnsafeBytes { llvs_shim_crc32($0.baseAddress, $0.count) }
            let common =
                integer(UInt16(20)) + integer(UInt16(0)) + integer(UInt16(entry.isDeflated ? 8 : 0)) + integer(UInt32(0))
                + integer(checksum)
                + integer(UInt32(body.count)) + integer(UInt32(entry.data.count)) + integer(UInt16(name.count)) + integer(UInt16(0))
            directory +=
                integer(UInt32(0x0201_4B50)) + integer(UInt16(20)) + common + integer(UInt16(0)) + integer(UInt16(0)) + integer(UInt16(0))
                + integer(UInt32(0))
                + integer(UInt32(file.count)) + name
            file += integer(UInt32(0x0403_4B50)) + common + name + body
        }
        let end =
            integer(UInt32(0x0605_4B50)) + integer(UInt32(0)) + integer(UInt16(entries.count)) + integer(UInt16(entries.count))
            + integer(UInt32(directory.count)) + integer(UInt32(file.count)) + integer(UInt16(0))
        return file + directory + end
    }

    /// Reads a file; nil if it is refused.
    private func read(_ bytes: [UInt8], _ temporary: TemporaryFolder) throws -> [String: [UInt8]?]? {
        try temporary.write("zip", bytes)
        do {
            let archive = try ZipArchive(OpenFile(temporary.path + "/zip", O_RDONLY), size: UInt64(bytes.count), source: "a test")
            var contents: [String: [UInt8]?] = [:]
            for name in archive.entries.keys {
                contents[String(decoding: name, as: UTF8.self)] = .some(try? archive.read(name, atMost: 1 << 20))
            }
            return contents
        } catch let error as StoreError {
            #expect([.snapshotDamaged, .foreignSnapshot].contains(error.code))
            return nil
        }
    }

    private let text = Array("once and again, and once and again and once more".utf8)

    @Test func noByteCanBeWrongUnnoticed() throws {
        let temporary = TemporaryFolder(),
            whole = ZipArchiveTests.zip([("a/stored", text, false), ("b", text + text, true), ("empty", [], false)])
        let expected: [String: [UInt8]?] = ["a/stored": text, "b": text + text, "empty": []]
        #expect(try read(whole, temporary) == expected)
        for i in whole.indices {
            for wrong in [whole[i] ^ 1, whole[i] ^ 0x80, 0xFF, 0] where wrong != whole[i] {
                var bytes = whole
                bytes[i] = wrong
                for (name, data) in try read(bytes, temporary) ?? [:] {
                    guard let data else { continue }
                    #expect(expected.values.contains(data), "byte \(i) is \(wrong): \(name)")
                }
            }
        }
        for size in whole.indices { #expect(try read(Array(whole[..<size]), temporary) == nil, "\(size) of \(whole.count)") }
        for more in [[0], Array("PK".utf8), whole] as [[UInt8]] { #expect(try read(more + whole, temporary) == nil) }
        #expect(try read(whole + [0], temporary) == nil)
    }

    /// The bytes read from a zip are limited in proportion to its size, however often an entry is read. Other entries are still read.
    @Test func whatIsReadIsInProportion() throws {
        let temporary = TemporaryFolder(), large = [UInt8](repeating: 32, count: 48 << 20)
        let bytes = ZipArchiveTests.zip([("versions/ab/c.json", large, true), ("versions/ab/d.json", text, false)])
        try temporary.write("zip", bytes)
        let files = try ForeignZip(ZipArchive(OpenFile(temporary.path + "/zip", O_RDONLY), size: UInt64(bytes.count), source: "a test"))
        let most = (Int(SourceAccount.factor) * bytes.count + Int(SourceAccount.least)) / large.count
        #expect(most < 8)
        var reads = 0, error: StoreError?
        while error == nil, reads < 10 {
            do {
                #expect(try files.read("versions/ab/c.json", atMost: .max, .none)?.count == large.count)
                reads += 1
            } catch let found as StoreError { error = found }
        }
        #expect(reads == most && error?.code == .tooLarge && error?.message.contains("a test") == true)
        #expect(try files.read("versions/ab/d.json", atMost: .max, .none) == text)
    }

    @Test func entriesThatNoProgramWrites() throws {
        let temporary = TemporaryFolder()
        #expect(try read(ZipArchiveTests.zip([]), temporary) == [:])
        // The same name twice.
        #expect(try read(ZipArchiveTests.zip([("a", text, false), ("a", text, false)]), temporary) == nil)
        let whole = ZipArchiveTests.zip([("a", text, true), ("b", text, true)])
        let directory = try #require(whole.indices.first { whole[$0...].starts(with: [0x50, 0x4B, 1, 2]) })
        func with(_ change: (inout [UInt8]) -> Void) throws -> [String: [UInt8]?]? {
            var bytes = whole
            change(&bytes)
            return try read(bytes, temporary)
        }
        // Two entries at one offset; an entry after the directory; impossible sizes.
        let second = directory + 46 + 1
        #expect(try with { $0.replaceSubrange(second + 42..<second + 46, with: [0, 0, 0, 0]) } == nil)
        #expect(try with { $0.replaceSubrange(second + 42..<second + 46, with: [0xFE, 0xFF, 0xFF, 0xFF]) } == nil)
        #expect(try with { $0.replaceSubrange(second + 42..<second + 46, with: [0xFF, 0xFF, 0xFF, 0xFF]) } == nil)
        #expect(try with { $0.replaceSubrange(directory + 20..<directory + 24, with: [0xFE, 0xFF, 0xFF, 0xFF]) } == nil)
        #expect(
            try with { $0.replaceSubrange(directory + 24..<directory + 28, with: [0xFE, 0xFF, 0xFF, 0x7F]) } == ["a": nil, "b": text]
                as [String: [UInt8]?])
        // Encrypted; with an unknown method.
        #expect(try with { $0[directory + 8] = 1 } == ["a": nil, "b": text] as [String: [UInt8]?])
        #expect(try with { $0[directory + 10] = 12 } == ["a": nil, "b": text] as [String: [UInt8]?])
        // More entries than exist, or than there is room for.
        for count in [3, 0xFFFE, 0xFFFF] as [UInt16] {
            #expect(
                try with {
                    $0.replaceSubrange($0.count - 14..<$0.count - 10, with: ZipArchiveTests.integer(count) + ZipArchiveTests.integer(count))
                } == nil)
        }
    }

    /// Each entry polls the control.
    @Test func zipsLookAtEachEntry() throws {
        let temporary = TemporaryFolder(), count = 500
        func version(_ i: Int) -> String { "\(10 + i % 89)/v\(i)" }
        let entries =
            (0..<count).map { (name: "store/versions/\(version($0)).json", data: Array("x".utf8), isDeflated: false) } + [
                ("store/maps/a/b.json", [], false)
            ]
        let bytes = ZipArchiveTests.zip(entries)
        try temporary.write("zip", bytes)
        nonisolated(unsafe) var names = 0
        let steps = try Work.looks.counting {
            let paced = OperationControl(progress: { _ in true }).paced(.reading, doing: "Trying")
            let archive = try ZipArchive(OpenFile(temporary.path + "/zip", O_RDONLY), size: UInt64(bytes.count), source: "a test", paced)
            let before = try Work.looks.counting {
                names = try ForeignStoreDirectory(ForeignZip(archive, paced), decode: nil, paced).versionNames().count
            }
            // The names, and those derived from them. The folders are found on the way, and so is the common prefix of all names.
            #expect(before > 2 * count)
        }
        #expect(names == count && steps >= 3 * count)
    }
}
