import CLLVS
import LLVSCoordinator

// MARK: Erasing

private func places(_ places: [ErasurePlace], in arena: Arena) throws -> Items<llvs_erasure_place> {
    try Items(places, in: arena) { place, arena in
        llvs_erasure_place(
            struct_size: UInt32(sizeOf: llvs_erasure_place.self), reach: place.reach.rawValue, reason: place.reason.rawValue, reserved: 0,
            name: try arena.copy(Array(place.name.utf8)),
            last_seen: place.lastSeen != 0 ? place.lastSeen + Version.secondsFrom1970To2001 : 0)
    }
}

final class EraseReportHandle: StructHandle<llvs_erase_report>, @unchecked Sendable {
    init(_ report: ErasureReport) throws {
        let arena = Arena()
        let places = try places(report.places, in: arena)
        try super.init(
            arena,
            llvs_erase_report(
                struct_size: UInt32(sizeOf: llvs_erase_report.self), reserved: 0, values: report.values, versions: report.versions,
                bytes: report.bytes, copies: report.copies, rewritten: report.rewritten, unread: report.unread,
                orders: arena.texts(report.orders.map(\.bytes)), order_count: report.orders.count,
                made: arena.texts(report.made.map { Array($0.description.utf8) }), made_count: report.made.count,
                waiting: arena.texts(report.waiting.map { Array($0.utf8) }), waiting_count: report.waiting.count,
                places: places.start, place_count: places.count))
    }
}

extension Arena {
    /// Copies texts.
    func texts(_ texts: [[UInt8]]) throws -> UnsafePointer<llvs_bytes> {
        let start = try array(llvs_bytes.self, texts.count)
        for (i, text) in texts.enumerated() { (start + i).initialize(to: try copy(text)) }
        return UnsafePointer(start)
    }
}

final class ErasureListHandle: StructHandle<llvs_erasure_list>, @unchecked Sendable {
    init(_ erasures: [Erasure]) throws {
        let arena = Arena()
        let items = try Items(erasures, in: arena) { erasure, arena in
            let places = try places(erasure.places, in: arena)
            return llvs_erasure(
                struct_size: UInt32(sizeOf: llvs_erasure.self), followed: erasure.isFollowed ? 1 : 0, id: try arena.copy(erasure.id.bytes),
                version: try arena.copy(Array(erasure.version.description.utf8)), made: try arena.copy(Array(erasure.made.utf8)),
                why: try arena.copy(Array(erasure.why.utf8)), values: erasure.values, state: erasure.state.rawValue,
                of_other: erasure.isOfOther ? 1 : 0, due: erasure.due > 0 ? erasure.due + Version.secondsFrom1970To2001 : 0,
                places: places.start, place_count: places.count, signatures: erasure.signatures, needed: erasure.needed)
        }
        try super.init(
            arena,
            llvs_erasure_list(struct_size: UInt32(sizeOf: llvs_erasure_list.self), reserved: 0, count: items.count, items: items.start))
    }
}

@_cdecl("llvs_store_erase") @implementation
public func llvs_store_erase(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_erase_options>!, _ control: UnsafePointer<llvs_control>!,
    _ report: StructOut<llvs_erase_report>!, _ error: ErrorOut!
) -> llvs_status {
    report?.pointee = nil
    return entry(error) {
        let out = try required(report, "report"), store = try LLVSABI.store(store)
        guard let input = try optionalStruct(options, "llvs_erase_options") else {
            throw StoreError(.invalidArgument, "The options of an erasure are NULL. They must name values.")
        }
        var query = ErasureQuery()
        query.isDryRun = input.dry_run != 0
        query.ids = try elements(input.ids, input.id_count, "llvs_erase_options.ids").map {
            try ValueID(utf8: array($0, "llvs_erase_options.ids"))
        }
        query.version = try optionalVersionID(input.version, "llvs_erase_options.version")
        query.containing = try array(input.containing, "llvs_erase_options.containing")
        if input.replacement.data != nil { query.replacement = try array(input.replacement, "llvs_erase_options.replacement") }
        query.why = try text(input.why, "llvs_erase_options.why", limit: ErasureQuery.mostWhy)
        query.signer = try array(input.signer, "llvs_erase_options.signer")
        out.pointee = try EraseReportHandle(store.erase(query, control: LLVSABI.control(control))).handedOut
    }
}

