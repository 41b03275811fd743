import CLLVS
import LLVS

// MARK: Making versions

/// What a new version carries, as the engine takes it.
func versionOptions(_ input: UnsafePointer<llvs_version_options>?) throws -> (id: VersionID?, branch: llvs_bytes, metadata: Metadata) {
    guard let input = try optionalStruct(input, "llvs_version_options") else { return (nil, noBytes, Metadata()) }
    guard input.reserved == 0 else { throw InputError.reserved("llvs_version_options") }
    return (try optionalVersionID(input.id, "id"), input.branch, try metadata(input.metadata, input.metadata_count, branch: input.branch))
}

@_cdecl("llvs_store_make_version") @implementation
public func llvs_store_make_version(
    _ store: OpaquePointer!, _ predecessor: llvs_bytes, _ changes: UnsafePointer<llvs_change>!, _ change_count: Int, _ change_size: Int,
    _ options: UnsafePointer<llvs_version_options>!, _ id: UnsafeMutablePointer<llvs_version_id>!, _ version: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    write(nil, to: id)
    version?.pointee = nil
    return entry(error) {
        let store = try handle(store, StoreHandle.self, "store").store
        let predecessor = try optionalVersionID(predecessor, "predecessor")
        let options = try versionOptions(options)
        let made = try withChanges(changes, change_count, change_size) {
            try store.makeVersion(basedOn: predecessor, borrowing: $0, metadata: options.metadata, id: options.id)
        }
        write(made.id, to: id)
        if let version { version.pointee = try VersionList([made]).owned }
    }
}
