import CLLVS
import CLLVSShims
import Glibc
import LLVS

// MARK: Registrations

/// Lets callbacks of one registration through until it ends; ending waits for those that run, and frees the payload.
///
/// The gate alone holds the payload: closures of the engine may live on for a moment in a thread that is about to end.
final class CallbackGate: HostCallMark, @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var running: [pthread_t] = []
    private var closed = false
    private var payload: Payload?
    init(_ payload: Payload) { self.payload = payload }

    func run(_ body: (UnsafeMutableRawPointer?) -> Void) {
        let me = pthread_self()
        var kept = lock.withLock { () -> Payload? in
            if !closed { running.append(me) }
            return closed ? nil : payload
        }
        guard let pointer = kept.map(\.pointer) else { return }
        withExtendedLifetime(kept) { HostCalls.run(self, observes: true) { body(pointer) } }
        // Kept until the callback is over, also when it ended its own registration; gone before anybody who waits goes on.
        kept = nil
        hostLeft()
    }

    override func hostLeft() {
        let me = pthread_self()
        lock.withLock {
            if let i = running.lastIndex(where: { pthread_equal($0, me) != 0 }) { running.remove(at: i) }
            if closed { changed.broadcast() }
        }
    }

    /// None begins after. Those that run keep the payload until they are over.
    func cancel() {
        let freed = lock.withLock { () -> Payload? in
            closed = true
            defer { payload = nil }
            return payload
        }
        // Freed here, with no lock held.
        withExtendedLifetime(freed) {}
    }

    /// The same, and waits for those that run: but not within a callback of any registration, for which one of them may be waiting.
    func close() {
        cancel()
        lock.withLock { while !running.isEmpty && !HostCalls.isObserving { changed.wait(lock) } }
    }
}

/// Behind `llvs_observer`.
final class ObserverHandle: Handle, @unchecked Sendable {
    let gate: CallbackGate
    /// Ends what calls the gate.
    private let cancel: () -> Void
    init(_ gate: CallbackGate, cancel: @escaping () -> Void) { self.gate = gate; self.cancel = cancel }
    func end() {
        gate.close()
        cancel()
    }
}

/// A call that registers a callback. Its payload is freed when the registration ends, and when there is none.
func registering<Callback>(
    _ fn: Callback?, _ payload: UnsafeMutableRawPointer?, _ payload_free: llvs_free_fn?, _ observer: HandleOut?, _ error: ErrorOut?,
    _ register: (Callback, CallbackGate) throws -> ObserverHandle
) -> llvs_status {
    let gate = CallbackGate(Payload(payload, payload_free))
    observer?.pointee = nil
    return entry(error) {
        let out = try required(observer, "observer")
        guard let fn else { throw InputError.null("fn") }
        out.pointee = try register(fn, gate).owned
    }
}

@_cdecl("llvs_observer_cancel") @implementation
public func llvs_observer_cancel(_ observer: OpaquePointer!) {
    HostCalls.cleanUp(llvs_shim_frame())
    guard let handle = peek(observer, ObserverHandle.self), !handle.isForked else { return }
    handle.gate.cancel()
}

@_cdecl("llvs_observer_free") @implementation
public func llvs_observer_free(_ observer: OpaquePointer!) {
    HostCalls.cleanUp(llvs_shim_frame())
    guard let handle = peek(observer, ObserverHandle.self), !handle.isForked else { return }
    handle.end()
    free(observer, ObserverHandle.self, leadsToStore: true)
}

// MARK: Log

/// Hands each message of the engine to all who registered for its level.
private enum LogHub {
    struct Receiver {
        let id: UInt64
        let level: Log.Level
        let receive: @Sendable (Log.Level, String) -> Void
    }
    static let lock = Lock()
    nonisolated(unsafe) static var receivers: [Receiver] = []
    nonisolated(unsafe) static var nextID: UInt64 = 0

    static func add(_ level: Log.Level, _ receive: @escaping @Sendable (Log.Level, String) -> Void) -> UInt64 {
        lock.withLock {
            nextID &+= 1
            receivers.append(Receiver(id: nextID, level: level, receive: receive))
            refresh()
            return nextID
        }
    }
    static func remove(_ id: UInt64) {
        lock.withLock {
            receivers.removeAll { $0.id == id }
            refresh()
        }
    }
    /// With the lock held.
    private static func refresh() {
        let all = receivers
        guard let loudest = all.map(\.level).max() else { return Log.setSink(level: .off, nil) }
        Log.setSink(level: loudest) { level, message in
            for receiver in all where level <= receiver.level { receiver.receive(level, message) }
        }
    }
}

@_cdecl("llvs_log_observe") @implementation
public func llvs_log_observe(
    _ level: llvs_log_level, _ fn: llvs_log_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
                             _ observer: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    registering(fn, payload, payload_free, observer, error) { fn, gate in
        guard let wanted = Int32(exactly: level).flatMap(Log.Level.init(rawValue:)) else { throw InputError.constant("level", level) }
        let id = LogHub.add(wanted) { level, message in
            gate.run { pointer in
                withBorrowed(Array(message.utf8)) { fn(pointer, llvs_log_level(truncatingIfNeeded: level.rawValue), $0) }
            }
        }
        return ObserverHandle(gate) { LogHub.remove(id) }
    }
}

// MARK: Cancelling

final class CancelTokenHandle: Handle, @unchecked Sendable {
    let token = CancelToken()
}

@_cdecl("llvs_cancel_token_create") @implementation
public func llvs_cancel_token_create(_ token: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try required(token, "token").pointee = CancelTokenHandle().owned }
}

@_cdecl("llvs_cancel_token_cancel") @implementation
public func llvs_cancel_token_cancel(_ token: OpaquePointer!) {
    guard let handle = peek(token, CancelTokenHandle.self), !handle.isForked else { return }
    handle.token.cancel()
}

@_cdecl("llvs_cancel_token_is_cancelled") @implementation
public func llvs_cancel_token_is_cancelled(_ token: OpaquePointer!) -> llvs_bool {
    guard let handle = peek(token, CancelTokenHandle.self), !handle.isForked else { return 0 }
    return handle.token.isCancelled ? 1 : 0
}

@_cdecl("llvs_cancel_token_free") @implementation
public func llvs_cancel_token_free(_ token: OpaquePointer!) { free(token, CancelTokenHandle.self, leadsToStore: false) }

/// A pointer of the host that a `@Sendable` closure carries; used during the host's own call only.
struct HostPointer: @unchecked Sendable { let pointer: UnsafeMutableRawPointer? }

/// The control of one call.
func control(_ input: UnsafePointer<llvs_control>?) throws -> OperationControl {
    guard let input = try optionalStruct(input, "llvs_control") else { return OperationControl() }
    guard input.reserved == 0 else { throw InputError.reserved("llvs_control") }
    let token = try optionalHandle(input.token, CancelTokenHandle.self, "cancel token")?.token
    guard let progress = input.progress else { return OperationControl(token: token) }
    let payload = HostPointer(pointer: input.payload)
    return OperationControl(progress: { state in
        var info = llvs_progress(struct_size: UInt32(sizeOf: llvs_progress.self), stage: state.stage.rawValue,
                                 completed: state.completed, total: state.total)
            let status = try callHost("The progress callback", expecting: StoreError.Code.cancelled.rawValue) {
                progress(payload.pointer, &info, $0)
            }
        return status == LLVS_OK.rawValue
    }, token: token)
}
