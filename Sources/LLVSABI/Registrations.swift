import CLLVS
import CLLVSShims
import LLVSCoordinator

// MARK: Registrations

/// Behind `llvs_observer`.
package final class ObserverHandle: Handle, @unchecked Sendable {
    let gate: CallbackGate<Payload>
    /// Ends the source of the gate's calls.
    private let cancel: () -> Void
    package init(_ gate: CallbackGate<Payload>, cancel: @escaping () -> Void) { self.gate = gate; self.cancel = cancel }
    func end() {
        gate.close()
        cancel()
    }
}

/// Runs a call that registers a callback. The payload is freed when the registration ends, or if it fails.
package func registering<Callback>(
    _ fn: Callback?, _ payload: UnsafeMutableRawPointer?, _ payload_free: llvs_free_fn?, _ observer: HandleOut?, _ error: ErrorOut?,
    _ register: (Callback, CallbackGate<Payload>) throws -> ObserverHandle
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

@_cdecl("llvs_log_observe") @implementation
public func llvs_log_observe(
    _ level: llvs_log_level, _ fn: llvs_log_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
    _ observer: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    registering(fn, payload, payload_free, observer, error) { fn, gate in
        guard let wanted = Int32(exactly: level).flatMap(Log.Level.init(rawValue:)) else { throw InputError.constant("level", level) }
        let id = Log.add(wanted) { level, message in
            gate.run { payload in
                withBorrowed(Array(message.utf8)) { fn(payload.pointer, llvs_log_level(truncatingIfNeeded: level.rawValue), $0) }
            }
        }
        return ObserverHandle(gate) { Log.remove(id) }
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

/// A pointer of the host for `@Sendable` closures; used only during the host's own call.
// Sendable: the host is responsible for the memory.
struct HostPointer: @unchecked Sendable { let pointer: UnsafeMutableRawPointer? }

/// Converts the control of one call.
func control(_ input: UnsafePointer<llvs_control>?) throws -> OperationControl {
    guard let input = try optionalStruct(input, "llvs_control") else { return OperationControl() }
    guard input.reserved == 0 else { throw InputError.reserved("llvs_control") }
    let token = try optionalHandle(input.token, CancelTokenHandle.self, "cancel token")?.token
    guard let progress = input.progress else { return OperationControl(token: token) }
    let payload = HostPointer(pointer: input.payload)
    return OperationControl(
        progress: { state in
            var info = llvs_progress(
                struct_size: UInt32(sizeOf: llvs_progress.self), stage: state.stage.rawValue,
                completed: state.completed, total: state.total)
            let status = try callHost("The progress callback", expecting: StoreError.Code.cancelled.rawValue) {
                progress(payload.pointer, &info, $0)
            }
            return status == LLVS_OK.rawValue
        }, token: token)
}
