import CLLVS
import Glibc
import LLVSCoordinator
import LLVSExchangeTesting
import LLVSTesting

// MARK: Conformance (llvs_testing.h)

private func write(_ result: CheckResult, _ arena: Arena) throws -> llvs_check {
    llvs_check(
        struct_size: UInt32(sizeOf: llvs_check.self), outcome: result.outcome.rawValue, name: try arena.copy(result.name),
        message: try arena.copy(result.message))
}

final class CheckReportHandle: StructHandle<llvs_check_report>, @unchecked Sendable {
    init(_ results: [CheckResult]) throws {
        let arena = Arena()
        let checks = try Items(results, in: arena, write)
        try super.init(
            arena,
            llvs_check_report(
                struct_size: UInt32(sizeOf: llvs_check_report.self), reserved: 0, checks: checks.start, check_count: checks.count,
                failures: results.count { $0.outcome == .failed }))
    }
}

@_cdecl("llvs_check_report_free") @implementation
public func llvs_check_report_free(_ report: UnsafeMutablePointer<llvs_check_report>!) { CheckReportHandle.free(report) }

/// The state of one running suite: the caller's callbacks, and what was opened for the current check.
private final class Bench {
    private let payload: UnsafeMutableRawPointer?
    private let disturbFn: llvs_disturb_fn?
    private let finishedFn: llvs_check_fn?
    /// The error that ended the suite.
    private(set) var failure: StoreError?
    private(set) var place: UInt64 = 0
    private var leftOver: [() -> Void] = []

    init(_ payload: UnsafeMutableRawPointer?, _ disturb: llvs_disturb_fn?, _ finished: llvs_check_fn?) {
        self.payload = payload; disturbFn = disturb; finishedFn = finished
    }

    /// Returns a new place, for the next check.
    func next() throws -> UInt64 {
        clear()
        if let failure { throw failure }
        place += 1
        return place
    }
    /// Closes what a failed check left open.
    func clear() {
        let left = leftOver
        leftOver = []
        // In reverse order of opening: an open object is closed before its handle is released.
        for close in left.reversed() { close() }
    }
    func closeLater(_ close: @escaping () -> Void) { leftOver.append(close) }

    func disturb() -> ((Disturbance) throws -> Void)? {
        guard let disturbFn else { return nil }
        let place = place
        return { [payload] what in
            try callHost("Disturbing place \(place)", keeping: [.unsupported]) { disturbFn(payload, place, what.rawValue, $0) }
        }
    }

    func finished(_ result: CheckResult) {
        clear()
        guard let finishedFn, failure == nil else { return }
        do {
            let arena = Arena()
            var check = try write(result, arena)
            _ = try withExtendedLifetime(arena) {
                try callHost("The callback for finished checks", keeping: [.cancelled]) { finishedFn(payload, &check, $0) }
            }
        } catch { failure = error as? StoreError ?? StoreError(.internal, "\(error)") }
    }

    /// Returns a handle from the caller's `make`. Owns it from then on, and releases it after the check.
    func make<T: Handle>(
        _ type: T.Type, _ place: UInt64,
        _ fn: (UnsafeMutableRawPointer?, UInt64, UnsafeMutablePointer<OpaquePointer?>, UnsafeMutablePointer<OpaquePointer?>) -> llvs_status
    ) throws -> T {
        var made: OpaquePointer?
        try callHost("Making the subject for place \(place)") { fn(payload, place, &made, $0) }
        return try handle(made, type, "the subject")
    }
}

private let knownTraits =
    LLVS_TRAIT_VOLATILE.rawValue | LLVS_TRAIT_EXCLUSIVE.rawValue | LLVS_TRAIT_TELLS.rawValue | LLVS_TRAIT_NO_SNAPSHOTS.rawValue

private func has(_ traits: llvs_traits, _ trait: llvs_traits_value) -> Bool { traits & trait.rawValue != 0 }

@_cdecl("llvs_check_storage") @implementation
public func llvs_check_storage(_ subject: UnsafePointer<llvs_storage_subject>!, _ report: StructOut<llvs_check_report>!, _ error: ErrorOut!)
    -> llvs_status
{
    report?.pointee = nil
    return entry(error) {
        let input = try requiredStruct(subject, "llvs_storage_subject")
        guard input.traits & ~knownTraits == 0 else { throw InputError.constant("llvs_storage_subject.traits", input.traits) }
        guard let make = input.make else { throw InputError.null("llvs_storage_subject.make") }
        let bench = Bench(input.payload, input.disturb, input.finished)
        let results = StorageConformance.check(
            only: try text(input.only, "only"),
            make: {
                let place = try bench.next()
                return StorageConformance.Subject(
                    isPersistent: !has(input.traits, LLVS_TRAIT_VOLATILE), isShared: !has(input.traits, LLVS_TRAIT_EXCLUSIVE),
                    opensReadOnly: !has(input.traits, LLVS_TRAIT_VOLATILE), isOrderly: false, disturb: bench.disturb()
                ) { readOnly in
                    let handle = try bench.make(StorageHandle.self, place) { make($0, $1, $2, $3) }
                    bench.closeLater { llvs_storage_free(handle.borrowed) }
                    let storage = try handle.claim(readOnly: readOnly)
                    bench.closeLater { try? storage.close(discarding: false) }
                    return storage
                }
            }, finished: bench.finished)
        if let failure = bench.failure { throw failure }
        if let report { report.pointee = try CheckReportHandle(results).handedOut }
    }
}

