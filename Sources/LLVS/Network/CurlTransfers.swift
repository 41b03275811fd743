import CNetwork

/// The transfers of one client that are under way, and libcurl's handles, which are used again from call to call.
///
/// Guarded by the gate of the client that it belongs to.
final class CurlTransfers {
    /// What libcurl borrows for one transfer, until that is over.
    struct Call {
        /// For what libcurl says.
        let words: UnsafeMutablePointer<CChar>
        /// In the order in which they were given; nil for an empty one.
        fileprivate(set) var lists: [UnsafeMutablePointer<curl_slist>?] = []
        fileprivate let transfer: HTTPTransfer
        fileprivate var patience: TransferPatience
        /// Bytes that had moved when it was looked at last.
        fileprivate var moved = 0
        fileprivate init(_ transfer: HTTPTransfer, _ patience: TransferPatience) {
            self.transfer = transfer; self.patience = patience
            words = .allocate(capacity: Int(CURL_ERROR_SIZE))
            words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        }
    }
    /// How one ended, in libcurl's words, which hold the server's.
    struct End {
        let result: CURLcode
        let said: String
        /// What a proxy answered that was to connect to the server; 0: it was not asked.
        var connectStatus = 0
        /// The server as a whole was too slow: nothing is asked again in this call.
        var isOfSlowServer = false
    }

    static let atOnce = 4
    /// How long one step waits for something to happen.
    static let stepMilliseconds: Int32 = 50

    /// For messages.
    private let place: String
    private var curl: Curl?
    private var multi: UnsafeMutableRawPointer?
    private var idle: [UnsafeMutableRawPointer] = []
    private var calls: [UnsafeMutableRawPointer: Call] = [:]

    private let most: Int
    /// Seconds without a byte after which libcurl gives a transfer up.
    private let stall: Double
    private let clock: @Sendable () -> Double
    /// With all transfers together.
    private var patience: TransferPatience

    /// - Parameters:
    ///   - most: how many are under way at once.
    ///   - stall: the time-out, in seconds.
    ///   - clock: that of `Clock.steady`; of a test its own.
    init(_ place: String, most: Int = CurlTransfers.atOnce, stall: Int, clock: @escaping @Sendable () -> Double = { Clock.steady() }) {
        self.place = place; self.most = most; self.stall = Double(stall); self.clock = clock
        patience = TransferPatience(TransferPatience.ofServer * self.stall, at: clock())
    }

    var hasRoom: Bool { calls.count < most }
    var isEmpty: Bool { calls.isEmpty }

    /// Lets go of all connections; they are made anew when they are needed.
    func close() {
        guard let curl else { return }
        dropAll()
        for easy in idle { llvs_curl_close(curl, easy) }
        idle = []
        if let multi { llvs_curl_close_multi(curl, multi) }
        multi = nil
    }

    /// - Parameter library: finds libcurl, the first time.
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

    /// Begins one.
    /// - Parameters:
    ///   - transfer: what moves.
    ///   - lines: become lists of libcurl's.
    ///   - prepare: says all of the request to the handle.
    /// - Returns: the handle; or how it ended at once.
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

    /// Moves all on, for 50 ms at most, and hands over those that are over. Where none is under way it waits for a part of that.
    func step(_ finished: (UnsafeMutableRawPointer, End) throws -> Void) throws {
        guard let curl, let multi else { throw short }
        guard !calls.isEmpty else { usleep(UInt32(CurlTransfers.stepMilliseconds) * 400); return }
        // libcurl opens connections here, some of which stay open: what the host prints is not to go into a request.
        System.fillStandard()
        var running: Int32 = 0
        let stepped = llvs_curl_step(curl, multi, CurlTransfers.stepMilliseconds, &running)
        guard stepped == CURLM_OK else {
            throw StoreError(.transport, "Reaching \(place) failed: libcurl gives up (CURLM \(stepped.rawValue)). Try again.")
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

    /// Takes over what moved since one was looked at last.
    private func look(at call: inout Call, _ now: Double) {
        let transfer = call.transfer, bytes = transfer.moved - call.moved
        let rate = transfer.isOfListing ? TransferPatience.leastListingRate : TransferPatience.leastRate
        call.moved = transfer.moved
        call.patience.wait(until: now, bytes: bytes, rate: rate)
        patience.wait(until: now, bytes: bytes, rate: rate)
    }

    /// Ends those that are too slow, and all when the server is.
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

    /// What is under way when a call ends is not finished.
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

    /// Texts as C has them, for the length of a call.
    static func withTexts<R>(_ texts: [String?], _ body: ([UnsafePointer<CChar>?]) -> R) -> R {
        let copies = texts.map { $0.flatMap { strdup($0) } }
        defer { for copy in copies { free(copy) } }
        return body(copies.map { $0.map { UnsafePointer($0) } })
    }
}
