import CLLVS
import LLVSCoordinator

// MARK: Changes and differences

/// Behind `llvs_change_cursor`.
final class ChangeCursor: Handle, @unchecked Sendable {
    let pages: ChangePages
    init(_ pages: ChangePages) { self.pages = pages }
    override func checkReentry() throws { try pages.store.checkReentry() }
}

private func cursor(_ store: OpaquePointer?, _ out: HandleOut?, _ error: ErrorOut?, _ find: (Store) throws -> [Store.ChangeSummary])
    -> llvs_status
{
    out?.pointee = nil
    return entry(error) {
        let out = try required(out, "cursor")
        let store = try LLVSABI.store(store)
        out.pointee = ChangeCursor(ChangePages(store, try find(store))).owned
    }
}

@_cdecl("llvs_store_changes") @implementation
public func llvs_store_changes(
    _ store: OpaquePointer!, _ version: llvs_bytes, _ range: UnsafePointer<llvs_range>!, _ control: UnsafePointer<llvs_control>!,
    _ cursor: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    LLVSABI.cursor(store, cursor, error) {
        try $0.recordedChanges(madeIn: versionID(version, "version"), in: page(range).whole, control: LLVSABI.control(control))
    }
}

@_cdecl("llvs_store_differences") @implementation
public func llvs_store_differences(
    _ store: OpaquePointer!, _ from: llvs_bytes, _ to: llvs_bytes, _ range: UnsafePointer<llvs_range>!,
    _ control: UnsafePointer<llvs_control>!, _ cursor: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    LLVSABI.cursor(store, cursor, error) {
        try $0.differences(from: versionID(from, "from"), to: versionID(to, "to"), in: page(range).whole, control: LLVSABI.control(control))
    }
}

@_cdecl("llvs_change_cursor_count") @implementation
public func llvs_change_cursor_count(_ cursor: OpaquePointer!) -> Int { peek(cursor, ChangeCursor.self)?.pages.changes.count ?? 0 }

@_cdecl("llvs_change_cursor_next") @implementation
public func llvs_change_cursor_next(
    _ cursor: OpaquePointer!, _ limit: Int, _ with_data: llvs_bool, _ changes: StructOut<llvs_change_list>!, _ error: ErrorOut!
) -> llvs_status {
    changes?.pointee = nil
    return entry(error) {
        let out = try required(changes, "changes")
        let pages = try handle(cursor, ChangeCursor.self, "cursor").pages
        out.pointee = try pages.next(pageLimit(limit), withData: flag(with_data, "with_data")) { try ChangeList($0, $1).handedOut }
    }
}

@_cdecl("llvs_change_cursor_free") @implementation
public func llvs_change_cursor_free(_ cursor: OpaquePointer!) { free(cursor, ChangeCursor.self, leadsToStore: true) }
