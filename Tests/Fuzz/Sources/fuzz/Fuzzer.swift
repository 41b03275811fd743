import FuzzTargets
import Glibc

/// The target that the environment names. The program's arguments are libFuzzer's options.
private let target: FuzzTarget = {
    let name = getenv("LLVS_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = FuzzTarget.named(name) else {
        fputs("LLVS_FUZZ_TARGET is none of: \(FuzzTarget.all.map(\.name).joined(separator: " "))\n", stderr)
        exit(2)
    }
    return target
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    target.run(UnsafeRawBufferPointer(start: start, count: count))
    return 0
}
