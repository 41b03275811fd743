/// Non-blocking sockets for direct connections, over TCP and within a machine.
enum LiveSocket {
    /// The address of a store.
    enum Address: Equatable {
        case host(String, port: String)
        case path(String)

        /// Parses `host:port`, `[host]:port`, or `unix:` and a path.
        init(_ text: String) throws {
            let wrong = StoreError(
                .invalidArgument, "\"\(text)\" is not an address of a peer. Give \"host:port\", \"[host]:port\" or \"unix:/path\".")
            guard !text.utf8.contains(0) else { throw wrong }
            if text.utf8.starts(with: "unix:".utf8) {
                let path = String(text.dropFirst(5))
                // The system has a fixed room for the path and a zero after it.
                guard !path.isEmpty, path.utf8.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else { throw wrong }
                self = .path(path)
                return
            }
            guard let colon = text.lastIndex(of: ":"), case let port = text[text.index(after: colon)...],
                (1...5).contains(port.utf8.count), UInt16(port) != nil, port.utf8.allSatisfy({ (48...57).contains($0) })
            else { throw wrong }
            var host = text[..<colon]
            if host.first == "[", host.last == "]", host.count > 2 {
                host = host.dropFirst().dropLast()
            } else {
                guard !host.contains(":"), !host.contains("[") else { throw wrong }
            }
            guard !host.isEmpty else { throw wrong }
            self = .host(String(host), port: String(port))
        }
    }

    #if canImport(Glibc)
    private static let stream = Int32(SOCK_STREAM.rawValue)
    #else
    private static let stream = Int32(SOCK_STREAM)
    #endif

    /// The seconds between checks of whether connecting was cancelled.
    private static let glance = 0.05

    /// Returns a socket that was connected within the given seconds.
    /// - Throws: `.transport`, also when the token cancels it.
    static func connect(_ address: Address, within seconds: Double, token: CancelToken? = nil, named text: String) throws -> Int32 {
        let end = Clock.steady() + max(0, seconds)
        return try first(of: address, isToListen: false, named: text) { family, place, size, more in
            let fd = try System.socket(family, stream), now = Clock.steady()
            do throws(Errno) {
                try start(fd, place, size)
                // An address that does not answer must leave time for the addresses after it.
                let turn = now + max(0, end - now) / Double(more + 1)
                while !(try wait(fd, Int16(POLLOUT), until: token == nil ? turn : min(turn, Clock.steady() + glance))) {
                    if token?.isCancelled == true { throw Errno(ECANCELED) }
                    guard Clock.steady() < turn - 0.002 else { throw Errno(ETIMEDOUT) }
                }
                var error: Int32 = 0, length = socklen_t(MemoryLayout<Int32>.size)
                guard getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0, error == 0 else { throw Errno(error) }
            } catch {
                System.close(fd)
                throw error
            }
            quicken(fd)
            return fd
        }
    }

    private static func start(_ fd: Int32, _ place: UnsafePointer<sockaddr>, _ size: socklen_t) throws(Errno) {
        #if canImport(Glibc)
        let result = Glibc.connect(fd, place, size)
        #elseif canImport(Musl)
        let result = Musl.connect(fd, place, size)
        #else
        let result = Darwin.connect(fd, place, size)
        #endif
        guard result != 0 else { return }
        let error = Errno.current
        guard [EINPROGRESS, EINTR].contains(error.code) else { throw error }
    }

