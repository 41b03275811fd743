import CLLVS
import LLVSCoordinator

// MARK: Forgetting

final class ForgetReportHandle: StructHandle<llvs_forget_report>, @unchecked Sendable {
    init(_ report: ForgetReport) throws {
        let arena = Arena()
        let rows = try Items(report.rows, in: arena) { row, _ in
            llvs_forget_row(
                struct_size: UInt32(sizeOf: llvs_forget_row.self), rule: row.rule.rawValue, values: row.values, bytes: row.bytes)
        }
        try super.init(
            arena,
            llvs_forget_report(
                struct_size: UInt32(sizeOf: llvs_forget_report.self), reserved: 0, values: report.values, versions: report.versions,
                bytes: report.bytes, rewritten: report.rewritten, rows: rows.start, row_count: rows.count,
                waiting: arena.texts(report.waiting.map { Array($0.utf8) }), waiting_count: report.waiting.count))
    }
}

@_cdecl("llvs_store_forget") @implementation
public func llvs_store_forget(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_forget_options>!, _ report: StructOut<llvs_forget_report>!, _ error: ErrorOut!
) -> llvs_status {
    report?.pointee = nil
    return entry(error) {
        let out = try required(report, "report"), store = try LLVSABI.store(store)
        var query = ForgetQuery(), control = OperationControl()
        if let input = try optionalStruct(options, "llvs_forget_options") {
            query.isDryRun = input.dry_run != 0
            let policy = try array(input.policy, "llvs_forget_options.policy")
            if !policy.isEmpty { query.policy = policy }
            control = try LLVSABI.control(input.control)
        }
        out.pointee = try ForgetReportHandle(store.forget(query, control: control)).handedOut
    }
}

@_cdecl("llvs_forget_report_free") @implementation
public func llvs_forget_report_free(_ report: UnsafeMutablePointer<llvs_forget_report>!) { ForgetReportHandle.free(report) }
