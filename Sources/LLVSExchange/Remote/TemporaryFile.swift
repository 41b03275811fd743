/// An unnamed file in the system's directory for temporary files (`TMPDIR`, else /tmp), for data that is too large for memory.
package final class TemporaryFile: Sendable {
    package let file: OpenFile
    private let folder: String

    package init() throws {
        let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        self.folder = folder
        file = try posix("Making a temporary file in", folder) { () throws(Errno) -> OpenFile in
            let place = Folder(folder).place("llvs-\(try RandomName.random().hex)")
            let file = try OpenFile(place, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
            try place.unlink()
            return file
        }
    }

    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws {
        try posix("Writing a temporary file in", folder) { () throws(Errno) in
            try FileSystem().write(file, bytes, at: UInt64(max(0, offset)))
        }
    }

    /// Fills the buffer by one call. Returns the number of bytes, 0 at the end.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
        try posix("Reading a temporary file in", folder) { () throws(Errno) in
            try System.pread(file.descriptor, buffer, at: UInt64(max(0, offset)))
        }
    }
}

/// Reads an unnamed file piece by piece.
package final class TemporaryFileReader: PieceReader, @unchecked Sendable {
    // Sendable: only the thread that has it uses it.
    private let file: TemporaryFile
    package let size: Int
    private var position = 0

    package init(_ file: TemporaryFile, size: Int) { self.file = file; self.size = size }

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(max(0, min(buffer.count, size - position))))
        guard wanted.count > 0 else { return 0 }
        let got = try file.read(into: wanted, at: position)
        position += got
        return got
    }
}
