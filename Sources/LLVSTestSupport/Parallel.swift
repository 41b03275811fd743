import LLVS
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Threads for tests, without a runtime of their own.
public enum Parallel {
    fileprivate final class Work {
        let thread: Int
        let body: (Int) -> Void
        init(_ thread: Int, _ body: @escaping (Int) -> Void) { self.thread = thread; self.body = body }
    }

    /// Runs `body` `times` times on each of `threads` threads, and returns the errors that it threw.
    public static func run(threads: Int, times: Int, _ body: @escaping (_ thread: Int, _ turn: Int) throws -> Void) -> [any Error] {
        let lock = Lock()
        var errors: [any Error] = []
        var handles: [pthread_t] = []
        for thread in 0..<threads {
            let work = Work(thread) { thread in
                for turn in 0..<times {
                    do { try body(thread, turn) } catch {
                        lock.withLock { errors.append(error) }
                        return
                    }
                }
            }
            #if canImport(Darwin)
            var handle: pthread_t?
            pthread_create(&handle, nil, { Unmanaged<Work>.fromOpaque($0).takeRetainedValue().run(); return nil }, Unmanaged.passRetained(work).toOpaque())
            if let handle { handles.append(handle) }
            #else
            var handle = pthread_t()
            let made = pthread_create(&handle, nil, { argument in
                if let argument { Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            }, Unmanaged.passRetained(work).toOpaque())
            if made == 0 { handles.append(handle) }
            #endif
        }
        for handle in handles { pthread_join(handle, nil) }
        return errors
    }
}

extension Parallel.Work {
    fileprivate func run() { body(thread) }
}