    /// Returns a socket that accepts connections. A Unix socket is created for its owner only.
    /// - Throws: `.transport`.
    static func listen(_ address: Address, named text: String) throws -> Int32 {
        try first(of: address, isToListen: true, named: text) { family, place, size, _ in
            let fd = try System.socket(family, stream)
            var made: String?
            do throws(Errno) {
                var one: Int32 = 1
                if family != AF_UNIX { _ = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size)) }
                if bind(fd, place, size) != 0 {
                    let error = Errno.current
                    guard error.code == EADDRINUSE, case .path(let path) = address, isLeft(path, place, size), unlink(path) == 0,
                        bind(fd, place, size) == 0
                    else { throw error }
                }
                // Restrict the path before any device can connect.
                if case .path(let path) = address {
                    made = path
                    guard chmod(path, 0o600) == 0 else { throw Errno.current }
                }
                #if canImport(Glibc)
                let result = Glibc.listen(fd, 64)
                #elseif canImport(Musl)
                let result = Musl.listen(fd, 64)
                #else
                let result = Darwin.listen(fd, 64)
                #endif
                guard result == 0 else { throw Errno.current }
            } catch {
                System.close(fd)
                if let made { _ = unlink(made) }
                throw error
            }
            return fd
        }
    }

    /// Returns whether a Unix socket was left by a process that was killed, and accepts no connections.
    private static func isLeft(_ path: String, _ place: UnsafePointer<sockaddr>, _ size: socklen_t) -> Bool {
        guard let status = try? System.status(path), status.isSocket, let fd = try? System.socket(AF_UNIX, stream) else { return false }
        defer { System.close(fd) }
        do throws(Errno) { try start(fd, place, size) } catch { return error.code == ECONNREFUSED }
        return false
    }

    /// Sends small pieces at once instead of with the next ones.
    static func quicken(_ fd: Int32) {
        var one: Int32 = 1
        // Has no effect on a Unix socket.
        _ = setsockopt(fd, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        #if canImport(Darwin)
        _ = setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &one, socklen_t(MemoryLayout<Int32>.size))
        #endif
    }

    /// Accepts a waiting connection and returns its address, which is empty for a Unix socket. Returns nil if none waits.
    static func accept(_ fd: Int32) throws(Errno) -> (fd: Int32, place: String)? {
        var storage = sockaddr_storage(), size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let raw = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { place in
                #if canImport(Glibc)
                Glibc.accept(fd, place, &size)
                #elseif canImport(Musl)
                Musl.accept(fd, place, &size)
                #else
                Darwin.accept(fd, place, &size)
                #endif
            }
        }
        guard raw >= 0 else {
            let error = Errno.current
            guard ![EAGAIN, EWOULDBLOCK, EINTR, ECONNABORTED].contains(error.code) else { return nil }
            throw error
        }
        let own = try System.adopted(raw)
        quicken(own)
        return (own, name(&storage, size)?.host ?? "")
    }

    /// Closes a connection so that the other side sees it as cut, and not as refused. On a Unix socket this works only if some received
    /// bytes were not read.
    static func drop(_ fd: Int32) {
        var atOnce = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(fd, SOL_SOCKET, SO_LINGER, &atOnce, socklen_t(MemoryLayout<linger>.size))
        System.close(fd)
    }

    /// Returns the address of a listening socket, as `Address` parses it.
    static func own(_ fd: Int32) -> String? {
        var storage = sockaddr_storage(), size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(fd, $0, &size) }
        }
        guard result == 0, let (host, port) = name(&storage, size) else { return nil }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Returns a numeric address; nil for a Unix socket.
    private static func name(_ storage: inout sockaddr_storage, _ size: socklen_t) -> (host: String, port: String)? {
        guard Int32(storage.ss_family) != AF_UNIX else { return nil }
        var host = [CChar](repeating: 0, count: 128), port = [CChar](repeating: 0, count: 16)
        let result = withUnsafePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getnameinfo(
                    $0, size, &host, socklen_t(host.count), &port, socklen_t(port.count), Int32(NI_NUMERICHOST) | Int32(NI_NUMERICSERV))
            }
        }
        func text(_ bytes: [CChar]) -> String { String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) }
        return result == 0 ? (text(host), text(port)) : nil
    }

    /// Appends at most `most` received bytes. Returns false at the end of the connection.
    /// - Parameter leaving: whether the bytes also stay in the socket.
    static func read(_ fd: Int32, into bytes: inout [UInt8], most: Int, leaving: Bool = false) throws(Errno) -> Bool {
        let flags = leaving ? Int32(MSG_PEEK) : 0
        // Begin with little room: most links receive little, and the thread's memory pool retains what was allocated.
        var got = 0, piece = 2 << 10
        while got < most {
            let start = bytes.count
            bytes.append(contentsOf: repeatElement(0, count: min(piece, most - got)))
            piece = 64 << 10
            let count = bytes.withUnsafeMutableBytes { buffer in
                buffer.baseAddress.map { recv(fd, $0 + start, buffer.count - start, flags) } ?? 0
            }
            let error = Errno.current
            bytes.removeLast(bytes.count - start - max(0, count))
            if count == 0 { return got > 0 }
            if count < 0 {
                if error.code == EINTR { continue }
                // Bytes received before the cut may say why it was cut.
                if got > 0 || error.code == EAGAIN || error.code == EWOULDBLOCK { return true }
                throw error
            }
            got += count
        }
        return true
    }

    /// Sends as much as there is room for, and returns the number of bytes.
    static func write(_ fd: Int32, _ bytes: ArraySlice<UInt8>) throws(Errno) -> Int {
        #if canImport(Darwin)
        let flags: Int32 = 0
        #else
        let flags = Int32(MSG_NOSIGNAL)
        #endif
        let count = bytes.withUnsafeBytes { buffer in buffer.baseAddress.map { send(fd, $0, buffer.count, flags) } ?? 0 }
        guard count < 0 else { return count }
        let error = Errno.current
        guard [EAGAIN, EWOULDBLOCK, EINTR].contains(error.code) else { throw error }
        return 0
    }

    /// Waits for one of the events. Returns false at the end of the time.
    static func wait(_ fd: Int32, _ events: Int16, until end: Double) throws(Errno) -> Bool {
        while true {
            var one = pollfd(fd: fd, events: events, revents: 0)
            let left = min(max(0, end - Clock.steady()), 3_600)
            let count = poll(&one, 1, Int32(left * 1_000))
            if count > 0 { return true }
            if count < 0 {
                let error = Errno.current
                guard error.code == EINTR else { throw error }
            } else if Clock.steady() >= end - 0.002 {
                return false
            }
        }
    }

    /// Returns the error for an address that cannot be listened at or connected to.
    static func failure(_ error: Errno, _ isToListen: Bool, _ doing: String) -> StoreError {
        let why =
            if isToListen {
                "failed: \(error). Give another address"
            } else if error.code == ECONNRESET {
                "failed: the other side reset the connection while it was made (\(error)). It was ending, or has had too many tries from "
                    + "here that failed. Connect again in a minute"
            } else {
                "failed: \(error). Check that it listens there"
            }
        return StoreError(.transport, "\(doing) \(why).")
    }

    /// Calls with each of the addresses that a name resolves to until one succeeds.
    private static func first(
        of address: Address, isToListen: Bool, named text: String,
        _ body: (_ family: Int32, UnsafePointer<sockaddr>, socklen_t, _ more: Int) throws -> Int32
    ) throws -> Int32 {
        let doing = isToListen ? "Listening at" : "Connecting to"
        func failed(_ error: any Error) -> any Error {
            (error as? Errno).map { failure($0, isToListen, "\(doing) \(text)") } ?? error
        }
        switch address {
        case .path(let path):
            var place = sockaddr_un()
            place.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &place.sun_path) { $0.copyBytes(from: Array(path.utf8).prefix($0.count - 1)) }
            do {
                return try withUnsafePointer(to: &place) {
                    try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        try body(AF_UNIX, $0, socklen_t(MemoryLayout<sockaddr_un>.size), 0)
                    }
                }
            } catch { throw failed(error) }
        case .host(let host, let port):
            var hints = addrinfo(), found: UnsafeMutablePointer<addrinfo>?
            hints.ai_family = AF_UNSPEC
            hints.ai_socktype = stream
            hints.ai_flags = isToListen ? Int32(AI_PASSIVE) : 0
            let result = getaddrinfo(host, port, &hints, &found)
            defer { if let found { freeaddrinfo(found) } }
            guard result == 0 else {
                let why = gai_strerror(result).map { String(cString: $0) } ?? "unknown"
                throw StoreError(.transport, "\(doing) \(text) failed: its host is not known (\(why)). Check the name.")
            }
            var last: any Error = Errno(ENOENT), next = found, count = 0
            while let one = next { (next, count) = (one.pointee.ai_next, count + 1) }
            next = found
            while let one = next {
                count -= 1
                next = one.pointee.ai_next
                guard let place = one.pointee.ai_addr else { continue }
                do { return try body(one.pointee.ai_family, UnsafePointer(place), one.pointee.ai_addrlen, count) } catch { last = error }
            }
            throw failed(last)
        }
    }
}

extension System {
    /// Returns a non-blocking socket.
    static func socket(_ family: Int32, _ kind: Int32) throws(Errno) -> Int32 {
        fillStandard()
        #if canImport(Glibc)
        let fd = Glibc.socket(family, kind, 0)
        #elseif canImport(Musl)
        let fd = Musl.socket(family, kind, 0)
        #else
        let fd = Darwin.socket(family, kind, 0)
        #endif
        if fd < 0 { throw Errno.current }
        return try adopted(fd)
    }

    /// Sets up a descriptor that a system call returned, like the library's other descriptors.
    static func adopted(_ fd: Int32) throws(Errno) -> Int32 {
        _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
        _ = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK)
        return try beyondStandard(fd)
    }
}
