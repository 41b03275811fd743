/// A file of an exchange folder, open for reading until it is let go. Used by one thread at a time.
final class FolderFile {
    let path: String
    private let file: OpenFile
    /// Bytes, when it was opened.
    var size = 0

    init(_ path: String, _ file: OpenFile) { self.path = path; self.file = file }

    /// Fills the buffer; less than it holds only where the file ends.
    /// - Throws: `.io` and friends.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
        do throws(Errno) { return try System.pread(file.descriptor, buffer, at: UInt64(clamping: offset)) } catch {
            throw FolderFiles.error(error, "Reading the file", path)
        }
    }

    /// All of it. Throws only what `check` throws, which is called before each further MiB.
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

/// Reads a large one piece by piece.
final class FolderFileReader: PieceReader, @unchecked Sendable {
    // Sendable: one thread at a time uses it: the one that it is handed to.
    private let file: FolderFile
    private let check: () throws -> Void
    private var position = 0
    private var sinceCheck = 0

    init(_ file: FolderFile, check: @escaping () throws -> Void) { self.file = file; self.check = check }
    var size: Int { file.size }
    func look() throws { try check() }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        if sinceCheck >= OperationControl.bytesPerCheck { try check(); sinceCheck = 0 }
        // What was added since would make it another file.
        let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, max(0, size - position))])
        guard wanted.count > 0 else { return 0 }
        let got = try file.read(into: wanted, at: position)
        position += got
        sinceCheck += got
        return got
    }
}
