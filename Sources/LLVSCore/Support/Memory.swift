import CLLVSShims

/// Allocations whose size depends on data or arguments: if there is no memory, that is an error.
///
/// A Swift array that gets no memory ends the process. So before creating a large one, ask whether there is enough memory. (Another
/// thread may use it in between. The smaller an allocation, the likelier the allocator has it already.) Small objects are not checked one
/// by one: they come from the reserve if there is nothing else (CLLVSShims/reserve.c), and `check` notices that.
@usableFromInline
package enum Memory {
    /// Smaller allocations are not checked: the check would cost more than the allocation.
    @usableFromInline static let large = 64 << 10
    private static let slack = 64 << 10

    /// Throws `.outOfMemory` if small objects used the reserve, and it cannot be refilled. If the reserve is full, this reads one word.
    ///
    /// Every call begins with it. Work that creates many small objects repeats it at points where it can still stop.
    @inlinable @inline(__always)
    package static func check() throws {
        if llvs_shim_reserve_is_whole() == 0 { try refill() }
    }
    /// Checks as `check` does, at the beginning of a call, where no lock is held: caches are emptied first.
    @inlinable @inline(__always)
    package static func begin() throws {
        if llvs_shim_reserve_is_whole() == 0 { try refillFromCaches() }
    }
    @usableFromInline @inline(never)
    static func refillFromCaches() throws {
        do { try refill() } catch {
            GivingWay.forgetAll()
            try refill()
        }
    }
    @usableFromInline @inline(never)
    static func refill() throws {
        // Created beforehand, since there may be no memory for it later.
        let short = Memory.short
        guard llvs_shim_reserve_fill() != 0 else { throw short }
    }
    private static let short: any Error = StoreError(
        .outOfMemory, "There is not enough memory; nothing was changed. Free some, and try again.")

    /// Throws `.outOfMemory` if there are not `size` bytes for the work.
    @inlinable @inline(__always)
    package static func expect(_ size: Int, _ doing: @autoclosure () -> String) throws {
        try check()
        guard size >= large else { return }
        try probe(size, doing)
    }
    @usableFromInline @inline(never)
    static func probe(_ size: Int, _ doing: () -> String) throws {
        // An array begins with a header, and small objects are allocated meanwhile.
        let (wanted, overflow) = size.addingReportingOverflow(slack)
        guard !overflow, llvs_shim_has_memory(wanted) != 0 else { throw none(size, doing()) }
    }

    /// Returns a copy as an array.
    package static func copy(_ bytes: UnsafeRawBufferPointer, _ doing: @autoclosure () -> String) throws -> [UInt8] {
        try expect(bytes.count, doing())
        return Array(bytes)
    }

    /// Returns the result of the body; nil if it fails. Lack of memory and errors of the control are thrown, since they are not the fault
    /// of the data.
    package static func unlessShort<R>(_ control: PacedControl = .none, _ body: () throws -> R) throws -> R? {
        do { return try body() } catch let error as StoreError where error.code == .outOfMemory { throw error } catch {
            try control.throwIfEnded()
            return nil
        }
    }

    /// Allocates memory that is not initialised. Release it with `free`.
    package static func allocate(_ size: Int, _ doing: @autoclosure () -> String) throws -> UnsafeMutableRawBufferPointer {
        guard let memory = llvs_shim_allocate(max(1, size)) else { throw none(size, doing()) }
        return UnsafeMutableRawBufferPointer(start: memory, count: size)
    }
    package static func release(_ memory: UnsafeMutableRawBufferPointer) { free(memory.baseAddress) }

    /// Reserves room for more elements in an array, or throws.
    @inlinable @inline(__always)
    package static func grow<T>(_ list: inout [T], by more: Int = 1, _ doing: @autoclosure () -> String) throws {
        if more > list.capacity - list.count {
            list.reserveCapacity(try capacity(list.count, list.capacity, more, MemoryLayout<T>.stride, doing))
        }
    }
    @inline(__always)
    package static func grow<T>(_ list: inout ContiguousArray<T>, by more: Int = 1, _ doing: @autoclosure () -> String) throws {
        if more > list.capacity - list.count {
            list.reserveCapacity(try capacity(list.count, list.capacity, more, MemoryLayout<T>.stride, doing))
        }
    }
    /// Reserves room for bytes whose announced total may be wrong. Once a quarter of the total has arrived, it is trusted: then exactly the
    /// total is reserved, so that the last growth does not need twice the memory.
    @inline(__always)
    package static func grow(_ list: inout [UInt8], by more: Int, towards whole: Int, _ doing: @autoclosure () -> String) throws {
        if more > list.capacity - list.count {
            list.reserveCapacity(try capacity(list.count, list.capacity, more, 1, towards: whole, doing))
        }
    }
    /// Returns a new capacity for which there is memory: twice the current one, or what is needed.
    @usableFromInline @inline(never)
    static func capacity(_ count: Int, _ capacity: Int, _ more: Int, _ stride: Int, towards whole: Int = 0, _ doing: () -> String)
        throws -> Int
    {
        let (needed, overflow) = count.addingReportingOverflow(more)
        let isBelieved = whole >= needed && whole / 4 <= capacity
        let wanted = isBelieved ? whole : max(needed, capacity < 1 << 30 ? 2 * capacity : 0, 8)
        let (size, isTooLarge) = wanted.multipliedReportingOverflow(by: stride)
        guard !overflow, !isTooLarge else { throw none(.max, doing()) }
        try expect(size, doing())
        return wanted
    }

    /// Whether the reserve is full. If it is not, caches must not grow.
    @inline(__always)
    static var isAmple: Bool { llvs_shim_reserve_is_whole() != 0 }

    private static func none(_ size: Int, _ doing: String) -> StoreError {
        StoreError(.outOfMemory, "\(doing) needs \(size) bytes of memory at once, which are not free. Free some, or use smaller pieces.")
    }
}
