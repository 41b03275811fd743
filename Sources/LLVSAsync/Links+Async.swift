#if Network
import LLVS

/// Direct connections, as async functions on threads of their own.
extension PeerListener {
    /// Listens at an address. Looking up a host's name may take seconds.
    /// - Parameters:
    ///   - address: `host:port`, `[host]:port`, or `unix:` and a path. A Unix socket is created for its owner only.
    ///   - options: the identity of this side. Pairings come with the stores that are offered.
    /// - Throws: the errors of the initialiser.
    public static func listen(at address: String, options: PeerSession.Options = PeerSession.Options()) async throws -> PeerListener {
        try await onOwnThread { _ in try PeerListener(at: address, options: options) }
    }

    /// Waits for a connection of another device.
    /// - Parameter seconds: how long to wait.
    /// - Returns: the connection; nil if none came in that time, or if the listener was closed.
    /// - Throws: `CancellationError`, and then the listener goes on. A connection that comes later is for the next call.
    public func accept(within seconds: Double = .infinity) async throws -> PeerLink? {
        let token = WaitToken()
        let link = try await withTaskCancellationHandler {
            try await onOwnThread { _ in self.accept(within: seconds, as: token) }
        } onCancel: {
            cancel(token)
        }
        if link == nil { try Task.checkCancellation() }
        return link
    }

    /// Stops listening, and ends the connections as `PeerLink.close` does. Cancelling the task does not stop this.
    public func close(within seconds: Double = 10) async { await onThreadOfItsOwn { self.close(within: seconds) } }
}

extension PeerLink {
    /// Connects a store to the one that `PeerListener` offers at an address.
    /// - Parameters:
    ///   - store: the store to exchange. It must be writable.
    ///   - address: `host:port`, `[host]:port`, or `unix:` and a path.
    ///   - options: the identity of this side, and the pairing.
    ///   - seconds: the timeout for connecting.
    /// - Throws: the errors of the initialiser; `CancellationError`.
    public static func connect(
        _ store: Store, to address: String, options: PeerSession.Options, within seconds: Double = 10
    ) async throws -> PeerLink {
        let token = CancelToken()
        return try await withTaskCancellationHandler {
            let link: PeerLink
            do {
                link = try await onOwnThread { _ in
                    try PeerLink(store, to: address, options: options, within: seconds, token: token)
                }
            } catch {
                try Task.checkCancellation()
                throw error
            }
            guard Task.isCancelled else { return link }
            await link.stop()
            throw CancellationError()
        } onCancel: {
            token.cancel()
        }
    }

    /// Waits until both stores are in step, including everything that is in this store now, or until the link ends.
    /// - Parameter seconds: the timeout.
    /// - Returns: whether they are in step.
    /// - Throws: the error by which the link ended; `CancellationError`, and then the link goes on.
    @discardableResult
    public func wait(within seconds: Double = .infinity) async throws -> Bool {
        let token = WaitToken()
        return try await withTaskCancellationHandler {
            try await onOwnThread { _ in try self.wait(seconds, as: token) }
        } onCancel: {
            cancel(token)
        }
    }

    /// Waits until the link has ended.
    /// - Parameter seconds: the timeout.
    /// - Returns: whether it has.
    /// - Throws: `CancellationError`, and then the link goes on.
    @discardableResult
    public func waitForEnd(within seconds: Double = .infinity) async throws -> Bool {
        let token = WaitToken()
        let hasEnded = try await withTaskCancellationHandler {
            try await onOwnThread { _ in self.waitForEnd(seconds, as: token) }
        } onCancel: {
            cancel(token)
        }
        if !hasEnded { try Task.checkCancellation() }
        return hasEnded
    }

    /// Sends what is queued, says goodbye, and waits until the other side does so, or for the given seconds. Then the link ends.
    /// Cancelling the task does not stop this.
    public func close(within seconds: Double = 10) async { await onThreadOfItsOwn { self.close(within: seconds) } }

    /// Ends the link at once. The other side sees it as cut. Cancelling the task does not stop this.
    public func stop() async { await onThreadOfItsOwn { self.stop() } }
}

extension Nearby {
    /// Finds devices on the local network, and announces this one, until the sequence is released.
    ///
    ///     for await events in try Nearby.events(name: "Ann's laptop", port: port) { show(events) }
    ///
    /// - Parameters:
    ///   - name: the name of this device, at most 63 bytes of UTF-8; empty for the host's name.
    ///   - port: the port that it listens at; nil if it is not to be announced.
    /// - Returns: the events in their order. Those that come while no task waits are one element.
    /// - Throws: the errors of `observe`.
    public static func events(name: String = "", port: UInt16? = nil) throws -> EventSequence<[Nearby.Event]> {
        try EventSequence(ending: Observers(), together: { $0 + $1 }) { put in [try observe(name: name, port: port) { put([$0]) }] }
    }
}

/// Limits as durations.
extension PeerListener {
    /// Waits for a connection of another device.
    /// - Parameter limit: how long to wait.
    /// - Returns: the connection; nil if none came in that time, or if the listener was closed.
    /// - Throws: `CancellationError`, and then the listener goes on.
    public func accept(within limit: Duration) async throws -> PeerLink? { try await accept(within: limit / .seconds(1)) }

    /// Stops listening, and ends the connections as `PeerLink.close` does. Cancelling the task does not stop this.
    public func close(within limit: Duration) async { await close(within: limit / .seconds(1)) }

    /// Returns the code of an invitation to a store: as the function with seconds.
    /// - Throws: `.notFound`, `.io`.
    public func invite(_ pairing: Pairing, for limit: Duration) throws -> String { try invite(pairing, for: limit / .seconds(1)) }

    /// Lets one device in after people compared digits: as the function with seconds.
    /// - Throws: `.notFound`, `.busy` if a comparison is pending.
    public func compare(_ pairing: Pairing, for limit: Duration) throws { try compare(pairing, for: limit / .seconds(1)) }
}

extension PeerLink {
    /// Connects a store to the one that `PeerListener` offers at an address: as the function with seconds.
    /// - Throws: the errors of the initialiser; `CancellationError`.
    public static func connect(
        _ store: Store, to address: String, options: PeerSession.Options, within limit: Duration
    ) async throws -> PeerLink {
        try await connect(store, to: address, options: options, within: limit / .seconds(1))
    }

    /// Waits until both stores are in step, including everything that is in this store now, or until the link ends.
    /// - Parameter limit: how long to wait.
    /// - Returns: whether they are in step.
    /// - Throws: the error by which the link ended; `CancellationError`, and then the link goes on.
    @discardableResult
    public func wait(within limit: Duration) async throws -> Bool { try await wait(within: limit / .seconds(1)) }

    /// Waits until the link has ended.
    /// - Parameter limit: how long to wait.
    /// - Returns: whether it has.
    /// - Throws: `CancellationError`, and then the link goes on.
    @discardableResult
    public func waitForEnd(within limit: Duration) async throws -> Bool { try await waitForEnd(within: limit / .seconds(1)) }

    /// Sends what is queued, says goodbye, and waits until the other side does so, or for the given time. Then the link ends.
    public func close(within limit: Duration) async { await close(within: limit / .seconds(1)) }
}
#endif
