/// Identifies the machine and its boot at which a segment was written. Both are hashed, so that a shared store reveals neither. A lock on a
/// segment shows whether its writer is alive only within one boot of one machine.
package struct WriterMachine: Equatable, Sendable {
    package let machine: UInt64
    let boot: UInt64

    static let unknown = WriterMachine(machine: 0, boot: 0)
    package static let current = WriterMachine(machine: hash("/etc/machine-id"), boot: hash("/proc/sys/kernel/random/boot_id"))

    /// Returns the first 8 bytes of SHA-256 over a tag and the file's bytes; 0 if there is no such file.
    private static func hash(_ path: String) -> UInt64 {
        guard let fd = try? System.open(path, O_RDONLY) else { return 0 }
        defer { System.close(fd) }
        var bytes = [UInt8](repeating: 0, count: 128)
        guard let count = try? bytes.filled({ (b) throws(Errno) in try System.pread(fd, b, at: 0) }), count > 0 else { return 0 }
        let digest = SHA256.digest(of: Array("llvs host\n".utf8) + bytes.prefix(count))
        return digest.withUnsafeBytes { FrameFormat.load($0, 0, UInt64.self) }
    }
}

extension SHA256 {
    fileprivate static func digest(of bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { digest($0) } }
}
