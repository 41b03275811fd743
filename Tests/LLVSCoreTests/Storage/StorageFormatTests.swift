import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// docs/format.md and the code agree.
@Suite struct StorageFormatTests {
    /// The bytes of the example in docs/format.md.
    func example() throws -> [UInt8] {
        let root = Paths.parent(of: Paths.parent(of: Paths.parent(of: Paths.parent(of: "\(#filePath)"))))
        let file = try OpenFile(root + "/docs/format.md", O_RDONLY)
        var text = [UInt8](repeating: 0, count: Int(try System.status(file.descriptor).size))
        _ = try text.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: 0) }
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        let start = try #require(lines.firstIndex { $0.hasPrefix("<!-- vector: segment -->") })
        let dump = lines[(start + 1)...].prefix { $0.hasPrefix("    ") }
        return dump.flatMap { $0.split(separator: " ").dropFirst().compactMap { UInt8($0, radix: 16) } }
    }

    @Test func theExampleOfTheFormatPageIsWhatIsWritten() throws {
        let id = RandomName(high: 0x0001_0203_0405_0607, low: 0x0809_0A0B_0C0D_0E0F)
        var bytes = [UInt8](repeating: 0, count: 197)
        bytes.withUnsafeMutableBytes { all in
            FrameFormat.storeSegmentHeader(in: all, id: id, created: 0, writer: WriterMachine(machine: 0, boot: 0))
            let body = UnsafeMutableRawBufferPointer(rebasing: all[112..<133])
            body.storeBytes(of: UInt32(1).littleEndian, as: UInt32.self)
            FrameFormat.storeEntry(in: body, at: 4, length: 5, checksum: Array("hello".utf8).withUnsafeBytes { Bytes.crc32c($0) })
            UnsafeMutableRawBufferPointer(rebasing: body[16...]).copyBytes(from: "hello".utf8)
            let crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: body[0..<16]))
            FrameFormat.storeFrameHeader(in: all, at: 64, kind: .batch, id: id, offset: 64, bodySize: 21, tableChecksum: crc)
            FrameFormat.storeSeal(in: UnsafeMutableRawBufferPointer(rebasing: all[133...]), id: id, offset: 133, frames: 1, records: 1)
        }
        #expect(try example() == bytes)
    }

    @Test func theExampleOfTheFormatPageIsRead() throws {
        let directory = TemporaryDirectory()
        let bytes = try example()
        let storage = try FileStorage(path: directory.path + "/store")
        let file = try OpenFile(directory.path + "/store/segments/000102030405060708090a0b0c0d0e0f.seg", O_WRONLY | O_CREAT)
        try bytes.borrowed { (b) throws(Errno) in try FileSystem().write(file.descriptor, b, at: 0) }
        #expect(try StorageConformance.scan(storage) == [Array("hello".utf8)])
        #expect(storage.damages.isEmpty)
        #expect(storage.segments.first?.complete == true)
    }

    @Test func namesAreHexadecimal() throws {
        let name = RandomName(high: 0x0001_0203_0405_0607, low: 0xF8F9_FAFB_FCFD_FEFF)
        #expect(name.hex == "0001020304050607f8f9fafbfcfdfeff")
        #expect(RandomName(hex: name.hex) == name)
        for wrong in ["", "0", "0001020304050607F8F9FAFBFCFDFEFF", "0001020304050607f8f9fafbfcfdfeff0", "0001020304050607f8f9fafbfcfdfe g"]
        {
            #expect(RandomName(hex: wrong) == nil)
        }
    }
}
