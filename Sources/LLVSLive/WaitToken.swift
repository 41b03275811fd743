/// Cancels one call that waits for a link or a listener.
package final class WaitToken: @unchecked Sendable {
    // Sendable: the lock of the link or listener guards the state.
    var isCancelled = false
    package init() {}
}
