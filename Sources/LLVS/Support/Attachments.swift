/// What layers above keep with an object of a layer below, which does not know of them: one object of each type.
final class Attachments: Sendable {
    private let kept = Guarded<[ObjectIdentifier: any AnyObject & Sendable]>([:])

    /// The object of a type, made when it is first asked for. Of two that are made at once one is let go of.
    func object<T: AnyObject & Sendable>(_ type: T.Type, _ make: () -> T) -> T {
        if let known = kept.withLock({ $0[ObjectIdentifier(type)] as? T }) { return known }
        let made = make()
        return kept.withLock { kept in
            if let known = kept[ObjectIdentifier(type)] as? T { return known }
            kept[ObjectIdentifier(type)] = made
            return made
        }
    }
}
