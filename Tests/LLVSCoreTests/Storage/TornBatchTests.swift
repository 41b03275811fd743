import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// A batch that a power cut left with its full length but without all its bytes.
@Suite struct TornBatchTests {
    @Test func aBatchWithoutItsLastBytesIsNotThereAtAll() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/store", writer = try FileStorage(path: path)
            let first = StorageConformance.bytes(seed: 1, count: 100), small = StorageConformance.bytes(seed: 2, count: 100)
            try StorageConformance.append(writer, [first])
            try StorageConformance.append(writer, [small, StorageConformance.bytes(seed: 3, count: 200_000)])
            try writer.close(discarding: true)
            let name = try #require(try System.names(in: path + "/segments").first { $0.hasSuffix(".seg") })
            var bytes = try readFile(path + "/segments/" + name)
            let end = try #require(bytes.lastIndex { $0 != 0 })
            for i in end - 4_000...end { bytes[i] = 0 }
            try writeFile(path + "/segments/" + name, bytes)
            let reader = try FileStorage(path: path)
            #expect(try StorageConformance.scan(reader) == [first])
            #expect(reader.damages.isEmpty)
            try reader.close(discarding: false)
        }
    }
}