@_cdecl("llvs_erase_report_free") @implementation
public func llvs_erase_report_free(_ report: UnsafeMutablePointer<llvs_erase_report>!) { EraseReportHandle.free(report) }

@_cdecl("llvs_store_erasures") @implementation
public func llvs_store_erasures(_ store: OpaquePointer!, _ erasures: StructOut<llvs_erasure_list>!, _ error: ErrorOut!) -> llvs_status {
    erasures?.pointee = nil
    return entry(error) {
        let out = try required(erasures, "erasures"), store = try LLVSABI.store(store)
        out.pointee = try ErasureListHandle(store.erasures()).handedOut
    }
}

@_cdecl("llvs_erasure_list_free") @implementation
public func llvs_erasure_list_free(_ erasures: UnsafeMutablePointer<llvs_erasure_list>!) { ErasureListHandle.free(erasures) }

@_cdecl("llvs_store_decide_erasure") @implementation
public func llvs_store_decide_erasure(
    _ store: OpaquePointer!, _ order: llvs_bytes, _ decision: llvs_erasure_decision, _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        guard let decision = ErasureDecision(rawValue: decision) else {
            throw StoreError(
                .invalidArgument, "The decision \(decision) about an order is unknown. Use LLVS_ERASURE_FOLLOW or LLVS_ERASURE_KEEP.")
        }
        try LLVSABI.store(store).decideErasure(ValueID(utf8: array(order, "order")), to: decision)
    }
}

@_cdecl("llvs_store_set_forgetting") @implementation
public func llvs_store_set_forgetting(
    _ store: OpaquePointer!, _ policy: llvs_bytes, _ secrets: UnsafePointer<llvs_bytes>!, _ secret_count: Int, _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        let given = try elements(secrets, secret_count, "secrets").map { try array($0, "secrets") }
        try LLVSABI.store(store).setForgetting(array(policy, "policy"), secrets: given)
    }
}

@_cdecl("llvs_steward_key") @implementation
public func llvs_steward_key(_ seed: llvs_bytes, _ key: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    key?.pointee = noBuffer
    return entry(error) {
        let out = try required(key, "key")
        out.pointee = try Store.stewardKey(of: array(seed, "seed")).withUnsafeBytes(ownedBuffer)
    }
}

@_cdecl("llvs_store_sign_erasure") @implementation
public func llvs_store_sign_erasure(
    _ store: OpaquePointer!, _ order: llvs_bytes, _ signer: llvs_bytes, _ signed_order: UnsafeMutablePointer<llvs_buffer>!,
    _ error: ErrorOut!
) -> llvs_status {
    signed_order?.pointee = noBuffer
    return entry(error) {
        let out = try required(signed_order, "signed_order"), store = try LLVSABI.store(store)
        let id = try store.signErasure(ValueID(utf8: array(order, "order")), signer: array(signer, "signer"))
        out.pointee = try id.bytes.withUnsafeBytes(ownedBuffer)
    }
}

@_cdecl("llvs_store_change_stewards") @implementation
public func llvs_store_change_stewards(
    _ store: OpaquePointer!, _ policy: llvs_bytes, _ signer: llvs_bytes, _ order: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!
) -> llvs_status {
    order?.pointee = noBuffer
    return entry(error) {
        let out = try required(order, "order"), store = try LLVSABI.store(store)
        let id = try store.changeStewards(array(policy, "policy"), signer: array(signer, "signer"))
        out.pointee = try id.bytes.withUnsafeBytes(ownedBuffer)
    }
}

@_cdecl("llvs_store_forgetting") @implementation
public func llvs_store_forgetting(_ store: OpaquePointer!, _ policy: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!)
    -> llvs_status
{
    policy?.pointee = noBuffer
    return entry(error) {
        let out = try required(policy, "policy")
        out.pointee = try LLVSABI.store(store).forgetting().withUnsafeBytes(ownedBuffer)
    }
}
