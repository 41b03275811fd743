import CLLVS
import Glibc

/// The C functions that take structs, lists and sizes. Each is called with arguments made from the input.
enum Calls {
    typealias Call = (Arguments, OpaquePointer) -> Void
    static var howMany: Int { all.count }

    static func one(_ arguments: Arguments, _ store: OpaquePointer) {
        all[Int(arguments.input.byte()) % all.count](arguments, store)
    }

    private static func call(line: UInt = #line, _ body: (UnsafeMutablePointer<OpaquePointer?>) -> llvs_status) -> Bool {
        ArgumentsTarget.call(line: line, body)
    }

    private static let all: [Call] = [
        makeVersion, makeVersion, makeVersion, value, values, valueBlock, enumerate, enumerateBlock, count, versions, history,
        merge, mergeHeads, revert, statistics, initialisers, exchange, coordinator, differences, verify, reload, mergeValues,
    ]

    private static let makeVersion: Call = { arguments, store in
        let predecessor = arguments.versions.isEmpty || arguments.input.byte() < 32 ? llvs_bytes() : arguments.bytes()
        let changes = arguments.array(of: llvs_change.self) { arguments.change() }
        let options = arguments.versionOptions()
        let made = arguments.whole(llvs_version_id())
        made?.pointee.size = 0
        var list: UnsafeMutablePointer<llvs_version_list>?
        guard call({ llvs_store_make_version(store, predecessor, changes.start, changes.count, changes.stride, options, made, &list, $0) })
        else {
            require(list == nil, "a version beside an error")
            return
        }
        require(list?.pointee.count == 1 && list?.pointee.items[1] == nil, "the list does not hold exactly one version")
        if let info = list?.pointee.items[0], let data = info.pointee.id.data {
            arguments.versions.append(Array(UnsafeBufferPointer(start: data, count: info.pointee.id.size)))
        }
        llvs_version_list_free(list)
    }

    private static let value: Call = { arguments, store in
        var data = llvs_buffer(), stored = llvs_version_id()
        if call({ llvs_store_value(store, arguments.bytes(), arguments.bytes(), &data, &stored, $0) }) {
            require((data.data == nil) == (stored.size == 0), "bytes without a version, or the other way round")
        }
        llvs_buffer_dispose(&data)
        let capacity = Int(arguments.input.byte()), room = arguments.allocate(capacity)
        var size = 0
        _ = call { llvs_store_read_value(store, arguments.bytes(), arguments.bytes(), room.baseAddress, capacity, &size, nil, $0) }
        _ = call { llvs_store_reference(store, arguments.bytes(), arguments.bytes(), &stored, $0) }
    }

    private static let values: Call = { arguments, store in
        let ids = arguments.list()
        var list: UnsafeMutablePointer<llvs_value_list>?
        if call({ llvs_store_values(store, ids.start, ids.count, arguments.bytes(), &list, $0) }), let list {
            require(list.pointee.count == ids.count, "not as many values as were asked for")
            for i in 0..<ids.count { require(list.pointee.items[i] != nil, "a value that is not in its list") }
            require(list.pointee.items[ids.count] == nil, "a value behind the end")
        }
        llvs_value_list_free(list)
    }

    private static let valueBlock: Call = { arguments, store in
        let count = Int(arguments.input.byte() % 6), sizes = arguments.allocate(count * 8).bindMemory(to: UInt64.self)
        for i in 0..<count { sizes[i] = arguments.input.byte() < 240 ? UInt64(arguments.input.byte() % 3) : arguments.input.uint64() }
        let told = arguments.input.byte() < 240 ? count : Arguments.absurd[count % 5]
        var block: UnsafeMutablePointer<llvs_value_block>?
        _ = call {
            llvs_store_value_block(
                store, arguments.bytes(), sizes.baseAddress.map { UnsafePointer($0) }, told, arguments.bytes(), &block, $0)
        }
        read(block)
    }

