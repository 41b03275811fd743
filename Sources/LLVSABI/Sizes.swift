import CLLVS
import LLVSCoordinator

// MARK: Sizes

final class SizeReportHandle: StructHandle<llvs_size_report>, @unchecked Sendable {
    init(_ report: SizeReport) throws {
        let arena = Arena()
        let rows = try Items(report.rows, in: arena) { row, arena in
            llvs_size_row(
                struct_size: UInt32(sizeOf: llvs_size_row.self), group: row.group.rawValue, name: try arena.copy(row.name),
                combined: row.combined, values: row.counts.values, value_bytes: row.counts.valueBytes, bytes: row.counts.bytes,
                current_bytes: row.counts.currentBytes, past_bytes: row.counts.pastBytes)
        }
        let total = report.total
        try super.init(
            arena,
            llvs_size_report(
                struct_size: UInt32(sizeOf: llvs_size_report.self), reserved: 0, versions: report.versions, unread: report.unread,
                values: total.values, value_bytes: total.valueBytes, bytes: total.bytes, current_bytes: total.currentBytes,
                past_bytes: total.pastBytes, rows: rows.start, row_count: rows.count))
    }
}

@_cdecl("llvs_store_size") @implementation
public func llvs_store_size(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_size_options>!, _ report: StructOut<llvs_size_report>!, _ error: ErrorOut!
) -> llvs_status {
    report?.pointee = nil
    return entry(error) {
        let out = try required(report, "report"), store = try LLVSABI.store(store)
        var query = SizeQuery(), control = OperationControl()
        if let input = try optionalStruct(options, "llvs_size_options") {
            query.prefix = try array(input.prefix, "llvs_size_options.prefix")
            if input.depth != 0 { query.depth = input.depth == .max ? SizeQuery.eachID : Int(input.depth) }
            if input.limit != 0 { query.limit = Int(clamping: input.limit) }
            control = try LLVSABI.control(input.control)
        }
        out.pointee = try SizeReportHandle(store.size(query, control: control)).handedOut
    }
}

@_cdecl("llvs_size_report_free") @implementation
public func llvs_size_report_free(_ report: UnsafeMutablePointer<llvs_size_report>!) { SizeReportHandle.free(report) }
