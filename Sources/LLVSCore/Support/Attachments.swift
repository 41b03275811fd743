/// Objects that higher layers attach to an object of a lower layer, which does not know them: one object of each type.
package final class Attachments: Sendable {
    private let kept = Guarded<[ObjectIdentifier: any AnyObject & Sendable]>([:])

    /// Returns the object of a type, which is created on first use. If two are created at once, one is released.
    package func object<T: AnyObject & Sendable>(_ type: T.Type, _ make: () -> T) -> T {
        if let known = kept.withLock({ $0[ObjectIdentifier(type)] as? T }) { return known }
        let made = make()
        return kept.withLock { kept in
            if let known = kept[ObjectIdentifier(type)] as? T { return known }
            kept[ObjectIdentifier(type)] = made
            return made
        }
    }
}
