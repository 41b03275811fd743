/// Caches that can be rebuilt from what is stored. They are emptied if a call finds that memory is short.
package enum GivingWay {
    private static let lock = Lock(.leaf)
    private nonisolated(unsafe) static var caches: [ObjectIdentifier: @Sendable () -> Void] = [:]

    /// - Parameter forget: empties the caches. Called on any thread that holds none of the library's locks.
    package static func add(_ owner: AnyObject, _ forget: @escaping @Sendable () -> Void) {
        lock.withLock { caches[ObjectIdentifier(owner)] = forget }
    }
    package static func remove(_ owner: AnyObject) {
        let gone = lock.withLock { caches.removeValue(forKey: ObjectIdentifier(owner)) }
        withExtendedLifetime(gone) {}
    }
    static func forgetAll() { for forget in lock.withLock({ Array(caches.values) }) { forget() } }
}
