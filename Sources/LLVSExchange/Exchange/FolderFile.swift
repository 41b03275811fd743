/// An open file of an exchange folder; closed when released. Used by one thread at a time.
package final class FolderFile {
    let path: String
    private let file: OpenFile
    /// The bytes that it had when it was opened.
    var size = 0

    init(_ path: String, _ file: OpenFile) { self.path = path; self.file = file }

    /// Fills the buffer, or less of it if the file ends.
    /// - Throws: `.io` and other errors of the system.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
        do throws(Errno) { return try System.pread(file.descriptor, buffer, at: UInt64(clamping: offset)) } catch {
            throw FolderFiles.error(error, "Reading the file", path)
        }
    }

    /// Returns the whole file, or why it cannot be read. Throws only the errors of `check`, which is called before each further MiB.
    func read(_ check: () throws -> Void) throws -> FetchedFile {
        try Memory.expect(size, "Reading \(path)")
        var failure: StoreError?
        let bytes = try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            let whole = UnsafeMutableRawBufferPointer(buffer)
            while count < size {
                if count > 0 { try check() }
                let end = min(size, count + OperationControl.bytesPerCheck)
                do {
                    let got = try read(into: UnsafeMutableRawBufferPointer(rebasing: whole[count..<end]), at: count)
                    if got == 0 { return } // it was cut meanwhile: what is left will not parse
                    count += got
                } catch { failure = StoreError.of(error); return }
            }
        }
        return failure.map(FetchedFile.unreadable) ?? .data(bytes)
    }
}

/// Reads a large file piece by piece.
final class FolderFileReader: PieceReader, @unchecked Sendable {
    // Sendable: used by one thread at a time, the one that holds it.
    private let file: FolderFile
    private let check: () throws -> Void
    private var position = 0
    private var sinceCheck = 0

    init(_ file: FolderFile, check: @escaping () throws -> Void) { self.file = file; self.check = check }
    var size: Int { file.size }
    func look() throws { try check() }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        if sinceCheck >= OperationControl.bytesPerCheck { try check(); sinceCheck = 0 }
        // Bytes appended since it was opened would make it another file.
        let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, max(0, size - position))])
        guard wanted.count > 0 else { return 0 }
        let got = try file.read(into: wanted, at: position)
        position += got
        sinceCheck += got
        return got
    }
}
