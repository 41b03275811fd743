/// A control for loops of many small steps: each step may call it, and it reads the clock now and then. It checks the underlying control
/// at the first step, and then after 20 ms, 1,024 steps or 1 MiB.
///
/// Once it is cancelled, it stays so: a progress callback that wants to stop is not called again. Used by one thread at a time.
@usableFromInline
package final class PacedControl: @unchecked Sendable {
    // Sendable: only the thread that has it uses it. `none` is inactive and never changes.
    /// For callers without a control.
    package static let none = PacedControl(OperationControl(), .reading, of: 0, doing: "")

    private let control: OperationControl
    private let stage: OperationProgress.Stage
    private let total: Int
    private let what: String
    /// Whether there is a progress callback or a token.
    @usableFromInline let isActive: Bool
    private var ended: (any Error)?
    /// The completed steps of the stage, for the progress.
    package private(set) var completed = 0
    private var steps = 0, bytes = 0
    private var last = -Double.infinity

    private static let longest = 0.02
    private static let most = 1_024
    private static let stepsPerClock = 16

    fileprivate init(_ control: OperationControl, _ stage: OperationProgress.Stage, of total: Int, doing what: String) {
        self.control = control; self.stage = stage; self.total = total; self.what = what
        isActive = control.progress != nil || control.token != nil
    }

    /// Records that a step is done, or with a count of 0, a part of one.
    /// - Parameters:
    ///   - count: the number of steps done.
    ///   - bytes: the number of bytes processed.
    /// - Throws: `.cancelled`, and the errors of the progress callback.
    @inlinable @inline(__always)
    package func step(_ count: Int = 1, bytes: Int = 0) throws {
        if isActive { try look(after: count, bytes) }
    }

    @usableFromInline
    func look(after count: Int, _ bytes: Int) throws {
        Work.looks.count()
        if let ended { throw ended }
        completed &+= count
        steps += 1
        self.bytes &+= max(0, bytes)
        if steps >= PacedControl.most || self.bytes >= OperationControl.bytesPerCheck || last < 0 { return try look() }
        if steps % PacedControl.stepsPerClock == 0 || bytes > 4_096, Clock.steady() - last >= PacedControl.longest { try look() }
    }

    /// This control for work within which the host must not be called: see `OperationControl.quiet`.
    var quiet: PacedControl { control.quiet.paced(stage, doing: what) }

    /// Throws the error that ended the work. For code that ignores errors of reading.
    package func throwIfEnded() throws { if let ended { throw ended } }

    /// Checks the control now: before work of unknown length, and after all is done.
    /// - Throws: `.cancelled`, and the errors of the progress callback.
    package func look() throws {
        guard isActive else { return }
        if let ended { throw ended }
        do {
            if let token = control.token, token.isCancelled { throw OperationControl.ended(what) }
            let state = OperationProgress(stage: stage, completed: UInt64(max(0, completed)), total: UInt64(max(0, total)))
            if let progress = control.progress, try !Waiting.setAside({ try progress(state) }) {
                throw OperationControl.ended(what)
            }
        } catch {
            ended = error
            throw error
        }
        steps = 0
        bytes = 0
        last = Clock.steady()
    }

    /// Checks for cancellation without reporting progress.
    /// - Throws: `.cancelled`, and the error that ended the work before.
    func lookQuietly() throws {
        if let ended { throw ended }
        guard let token = control.token, token.isCancelled else { return }
        let error = OperationControl.ended(what)
        ended = error
        throw error
    }

    /// A control for a part of the work. If it stops the part, it also stops the whole at its next check.
    package var forPart: OperationControl {
        guard let progress = control.progress else { return control }
        return OperationControl(
            progress: { [self] state in
                do {
                    if try !progress(state) { ended = OperationControl.ended(what) }
                } catch {
                    ended = error
                    throw error
                }
                return ended == nil
            }, token: control.token)
    }
}

extension OperationControl {
    /// This control for work under a lock that the host's callbacks may need, too: progress is not reported.
    package var quiet: OperationControl { OperationControl(token: token) }

    /// Returns this control for a loop of many small steps. Costs nothing if there is nothing to check.
    /// - Parameters:
    ///   - stage: the stage for progress callbacks.
    ///   - total: the number of steps; 0 while it is not known.
    ///   - what: the action for the message, as in "Opening the store at x".
    package func paced(_ stage: OperationProgress.Stage, of total: Int = 0, doing what: @autoclosure () -> String) -> PacedControl {
        progress == nil && token == nil ? .none : PacedControl(self, stage, of: total, doing: what())
    }
}
