import CLLVS
import CLLVSShims
import LLVSCoordinator

// MARK: Syncing in the background

final class SyncerHandle: Handle, @unchecked Sendable {
    let syncer: Syncer
    private let gate: CallbackGate<Payload>
    init(_ syncer: Syncer, _ gate: CallbackGate<Payload>) { self.syncer = syncer; self.gate = gate }

    func end() {
        // Cancels a running round before waiting for its callback.
        gate.cancel()
        syncer.stop()
        gate.close()
    }
}

private func syncer(_ pointer: OpaquePointer?) throws -> Syncer { try handle(pointer, SyncerHandle.self, "syncer").syncer }

/// Behind `llvs_sync_status`.
final class SyncStatusHandle: StructHandle<llvs_sync_status>, @unchecked Sendable {
    /// Owners of the errors and problems that the struct borrows.
    private let errors: [ErrorHandle?]
    private let mergeError: ErrorHandle?

    init(_ status: Syncer.Status) throws {
        let arena = Arena(), errors = status.places.map { $0.error.map(ErrorHandle.init) }
        let mergeError = status.mergeFailure.map(ErrorHandle.init)
        self.errors = errors
        self.mergeError = mergeError
        let places = try Items(status.places.indices, in: arena) { i, arena in
            let place = status.places[i], problems = try Items(place.problems, in: arena, llvs_problem.init)
            let remote = try Items(place.remote.map { [$0] } ?? [], in: arena) { try llvs_remote($0, in: $1) }
            return llvs_sync_place(
                struct_size: UInt32(sizeOf: llvs_sync_place.self), reason: place.reason.rawValue, place: try arena.copy(place.place),
                failures: place.failures, retry_at: since1970(place.retryAt), last_success: since1970(place.lastSuccess),
                error: errors[i]?.borrowed, problems: problems.start, problem_count: problems.count,
                http_status: UInt32(clamping: place.error?.httpStatus ?? 0), knows_pending: place.pending == nil ? 0 : 1,
                pending_versions: place.pending?.versions ?? 0, pending_bytes: place.pending?.bytes ?? 0,
                last_retrieve: since1970(place.lastRetrieve), last_send: since1970(place.lastSend), requests: place.round.requests,
                bytes_up: place.round.bytesUp, bytes_down: place.round.bytesDown, requests_today: place.today.requests,
                bytes_up_today: place.today.bytesUp, bytes_down_today: place.today.bytesDown, remote: remote.start.pointee,
                needs_user: place.needsSomebody ? 1 : 0, reserved: 0, unread: place.unread, unread_since: since1970(place.unreadSince))
        }
        try super.init(
            arena,
            llvs_sync_status(
                struct_size: UInt32(sizeOf: llvs_sync_status.self), state: status.state.rawValue, reason: status.reason.rawValue,
                stage: status.progress?.stage.rawValue ?? 0, completed: status.progress?.completed ?? 0, total: status.progress?.total ?? 0,
                next_round: since1970(status.nextRound), last_success: since1970(status.lastSuccess), rounds: status.rounds,
                retrieved: status.retrieved, sent: status.sent, merge_error: mergeError?.borrowed, places: places.start,
                place_count: places.count, bytes_done: status.bytesDone, bytes_total: status.bytesTotal,
                erasures_followed: status.erasures.followed, erasures_waiting: status.erasures.waiting,
                erasures_announced: status.erasures.announced, erasures_held: status.erasures.held))
    }
}

@_cdecl("llvs_sync_status_free") @implementation
public func llvs_sync_status_free(_ status: UnsafeMutablePointer<llvs_sync_status>!) { SyncStatusHandle.free(status) }