/// The common part of the suites of transports and of files.
/// - Parameter check: runs a suite, given the names to run and a function that makes a handle for a numbered place.
private func checkPlaces(
    _ subject: UnsafePointer<llvs_transport_subject>!, _ report: StructOut<llvs_check_report>!, _ error: ErrorOut!,
    _ check: (llvs_transport_subject, Bench, _ only: String, _ handle: @escaping (UInt64) throws -> TransportHandle) -> [CheckResult]
) -> llvs_status {
    report?.pointee = nil
    return entry(error) {
        let input = try requiredStruct(subject, "llvs_transport_subject")
        guard input.traits & ~knownTraits == 0 else { throw InputError.constant("llvs_transport_subject.traits", input.traits) }
        guard let make = input.make else { throw InputError.null("llvs_transport_subject.make") }
        let bench = Bench(input.payload, input.disturb, input.finished)
        let results = check(input, bench, try text(input.only, "only")) { place in
            let handle = try bench.make(TransportHandle.self, place) { make($0, $1, $2, $3) }
            bench.closeLater { llvs_transport_free(handle.borrowed) }
            return handle
        }
        if let failure = bench.failure { throw failure }
        if let report { report.pointee = try CheckReportHandle(results).handedOut }
    }
}

@_cdecl("llvs_check_transport") @implementation
public func llvs_check_transport(
    _ subject: UnsafePointer<llvs_transport_subject>!, _ report: StructOut<llvs_check_report>!, _ error: ErrorOut!
) -> llvs_status {
    checkPlaces(subject, report, error) { input, bench, only, handle in
        TransportConformance.check(
            only: only,
            make: {
                let place = try bench.next()
                return TransportConformance.Subject(
                    isShared: !has(input.traits, LLVS_TRAIT_EXCLUSIVE), hasSnapshots: !has(input.traits, LLVS_TRAIT_NO_SNAPSHOTS),
                    tells: has(input.traits, LLVS_TRAIT_TELLS), disturb: bench.disturb()
                ) {
                    let transport = try handle(place).claim()
                    bench.closeLater { transport.close() }
                    return transport
                }
            }, finished: bench.finished)
    }
}

@_cdecl("llvs_check_files") @implementation
public func llvs_check_files(
    _ subject: UnsafePointer<llvs_transport_subject>!, _ report: StructOut<llvs_check_report>!, _ error: ErrorOut!
) -> llvs_status {
    checkPlaces(subject, report, error) { input, bench, only, handle in
        RemoteFilesConformance.check(
            only: only,
            make: {
                let place = try bench.next()
                return RemoteFilesConformance.Subject(isShared: !has(input.traits, LLVS_TRAIT_EXCLUSIVE), disturb: bench.disturb()) {
                    let files = try handle(place).claimFiles()
                    bench.closeLater { files.close() }
                    return files
                }
            }, finished: bench.finished)
    }
}

// MARK: Names

private nonisolated(unsafe) let storageNames = StorageConformance.names.map { UnsafePointer(strdup($0)) }
private nonisolated(unsafe) let transportNames = TransportConformance.names.map { UnsafePointer(strdup($0)) }
private nonisolated(unsafe) let filesNames = RemoteFilesConformance.names.map { UnsafePointer(strdup($0)) }

@_cdecl("llvs_check_storage_name") @implementation
public func llvs_check_storage_name(_ index: Int) -> UnsafePointer<CChar>! {
    storageNames.indices.contains(index) ? storageNames[index] : nil
}

@_cdecl("llvs_check_transport_name") @implementation
public func llvs_check_transport_name(_ index: Int) -> UnsafePointer<CChar>! {
    transportNames.indices.contains(index) ? transportNames[index] : nil
}

@_cdecl("llvs_check_files_name") @implementation
public func llvs_check_files_name(_ index: Int) -> UnsafePointer<CChar>! {
    filesNames.indices.contains(index) ? filesNames[index] : nil
}
