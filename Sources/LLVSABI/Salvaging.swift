import CLLVS
import LLVS

// MARK: Salvaging

final class SalvageReportHandle: ListHandle<llvs_salvaged>, @unchecked Sendable {
    let report: SalvageReport
    let damages: DamageList
    init(_ report: SalvageReport) throws {
        self.report = report
        damages = try DamageList(report.damages)
        try super.init(report.made) { made, arena in
            llvs_salvaged(
                struct_size: UInt32(MemoryLayout<llvs_salvaged>.size), is_complete: made.isComplete ? 1 : 0,
                original: try arena.copy(made.original), version: try arena.copy(made.version))
        }
    }
}

@_cdecl("llvs_store_salvage") @implementation
public func llvs_store_salvage(
    _ path: llvs_bytes, _ options: UnsafePointer<llvs_store_options>!, _ target: llvs_bytes, _ target_options: UnsafePointer<llvs_store_options>!,
    _ control: UnsafePointer<llvs_control>!, _ report: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    report?.pointee = nil
    return entry(error) {
        let out = try required(report, "report")
        let options = try storeOptions(options), targetOptions = try storeOptions(target_options)
        let done = try Salvage.run(
            storePath(path, options), options, into: storePath(target, targetOptions), targetOptions, LLVSABI.control(control))
        out.pointee = try SalvageReportHandle(done).owned
    }
}

@_cdecl("llvs_salvage_report_versions") @implementation
public func llvs_salvage_report_versions(_ report: OpaquePointer!) -> UInt64 { peek(report, SalvageReportHandle.self)?.report.versions ?? 0 }

@_cdecl("llvs_salvage_report_waiting") @implementation
public func llvs_salvage_report_waiting(_ report: OpaquePointer!) -> UInt64 { peek(report, SalvageReportHandle.self)?.report.waiting ?? 0 }

@_cdecl("llvs_salvage_report_made_count") @implementation
public func llvs_salvage_report_made_count(_ report: OpaquePointer!) -> Int { peek(report, SalvageReportHandle.self)?.count ?? 0 }

@_cdecl("llvs_salvage_report_made_at") @implementation
public func llvs_salvage_report_made_at(_ report: OpaquePointer!, _ index: Int) -> UnsafePointer<llvs_salvaged>! { peek(report, SalvageReportHandle.self)?.at(index) }

@_cdecl("llvs_salvage_report_damage_count") @implementation
public func llvs_salvage_report_damage_count(_ report: OpaquePointer!) -> Int { peek(report, SalvageReportHandle.self)?.damages.count ?? 0 }

@_cdecl("llvs_salvage_report_damage_at") @implementation
public func llvs_salvage_report_damage_at(_ report: OpaquePointer!, _ index: Int) -> UnsafePointer<llvs_damage>! { peek(report, SalvageReportHandle.self)?.damages.at(index) }

@_cdecl("llvs_salvage_report_free") @implementation
public func llvs_salvage_report_free(_ report: OpaquePointer!) { free(report, SalvageReportHandle.self, leadsToStore: false) }