private func syncerOptions(_ input: UnsafePointer<llvs_syncer_options>?) throws -> (Syncer.Options, Syncer.Conditions) {
    var options = Syncer.Options()
    guard let input = try optionalStruct(input, "llvs_syncer_options") else { return (options, []) }
    func take(_ delay: UInt32, _ into: WritableKeyPath<Syncer.Options, Double>) {
        if delay != 0 { options[keyPath: into] = Double(delay) / 1_000 }
    }
    take(input.after_save, \.afterSave)
    take(input.after_saves, \.afterSaves)
    take(input.poll, \.poll)
    take(input.longest_poll, \.longestPoll)
    take(input.longest_pause, \.longestPause)
    options.selection =
        switch input.selection {
        case LLVS_HEADS_UNBRANCHED.rawValue: .unbranched
        case LLVS_HEADS_ALL.rawValue: .all
        default: throw InputError.constant("selection", input.selection)
        }
    return (options, try syncConditions(input.conditions))
}

private func syncConditions(_ bits: UInt32) throws -> Syncer.Conditions {
    guard let conditions = Syncer.Conditions(known: bits) else { throw InputError.constant("conditions", bits) }
    return conditions
}

@_cdecl("llvs_syncer_start") @implementation
public func llvs_syncer_start(
    _ coordinator: OpaquePointer!, _ options: UnsafePointer<llvs_syncer_options>!, _ fn: llvs_sync_event_fn!,
    _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!, _ syncer: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    // First, so that the caller's payload is freed even if the rest fails.
    let gate = CallbackGate(Payload(payload, payload_free))
    syncer?.pointee = nil
    return entry(error) {
        let out = try required(syncer, "syncer"), (settings, conditions) = try syncerOptions(options)
        let coordinator = try openCoordinator(coordinator)
        let made = try Syncer(coordinator, options: settings, conditions: conditions) { event in
            guard let fn else { return }
            // If memory is short the event is dropped; the next one is delivered.
            guard let status = try? SyncStatusHandle(event.status) else { return }
            let round = event.round.flatMap { try? SyncResultHandle($0) }
            if event.round != nil && round == nil { return }
            withExtendedLifetime((status, round)) {
                gate.run { fn($0.pointer, UnsafePointer(status.contents), round.map { UnsafePointer($0.contents) }) }
            }
        }
        out.pointee = SyncerHandle(made, gate).owned
    }
}

@_cdecl("llvs_syncer_trigger") @implementation
public func llvs_syncer_trigger(_ syncer: OpaquePointer!, _ trigger: llvs_sync_trigger, _ error: ErrorOut!) -> llvs_status {
    entry(error) {
        let syncer = try LLVSABI.syncer(syncer)
        guard let trigger = Syncer.Trigger(rawValue: trigger) else { throw InputError.constant("trigger", trigger) }
        try syncer.trigger(trigger)
    }
}

@_cdecl("llvs_syncer_set_conditions") @implementation
public func llvs_syncer_set_conditions(_ syncer: OpaquePointer!, _ conditions: llvs_sync_conditions, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try LLVSABI.syncer(syncer).setConditions(syncConditions(conditions)) }
}

@_cdecl("llvs_syncer_run") @implementation
public func llvs_syncer_run(
    _ syncer: OpaquePointer!, _ deadline: UInt64, _ control: UnsafePointer<llvs_control>!, _ done: UnsafeMutablePointer<llvs_bool>!,
    _ error: ErrorOut!
) -> llvs_status {
    done?.pointee = 0
    return entry(error) {
        let isDone = try LLVSABI.syncer(syncer).run(
            within: deadline == 0 ? nil : Double(deadline) / 1_000, control: LLVSABI.control(control))
        done?.pointee = isDone ? 1 : 0
    }
}

@_cdecl("llvs_syncer_status") @implementation
public func llvs_syncer_status(_ syncer: OpaquePointer!, _ status: StructOut<llvs_sync_status>!, _ error: ErrorOut!) -> llvs_status {
    status?.pointee = nil
    return entry(error) { try required(status, "status").pointee = try SyncStatusHandle(LLVSABI.syncer(syncer).status).handedOut }
}

@_cdecl("llvs_syncer_free") @implementation
public func llvs_syncer_free(_ syncer: OpaquePointer!) {
    HostCalls.cleanUp(llvs_shim_frame())
    guard let handle = peek(syncer, SyncerHandle.self), !handle.isForked else { return }
    handle.end()
    free(syncer, SyncerHandle.self, leadsToStore: true)
}
