import CLLVS
import LLVSCoordinator

// MARK: Versions, values and changes as lists

final class VersionList: StructHandle<llvs_version_list>, @unchecked Sendable {
    /// - Parameter changes: for a query of a value, the change to it in each version.
    init(_ versions: [Version], changes: [Value.Change.Kind?] = []) throws {
        let arena = Arena()
        var row = 0
        let items = try Items(versions, in: arena) { version, arena in
            defer { row += 1 }
            return try llvs_version_info(version, change: row < changes.count ? changes[row] : nil, in: arena)
        }
        try super.init(
            arena,
            llvs_version_list(struct_size: UInt32(sizeOf: llvs_version_list.self), reserved: 0, count: items.count, items: items.start))
    }
}

extension llvs_version_info {
    init(_ version: Version, change: Value.Change.Kind? = nil, in arena: Arena) throws {
        let predecessors = try version.predecessors.prefix(2).map { try arena.copy($0) }
        var metadata: UnsafeMutablePointer<llvs_metadata_entry>?
        let entries = version.metadata.entries
        if !entries.isEmpty {
            let start = try arena.array(llvs_metadata_entry.self, entries.count)
            for (i, entry) in entries.enumerated() {
                (start + i).initialize(to: llvs_metadata_entry(key: try arena.copy(entry.key), value: try arena.copy(entry.value)))
            }
            metadata = start
        }
        self.init(
            struct_size: UInt32(sizeOf: llvs_version_info.self), predecessor_count: UInt32(predecessors.count),
            id: try arena.copy(version.id),
            predecessors: (predecessors.first ?? noBytes, predecessors.count > 1 ? predecessors[1] : noBytes),
            timestamp: version.timestamp + Version.secondsFrom1970To2001, value_data_size: version.valueDataSize,
            metadata: UnsafePointer(metadata), metadata_count: entries.count,
            branch: try version.branch.map { try arena.copy($0) } ?? noBytes, change: change.map { UInt32($0.rawValue) } ?? 0, reserved: 0,
            made_at: version.madeAt + Version.secondsFrom1970To2001)
    }
}

/// The rows of a batch, which it retains.
final class ValueList: StructHandle<llvs_value_list>, @unchecked Sendable {
    private let batch: ValueBatch

    init(_ batch: ValueBatch) throws {
        self.batch = batch
        let ids = batch.ids, data = batch.data, versions = batch.versions
        var version = -1, text = noBytes
        let arena = Arena()
        let items = try Items(batch.rows, in: arena) { row, _ in
            if let stored = row.version, stored != version { (version, text) = (stored, llvs_bytes(versions, batch.version(stored))) }
            return llvs_value_info(
                struct_size: UInt32(sizeOf: llvs_value_info.self), present: row.version == nil ? 0 : 1, id: llvs_bytes(ids, row.id),
                data: batch.hasData && row.version != nil && !row.isForgotten ? llvs_bytes(data, row.data) : noBytes,
                stored_version: row.version == nil ? noBytes : text, state: row.state, reserved: 0)
        }
        try super.init(
            arena, llvs_value_list(struct_size: UInt32(sizeOf: llvs_value_list.self), reserved: 0, count: items.count, items: items.start))
    }
}

extension ValueBatch.Row {
    var state: llvs_value_state {
        (isErased ? LLVS_VALUE_ERASED : isForgotten ? LLVS_VALUE_FORGOTTEN : LLVS_VALUE_HERE).rawValue
    }
}

extension llvs_bytes {
    /// A range of a piece of memory.
    @inline(__always)
    fileprivate init(_ piece: UnsafeRawBufferPointer, _ range: Range<Int>) {
        self.init(data: piece.baseAddress.map { ($0 + range.lowerBound).assumingMemoryBound(to: UInt8.self) }, size: range.count)
    }
}

/// Changes, and their bytes if requested: rows of a batch, which it retains.
final class ChangeList: StructHandle<llvs_change_list>, @unchecked Sendable {
    private let batch: ValueBatch?

    init(_ changes: ArraySlice<Store.ChangeSummary>, _ batch: ValueBatch?) throws {
        self.batch = batch
        var row = 0
        // Most changes of a page were stored by few versions.
        var last: (version: VersionID, text: llvs_bytes)?
        let arena = Arena()
        let items = try Items(changes, in: arena) { change, arena in
            defer { row += 1 }
            var text = noBytes
            if let version = change.reference?.version {
                if let last, last.version == version {
                    text = last.text
                } else {
                    text = try arena.copy(version)
                    last = (version, text)
                }
            }
            var data = noBytes
            let isForgotten = batch?.rows[row].isForgotten ?? false
            if let batch, batch.rows[row].version != nil, !isForgotten { data = llvs_bytes(batch.data, batch.rows[row].data) }
            return llvs_change_info(
                struct_size: UInt32(sizeOf: llvs_change_info.self), kind: UInt32(change.kind.rawValue),
                id: try batch.map { llvs_bytes($0.ids, $0.rows[row].id) } ?? arena.copy(change.id.bytes), data: data, stored_version: text,
                data_size: change.size, state: batch?.rows[row].state ?? LLVS_VALUE_HERE.rawValue, reserved: 0)
        }
        try super.init(
            arena, llvs_change_list(struct_size: UInt32(sizeOf: llvs_change_list.self), reserved: 0, count: items.count, items: items.start)
        )
    }
}

@_cdecl("llvs_version_list_free") @implementation
public func llvs_version_list_free(_ list: UnsafeMutablePointer<llvs_version_list>!) { VersionList.free(list) }

@_cdecl("llvs_value_list_free") @implementation
public func llvs_value_list_free(_ list: UnsafeMutablePointer<llvs_value_list>!) { ValueList.free(list) }

@_cdecl("llvs_change_list_free") @implementation
public func llvs_change_list_free(_ list: UnsafeMutablePointer<llvs_change_list>!) { ChangeList.free(list) }
