import CLLVSShims

/// Memory whose size comes from data or from arguments: where there is none, that is an error.
///
/// An array of Swift's that gets no memory ends the process. So who makes a large one asks first whether it can be had. (Another thread may
/// take it in between; the smaller an allocation, the likelier it comes from what the allocator holds already.) Small objects are not asked
/// for: they come from the reserve when there is nothing else (CLLVSShims/reserve.c), and `check` notices that.
public enum Memory {
    /// Smaller ones are not asked for: each would cost more than it is.
    static let large = 64 << 10
    private static let slack = 64 << 10

    /// Throws `.outOfMemory` when small objects took of the reserve, and it cannot be made whole again. Costs one look where it is whole.
    ///
    /// Every call begins with it, and work that makes many small objects looks again, where it can still be given up.
    @inline(__always)
    public static func check() throws {
        if llvs_shim_reserve_is_whole() == 0 { try refill() }
    }
    /// The same at the beginning of a call, where no lock is held: caches give way first.
    @inline(__always)
    public static func begin() throws {
        if llvs_shim_reserve_is_whole() == 0 { try refillFromCaches() }
    }
    @inline(never)
    private static func refillFromCaches() throws {
        do { try refill() } catch {
            GivingWay.forgetAll()
            try refill()
        }
    }
    @inline(never)
    private static func refill() throws {
        // Made beforehand: there may be no memory for it later.
        let short = Memory.short
        guard llvs_shim_reserve_fill() != 0 else { throw short }
    }
    private static let short: any Error = StoreError(
        .outOfMemory, "There is not enough memory; nothing was changed. Free some, and try again.")

    /// Throws `.outOfMemory` when there are no `size` bytes for what is to be done.
    @inline(__always)
    public static func expect(_ size: Int, _ doing: @autoclosure () -> String) throws {
        try check()
        guard size >= large else { return }
        try probe(size, doing)
    }
    @inline(never)
    private static func probe(_ size: Int, _ doing: () -> String) throws {
        // An array begins with a header, and small things are allocated meanwhile.
        let (wanted, overflow) = size.addingReportingOverflow(slack)
        guard !overflow, llvs_shim_has_memory(wanted) != 0 else { throw none(size, doing()) }
    }

    /// A copy as an array.
    static func copy(_ bytes: UnsafeRawBufferPointer, _ doing: @autoclosure () -> String) throws -> [UInt8] {
        try expect(bytes.count, doing())
        return Array(bytes)
    }

    /// What the body gives; nil when it fails for any reason but lack of memory, or what ended the control, which are the fault of nothing
    /// that is read.
    static func unlessShort<R>(_ control: PacedControl = .none, _ body: () throws -> R) throws -> R? {
        do { return try body() } catch let error as StoreError where error.code == .outOfMemory { throw error } catch {
            try control.throwIfEnded()
            return nil
        }
    }

    /// Not initialised; to be released by `free`.
    static func allocate(_ size: Int, _ doing: @autoclosure () -> String) throws -> UnsafeMutableRawBufferPointer {
        guard let memory = llvs_shim_allocate(max(1, size)) else { throw none(size, doing()) }
        return UnsafeMutableRawBufferPointer(start: memory, count: size)
    }
    static func release(_ memory: UnsafeMutableRawBufferPointer) { free(memory.baseAddress) }

    /// Makes room in an array for more, or throws.
    @inline(__always)
    public static func grow<T>(_ list: inout [T], by more: Int = 1, _ doing: @autoclosure () -> String) throws {
        if more > list.capacity - list.count {
            list.reserveCapacity(try capacity(list.count, list.capacity, more, MemoryLayout<T>.stride, doing))
        }
    }
    @inline(__always)
    static func grow<T>(_ list: inout ContiguousArray<T>, by more: Int = 1, _ doing: @autoclosure () -> String) throws {
        if more > list.capacity - list.count {
            list.reserveCapacity(try capacity(list.count, list.capacity, more, MemoryLayout<T>.stride, doing))
        }
    }
    /// As above, for bytes that will be about so many in the end, says somebody who need not be right. What is there already is a quarter
    /// of that before it is believed: then room is made for just that, and the last step does not hold all of it twice.
    @inline(__always)
    static func grow(_ list: inout [UInt8], by more: Int, towards whole: Int, _ doing: @autoclosure () -> String) throws {
        if more > list.capacity - list.count {
            list.reserveCapacity(try capacity(list.count, list.capacity, more, 1, towards: whole, doing))
        }
    }
    /// Twice what there is, or what is needed, for which there is memory.
    @inline(never)
    private static func capacity(_ count: Int, _ capacity: Int, _ more: Int, _ stride: Int, towards whole: Int = 0, _ doing: () -> String)
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

    /// Whether small objects found all that they needed without the reserve: caches take nothing in while that is not so.
    @inline(__always)
    static var isAmple: Bool { llvs_shim_reserve_is_whole() != 0 }

    private static func none(_ size: Int, _ doing: String) -> StoreError {
        StoreError(.outOfMemory, "\(doing) needs \(size) bytes of memory at once, which there are not. Free some, or use smaller pieces.")
    }
}