    /// Reads every byte that a block claims to have.
    private static func read(_ block: UnsafeMutablePointer<llvs_value_block>?) {
        defer { llvs_value_block_free(block) }
        guard let info = block?.pointee else { return }
        var ids = 0, data = 0, present = 0
        for i in 0..<info.count {
            if let sizes = info.id_sizes { ids += Int(sizes[i]) + 1 }
            data += Int(info.data_sizes?[i] ?? 0)
            if let indexes = info.version_indexes {
                require(indexes[i] <= info.version_count, "a version that is not in the block")
                if indexes[i] < info.version_count { present += 1 }
            }
        }
        require(ids == info.ids.size && data == info.data.size && present == info.present_count, "the sizes of a block are inconsistent")
        var sum: UInt8 = 0
        for i in 0..<info.ids.size { sum &+= info.ids.data[i] }
        for i in 0..<info.data.size { sum &+= info.data.data[i] }
        if sum == 1, info.count > 1 << 30 { fail("a block of that many values") }
    }

    private static let enumerate: Call = { arguments, store in
        var list: UnsafeMutablePointer<llvs_value_list>?
        if call({ llvs_store_enumerate(store, arguments.bytes(), arguments.range(), &list, $0) }), let list {
            require(list.pointee.count > 0, "a page of no values")
        }
        llvs_value_list_free(list)
    }
    private static let enumerateBlock: Call = { arguments, store in
        var block: UnsafeMutablePointer<llvs_value_block>?
        _ = call { llvs_store_enumerate_block(store, arguments.bytes(), arguments.range(), &block, $0) }
        read(block)
    }
    private static let count: Call = { arguments, store in
        var count: UInt64 = 0
        _ = call { llvs_store_count(store, arguments.bytes(), arguments.range(), &count, $0) }
    }

    private static let versions: Call = { arguments, store in
        let ids = arguments.list()
        var list: UnsafeMutablePointer<llvs_version_list>?
        _ = call { llvs_store_versions(store, ids.start, ids.count, &list, $0) }
        llvs_version_list_free(list)
        list = nil
        _ = call { llvs_store_version(store, arguments.bytes(), &list, $0) }
        llvs_version_list_free(list)
        for find in [llvs_store_successors, llvs_store_versions_of] {
            list = nil
            _ = call { find(store, arguments.bytes(), nil, &list, $0) }
            llvs_version_list_free(list)
        }
        var heads = llvs_heads_options()
        heads.branch = arguments.bytes()
        heads.limit = UInt64(arguments.input.byte() % 3)
        list = nil
        _ = call { llvs_store_heads(store, UnsafePointer(arguments.structure(heads)), &list, $0) }
        llvs_version_list_free(list)
        var isAncestor: llvs_bool = 0
        _ = call { llvs_store_is_ancestor(store, arguments.bytes(), arguments.bytes(), nil, &isAncestor, $0) }
        list = nil
        _ = call { llvs_store_merge_bases(store, arguments.bytes(), arguments.bytes(), nil, &list, $0) }
        llvs_version_list_free(list)
    }

    private static let history: Call = { arguments, store in
        let ids = arguments.list(), hidden = arguments.list()
        var options = llvs_history_options()
        (options.from, options.from_count, options.hiding, options.hiding_count) = (ids.start, ids.count, hidden.start, hidden.count)
        (options.branch, options.value_id, options.prefix) = (arguments.bytes(), arguments.bytes(), arguments.bytes())
        var cursor: OpaquePointer?
        guard call({ llvs_store_history(store, UnsafePointer(arguments.structure(options)), nil, &cursor, $0) }) else { return }
        for _ in 0..<3 {
            var page: UnsafeMutablePointer<llvs_version_list>?
            let limit = arguments.input.byte() < 200 ? Int(arguments.input.byte()) : Int(bitPattern: UInt(arguments.input.uint64()))
            _ = call { llvs_history_cursor_next(cursor, limit, nil, &page, $0) }
            llvs_version_list_free(page)
        }
        llvs_history_cursor_free(cursor)
    }

