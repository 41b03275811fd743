import CLLVS
import Glibc
import LLVS

/// Structs, lists and sizes passed to the C functions, valid and invalid.
///
///     input = calls, each a byte that selects the function, and the bytes of its arguments (see `Arguments`)
enum ArgumentsTarget {
    static let target = FuzzTarget(name: "arguments", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        let arguments = Arguments(FuzzInput(bytes))
        var store: OpaquePointer?
        call { llvs_store_open(arguments.bytes(), arguments.storeOptions() ?? arguments.memoryOptions(), &store, $0) }
        if store == nil {
            call { llvs_store_open(llvs_bytes(), arguments.memoryOptions(), &store, $0) }
        }
        guard let store else { fail("a store in memory cannot be opened") }
        var calls = 0
        while !arguments.input.isAtEnd, calls < 48 {
            calls += 1
            Calls.one(arguments, store)
        }
        call { llvs_store_close(store, $0) }
        llvs_store_free(store)
    }

    /// A negative status comes with an error of the same code, and any other status with none.
    @discardableResult
    static func call(line: UInt = #line, _ body: (UnsafeMutablePointer<OpaquePointer?>) -> llvs_status) -> Bool {
        var error: OpaquePointer?
        let status = body(&error)
        if status >= 0 {
            require(error == nil, "an error beside the status \(status)", line: line)
            return true
        }
        require(error != nil && llvs_error_code(error) == status, "the status \(status) without its error", line: line)
        let message = String(cString: llvs_error_message(error))
        require(status != StoreError.Code.internal.rawValue, "an internal error: \(message)", line: line)
        require(!message.isEmpty || status == LLVS_ERROR_USER.rawValue, "an error that says nothing", line: line)
        _ = llvs_error_value_id(error)
        _ = llvs_error_version_id(error)
        _ = llvs_error_path(error)
        llvs_error_free(error)
        return false
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        // The calls in order, with some simple patterns as their bytes.
        let patterns: [(String, (Int) -> UInt8)] = [
            ("zeros", { _ in 0 }), ("right", { _ in 15 }), ("ascending", { UInt8(truncatingIfNeeded: $0) }),
            ("mixed", { UInt8(truncatingIfNeeded: $0 * 37 ^ $0 >> 3) }),
        ]
        var seeds = patterns.map { name, byte in FuzzTarget.Seed(name: name, bytes: (0..<600).map(byte)) }
        for which in 0..<Calls.howMany {
            var bytes: [UInt8] = [0, 0]
            for round in 0..<4 {
                bytes.append(UInt8(which))
                for i in 0..<40 { bytes.append(UInt8(truncatingIfNeeded: i * 3 + round * 5 + 6)) }
            }
            seeds.append(FuzzTarget.Seed(name: "call-\(which)", bytes: bytes))
        }
        return seeds
    }
}

extension Arguments {
    /// Options of a store in memory. Without options it would be on disk.
    func memoryOptions() -> UnsafePointer<llvs_store_options>? {
        var options = llvs_store_options()
        options.storage = LLVS_STORAGE_MEMORY.rawValue
        options.memory_budget = 1 << 20
        return UnsafePointer(whole(options))
    }

    func storeOptions() -> UnsafePointer<llvs_store_options>? {
        var options = llvs_store_options()
        // Only in memory. Other targets test what happens on disk.
        options.storage = input.byte() < 250 ? LLVS_STORAGE_MEMORY.rawValue : 99
        options.durability = constant(2)
        options.read_only = constant(0)
        options.must_exist = constant(1)
        options.compaction = constant(2)
        options.memory_budget = input.byte() < 200 ? 1 << 20 : min(input.uint64(), 1 << 26)
        if input.byte() > 240 { options.cache_directory = bytes() }
        options.compaction_grace = input.byte() < 200 ? 0 : Double(bitPattern: input.uint64())
        options.busy_timeout = input.byte() < 200 ? 0 : Double(bitPattern: input.uint64())
        if input.byte() > 240 { options.file_mode = UInt32(truncatingIfNeeded: input.uint64()) }
        return structure(options).map { UnsafePointer($0) }
    }

    func change() -> llvs_change {
        var change = llvs_change()
        change.kind = constant(5)
        if input.byte() > 250 { change.reserved = 1 }
        change.id = bytes()
        if change.kind <= 2 || input.byte() > 240 { change.data = bytes() }
        if change.kind == 4 || input.byte() > 240 { change.stored_version = bytes() }
        return change
    }

