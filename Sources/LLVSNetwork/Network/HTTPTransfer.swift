import CNetwork

/// One attempt at a request: the state that libcurl's callbacks read and write. Used by one thread at a time. It must outlive libcurl's use
/// of it.
final class HTTPTransfer {
    let request: HTTPRequest
    /// The address of this attempt. It may differ from that of the request, after a redirection.
    let address: HTTPAddress
    private(set) var status = 0
    private(set) var headers: [(name: String, value: String)] = []
    private var headerSize = 0
    private static let mostHeaders = 64 << 10

    private(set) var received = 0
    private(set) var sent = 0
    /// Bytes of bodies that were sent or received, even if they were of no use. Headers do not count.
    private(set) var moved = 0
    /// Whether the request is for a listing or another short answer.
    var isOfListing: Bool { if case .read = request.sink { !request.isLong } else { false } }
    /// The capacity of its `TransferPatience`, as a multiple of the time-out.
    var patience: Double { request.isLong ? TransferPatience.ofServer : TransferPatience.ofTransfer }
    private var kept = Spool()
    private var reader: (any HTTPBodyReader)?
    /// The most bytes to read of an error's body.
    private static let mostOfError = 64 << 10
    /// A failure on this device rather than of the server.
    private(set) var failure: (any Error)?
    /// The transfer was ended since enough of an error's body arrived.
    private(set) var isCutOff = false

    /// The offset at which the answer should continue an earlier attempt; nil if there is none, or once the answer has been checked.
    private var resumesAt: Int?
    /// The answer continues the earlier attempt.
    private(set) var isResumed = false
    /// The tag of the file that is being resumed.
    private var resumesTag: String?

    /// The part of a file that arrived before the connection broke.
    struct Begun {
        let spool: Spool
        /// The tag of the file. If it is unchanged, so is the file.
        let tag: String
        static let least = 64 << 10
    }

    /// - Parameters:
    ///   - begun: the part that an earlier attempt received; the request then is for the rest.
    ///   - status: the status if the protocol has none of its own.
    init(_ request: HTTPRequest, to address: HTTPAddress, begun: Begun? = nil, status: Int = 0) {
        self.request = request; self.address = address; self.status = status
        if let begun {
            kept = begun.spool
            resumesTag = begun.tag
            resumesAt = (request.range?.lowerBound ?? 0) + begun.spool.size
        }
    }

    /// Resumes a file of a server without tags. The earlier part is valid, since the name of the file determines its content.
    convenience init(_ request: HTTPRequest, to address: HTTPAddress, goingOn spool: Spool, status: Int) {
        self.init(request, to: address, status: status)
        kept = spool
    }

    /// The whole body so far, if it was stored; nil if it is too short to resume, or if the attempt failed on this device.
    var beginning: Spool? {
        guard case .kept = request.sink, failure == nil, kept.size >= Begun.least else { return nil }
        return kept
    }

    /// The answer to a request for the rest has not begun.
    var isUnanswered: Bool { resumesAt != nil }

    /// The part with which another attempt can continue, if the server gave the file a tag and enough of it arrived.
    var begun: Begun? {
        // A server without ranges answers a request for a part with the whole file.
        let isPart = status == 206 && (request.range != nil || isResumed), isWhole = status == 200 && request.range == nil
        guard request.method == .get, case .kept = request.sink, failure == nil, isPart || isWhole, !isUnanswered,
            kept.size >= Begun.least, kept.size < request.range?.count ?? .max,
            let tag = headers.first(where: { $0.name == "etag" })?.value, tag.utf8.first == UInt8(ascii: "\""), tag.utf8.count <= 256
        else { return nil }
        return Begun(spool: kept, tag: tag)
    }

    /// Checks whether the answer is the requested rest. The server sends the whole file if it has changed, or if it does not support
    /// ranges.
    private func takeUp() {
        guard let start = resumesAt else { return }
        resumesAt = nil
        let place = headers.first { $0.name == "content-range" }?.value ?? ""
        // A server that ignores If-Range may send bytes of another file.
        let isSame = headers.first { $0.name == "etag" }?.value == resumesTag
        isResumed = status == 206 && isSame && place.utf8.starts(with: "bytes \(start)-".utf8)
        if !isResumed { kept = Spool() }
    }

    private var isSuccess: Bool { (200...299).contains(status) }

    /// The answer with its stored body.
    var response: HTTPResponse {
        takeUp()
        let body: HTTPResponse.Body =
            if let reader { .read(reader) } else if let file = kept.file { .file(file, size: kept.size) } else { .bytes(kept.bytes) }
        // The parts together answer the original request.
        return HTTPResponse(status: isResumed && request.range == nil ? 200 : status, headers: headers, body: body)
    }

    /// Adds headers that come from elsewhere.
    func add(_ more: [(name: String, value: String)]) { headers += more }

    // MARK: Called by libcurl

