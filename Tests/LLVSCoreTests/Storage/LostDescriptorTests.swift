import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// A host closes the library's descriptors, and its own files get the same numbers.
@Suite struct LostDescriptorTests {
    let files = StorageFileTests()

    /// A file of the host that takes over the numbers of all descriptors that the library has in a folder.
    struct Host {
        let path: String
        let identity: FileIdentity
        var numbers: [Int32] = []

        init(takingOver folder: String, beside directory: TemporaryDirectory) throws {
            path = directory.path + "/host"
            let file = try OpenFile(path, O_RDWR | O_CREAT)
            identity = try #require(file.identity)
            for name in try System.names(in: "/proc/self/fd") {
                guard let number = Int32(name), number != file.descriptor else { continue }
                var link = [CChar](repeating: 0, count: 4_096)
                let count = readlink("/proc/self/fd/" + name, &link, link.count - 1)
                guard count > 0 else { continue }
                let target = String(decoding: link[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
                guard target.hasPrefix(folder) else { continue }
                #expect(dup2(file.descriptor, number) == number)
                numbers.append(number)
            }
            #expect(!numbers.isEmpty)
        }

        /// Checks that nothing was written to the host's file and none of its descriptors was closed.
        func expectIntact() throws {
            #expect(try System.status(path).size == 0)
            for number in numbers { #expect(identity.isOpen(number) && fcntl(number, F_GETFD) >= 0, "\(number)") }
        }
        func close() { for number in numbers { System.close(number) } }
    }

    @Test(arguments: [Durability.full, .normal]) func nothingIsWrittenToTheFileOfTheHost(durability: Durability) throws {
        var storage: FileStorage? = try files.open { $0.durability = durability }
        var host: Host?
        do {
            let storage = try #require(storage)
            let place = try StorageConformance.append(storage, [files.record("A")])[0]
            host = try Host(takingOver: files.path, beside: files.directory)
            for _ in 0..<3 {
                #expect {
                    try StorageConformance.append(storage, [files.record("B")])
                } throws: { error in
                    let error = error as? StoreError
                    return error?.code == .io && error?.systemCode == EBADF
                        && error?.message.contains("closes descriptors that it did not open") ?? false
                }
            }
            try host?.expectIntact()
            // Reading opens the segment again.
            var bytes = [UInt8](repeating: 0, count: Int(place.length))
            try bytes.withUnsafeMutableBytes { try storage.read(place, at: 0, into: $0) }
            #expect(bytes == files.record("A"))
            try storage.sync()
            try storage.close(discarding: false)
        }
        storage = nil
        try host?.expectIntact()
        host?.close()
        let again = try files.open()
        #expect(try StorageConformance.scan(again) == [files.record("A")] && again.damages.isEmpty)
        try StorageConformance.append(again, [files.record("C")])
        try again.close(discarding: false)
        #expect(try StorageConformance.scan(files.open()).count == 2)
    }

    @Test func aNoteIsOpenedAndLockedAgain() throws {
        let storage = try files.open()
        var note: (any StorageNote)? = try storage.openNote("place")
        try Array("one".utf8).withUnsafeBytes { try note?.write($0, isBehindAppend: false) }
        let host = try Host(takingOver: files.path, beside: files.directory)
        try Array("two".utf8).withUnsafeBytes { try note?.write($0, isBehindAppend: false) }
        try host.expectIntact()
        // The lock is held again: another process is refused.
        let other = try OpenFile(files.path + "/cache/place.note", O_RDWR)
        #expect(throws: Errno(EWOULDBLOCK)) { try System.lockExclusively(other.descriptor) }
        note = nil
        try host.expectIntact()
        host.close()
        #expect(try storage.openNote("place").read() == Array("two".utf8))
        try storage.close(discarding: false)
    }

    @Test func aLargeValueIsReadFromItsFile() throws {
        let storage = try files.open(), value = StorageConformance.bytes(seed: 5, count: 200_000)
        let blob = try value.withUnsafeBytes { try storage.storeBlob($0) }
        var bytes = [UInt8](repeating: 0, count: value.count)
        try bytes.withUnsafeMutableBytes { try storage.readBlob(blob, at: 0, into: $0) }
        let host = try Host(takingOver: files.path, beside: files.directory)
        bytes = [UInt8](repeating: 0, count: value.count)
        try bytes.withUnsafeMutableBytes { try storage.readBlob(blob, at: 0, into: $0) }
        #expect(bytes == value)
        try host.expectIntact()
        try storage.close(discarding: false)
        try host.expectIntact()
        host.close()
    }
}
