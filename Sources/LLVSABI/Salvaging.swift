import CLLVS
import LLVSCoordinator

// MARK: Salvaging

final class SalvageReportHandle: StructHandle<llvs_salvage_report>, @unchecked Sendable {
    init(_ report: SalvageReport) throws {
        let arena = Arena()
        let made = try Items(report.made, in: arena) { made, arena in
            llvs_salvaged(
                struct_size: UInt32(sizeOf: llvs_salvaged.self), is_complete: made.isComplete ? 1 : 0,
                original: try arena.copy(made.original), version: try arena.copy(made.version))
        }
        let damages = try Items(report.damages, in: arena, llvs_damage.init(_:in:))
        try super.init(
            arena,
            llvs_salvage_report(
                struct_size: UInt32(sizeOf: llvs_salvage_report.self), reserved: 0, versions: report.versions, waiting: report.waiting,
                made: made.start, made_count: made.count, damages: damages.start, damage_count: damages.count))
    }
}

@_cdecl("llvs_store_salvage") @implementation
public func llvs_store_salvage(
    _ path: llvs_bytes, _ options: UnsafePointer<llvs_store_options>!, _ target: llvs_bytes,
    _ target_options: UnsafePointer<llvs_store_options>!,
    _ control: UnsafePointer<llvs_control>!, _ report: StructOut<llvs_salvage_report>!, _ error: ErrorOut!
) -> llvs_status {
    report?.pointee = nil
    return entry(error) {
        let out = try required(report, "report")
        let options = try storeOptions(options), targetOptions = try storeOptions(target_options)
        let done = try Salvage.run(
            storePath(path, options), options, into: storePath(target, targetOptions), targetOptions, control: LLVSABI.control(control))
        out.pointee = try SalvageReportHandle(done).handedOut
    }
}

@_cdecl("llvs_salvage_report_free") @implementation
public func llvs_salvage_report_free(_ report: UnsafeMutablePointer<llvs_salvage_report>!) { SalvageReportHandle.free(report) }