    func metadata() -> (start: UnsafePointer<llvs_metadata_entry>?, count: Int) {
        // These structs never grow: the stride is their size.
        let how = input.byte()
        if how < 128 { return (nil, how > 120 ? Int(how) : 0) }
        let entries = allocate(MemoryLayout<llvs_metadata_entry>.stride * 2).bindMemory(to: llvs_metadata_entry.self)
        for i in 0..<2 { entries[i] = llvs_metadata_entry(key: bytes(), value: bytes()) }
        return (UnsafePointer(entries.baseAddress), how > 250 ? Arguments.absurd[Int(how) % 5] : Int(how % 3))
    }

    func versionOptions() -> UnsafePointer<llvs_version_options>? {
        var options = llvs_version_options()
        if input.byte() > 250 { options.merges = 1 }
        if input.byte() > 128 { options.id = bytes() }
        if input.byte() > 128 { options.branch = bytes() }
        (options.metadata, options.metadata_count) = metadata()
        if input.byte() > 128 {
            let sources = array(of: llvs_value_source.self) { source() }
            (options.sources, options.source_count, options.source_size) = sources
        }
        return structure(options).map { UnsafePointer($0) }
    }

    /// A value read in five pieces of three bytes, or one that fails.
    private func source() -> llvs_value_source {
        var source = llvs_value_source()
        source.id = bytes()
        source.size = UInt64(constant(20))
        let left = allocate(MemoryLayout<Int>.size)
        left.storeBytes(of: 5, as: Int.self)
        source.payload = left.baseAddress
        switch input.byte() % 8 {
        case 0: break
        case 1: source.read = { _, _, _, _, _ in -1 }
        case 2:
            // Claims more bytes than there was room for.
            source.read = { _, _, capacity, size, _ in
                size?.pointee = capacity &+ 1; return 0
            }
        default:
            source.read = { payload, buffer, capacity, size, _ in
                guard let left = payload?.assumingMemoryBound(to: Int.self), let buffer, let size else { return -1 }
                size.pointee = left.pointee > 0 ? min(3, capacity) : 0
                memset(buffer, 7, size.pointee)
                left.pointee -= 1
                return size.pointee > 0 ? 0 : LLVS_END.rawValue
            }
        }
        return source
    }

    func range() -> UnsafePointer<llvs_range>? {
        var range = llvs_range()
        range.without_data = constant(1)
        range.prefix = bytes()
        range.from = bytes()
        range.to = bytes()
        range.after = bytes()
        range.limit = input.byte() < 200 ? UInt64(input.byte()) : input.uint64()
        range.byte_limit = input.byte() < 200 ? 0 : input.uint64()
        return structure(range).map { UnsafePointer($0) }
    }

    func control() -> UnsafePointer<llvs_control>? {
        var control = llvs_control()
        if input.byte() > 250 { control.reserved = 1 }
        switch input.byte() % 4 {
        case 0: control.progress = { _, _, _ in LLVS_ERROR_CANCELLED.rawValue }
        case 1:
            control.progress = { _, _, error in
                error?.pointee = llvs_error_create(7, llvs_bytes()); return -3
            }
        case 2: control.progress = { _, progress, _ in progress.map { $0.pointee.completed } == .max ? -1 : 0 }
        default: break
        }
        return structure(control).map { UnsafePointer($0) }
    }

    func mergeOptions() -> UnsafePointer<llvs_merge_options>? {
        var options = llvs_merge_options()
        options.relation = constant(2)
        options.selection = constant(3)
        if input.byte() > 200 { options.parent = constant(2) }
        let branches = list()
        options.branches = branches.start
        options.branch_count = branches.count
        (options.metadata, options.metadata_count) = metadata()
        if input.byte() > 128 { options.control = control() }
        return structure(options).map { UnsafePointer($0) }
    }

    /// A list of ids or names.
    func list() -> (start: UnsafePointer<llvs_bytes>?, count: Int) {
        let how = input.byte(), count = Int(how % 4)
        if how > 252 { return (nil, Int(how)) }
        let rows = allocate(count * MemoryLayout<llvs_bytes>.stride).bindMemory(to: llvs_bytes.self)
        for i in 0..<count { rows[i] = bytes() }
        return (UnsafePointer(rows.baseAddress), how > 248 ? Arguments.absurd[Int(how) % 5] : count)
    }

    func coordinatorOptions() -> UnsafePointer<llvs_coordinator_options>? {
        var options = llvs_coordinator_options()
        options.snapshot_policy = constant(1)
        options.store = storeOptions() ?? memoryOptions()
        if input.byte() > 128 { options.name = bytes() }
        (options.metadata, options.metadata_count) = metadata()
        return UnsafePointer(structure(options) ?? whole(options))
    }
}
