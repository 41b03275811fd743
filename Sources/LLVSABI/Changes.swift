import CLLVS
import LLVS

// MARK: Changes and differences

/// Behind `llvs_change_cursor`.
final class ChangeCursor: Handle, @unchecked Sendable {
    private let store: Store
    let changes: [Store.ChangeSummary]
    private var position = 0
    /// After this many bytes of data a page ends.
    private static let byteLimit = 16 << 20
    init(_ store: Store, _ changes: [Store.ChangeSummary]) { self.store = store; self.changes = changes }
    override func checkReentry() throws { try store.checkReentry() }

    /// The next page; nil at the end.
    func next(_ limit: Int, withData: Bool) throws -> ChangeList? {
        // An ended cursor of a closed store is closed, too.
        guard position < changes.count else { try store.requireOpen(); return nil }
        let page = changes[position..<min(changes.count - position, limit) + position]
        let batch = withData ? try store.batch(page, byteLimit: ChangeCursor.byteLimit) : nil
        let list = try ChangeList(page.prefix(batch?.count ?? page.count), batch)
        position += list.contents.pointee.count
        return list
    }
}

private func cursor(_ store: OpaquePointer?, _ out: HandleOut?, _ error: ErrorOut?, _ find: (Store) throws -> [Store.ChangeSummary])
    -> llvs_status
{
    out?.pointee = nil
    return entry(error) {
        let out = try required(out, "cursor")
        let store = try LLVSABI.store(store)
        out.pointee = ChangeCursor(store, try find(store)).owned
    }
}

@_cdecl("llvs_store_changes") @implementation
public func llvs_store_changes(
    _ store: OpaquePointer!, _ version: llvs_bytes, _ range: UnsafePointer<llvs_range>!, _ control: UnsafePointer<llvs_control>!,
                               _ cursor: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    LLVSABI.cursor(store, cursor, error) {
        try $0.recordedChanges(madeIn: versionID(version, "version"), in: Page(range).whole, LLVSABI.control(control))
    }
}

@_cdecl("llvs_store_differences") @implementation
public func llvs_store_differences(_ store: OpaquePointer!, _ from: llvs_bytes, _ to: llvs_bytes, _ range: UnsafePointer<llvs_range>!,
                                   _ control: UnsafePointer<llvs_control>!, _ cursor: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    LLVSABI.cursor(store, cursor, error) {
        try $0.differences(from: versionID(from, "from"), to: versionID(to, "to"), in: Page(range).whole, LLVSABI.control(control))
    }
}

@_cdecl("llvs_change_cursor_count") @implementation
public func llvs_change_cursor_count(_ cursor: OpaquePointer!) -> Int { peek(cursor, ChangeCursor.self)?.changes.count ?? 0 }

@_cdecl("llvs_change_cursor_next") @implementation
public func llvs_change_cursor_next(
    _ cursor: OpaquePointer!, _ limit: Int, _ with_data: llvs_bool, _ changes: StructOut<llvs_change_list>!, _ error: ErrorOut!
) -> llvs_status {
    changes?.pointee = nil
    return entry(error) {
        let out = try required(changes, "changes")
        out.pointee = try handle(cursor, ChangeCursor.self, "cursor").next(pageLimit(limit), withData: flag(with_data, "with_data"))?
            .handedOut
    }
}

@_cdecl("llvs_change_cursor_free") @implementation
public func llvs_change_cursor_free(_ cursor: OpaquePointer!) { free(cursor, ChangeCursor.self, leadsToStore: true) }
