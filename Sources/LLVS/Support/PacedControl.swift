/// A control for loops of many small steps: each may ask it, and it looks at the clock now and then. The control itself is looked at first
/// of all, and then whenever 20 ms have passed, after 1,024 steps, and after a MiB.
///
/// Cancelled once, it stays so: a progress callback that wants to stop is not asked again. Used by one thread at a time.
public final class PacedControl: @unchecked Sendable {
    // Sendable: one thread at a time uses it: the one that it is handed to. `none` is inactive, and nothing of it changes.
    /// For who gives none.
    public static let none = PacedControl(OperationControl(), .reading, of: 0, doing: "")

    private let control: OperationControl
    private let stage: Progress.Stage
    private let total: Int
    private let what: String
    /// Whether anybody waits for progress, or could cancel.
    let isActive: Bool
    private var ended: (any Error)?
    /// Of the stage, as progress tells it.
    public private(set) var completed = 0
    private var steps = 0, bytes = 0
    private var last = -Double.infinity

    private static let longest = 0.02
    private static let most = 1_024
    private static let stepsPerClock = 16

    fileprivate init(_ control: OperationControl, _ stage: Progress.Stage, of total: Int, doing what: String) {
        self.control = control; self.stage = stage; self.total = total; self.what = what
        isActive = control.progress != nil || control.token != nil
    }

    /// A step is done, or a part of one with a count of 0.
    /// - Parameters:
    ///   - count: how many steps are done.
    ///   - bytes: how many were looked at.
    /// - Throws: `.cancelled`, and what the progress callback throws.
    @inline(__always)
    public func step(_ count: Int = 1, bytes: Int = 0) throws {
        if isActive { try look(after: count, bytes) }
    }

    private func look(after count: Int, _ bytes: Int) throws {
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

    /// Throws what ended the work, where errors of reading are passed over.
    func throwIfEnded() throws { if let ended { throw ended } }

    /// Looks at the control now: before work of which nobody knows how long it takes, and when all is done.
    /// - Throws: `.cancelled`, and what the progress callback throws.
    public func look() throws {
        guard isActive else { return }
        if let ended { throw ended }
        do {
            if let token = control.token, token.isCancelled { throw OperationControl.ended(what) }
            let state = Progress(stage: stage, completed: UInt64(max(0, completed)), total: UInt64(max(0, total)))
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

    /// Looks whether it was cancelled, and tells nobody how far it has come.
    /// - Throws: `.cancelled`, and what ended the work before.
    func lookQuietly() throws {
        if let ended { throw ended }
        guard let token = control.token, token.isCancelled else { return }
        let error = OperationControl.ended(what)
        ended = error
        throw error
    }

    /// For a part of the work that takes a control of its own. What stops that part stops the whole at its next look.
    var forPart: OperationControl {
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
    /// This control for work under a lock that the host's callbacks may ask for, too: nobody is told how far it has come.
    var quiet: OperationControl { OperationControl(token: token) }

    /// This control, for a loop of many small steps. Costs nothing when there is nothing to look at.
    /// - Parameters:
    ///   - stage: what progress callbacks are told.
    ///   - total: how many steps there will be; 0 while it is not known.
    ///   - what: for the message, as in "Opening the store at x".
    public func paced(_ stage: Progress.Stage, of total: Int = 0, doing what: @autoclosure () -> String) -> PacedControl {
        progress == nil && token == nil ? .none : PacedControl(self, stage, of: total, doing: what())
    }
}
