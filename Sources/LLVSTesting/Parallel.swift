import LLVSCore

/// Runs threads for tests, without a runtime of their own.
package enum Parallel {
    fileprivate final class Work {
        let thread: Int
        let body: (Int) -> Void
        init(_ thread: Int, _ body: @escaping (Int) -> Void) { self.thread = thread; self.body = body }
    }

    /// Runs `body` `times` times on each of `threads` threads. Returns the errors thrown.
    package static func run(threads: Int, times: Int, _ body: @escaping (_ thread: Int, _ turn: Int) throws -> Void) -> [any Error] {
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

    /// Seconds after which an unfinished call is considered hung. No test measures time with it: it is hundreds of times as long as any
    /// expected wait.
    package static let patience = 300

    /// Runs `body` on a thread of its own. Returns whether it ended; a hung thread is abandoned.
    package static func finishes(_ body: @escaping () throws -> Void) -> Bool {
        let lock = Lock()
        nonisolated(unsafe) var isDone = false
        let work = Work(0) { _ in
            _ = try? body()
            lock.withLock { isDone = true }
        }
        if let handle = start(work) { pthread_detach(handle) }
        return becomes { lock.withLock { isDone } }
    }

    /// Waits until `isSo` returns true. Returns false if it does not within the patience.
    package static func becomes(_ isSo: () throws -> Bool) rethrows -> Bool {
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
