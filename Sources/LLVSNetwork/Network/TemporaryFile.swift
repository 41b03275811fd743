/// An unnamed file in the system's directory for temporary files (`TMPDIR`, else /tmp), for data that is too large for memory.
package final class TemporaryFile: Sendable {
    let file: OpenFile
    private let folder: String

    init() throws {
        let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        self.folder = folder
        file = try posix("Making a temporary file in", folder) { () throws(Errno) -> OpenFile in
            let place = Folder(folder).place("llvs-\(try RandomName.random().hex)")
            let file = try OpenFile(place, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
            try place.unlink()
            return file
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws {
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