    private static let merge: Call = { arguments, store in
        var list: UnsafeMutablePointer<llvs_version_list>?
        withArbiter(arguments) { arbiter in
            _ = call { llvs_store_merge(store, arguments.bytes(), arguments.bytes(), arbiter, arguments.mergeOptions(), &list, $0) }
        }
        llvs_version_list_free(list)
    }
    private static let mergeHeads: Call = { arguments, store in
        var list: UnsafeMutablePointer<llvs_version_list>?
        withArbiter(arguments) { arbiter in
            _ = call { llvs_store_merge_heads(store, arguments.bytes(), arbiter, arguments.mergeOptions(), &list, $0) }
        }
        llvs_version_list_free(list)
    }
    private static let revert: Call = { arguments, store in
        var result: UnsafeMutablePointer<llvs_revert_result>?
        _ = call { llvs_store_revert(store, arguments.bytes(), arguments.bytes(), arguments.mergeOptions(), &result, $0) }
        llvs_revert_result_free(result)
    }

    private static let mergeValues: Call = { arguments, _ in
        let rules = arguments.bytes()
        _ = call { llvs_schema_check(rules, $0) }
        var values = [arguments.bytes(), arguments.bytes(), arguments.bytes()]
        let absent = arguments.input.byte()
        var options = llvs_merge_values_options()
        options.struct_size = UInt32(MemoryLayout<llvs_merge_values_options>.size)
        options.saving = arguments.constant(3)
        options.id = arguments.bytes()
        var merged: UnsafeMutablePointer<llvs_merged_value>?
        values.withUnsafeMutableBufferPointer { values in
            guard let start = values.baseAddress else { return }
            _ = call {
                llvs_merge_values(
                    rules, absent & 1 != 0 ? nil : start, absent & 2 != 0 ? nil : start + 1, absent & 4 != 0 ? nil : start + 2, &options,
                    &merged, $0)
            }
        }
        llvs_merged_value_free(merged)
    }

    /// No arbiter, a built-in one, or one that adds changes of its own.
    private static func withArbiter(_ arguments: Arguments, _ body: (OpaquePointer?) -> Void) {
        var arbiter: OpaquePointer?
        let kind = arguments.input.byte()
        if kind < 64 {
            _ = call { llvs_arbiter_builtin(arguments.constant(5), &arbiter, $0) }
        } else if kind < 128 {
            _ = call { llvs_arbiter_rules(arguments.bytes(), &arbiter, $0) }
        } else {
            let payload = Unmanaged.passUnretained(arguments).toOpaque()
            _ = call { error in
                llvs_arbiter_create(
                    { payload, merge, resolution, error in
                        guard let payload else { return -3 }
                        let arguments = Unmanaged<Arguments>.fromOpaque(payload).takeUnretainedValue()
                        _ = llvs_merge_fork(merge, arguments.bytes())
                        let changes = arguments.array(of: llvs_change.self) { arguments.change() }
                        _ = Calls.call { llvs_resolution_add(resolution, changes.start, changes.count, changes.stride, $0) }
                        return arguments.input.byte() < 200 ? LLVS_PASS.rawValue : 0
                    }, payload, nil, nil, &arbiter, error)
            }
        }
        body(arbiter)
        llvs_arbiter_free(arbiter)
    }

    private static let statistics: Call = { arguments, store in
        let statistics = arguments.structure(llvs_statistics())
        _ = call { llvs_store_statistics(store, nil, statistics, $0) }
        let report = arguments.structure(llvs_compaction_report())
        _ = call { llvs_store_compact(store, arguments.control(), report, $0) }
    }

