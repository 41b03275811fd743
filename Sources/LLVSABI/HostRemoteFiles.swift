import CLLVS
import LLVSCoordinator

// MARK: Remote files of the host

/// A place that the host implements by callbacks, as named files.
final class HostFilesHandle: TransportHandle, @unchecked Sendable {
    let callbacks: llvs_files_callbacks
    let payload: Payload

    init(_ name: String, _ callbacks: llvs_files_callbacks, _ payload: Payload) {
        self.callbacks = callbacks; self.payload = payload
        super.init(name)
    }

    override func open(_ place: Exchange.URLOptions) throws -> any ExchangeTransport {
        let files = HostRemoteFiles(self)
        do { return try ExchangeURL.transport(over: files, place) } catch {
            // The callbacks were not used, and the caller releases this handle.
            files.forget()
            throw error
        }
    }
    override func openFiles() -> any RemoteFiles { HostRemoteFiles(self) }
}

/// Makes the callbacks of one exchange, for one file at a time.
final class HostRemoteFiles: RemoteFiles, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let host: HostFilesHandle
    private let lock = Lock(.leaf)
    private var isClosed = false
    private var counted = RemoteCounts()
    private static let codes: [StoreError.Code] = [.transport, .permission, .noSpace, .io, .cancelled, .busy, .foreignFile]

    init(_ host: HostFilesHandle) { self.host = host }
    deinit { close() }

    var description: String { host.name }
    var capabilities: RemoteCapabilities {
        RemoteCapabilities(
            requestsToPublish: 1, isExclusive: !has(LLVS_FILES_NOT_EXCLUSIVE), hasRanges: !has(LLVS_FILES_WITHOUT_RANGES), hasFeed: false)
    }
    var counts: RemoteCounts { lock.withLock { counted } }
    private var callbacks: llvs_files_callbacks { host.callbacks }
    private var payload: UnsafeMutableRawPointer? { host.payload.pointer }
    private func has(_ trait: llvs_files_traits_value) -> Bool { callbacks.traits & trait.rawValue != 0 }

    /// Calls back without holding the lock, since the callback may run another exchange. If `check` throws while the host asks whether the
    /// call is cancelled, that error takes precedence.
    private func call(
        _ what: @autoclosure () -> String, expecting expected: llvs_status? = nil, questions: Int = 0, _ check: Check,
        _ call: (Reply, UnsafeMutablePointer<OpaquePointer?>) -> llvs_status
    ) throws -> (reply: Reply, status: llvs_status) {
        try check()
        guard
            !lock.withLock({
                counted.requests += 1; return isClosed
            })
        else {
            throw StoreError(.closed, "The exchange with \(host.name) is closed. Open another one to continue.")
        }
        return try withoutActuallyEscaping(check) { check in
            let reply = Reply(questions: questions, check: check)
            defer { reply.forgetCheck() }
            let status: llvs_status
            do {
                status = try withExtendedLifetime(reply) {
                    try callHost(what(), keeping: HostRemoteFiles.codes, expecting: expected) { call(reply, $0) }
                }
            } catch { throw reply.stop ?? error }
            return (reply, status)
        }
    }
    private func missing(_ callback: String) -> StoreError { StoreError(.internal, "\(host.name) has no callback \(callback).") }

    func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        guard let list = callbacks.list else { throw missing("list") }
        let reply = try withBorrowed(Array(directory.utf8)) { directory in
            try call("Listing \(host.name)", check) { list(payload, directory, $0.borrowed, $1) }.reply
        }
        return reply.files
    }

    func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents] { try files.map { try read($0, check) } }

    private func read(_ file: RemoteRead, _ check: Check) throws -> RemoteContents {
        guard let read = callbacks.read else { throw missing("read") }
        let range = has(LLVS_FILES_WITHOUT_RANGES) ? nil : file.range
        guard range?.isEmpty != true else { return .bytes([], isWhole: false) }
        do {
            let reply = try withBorrowed(Array(file.name.utf8)) { name in
                try call("Reading \(file.name) of \(host.name)", questions: 1, check) {
                    read(payload, name, UInt64(clamping: range?.lowerBound ?? 0), UInt64(range?.count ?? 0), $0.borrowed, $1)
                }.reply
            }
            let contents = try contents(of: reply, file, check)
            if let range, case .bytes(let bytes, _) = contents {
                guard bytes.count <= range.count else {
                    throw StoreError(
                        .user,
                        "Reading \(range.count) bytes of \(file.name), \(host.name) returned \(bytes.count). "
                            + "Return all of them, or declare that there are no ranges (LLVS_FILES_WITHOUT_RANGES).")
                }
                return .bytes(bytes, isWhole: false)
            }
            return contents
        } catch let error as StoreError where error.code == .io || error.code == .tooLarge { return .unreadable(error) }
    }

    /// Returns the contents; more than 1 MiB read in pieces go to disk.
    private func contents(of reply: Reply, _ file: RemoteRead, _ check: Check) throws -> RemoteContents {
        func tooLarge() -> StoreError {
            StoreError(.tooLarge, "\(file.name) of \(host.name) has more than \(file.limit) bytes, the most that is read.")
        }
        if let bytes = reply.answers[0] {
            guard bytes.count <= file.limit else { throw tooLarge() }
            lock.withLock { counted.bytesDown += bytes.count }
            return .bytes(bytes, isWhole: true)
        }
        guard let source = reply.sources[0] else { return .missing }
        var spool = Spool()
        try withUnsafeTemporaryAllocation(byteCount: 256 << 10, alignment: 16) { buffer in
            while case let got = try source.read(into: buffer), got > 0 {
                try check()
                guard got <= file.limit - spool.size else { throw tooLarge() }
                try spool.append(UnsafeRawBufferPointer(rebasing: buffer[..<got]), "Reading \(file.name)")
            }
        }
        lock.withLock { counted.bytesDown += spool.size }
        return spool.contents
    }

    func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] { try files.map { try publish($0, check) } }

    private func publish(_ file: RemoteUpload, _ check: Check) throws -> RemotePublished {
        guard let publish = callbacks.publish else { throw missing("publish") }
        let exists = llvs_status(LLVS_PASS.rawValue)
        do {
            let status = try withBorrowed(Array(file.name.utf8)) { name in
                try call("Publishing \(file.name) at \(host.name)", expecting: exists, check) { reply, error in
                    let data = Outgoing(file.data) { [reply] in try reply.look() }
                    return withExtendedLifetime(data) {
                        publish(payload, name, file.replaces ? 1 : 0, data.borrowed, reply.borrowed, error)
                    }
                }.status
            }
            guard status != exists else {
                guard !file.replaces else {
                    throw StoreError(.user, "Publishing \(file.name) at \(host.name) returned LLVS_PASS, but the file was to be replaced.")
                }
                return .exists
            }
            lock.withLock { counted.bytesUp += file.data.size }
            return .published
        } catch let error as StoreError where error.code == .foreignFile { return .refused(error) }
    }

    func delete(_ names: [String], _ check: Check) throws {
        guard let remove = callbacks.remove else { throw missing("remove") }
        for name in names {
            try withBorrowed(Array(name.utf8)) { bytes in
                _ = try call("Deleting \(name) at \(host.name)", check) { remove(payload, bytes, $1) }
            }
        }
    }

    /// Marks it closed without calling the host's `close`.
    fileprivate func forget() { lock.withLock { isClosed = true } }

    func close() {
        let first = lock.withLock {
            defer { isClosed = true }; return !isClosed
        }
        guard first else { return }
        if let close = callbacks.close {
            // The failure cannot be reported; the exchange ends in any case.
            _ = try? callHost("Closing \(host.name)") { close(payload, $0) }
        }
        host.release()
    }
}