    /// Reads a header line, with its line end. Returns false to end the transfer.
    func takeHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        headerSize += line.count
        guard headerSize <= HTTPTransfer.mostHeaders else {
            failure = StoreError(
                .transport,
                "\(request.what) failed: the server answers with more than \(HTTPTransfer.mostHeaders) bytes of headers. "
                    + "Check that it is the right address."
            )
            return false
        }
        if line.starts(with: "HTTP/".utf8) {
            // A new answer begins. The headers so far belonged to an intermediate one (100, or a request for credentials).
            headers = []
            let words = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
            status = words.count > 1 ? Int(String(decoding: words[1].prefix { $0 > 0x20 }, as: UTF8.self)) ?? 0 : 0
            return true
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return true }
        let isSpace = { (byte: UInt8) in byte <= 0x20 }
        let value = line[(colon + 1)...].drop(while: isSpace)
        let trimmed = value.reversed().drop(while: isSpace).reversed()
        headers.append((String(decoding: line[..<colon], as: UTF8.self).lowercased(), String(decoding: Array(trimmed), as: UTF8.self)))
        return true
    }

    /// Reads a part of the body. Returns false to end the transfer.
    func takeBody(_ part: UnsafeRawBufferPointer) -> Bool {
        do {
            try keep(part)
            return !isCutOff
        } catch {
            failure = error
            return false
        }
    }

    private func keep(_ part: UnsafeRawBufferPointer) throws {
        takeUp()
        moved += part.count
        guard isSuccess else {
            // The beginning of an error's body is enough: the body may be endless.
            let room = HTTPTransfer.mostOfError - received
            try kept.append(UnsafeRawBufferPointer(rebasing: part.prefix(max(0, room))), request.what)
            received += part.count
            isCutOff = received > HTTPTransfer.mostOfError
            return
        }
        switch request.sink {
        case .read(let make):
            if reader == nil { reader = try make() }
            try reader?.take(part)
            received += part.count
        case .kept(let limit):
            guard part.count <= limit - kept.size else {
                throw StoreError(
                    .tooLarge,
                    "\(request.what) failed: the server answers with more than \(limit) bytes, the most that is read. "
                        + "Check that it is the right address."
                )
            }
            try kept.append(part, request.what)
            received += part.count
        }
    }
    /// Completes the transfer. An empty body also needs a reader.
    func finish() throws {
        if reader == nil, isSuccess, case .read(let make) = request.sink { reader = try make() }
    }

    /// Fills the buffer with the next bytes of the request's body. Returns nil to end the transfer.
    func give(_ buffer: UnsafeMutableRawBufferPointer) -> Int? {
        switch request.body {
        case .none: return 0
        case .bytes(let all):
            let count = min(buffer.count, max(0, all.count - sent))
            all.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[sent..<(sent + count)])) }
            sent += count
            moved += count
            return count
        case .file(let file, let start, let size):
            do {
                let count = try file.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(max(0, min(buffer.count, size - sent)))), at: start + sent)
                sent += count
                moved += count
                return count
            } catch {
                failure = error
                return nil
            }
        }
    }

    /// Moves back in the request's body, so that it is sent again.
    func rewind(to offset: Int) -> Bool {
        guard offset >= 0, offset <= request.body.size ?? 0 else { return false }
        sent = offset
        return true
    }
}

/// The callbacks for libcurl. Their last parameter is the transfer.
enum HTTPCallbacks {
    static let header: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
        start, size, count, context in
        guard let transfer = transfer(context) else { return 0 }
        let (bytes, overflow) = size.multipliedReportingOverflow(by: count)
        return !overflow && transfer.takeHeader(UnsafeRawBufferPointer(start: start, count: bytes)) ? bytes : 0
    }
    static let write: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
        start, size, count, context in
        guard let transfer = transfer(context) else { return 0 }
        let (bytes, overflow) = size.multipliedReportingOverflow(by: count)
        // An empty part is no failure. libcurl treats a return value of 0 as a failure if the part is not empty.
        return !overflow && transfer.takeBody(UnsafeRawBufferPointer(start: start, count: bytes)) ? bytes : (bytes == 0 ? 1 : 0)
    }
    static let read: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
        start, size, count, context in
        let abort = 0x1000_0000 // CURL_READFUNC_ABORT
        guard let transfer = transfer(context) else { return abort }
        let (bytes, overflow) = size.multipliedReportingOverflow(by: count)
        return overflow ? abort : transfer.give(UnsafeMutableRawBufferPointer(start: start, count: bytes)) ?? abort
    }
    static let seek: @convention(c) (UnsafeMutableRawPointer?, Int, Int32) -> Int32 = { context, offset, origin in
        guard let transfer = transfer(context), origin == SEEK_SET else { return 1 }
        return transfer.rewind(to: offset) ? 0 : 1
    }
    private static func transfer(_ context: UnsafeMutableRawPointer?) -> HTTPTransfer? {
        context.map { Unmanaged<HTTPTransfer>.fromOpaque($0).takeUnretainedValue() }
    }
}