    private static let initialisers: Call = { arguments, _ in
        let size = arguments.input.byte() < 200 ? Int(arguments.input.byte()) : Arguments.absurd[Int(arguments.input.byte()) % 5]
        let room = arguments.allocate(size >= 0 && size <= 4096 ? max(4, size) : 4).baseAddress
        let status = llvs_struct_init(arguments.input.byte() == 0 ? nil : room, size)
        require(
            status == 0 || status == LLVS_ERROR_STRUCT_SIZE.rawValue || status == LLVS_ERROR_INVALID_ARGUMENT.rawValue,
            "the status \(status) of an initialiser")
    }

    private static let exchange: Call = { arguments, store in
        var options = llvs_exchange_options()
        options.durability = arguments.constant(2)
        options.must_exist = arguments.constant(0)
        let url = arguments.input.byte() < 200 ? arguments.text("memory:fuzz") : nonFile(arguments)
        var exchange: OpaquePointer?
        guard call({ llvs_exchange_open(store, url, UnsafePointer(arguments.structure(options)), &exchange, $0) }) else { return }
        var result: UnsafeMutablePointer<llvs_exchange_result>?
        _ = call { llvs_exchange_send(exchange, arguments.control(), &result, $0) }
        llvs_exchange_result_free(result)
        result = nil
        _ = call { llvs_exchange_retrieve(exchange, arguments.control(), &result, $0) }
        llvs_exchange_result_free(result)
        llvs_exchange_free(exchange)
    }
    /// A URL that is not a place on disk.
    private static func nonFile(_ arguments: Arguments) -> llvs_bytes {
        let url = arguments.bytes()
        guard url.size > 4, url.size < 1000, let data = url.data, data[0] == UInt8(ascii: "f") || data[0] == UInt8(ascii: "F") else {
            return url
        }
        return llvs_bytes(data: nil, size: 0)
    }

    private static let coordinator: Call = { arguments, _ in
        var coordinator: OpaquePointer?
        guard call({ llvs_coordinator_open(arguments.bytes(), arguments.coordinatorOptions(), &coordinator, $0) }) else { return }
        var move = llvs_move()
        move.struct_size = UInt32(MemoryLayout<llvs_move>.size)
        for _ in 0..<2 {
            let changes = arguments.array(of: llvs_change.self) { arguments.change() }
            _ = call {
                llvs_coordinator_save(
                    coordinator, changes.start, changes.count, changes.stride, arguments.versionOptions(), nil, nil, &move, $0)
            }
        }
        var data = llvs_buffer()
        _ = call { llvs_coordinator_value(coordinator, arguments.bytes(), &data, nil, $0) }
        llvs_buffer_dispose(&data)
        _ = call { llvs_coordinator_merge(coordinator, arguments.mergeOptions(), &move, $0) }
        _ = call { llvs_coordinator_sync(coordinator, arguments.mergeOptions(), nil, $0) }
        _ = call { llvs_coordinator_set_current_version(coordinator, arguments.bytes(), $0) }
        _ = call { llvs_coordinator_attach(coordinator, nonFile(arguments), nil, $0) }
        llvs_coordinator_free(coordinator)
    }

    private static let differences: Call = { arguments, store in
        var cursor: OpaquePointer?
        guard call({ llvs_store_differences(store, arguments.bytes(), arguments.bytes(), nil, nil, &cursor, $0) }) else { return }
        var page: UnsafeMutablePointer<llvs_change_list>?
        _ = call { llvs_change_cursor_next(cursor, Int(arguments.input.byte()), arguments.constant(1), &page, $0) }
        llvs_change_list_free(page)
        llvs_change_cursor_free(cursor)
    }

    private static let verify: Call = { arguments, store in
        var report: UnsafeMutablePointer<llvs_verify_report>?
        _ = call { llvs_store_verify(store, arguments.control(), &report, $0) }
        llvs_verify_report_free(report)
    }

    private static let reload: Call = { arguments, store in
        var added: UInt64 = 0
        _ = call { llvs_store_reload(store, nil, &added, $0) }
    }
}
