// Defects that the sanitizers must find; a sanitizer that finds nothing would let every test pass. Run by scripts/sanitize.
import Glibc

final class Counter: @unchecked Sendable { var count = 0 }
let counter = Counter()

func race() {
    var threads = [pthread_t(), pthread_t()]
    for i in 0..<2 {
        let made = pthread_create(
            &threads[i], nil,
            { _ in
                for _ in 0..<1_000 { counter.count &+= 1 }
                return nil
            }, nil)
        if made != 0 { exit(2) }
    }
    for thread in threads { pthread_join(thread, nil) }
}

func overrun(_ size: Int) {
    let bytes = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 1)
    counter.count = Int(bytes.load(fromByteOffset: size, as: UInt8.self))
    bytes.deallocate()
}

@main
enum Planted {
    static func main() {
        switch CommandLine.arguments.last {
        case "race": race()
        case "overrun": overrun(CommandLine.arguments.count)
        default: break
        }
        print(counter.count)
    }
}
