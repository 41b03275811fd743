import CNetwork

/// The active transfers of one client, and libcurl's handles, which are reused from call to call.
///
/// Guarded by the gate of the client that it belongs to.
final class CurlTransfers {
    /// The memory that libcurl borrows for one transfer, until the transfer ends.
    struct Call {
        /// The buffer for libcurl's error message.
        let words: UnsafeMutablePointer<CChar>
        /// The lists, in the order in which they were given; nil for an empty one.
        fileprivate(set) var lists: [UnsafeMutablePointer<curl_slist>?] = []
        fileprivate let transfer: HTTPTransfer
        fileprivate var patience: TransferPatience
        /// The bytes that had moved at the last check.
        fileprivate var moved = 0
        fileprivate init(_ transfer: HTTPTransfer, _ patience: TransferPatience) {
            self.transfer = transfer; self.patience = patience
            words = .allocate(capacity: Int(CURL_ERROR_SIZE))
            words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        }
    }
    /// The end of a transfer. The text is libcurl's, and contains the server's.
    struct End {
        let result: CURLcode
        let said: String
        /// The status with which a proxy answered the request to connect to the server; 0 if no proxy was asked.
        var connectStatus = 0
        /// The server as a whole was too slow, so this call sends no more requests.
        var isOfSlowServer = false
    }

    static let atOnce = 4
    /// The longest wait of one step.
    static let stepMilliseconds: Int32 = 50

    /// The name of the place in messages.
    private let place: String
    private var curl: Curl?
    private var multi: UnsafeMutableRawPointer?
    private var idle: [UnsafeMutableRawPointer] = []
    private var calls: [UnsafeMutableRawPointer: Call] = [:]

    private let most: Int
    /// The time-out, in seconds: libcurl ends a transfer after this long without a byte.
    private let stall: Double
    private let clock: @Sendable () -> Double
    /// The patience with all transfers of the server together.
    private var patience: TransferPatience

    /// - Parameters:
    ///   - most: how many transfers may be active at once.
    ///   - stall: the time-out, in seconds.
    ///   - clock: `Clock.steady`, or the clock of a test.
    init(_ place: String, most: Int = CurlTransfers.atOnce, stall: Int, clock: @escaping @Sendable () -> Double = { Clock.steady() }) {
        self.place = place; self.most = most; self.stall = Double(stall); self.clock = clock
        patience = TransferPatience(TransferPatience.ofServer * self.stall, at: clock())
    }

    var hasRoom: Bool { calls.count < most }
    var isEmpty: Bool { calls.isEmpty }

    /// Closes all connections. They are opened again when needed.
    func close() {
        guard let curl else { return }
        dropAll()
        for easy in idle { llvs_curl_close(curl, easy) }
        idle = []
        if let multi { llvs_curl_close_multi(curl, multi) }
        multi = nil
    }

    /// - Parameter library: loads libcurl. Called the first time only.
    func open(_ library: () throws -> Curl) throws -> Curl {
        System.fillStandard()
        let curl = try self.curl ?? library()
        self.curl = curl
        if multi == nil {
            guard let made = curl.pointee.multi_init() else { throw short }
            llvs_curl_prepare_multi(curl, made, Int32(CurlTransfers.atOnce))
            multi = made
        }
        return curl
    }

    private var short: StoreError {
        StoreError(.outOfMemory, "Reaching \(place) failed: libcurl has no memory. Free some, and try again.")
    }

    /// Starts a transfer.
    /// - Parameters:
    ///   - transfer: the transfer.
    ///   - lines: lists of text, which become lists of libcurl.
    ///   - prepare: sets all options of the request on the handle.
    /// - Returns: the handle, or the end of the transfer if it ended at once.
    func start(
        _ transfer: HTTPTransfer, _ lines: [[String]], _ prepare: (UnsafeMutableRawPointer, Call, Curl) -> CURLcode
    ) throws -> Started {
        guard let curl, let multi, let easy = idle.popLast() ?? curl.pointee.easy_init() else { throw short }
        let now = clock()
        if calls.isEmpty { patience.rest(until: now) }
        var call = Call(transfer, TransferPatience(transfer.patience * stall, at: now))
        for some in lines {
            var list: UnsafeMutablePointer<curl_slist>?
            for line in some { list = curl.pointee.slist_append(list, line) ?? list }
            call.lists.append(list)
        }
        let result = prepare(easy, call, curl)
        guard result == CURLE_OK, curl.pointee.multi_add_handle(multi, easy) == CURLM_OK else {
            release(call, curl)
            llvs_curl_close(curl, easy)
            return .ended(End(result: result, said: words(result, curl)))
        }
        calls[easy] = call
        return .running(easy)
    }
    enum Started {
        case running(UnsafeMutableRawPointer)
        case ended(End)
    }

