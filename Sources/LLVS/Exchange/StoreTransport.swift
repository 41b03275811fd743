/// A transport that exchanges with a store by itself, where the other side holds no files of single versions.
package protocol StoreTransport: ExchangeTransport {
    /// As `Exchange.retrieve`; nil: the other side has files of versions after all, and the exchange goes about it.
    func retrieve(into store: Store, verifyKnown: Bool, _ control: OperationControl) throws -> ExchangeResult?
    /// As `Exchange.send`; nil: likewise.
    func send(from store: Store, _ control: OperationControl) throws -> ExchangeResult?
}

/// A transport that leaves some versions to others to send.
package protocol SharingTransport: ExchangeTransport {
    /// Those that are to be sent now.
    /// - Parameter missing: those that are not there, predecessors first.
    func toSend(of missing: [VersionID], _ store: Store) throws -> [VersionID]
}
