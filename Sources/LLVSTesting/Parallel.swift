import LLVS

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
            if let handle = start(work) { handles.append(handle) }
        }
        for handle in handles { pthread_join(handle, nil) }
        return errors
    }

    /// Seconds after which whatever has not ended or come is taken to hang. No test measures time by it: it is hundreds of times as long as
    /// all that is waited for so.
    public static let patience = 300

    /// Runs `body` on a thread of its own. Returns whether it came to an end; a thread that hangs is left behind.
    public static func finishes(_ body: @escaping () throws -> Void) -> Bool {
        let lock = Lock()
        nonisolated(unsafe) var isDone = false
        let work = Work(0) { _ in
            _ = try? body()
            lock.withLock { isDone = true }
        }
        if let handle = start(work) { pthread_detach(handle) }
        return becomes { lock.withLock { isDone } }
    }

    /// Waits until `isSo` returns true. Returns false if that does not come.
    public static func becomes(_ isSo: () throws -> Bool) rethrows -> Bool {
        for _ in 0..<patience * 1_000 {
            if try isSo() { return true }
            usleep(1_000)
        }
        return false
    }

    private static func start(_ work: Work) -> pthread_t? {
        #if canImport(Darwin)
        var handle: pthread_t?
        pthread_create(
            &handle, nil,
            {
                Unmanaged<Work>.fromOpaque($0).takeRetainedValue().run(); return nil
            }, Unmanaged.passRetained(work).toOpaque())
        return handle
        #else
        var handle = pthread_t()
        let made = pthread_create(
            &handle, nil,
            { argument in
                if let argument { Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            }, Unmanaged.passRetained(work).toOpaque())
        return made == 0 ? handle : nil
        #endif
    }
}

extension Parallel.Work {
    fileprivate func run() { body(thread) }
}