    /// Advances all transfers, for 50 ms at most, and reports those that ended. If none is active it waits 20 ms.
    func step(_ finished: (UnsafeMutableRawPointer, End) throws -> Void) throws {
        guard let curl, let multi else { throw short }
        guard !calls.isEmpty else { usleep(UInt32(CurlTransfers.stepMilliseconds) * 400); return }
        // libcurl opens connections here, and some of them stay open. The output of the host must not end up in a request.
        System.fillStandard()
        var running: Int32 = 0
        let stepped = llvs_curl_step(curl, multi, CurlTransfers.stepMilliseconds, &running)
        guard stepped == CURLM_OK else {
            throw StoreError(.transport, "Reaching \(place) failed: libcurl reports an error (CURLM \(stepped.rawValue)). Try again.")
        }
        var result = CURLE_OK
        while let easy = llvs_curl_next(curl, multi, &result) {
            guard var call = calls.removeValue(forKey: easy) else { continue }
            let connectStatus = Int(llvs_curl_connect_status(curl, easy))
            llvs_curl_remove(curl, multi, easy)
            idle.append(easy)
            let said = String(cString: call.words)
            release(call, curl)
            look(at: &call, clock())
            if result == CURLE_OK, !call.transfer.isOfListing { patience.gain(TransferPatience.answer) }
            try finished(easy, End(result: result, said: said.isEmpty ? words(result, curl) : said, connectStatus: connectStatus))
        }
        try dropSlow(curl, multi, finished)
    }

    /// Updates the patience with the bytes that a transfer moved since the last check.
    private func look(at call: inout Call, _ now: Double) {
        let transfer = call.transfer, bytes = transfer.moved - call.moved
        let rate = transfer.isOfListing ? TransferPatience.leastListingRate : TransferPatience.leastRate
        call.moved = transfer.moved
        call.patience.wait(until: now, bytes: bytes, rate: rate)
        patience.wait(until: now, bytes: bytes, rate: rate)
    }

    /// Ends the transfers that are too slow, and all of them if the server is too slow.
    private func dropSlow(
        _ curl: Curl, _ multi: UnsafeMutableRawPointer, _ finished: (UnsafeMutableRawPointer, End) throws -> Void
    ) throws {
        let now = clock()
        for easy in Array(calls.keys) {
            guard var call = calls[easy] else { continue }
            look(at: &call, now)
            calls[easy] = call
        }
        let isOfServer = patience.isAtEnd
        if isOfServer { patience.begin(at: now) }
        for (easy, call) in calls where isOfServer || call.patience.isAtEnd {
            calls[easy] = nil
            llvs_curl_remove(curl, multi, easy)
            llvs_curl_close(curl, easy)
            release(call, curl)
            let most = Int(stall * (isOfServer ? TransferPatience.ofServer : call.transfer.patience))
            let rate = Int(call.transfer.isOfListing ? TransferPatience.leastListingRate : TransferPatience.leastRate)
            let said =
                isOfServer
                ? "the server answers so slowly that \(most) seconds were lost by waiting for it"
                : "\(call.transfer.moved) bytes moved, and for \(most) seconds fewer than \(rate) a second"
            try finished(easy, End(result: CURLE_OPERATION_TIMEDOUT, said: said, isOfSlowServer: isOfServer))
        }
    }

    /// Drops all transfers. A call that ends does not finish its active ones.
    func dropAll() {
        guard let curl else { return }
        for (easy, call) in calls {
            if let multi { llvs_curl_remove(curl, multi, easy) }
            llvs_curl_close(curl, easy)
            release(call, curl)
        }
        calls = [:]
    }

    private func words(_ result: CURLcode, _ curl: Curl) -> String { curl.pointee.easy_strerror(result).map { String(cString: $0) } ?? "" }
    private func release(_ call: Call, _ curl: Curl) {
        call.words.deallocate()
        for list in call.lists { curl.pointee.slist_free_all(list) }
    }

    /// Calls a closure with C strings that are valid during the call.
    static func withTexts<R>(_ texts: [String?], _ body: ([UnsafePointer<CChar>?]) -> R) -> R {
        let copies = texts.map { $0.flatMap { strdup($0) } }
        defer { for copy in copies { free(copy) } }
        return body(copies.map { $0.map { UnsafePointer($0) } })
    }
}
