import CLLVS
import LLVSCoordinator

// MARK: Finding values

/// Behind `llvs_index`.
final class IndexHandle: Handle, @unchecked Sendable {
    let index: ValueIndex
    init(_ index: ValueIndex) { self.index = index }
    override func checkReentry() throws { try index.store.checkReentry() }
}

private func index(_ pointer: OpaquePointer?) throws -> ValueIndex { try handle(pointer, IndexHandle.self, "index").index }

@_cdecl("llvs_index_open") @implementation
public func llvs_index_open(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_index_options>!, _ index: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    index?.pointee = nil
    return entry(error) {
        let out = try required(index, "index")
        let store = try LLVSABI.store(store), input = try requiredStruct(options, "llvs_index_options")
        let coordinator = try input.coordinator.map { try openCoordinator($0) }
        let name = try optionalText(input.name, "name"), definition = try rawBytes(input.definition, "definition")
        let isWarm = try flag(input.warm, "warm")
        out.pointee = IndexHandle(try ValueIndex(store, named: name, definition: definition, of: coordinator, isWarm: isWarm)).owned
    }
}

/// Behind `llvs_index_keys`, while the callback runs.
final class IndexKeysHandle: Handle, @unchecked Sendable {
    // Sendable: used only by the callback's thread.
    let keys: IndexKeys
    init(_ keys: IndexKeys) { self.keys = keys }
}

@_cdecl("llvs_index_keys_add") @implementation
public func llvs_index_keys_add(_ keys: OpaquePointer!, _ tuple: llvs_bytes, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try handle(keys, IndexKeysHandle.self, "keys").keys.add(rawBytes(tuple, "tuple")) }
}

@_cdecl("llvs_computed_index_open") @implementation
public func llvs_computed_index_open(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_computed_index_options>!, _ keys: llvs_index_keys_fn!,
    _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!, _ index: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    let payload = Payload(payload, payload_free)
    index?.pointee = nil
    return entry(error) {
        let out = try required(index, "index")
        let store = try LLVSABI.store(store), input = try optionalStruct(options, "llvs_computed_index_options")
        guard let keys else { throw InputError.null("keys") }
        let coordinator = try input?.coordinator.map { try openCoordinator($0) }
        let definition = try IndexDefinition(
            prefix: array(input?.prefix ?? noBytes, "prefix"), parts: max(1, Int(input?.parts ?? 0)),
            name: optionalText(input?.name ?? noBytes, "name") ?? "", version: input?.callback_version ?? 0
        ) { id, data, given in
            let handle = IndexKeysHandle(given)
            var id = llvs_bytes(data: id.baseAddress?.assumingMemoryBound(to: UInt8.self), size: id.count)
            var data = llvs_bytes(data: data.baseAddress?.assumingMemoryBound(to: UInt8.self), size: data.count)
            _ = try withExtendedLifetime(handle) {
                try callHost("The callback of an index") { keys(payload.pointer, &id, &data, handle.borrowed, $0) }
            }
        }
        let isWarm = try flag(input?.warm ?? 0, "warm")
        out.pointee = IndexHandle(try ValueIndex(store, .definition(definition), of: coordinator, isWarm: isWarm)).owned
    }
}

@_cdecl("llvs_index_free") @implementation
public func llvs_index_free(_ index: OpaquePointer!) { free(index, IndexHandle.self, leadsToStore: true) }

private func question(_ input: UnsafePointer<llvs_index_question>?) throws -> IndexQuestion {
    var question = IndexQuestion()
    guard let input = try optionalStruct(input, "llvs_index_question") else { return question }
    guard input.reserved == 0 else { throw InputError.reserved("llvs_index_question") }
    let all = LLVS_INDEX_KEYS.rawValue | LLVS_INDEX_VALUES.rawValue | LLVS_INDEX_COUNT.rawValue
    guard input.want & ~all == 0 else { throw InputError.constant("want", input.want) }
    question.wantsKeys = input.want & LLVS_INDEX_KEYS.rawValue != 0
    question.wantsValues = input.want & LLVS_INDEX_VALUES.rawValue != 0
    question.wantsCount = input.want & LLVS_INDEX_COUNT.rawValue != 0
    question.equal = try array(input.equal, "equal")
    let begin = try array(input.begin, "begin")
    if try flag(input.has_begin, "has_begin") { question.beginning = begin }
    question.low = try array(input.low, "low")
    question.high = try array(input.high, "high")
    question.after = try array(input.after, "after")
    question.limit = Int(clamping: input.limit)
    question.byteLimit = Int(clamping: input.byte_limit)
    question.lowIsOpen = try flag(input.low_open, "low_open")
    question.highIsOpen = try flag(input.high_open, "high_open")
    question.isBackwards = try flag(input.reverse, "reverse")
    question.isUnique = try flag(input.unique, "unique")
    return question
}

/// Behind `llvs_index_page`.
final class IndexPageHandle: StructHandle<llvs_index_page>, @unchecked Sendable {
    private let values: ValueBlock?

    init(_ page: IndexPage, withKeys: Bool) throws {
        let arena = Arena()
        values = try page.values.map { try ValueBlock($0, withIDs: true) }
        func sizes(_ column: IndexPage.Column) throws -> UnsafePointer<UInt64> {
            let sizes = try arena.array(UInt64.self, column.sizes.count)
            for (i, size) in column.sizes.enumerated() { (sizes + i).initialize(to: size) }
            return UnsafePointer(sizes)
        }
        try super.init(
            arena,
            llvs_index_page(
                struct_size: UInt32(sizeOf: llvs_index_page.self), reserved: 0, total: page.total ?? 0, count: page.count,
                ids: try arena.copy(page.ids.bytes), id_sizes: try sizes(page.ids),
                keys: withKeys ? try arena.copy(page.keys.bytes) : noBytes, key_sizes: withKeys ? try sizes(page.keys) : nil,
                values: values.map { UnsafePointer($0.contents) }, cursor: page.cursor.isEmpty ? noBytes : try arena.copy(page.cursor)))
    }
}

@_cdecl("llvs_index_page_free") @implementation
public func llvs_index_page_free(_ page: UnsafeMutablePointer<llvs_index_page>!) { IndexPageHandle.free(page) }

@_cdecl("llvs_index_find") @implementation
public func llvs_index_find(
    _ index: OpaquePointer!, _ at: llvs_bytes, _ question: UnsafePointer<llvs_index_question>!, _ control: UnsafePointer<llvs_control>!,
    _ page: StructOut<llvs_index_page>!, _ error: ErrorOut!
) -> llvs_status {
    page?.pointee = nil
    return entry(error) {
        let out = try required(page, "page")
        let index = try LLVSABI.index(index), question = try LLVSABI.question(question)
        let found = try index.find(question, at: optionalVersionID(at, "at"), control: LLVSABI.control(control))
        out.pointee = try IndexPageHandle(found, withKeys: question.wantsKeys).handedOut
    }
}

@_cdecl("llvs_index_explain") @implementation
public func llvs_index_explain(
    _ index: OpaquePointer!, _ at: llvs_bytes, _ id: llvs_bytes, _ json: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!
) -> llvs_status {
    json?.pointee = noBuffer
    return entry(error) {
        let out = try required(json, "json")
        let explanation = try LLVSABI.index(index).explain(valueID(id, "id"), at: optionalVersionID(at, "at"))
        out.pointee = try explanation.json.withUnsafeBytes { try ownedBuffer($0) }
    }
}
