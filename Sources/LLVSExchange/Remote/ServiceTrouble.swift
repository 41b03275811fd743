/// Tracks files of one call with which a service has a lasting failure: the answer after all tries has a status of 500 to 599, or is a
/// pCloud answer that means the same. These are problems of the files, unless the service as a whole is down.
package struct ServiceTrouble {
    private var count = 0
    private var first: StoreError?
    package init() {}

    package mutating func reading(_ work: () throws -> RemoteContents) throws -> RemoteContents {
        do { return try work() } catch let error as StoreError where error.isOfServer { return .unreadable(note(error)) }
    }
    package mutating func publishing(_ work: () throws -> RemotePublished?) throws -> RemotePublished? {
        do { return try work() } catch let error as StoreError where error.isOfServer { return .refused(note(error)) }
    }
    /// Records a failure, and returns it as an error of one file.
    package mutating func note(_ error: StoreError) -> StoreError {
        var error = error
        first = first ?? error
        count += 1
        error.circumstance = .oneFile
        return error
    }

    /// The same for reading. A missing file is no failure, and neither is one that was returned.
    package func end(reading contents: [RemoteContents], _ list: () throws -> Void) throws {
        try end(of: contents.reduce(0) { count, each in if case .missing = each { count } else { count + 1 } }, list)
    }

    /// Throws if the failure is not one of single files.
    /// - Parameters:
    ///   - files: the number of requested files.
    ///   - list: a request that a service which is down does not answer.
    package func end(of files: Int, _ list: () throws -> Void) throws {
        guard let first, count == files else { return }
        guard count < StoreError.manyOfServer else { throw first }
        try list()
    }
}
