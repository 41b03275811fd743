import CLLVS
import LLVSCoordinator

// MARK: History

/// Runs a call that returns a list of versions.
private func versions(
    _ store: OpaquePointer?, _ out: StructOut<llvs_version_list>?, _ error: ErrorOut?, _ find: (Store) throws -> [Version]
) -> llvs_status {
    out?.pointee = nil
    return entry(error) {
        let out = try required(out, "the list of versions")
        out.pointee = try VersionList(find(LLVSABI.store(store))).handedOut
    }
}

/// Runs a call that returns a list of one version, or NULL.
private func version(_ store: OpaquePointer?, _ out: StructOut<llvs_version_list>?, _ error: ErrorOut?, _ find: (Store) throws -> Version?)
    -> llvs_status
{
    out?.pointee = nil
    return entry(error) {
        let out = try required(out, "the version")
        if let found = try find(LLVSABI.store(store)) { out.pointee = try VersionList([found]).handedOut }
    }
}

func versionIDs(_ start: UnsafePointer<llvs_bytes>?, _ count: Int, _ name: StaticString) throws -> [VersionID] {
    try elements(start, count, name).map { try versionID($0, name) }
}

@_cdecl("llvs_store_version") @implementation
public func llvs_store_version(_ store: OpaquePointer!, _ id: llvs_bytes, _ version: StructOut<llvs_version_list>!, _ error: ErrorOut!)
    -> llvs_status
{
    LLVSABI.version(store, version, error) { try $0.version(versionID(id, "id")) }
}

@_cdecl("llvs_store_versions") @implementation
public func llvs_store_versions(
    _ store: OpaquePointer!, _ ids: UnsafePointer<llvs_bytes>!, _ count: Int, _ versions: StructOut<llvs_version_list>!, _ error: ErrorOut!
) -> llvs_status {
    LLVSABI.versions(store, versions, error) { store in
        try versionIDs(ids, count, "ids").map(store.knownVersion)
    }
}

@_cdecl("llvs_store_heads") @implementation
public func llvs_store_heads(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_heads_options>!, _ heads: StructOut<llvs_version_list>!, _ error: ErrorOut!
) -> llvs_status {
    versions(store, heads, error) { store in
        guard let input = try optionalStruct(options, "llvs_heads_options") else { return try store.heads() }
        guard input.reserved == 0 else { throw InputError.reserved("llvs_heads_options") }
        let limit = input.limit == 0 ? Int.max : Int(clamping: input.limit), control = try LLVSABI.control(input.control)
        if input.branch.size != 0 {
            return try store.heads(onBranch: text(input.branch, "branch"), limit: limit, control: control)
        }
        return try limit == 1 ? store.mostRecentHead().map { [$0] } ?? [] : store.heads(limit: limit, control: control)
    }
}

@_cdecl("llvs_store_successors") @implementation
public func llvs_store_successors(
    _ store: OpaquePointer!, _ id: llvs_bytes, _ control: UnsafePointer<llvs_control>!,
    _ successors: StructOut<llvs_version_list>!, _ error: ErrorOut!
) -> llvs_status {
    versions(store, successors, error) { try $0.successors(of: versionID(id, "id"), control: LLVSABI.control(control)) }
}

@_cdecl("llvs_store_is_ancestor") @implementation
public func llvs_store_is_ancestor(
    _ store: OpaquePointer!, _ ancestor: llvs_bytes, _ descendant: llvs_bytes, _ control: UnsafePointer<llvs_control>!,
    _ is_ancestor: UnsafeMutablePointer<llvs_bool>!, _ error: ErrorOut!
) -> llvs_status {
    is_ancestor?.pointee = 0
    return entry(error) {
        let out = try required(is_ancestor, "is_ancestor")
        out.pointee =
            try LLVSABI.store(store).isAncestor(
                versionID(ancestor, "ancestor"), of: versionID(descendant, "descendant"), control: LLVSABI.control(control)) ? 1 : 0
    }
}

