/// A transport that exchanges with a store by itself, where the other side holds no files of single versions.
package protocol StoreTransport: ExchangeTransport {
    /// As `Exchange.retrieve`; nil: the other side has files of versions after all, and the exchange goes about it.
    func retrieve(into store: Store, verifyKnown: Bool, _ control: OperationControl) throws -> ExchangeResult?
    /// As `Exchange.send`; nil: likewise.
    func send(from store: Store, _ control: OperationControl) throws -> ExchangeResult?
    /// Whether something is listed on the other side that the store has not got, or that may complete what could not be taken; nil: the
    /// other side has files of versions, and their listing tells. Asked by an exchange whose transport `hearsItself`.
    func hasNews(for store: Store) throws -> Bool?
}

extension StoreTransport {
    package func hasNews(for store: Store) throws -> Bool? { nil }
}

/// A transport that leaves some versions to others to send.
package protocol SharingTransport: ExchangeTransport {
    /// Those that are to be sent now.
    /// - Parameter missing: those that are not there, predecessors first.
    func toSend(of missing: [VersionID], _ store: Store) throws -> [VersionID]
}

/// A transport of which each file that is fetched is a request, or may be one. Few of the files that failed before are fetched in one
/// retrieve: whoever can write there can put any number of them there, and what is new is not to wait for these.
package protocol RequestingTransport: ExchangeTransport {
    /// Files that are asked for at once. What came is kept before the next are asked for: who has little time gets on all the same.
    var filesAtOnce: Int { get }
}
extension RequestingTransport {
    package var filesAtOnce: Int { ExchangeLimits.requestsAtOnce }
}
