import CLLVS
import LLVS

// MARK: One value in parts

/// Behind `llvs_value_reader`.
final class ValueReaderHandle: Handle, @unchecked Sendable {
    private let store: Store
    let reader: ValueReader
    init(_ store: Store, _ reader: ValueReader) { self.store = store; self.reader = reader }
    override func checkReentry() throws { try store.checkReentry() }
}

/// Hands out the reader, its size and where its bytes were stored; nothing for nil.
func write(_ reader: ValueReader?, of store: Store, to out: UnsafeMutablePointer<OpaquePointer?>, _ size: UnsafeMutablePointer<UInt64>?,
           _ stored: UnsafeMutablePointer<llvs_version_id>? = nil) {
    guard let reader else { return }
    size?.pointee = UInt64(reader.size)
    write(reader.storedVersion, to: stored)
    out.pointee = ValueReaderHandle(store, reader).owned
}

@_cdecl("llvs_store_open_value") @implementation
public func llvs_store_open_value(_ store: OpaquePointer!, _ id: llvs_bytes, _ at: llvs_bytes, _ reader: HandleOut!, _ size: UnsafeMutablePointer<UInt64>!,
                                  _ stored_version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!) -> llvs_status {
    reader?.pointee = nil
    size?.pointee = 0
    write(nil, to: stored_version)
    return entry(error) {
        let out = try required(reader, "reader")
        let store = try LLVSABI.store(store)
        write(try store.openValue(valueID(id, "id"), at: versionID(at, "at")), of: store, to: out, size, stored_version)
    }
}

@_cdecl("llvs_store_open_value_by_reference") @implementation
public func llvs_store_open_value_by_reference(_ store: OpaquePointer!, _ id: llvs_bytes, _ stored_version: llvs_bytes, _ reader: HandleOut!,
                                               _ size: UnsafeMutablePointer<UInt64>!, _ error: ErrorOut!) -> llvs_status {
    reader?.pointee = nil
    size?.pointee = 0
    return entry(error) {
        let out = try required(reader, "reader")
        let store = try LLVSABI.store(store)
        let reference = Value.Reference(id: try valueID(id, "id"), version: try versionID(stored_version, "stored_version"))
        write(try store.openValue(reference), of: store, to: out, size)
    }
}

@_cdecl("llvs_value_reader_read") @implementation
public func llvs_value_reader_read(_ reader: OpaquePointer!, _ offset: UInt64, _ buffer: UnsafeMutableRawPointer!, _ capacity: Int,
                                   _ size: UnsafeMutablePointer<Int>!, _ error: ErrorOut!) -> llvs_status {
    size?.pointee = 0
    return entry(error) {
        let out = try required(size, "size")
        let reader = try handle(reader, ValueReaderHandle.self, "reader").reader
        guard buffer != nil || capacity == 0 else { throw InputError.nullWithSize("buffer", capacity) }
        guard capacity >= 0 else { throw InputError.tooLarge("capacity", capacity, Int.max) }
        out.pointee = try reader.read(at: Int(clamping: offset), into: UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
    }
}

@_cdecl("llvs_value_reader_free") @implementation
public func llvs_value_reader_free(_ reader: OpaquePointer!) { free(reader, ValueReaderHandle.self, leadsToStore: true) }