@_cdecl("llvs_store_merge_bases") @implementation
public func llvs_store_merge_bases(
    _ store: OpaquePointer!, _ a: llvs_bytes, _ b: llvs_bytes, _ control: UnsafePointer<llvs_control>!,
    _ bases: StructOut<llvs_version_list>!, _ error: ErrorOut!
) -> llvs_status {
    versions(store, bases, error) { store in
        try store.mergeBases(versionID(a, "a"), versionID(b, "b"), control: LLVSABI.control(control)).map(store.knownVersion)
    }
}

@_cdecl("llvs_store_version_at") @implementation
public func llvs_store_version_at(
    _ store: OpaquePointer!, _ time: Double, _ head: llvs_bytes, _ control: UnsafePointer<llvs_control>!,
    _ version: StructOut<llvs_version_list>!, _ error: ErrorOut!
) -> llvs_status {
    LLVSABI.version(store, version, error) {
        try $0.version(at: time - Version.secondsFrom1970To2001, head: optionalVersionID(head, "head"), control: LLVSABI.control(control))
    }
}

@_cdecl("llvs_store_versions_of") @implementation
public func llvs_store_versions_of(
    _ store: OpaquePointer!, _ value_id: llvs_bytes, _ control: UnsafePointer<llvs_control>!,
    _ versions: StructOut<llvs_version_list>!, _ error: ErrorOut!
) -> llvs_status {
    LLVSABI.versions(store, versions, error) { try $0.versions(of: valueID(value_id, "value_id"), control: LLVSABI.control(control)) }
}

// MARK: Walking

/// Behind `llvs_history_cursor`.
final class HistoryCursor: Handle, @unchecked Sendable {
    let pages: HistoryPages
    init(_ pages: HistoryPages) { self.pages = pages }
    override func checkReentry() throws { try pages.store.checkReentry() }
}

private func historyQuery(_ input: UnsafePointer<llvs_history_options>?) throws -> HistoryQuery {
    guard let input = try optionalStruct(input, "llvs_history_options") else { return HistoryQuery() }
    guard input.reserved == 0 else { throw InputError.reserved("llvs_history_options") }
    return HistoryQuery(
        from: try versionIDs(input.from, input.from_count, "llvs_history_options.from"),
        hiding: try versionIDs(input.hiding, input.hiding_count, "llvs_history_options.hiding"),
        branch: input.branch.size == 0 ? nil : try text(input.branch, "llvs_history_options.branch"),
        value: input.value_id.size == 0 ? nil : try valueID(input.value_id, "llvs_history_options.value_id"),
        prefix: try array(input.prefix, "llvs_history_options.prefix"))
}

@_cdecl("llvs_store_history") @implementation
public func llvs_store_history(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_history_options>!, _ control: UnsafePointer<llvs_control>!,
    _ cursor: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    cursor?.pointee = nil
    return entry(error) {
        let out = try required(cursor, "cursor")
        let store = try LLVSABI.store(store)
        out.pointee = HistoryCursor(try HistoryPages(store, historyQuery(options), LLVSABI.control(control))).owned
    }
}

@_cdecl("llvs_history_cursor_next") @implementation
public func llvs_history_cursor_next(
    _ cursor: OpaquePointer!, _ limit: Int, _ control: UnsafePointer<llvs_control>!, _ versions: StructOut<llvs_version_list>!,
    _ error: ErrorOut!
) -> llvs_status {
    versions?.pointee = nil
    return entry(error) {
        let out = try required(versions, "versions")
        let pages = try handle(cursor, HistoryCursor.self, "cursor").pages
        out.pointee = try pages.next(pageLimit(limit), LLVSABI.control(control)) { page in
            try VersionList(page.map(\.version), changes: page.map(\.kind)).handedOut
        }
    }
}

@_cdecl("llvs_history_cursor_free") @implementation
public func llvs_history_cursor_free(_ cursor: OpaquePointer!) { free(cursor, HistoryCursor.self, leadsToStore: true) }
