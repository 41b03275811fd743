import CLLVS
import LLVSCoordinator

// MARK: Making versions

/// The sizes before sources, and before a timestamp was appended.
let earlierSizesOfVersionOptions = [56, 80]

/// The options of a new version, converted for the engine.
struct VersionSettings {
    var id: VersionID?
    var branch = noBytes
    var metadata = Metadata()
    var sources: [ValueSource] = []
    /// Seconds since 2001-01-01 UTC.
    var timestamp: Double?
    var expected: VersionID?
    var merges = false
}

func versionOptions(_ input: UnsafePointer<llvs_version_options>?) throws -> VersionSettings {
    guard let input = try optionalStruct(input, "llvs_version_options", earlierSizes: earlierSizesOfVersionOptions) else {
        return VersionSettings()
    }
    return VersionSettings(
        id: try optionalVersionID(input.id, "id"), branch: input.branch,
        metadata: try metadata(input.metadata, input.metadata_count, branch: input.branch),
        sources: try sources(input.sources, input.source_count, input.source_size),
        timestamp: input.timestamp == 0 ? nil : input.timestamp - Version.secondsFrom1970To2001,
        expected: try optionalVersionID(input.expected, "expected"), merges: try flag(input.merges, "merges"))
}

private func sources(_ start: UnsafePointer<llvs_value_source>?, _ count: Int, _ size: Int) throws -> [ValueSource] {
    guard count >= 0, count <= Limits.changesPerVersion else { throw InputError.tooLarge("source_count", count, Limits.changesPerVersion) }
    guard count > 0 else { return [] }
    guard let start else { throw InputError.nullWithSize("sources", count) }
    var made: [ValueSource] = []
    for i in 0..<count {
        // The size is checked with the first element, before it is used as a stride.
        made.append(try source(element(UnsafeRawPointer(start) + i * size, size, llvs_value_source.self, "llvs_value_source")))
    }
    return made
}

private func source(_ input: llvs_value_source) throws -> ValueSource {
    let id = try valueID(input.id, "llvs_value_source.id")
    guard let read = input.read else { throw InputError.null("llvs_value_source.read") }
    guard input.size <= UInt64(Limits.valueSize) else {
        throw InputError.tooLarge("llvs_value_source.size", Int(clamping: input.size), Limits.valueSize)
    }
    return ValueSource(id: id, size: input.size == 0 ? nil : Int(input.size)) { buffer in
        try readHost("Reading the value of \"\(id)\"", keeping: [.io, .cancelled], read, input.payload, into: buffer)
    }
}

@_cdecl("llvs_store_make_version") @implementation
public func llvs_store_make_version(
    _ store: OpaquePointer!, _ predecessor: llvs_bytes, _ changes: UnsafePointer<llvs_change>!, _ change_count: Int, _ change_size: Int,
    _ options: UnsafePointer<llvs_version_options>!, _ id: UnsafeMutablePointer<llvs_version_id>!, _ version: StructOut<llvs_version_list>!,
    _ error: ErrorOut!
) -> llvs_status {
    version?.pointee = nil
    let status = entry(error) {
        let store = try handle(store, StoreHandle.self, "store").store
        let predecessor = try optionalVersionID(predecessor, "predecessor")
        let options = try versionOptions(options)
        guard options.expected == nil, !options.merges else {
            throw StoreError(
                .invalidArgument,
                "A version that is made in a store has its predecessor as base, so it takes neither `expected` nor `merges`. Save it by "
                    + "a coordinator, or leave them out.")
        }
        let made = try withChanges(changes, change_count, change_size) {
            try store.makeVersion(
                basedOn: predecessor, borrowing: $0, reading: options.sources, metadata: options.metadata, id: options.id,
                timestamp: options.timestamp)
        }
        write(made.id, to: id)
        if let version { version.pointee = try VersionList([made]).handedOut }
    }
    // A caller may pass the same memory for `predecessor` and `id`. Then the old id stays if no version was made.
    if status != 0, !isWithin(predecessor, id) { write(nil, to: id) }
    return status
}

/// Returns whether input bytes lie in the memory of an output.
private func isWithin(_ input: llvs_bytes, _ out: UnsafeMutablePointer<llvs_version_id>?) -> Bool {
    guard let out, let data = input.data else { return false }
    let start = UInt(bitPattern: out)
    return (start..<start + UInt(MemoryLayout<llvs_version_id>.size)).contains(UInt(bitPattern: data))
}
