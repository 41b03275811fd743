/// A file being uploaded to a service.
struct CloudUpload {
    let id: String, name: String, isNew: Bool, size: Int
    /// The id of its folder.
    let parent: String
    /// The SHA-256 of the file, if the file is whole in memory.
    let digest: String?
    /// Name, folder and id; an empty object for new bytes of an old file.
    let metadata: [UInt8]
    /// Saves the state for resuming the upload.
    var session: RemoteSession?
    private let contents: HTTPRequest.Body

    init(id: String, name: String, isNew: Bool, parent: String, _ data: OutgoingFile, _ check: () throws -> Void) throws {
        self.id = id
        self.name = name
        self.isNew = isNew
        self.parent = parent
        size = data.size
        contents = try HTTPRequest.Body(data, check)
        digest = if case .bytes(let bytes) = contents { Hex.text(of: bytes.withUnsafeBytes { SHA256.digest($0) }) } else { nil }
        let members: [(String, CloudJSON)] = [
            ("id", .text(id)), ("name", .text(RemoteName.split(name).name)), ("parents", .list([parent])),
        ]
        metadata = isNew ? CloudJSON.object(members).bytes : Array("{}".utf8)
    }

    func append(to bytes: inout [UInt8]) throws { try forEachPiece { bytes += $0 } }

    /// Calls `body` with all bytes, in order.
    func forEachPiece(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        switch contents {
        case .none: break
        case .bytes(let own): try own.withUnsafeBytes { try body($0) }
        case .file(let file, let start, let size):
            var piece = [UInt8](repeating: 0, count: 256 << 10), at = 0
            while at < size {
                let got = try piece.withUnsafeMutableBytes { try file.read(into: $0, at: start + at) }
                guard got > 0 else { throw StoreError(.io, "A temporary file is shorter than what was written to it.") }
                try piece.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0.prefix(min(got, size - at)))) }
                at += got
            }
        }
    }

    /// Returns the SHA-1 of all bytes, and of each part of that size.
    func sha1(partSize: Int = .max, _ check: () throws -> Void) throws -> (whole: [UInt8], parts: [[UInt8]]) {
        var whole = SHA1(), part = SHA1(), filled = 0, parts: [[UInt8]] = []
        try forEachPiece { piece in
            try check()
            whole.update(piece)
            var rest = piece[...]
            while !rest.isEmpty {
                let some = rest.prefix(partSize - filled)
                part.update(UnsafeRawBufferPointer(rebasing: some))
                filled += some.count
                rest = rest.dropFirst(some.count)
                guard filled == partSize else { continue }
                parts.append(part.finish())
                (part, filled) = (SHA1(), 0)
            }
        }
        if filled > 0 { parts.append(part.finish()) }
        return (whole.finish(), parts)
    }

    /// Returns a part of the bytes; the rest from `start` if no size is given.
    func body(from start: Int, size: Int? = nil) -> HTTPRequest.Body {
        let count = max(0, size ?? self.size - start)
        switch contents {
        case .none: return .none
        case .bytes(let bytes): return .bytes(Array(bytes.dropFirst(start).prefix(count)))
        case .file(let file, let first, _): return .file(file, from: first + start, size: count)
        }
    }
}
