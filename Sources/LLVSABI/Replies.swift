import CLLVS
import LLVSCoordinator

// MARK: Answers of callbacks

/// Behind `llvs_reply`: the results of one callback of a storage or transport.
final class Reply: Handle, @unchecked Sendable {
    private(set) var items: [[UInt8]] = []
    private(set) var answers: [[UInt8]?]
    /// Results that are read in pieces.
    private(set) var sources: [Int: HostFile] = [:]
    private(set) var records: [(place: UInt64, size: UInt64, prefix: [UInt8])] = []
    /// The entries of a directory.
    private(set) var files: [RemoteEntry] = []
    private let token: CancelToken?
    private var check: (() throws -> Void)?
    /// The error of `check`. The calling operation must end with it.
    private(set) var stop: (any Error)?
    init(questions: Int = 0, token: CancelToken? = nil, check: (() throws -> Void)? = nil) {
        answers = Array(repeating: nil, count: questions)
        self.token = token; self.check = check
    }

    var isCancelled: Bool { token?.isCancelled ?? ((try? look()) == nil) }
    /// Throws if the calling operation must end.
    func look() throws {
        if stop == nil { do { try check?() } catch { stop = error } }
        if let stop { throw stop }
    }
    /// Must be called after the callback, when its check is no longer valid.
    func forgetCheck() { check = nil }
    func add(_ file: RemoteEntry) { files.append(file) }
    func add(_ item: [UInt8]) { items.append(item) }
    func set(_ index: Int, _ data: [UInt8]) throws {
        try check(index)
        sources[index] = nil
        answers[index] = data
    }
    func set(_ index: Int, _ source: HostFile) throws {
        try check(index)
        answers[index] = nil
        sources[index] = source
    }
    private func check(_ index: Int) throws {
        guard answers.indices.contains(index) else {
            throw StoreError(.invalidArgument, "A callback set answer \(UInt(bitPattern: index)); there are \(answers.count), from 0.")
        }
    }
    func record(_ place: UInt64, _ size: UInt64, _ prefix: [UInt8]) throws {
        guard UInt64(prefix.count) <= size, UInt64(prefix.count) >= min(size, UInt64(ScannedRecord.prefixSize)) else {
            throw StoreError(
                .invalidArgument,
                "A record of \(size) bytes was reported with its first \(prefix.count); "
                    + "all are needed, or at least \(ScannedRecord.prefixSize)."
            )
        }
        records.append((place, size, prefix))
    }
}

@_cdecl("llvs_reply_add") @implementation
public func llvs_reply_add(_ reply: OpaquePointer!, _ item: llvs_bytes, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try handle(reply, Reply.self, "reply").add(array(item, "item")) }
}

@_cdecl("llvs_reply_set") @implementation
public func llvs_reply_set(_ reply: OpaquePointer!, _ index: Int, _ data: llvs_bytes, _ error: ErrorOut!) -> llvs_status {
    // Changes files have values in base64, so they may be larger than any value.
    entry(error) { try handle(reply, Reply.self, "reply").set(index, array(data, "data", limit: Int(Int32.max) * 2)) }
}

@_cdecl("llvs_reply_set_source") @implementation
public func llvs_reply_set_source(
    _ reply: OpaquePointer!, _ index: Int, _ size: UInt64, _ read: llvs_read_fn!, _ payload: UnsafeMutableRawPointer!,
    _ payload_free: llvs_free_fn!, _ error: ErrorOut!
) -> llvs_status {
    let payload = Payload(payload, payload_free)
    return entry(error) {
        guard let read else { throw InputError.null("read") }
        try handle(reply, Reply.self, "reply").set(index, HostFile(Int(clamping: size), read, payload))
    }
}

@_cdecl("llvs_reply_record") @implementation
public func llvs_reply_record(_ reply: OpaquePointer!, _ place: UInt64, _ size: UInt64, _ prefix: llvs_bytes, _ error: ErrorOut!)
    -> llvs_status
{
    entry(error) { try handle(reply, Reply.self, "reply").record(place, size, array(prefix, "prefix", limit: Int(Int32.max))) }
}

@_cdecl("llvs_reply_is_cancelled") @implementation
public func llvs_reply_is_cancelled(_ reply: OpaquePointer!) -> llvs_bool { peek(reply, Reply.self)?.isCancelled == true ? 1 : 0 }
