import CNetwork

/// One attempt at a request: what libcurl's callbacks read and write. Used by one thread at a time; lives until libcurl has let go of it.
final class HTTPTransfer {
    let request: HTTPRequest
    /// Where it goes, which may be another place than the request says.
    let address: HTTPAddress
    private(set) var status = 0
    private(set) var headers: [(name: String, value: String)] = []
    private var headerSize = 0
    private static let mostHeaders = 64 << 10

    private(set) var received = 0
    private(set) var sent = 0
    /// Bytes of bodies that came or went, also those that came to no use. Headers do not count.
    private(set) var moved = 0
    /// Whether it is a listing, or something like it, that is asked for.
    var isOfListing: Bool { if case .read = request.sink { !request.isLong } else { false } }
    /// How often the time-out it may be too slow.
    var patience: Double { request.isLong ? TransferPatience.ofServer : TransferPatience.ofTransfer }
    private var kept = Spool()
    private var reader: (any HTTPBodyReader)?
    /// Of a body that is only told in a message, or of none at all.
    private static let mostOfError = 64 << 10
    /// What went wrong here, and not with the server.
    private(set) var failure: (any Error)?
    /// Enough of an error's body is there, so the transfer was ended.
    private(set) var isCutOff = false

    /// Where what an earlier attempt got goes on; nil: at the beginning, or the answer said already whether it does.
    private var resumesAt: Int?
    /// It goes on there.
    private(set) var isResumed = false
    /// The tag of the file whose rest is asked for.
    private var resumesTag: String?

    /// What came of a file before the line broke.
    struct Begun {
        let spool: Spool
        /// The file's, which says that it is the same still.
        let tag: String
        static let least = 64 << 10
    }

    /// - Parameters:
    ///   - begun: what came before, of a file whose rest is asked for.
    ///   - status: where the answer has none of its own.
    init(_ request: HTTPRequest, to address: HTTPAddress, begun: Begun? = nil, status: Int = 0) {
        self.request = request; self.address = address; self.status = status
        if let begun {
            kept = begun.spool
            resumesTag = begun.tag
            resumesAt = (request.range?.lowerBound ?? 0) + begun.spool.size
        }
    }

    /// Of a server without tags: what came of a file before is right as far as it goes, since its name says what is in it.
    convenience init(_ request: HTTPRequest, to address: HTTPAddress, goingOn spool: Spool, status: Int) {
        self.init(request, to: address, status: status)
        kept = spool
    }

    /// All that came of a body that is kept; nil: little, or it cannot be gone on with.
    var beginning: Spool? {
        guard case .kept = request.sink, failure == nil, kept.size >= Begun.least else { return nil }
        return kept
    }

    /// Nothing came of the rest that was asked for.
    var isUnanswered: Bool { resumesAt != nil }

    /// What another attempt can go on with: the server knows the file by a tag, and enough of it came.
    var begun: Begun? {
        // A server without ranges answers with the whole file where a part was asked for.
        let isPart = status == 206 && (request.range != nil || isResumed), isWhole = status == 200 && request.range == nil
        guard request.method == .get, case .kept = request.sink, failure == nil, isPart || isWhole, !isUnanswered,
            kept.size >= Begun.least, kept.size < request.range?.count ?? .max,
            let tag = headers.first(where: { $0.name == "etag" })?.value, tag.utf8.first == UInt8(ascii: "\""), tag.utf8.count <= 256
        else { return nil }
        return Begun(spool: kept, tag: tag)
    }

    /// Looks whether the answer has the rest that was asked for. All of it comes where the file is another now, or there are no ranges.
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

    /// What was kept.
    var response: HTTPResponse {
        takeUp()
        let body: HTTPResponse.Body =
            if let reader { .read(reader) } else if let file = kept.file { .file(file, size: kept.size) } else { .bytes(kept.bytes) }
        // What is whole now is the answer to what was asked first.
        return HTTPResponse(status: isResumed && request.range == nil ? 200 : status, headers: headers, body: body)
    }

    /// Adds to the headers of the answer what is known of it otherwise.
    func add(_ more: [(name: String, value: String)]) { headers += more }

    // MARK: What libcurl calls

    /// A line of a header, with its end.
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
            // Another answer: what came before was on the way to it (100, or a question for credentials).
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

    /// A part of the body. False ends the transfer.
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
            // Of what is no success, the beginning is enough: it may have no end.
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
                    "\(request.what) failed: the server answers with more than \(limit) bytes, which is the most that is read. "
                        + "Check that it is the right address."
                )
            }
            try kept.append(part, request.what)
            received += part.count
        }
    }
    /// A body of no bytes is one, too.
    func finish() throws {
        if reader == nil, isSuccess, case .read(let make) = request.sink { reader = try make() }
    }

    /// Fills the buffer with what comes next of the request's body. Nil ends the transfer.
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

    /// The body is to be given again.
    func rewind(to offset: Int) -> Bool {
        guard offset >= 0, offset <= request.body.size ?? 0 else { return false }
        sent = offset
        return true
    }
}

/// libcurl's callbacks; the last parameter is the transfer.
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
        // Nothing to take is no failure; libcurl takes 0 for one where there is something.
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
