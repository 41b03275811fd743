import LLVSTestSupport
import Testing

/// Runs `body` on a thread of its own. Records an issue if it throws or does not end.
package func expectEnd(_ body: @escaping () throws -> Void, at place: SourceLocation = #_sourceLocation) {
    nonisolated(unsafe) var failure: (any Error)?
    let ended = Parallel.finishes {
        do { try body() } catch { failure = error }
    }
    #expect(ended, "it hangs", sourceLocation: place)
    if ended, let failure { Issue.record(failure, sourceLocation: place) }
}