private let knownFilesTraits = LLVS_FILES_WITHOUT_RANGES.rawValue | LLVS_FILES_NOT_EXCLUSIVE.rawValue

@_cdecl("llvs_transport_create_on_files") @implementation
public func llvs_transport_create_on_files(
    _ name: llvs_bytes, _ callbacks: UnsafePointer<llvs_files_callbacks>!, _ payload: UnsafeMutableRawPointer!,
    _ payload_free: llvs_free_fn!, _ transport: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    let payload = Payload(payload, payload_free)
    transport?.pointee = nil
    return entry(error) {
        let out = try required(transport, "transport")
        let table = try requiredStruct(callbacks, "llvs_files_callbacks")
        guard table.traits & ~knownFilesTraits == 0 else { throw InputError.constant("llvs_files_callbacks.traits", table.traits) }
        guard table.list != nil, table.read != nil, table.publish != nil, table.remove != nil else {
            throw StoreError(.invalidArgument, "Files need the callbacks list, read, publish and remove.")
        }
        let name = try text(name, "name")
        guard !name.isEmpty else {
            throw StoreError(.invalidArgument, "Files need a name: the store finds its state for their place by it.")
        }
        out.pointee = HostFilesHandle("the files \(name)", table, payload).owned
    }
}

@_cdecl("llvs_reply_file") @implementation
public func llvs_reply_file(_ reply: OpaquePointer!, _ name: llvs_bytes, _ size: UInt64, _ is_directory: llvs_bool, _ error: ErrorOut!)
    -> llvs_status
{
    entry(error) {
        // A name that is not UTF-8 is foreign, and is shown with replacement characters.
        let name = String(decoding: try array(name, "name"), as: UTF8.self)
        let isDirectory = try flag(is_directory, "is_directory")
        try handle(reply, Reply.self, "reply").add(
            RemoteEntry(name: name, isDirectory: isDirectory, size: isDirectory ? nil : Int(clamping: size), age: nil))
    }
}
