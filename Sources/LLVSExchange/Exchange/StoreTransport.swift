/// A transport that exchanges with a store by itself, for an other side without files of single versions.
package protocol StoreTransport: ExchangeTransport {
    /// Retrieves as `Exchange.retrieve` does. Returns nil if the other side has files of versions after all: the exchange then reads them.
    func retrieve(into store: Store, verifyKnown: Bool, _ control: OperationControl) throws -> ExchangeResult?
    /// Sends as `Exchange.send` does. Returns nil in the same case.
    func send(from store: Store, _ control: OperationControl) throws -> ExchangeResult?
    /// Returns whether the other side lists anything that the store lacks, or that may complete an unfinished retrieve. Nil if the other
    /// side has files of versions, whose listing shows it. Called by an exchange whose transport `hearsItself`.
    func hasNews(for store: Store) throws -> Bool?
}

extension StoreTransport {
    package func hasNews(for store: Store) throws -> Bool? { nil }
}

/// A transport that leaves some versions for other devices to send.
package protocol SharingTransport: ExchangeTransport {
    /// Whether it sends all that the other side lacks.
    var sendsAll: Bool { get }
    /// Returns the versions to send now.
    /// - Parameter missing: the versions that the other side lacks, predecessors first.
    func toSend(of missing: [VersionID], _ store: Store) throws -> [VersionID]
}

/// A transport for which each file fetched is, or may be, a request. A retrieve fetches few of the files that failed before: any writer can
/// put any number of bad files at the place, and new files must not wait for these.
package protocol RequestingTransport: ExchangeTransport {
    /// The number of files requested at once. Received files are stored before the next are requested, so an interrupted call also makes
    /// progress.
    var filesAtOnce: Int { get }
}
extension RequestingTransport {
    package var filesAtOnce: Int { ExchangeLimits.requestsAtOnce }
}
