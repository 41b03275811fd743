import CLLVS
import LLVSCoordinator

// MARK: Reading one value in parts

/// Behind `llvs_value_reader`.
final class ValueReaderHandle: Handle, @unchecked Sendable {
    private let store: Store
    let reader: ValueReader
    init(_ store: Store, _ reader: ValueReader) { self.store = store; self.reader = reader }
    override func checkReentry() throws { try store.checkReentry() }
}

@_cdecl("llvs_store_open_value") @implementation
public func llvs_store_open_value(
    _ store: OpaquePointer!, _ id: llvs_bytes, _ at: llvs_bytes, _ reader: HandleOut!, _ size: UnsafeMutablePointer<UInt64>!,
    _ stored_version: UnsafeMutablePointer<llvs_version_id>!, _ error: ErrorOut!
) -> llvs_status {
    reader?.pointee = nil
    size?.pointee = 0
    write(nil, to: stored_version)
    return entry(error) {
        let out = try required(reader, "reader")
        let store = try LLVSABI.store(store)
        guard let opened = try store.openValue(valueID(id, "id"), at: versionID(at, "at")) else { return }
        size?.pointee = UInt64(opened.size)
        write(opened.storedVersion, to: stored_version)
        out.pointee = ValueReaderHandle(store, opened).owned
    }
}

@_cdecl("llvs_value_reader_read") @implementation
public func llvs_value_reader_read(
    _ reader: OpaquePointer!, _ offset: UInt64, _ buffer: UnsafeMutableRawPointer!, _ capacity: Int,
    _ size: UnsafeMutablePointer<Int>!, _ error: ErrorOut!
) -> llvs_status {
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
