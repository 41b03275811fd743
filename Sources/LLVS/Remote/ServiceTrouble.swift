/// Files of one call with which a service has trouble that lasts, as after all tries an answer of 500 to 599 tells, or one of pCloud that
/// says the same: problems of these files, by name, unless the service as a whole is down.
struct ServiceTrouble {
    private var count = 0
    private var first: StoreError?

    mutating func reading(_ work: () throws -> RemoteContents) throws -> RemoteContents {
        do { return try work() } catch let error as StoreError where error.isOfServer { return .unreadable(note(error)) }
    }
    mutating func publishing(_ work: () throws -> RemotePublished?) throws -> RemotePublished? {
        do { return try work() } catch let error as StoreError where error.isOfServer { return .refused(note(error)) }
    }
    /// The same, as an error of one file.
    mutating func note(_ error: StoreError) -> StoreError {
        var error = error
        first = first ?? error
        count += 1
        error.circumstance = .oneFile
        return error
    }

    /// The same of reading: a file that is not there was no trouble, and none that was given.
    func end(reading contents: [RemoteContents], _ list: () throws -> Void) throws {
        try end(of: contents.reduce(0) { count, each in if case .missing = each { count } else { count + 1 } }, list)
    }

    /// Ends the call where it is no trouble of single files.
    /// - Parameters:
    ///   - files: how many were asked for.
    ///   - list: what a service that is down as a whole does not answer.
    func end(of files: Int, _ list: () throws -> Void) throws {
        guard let first, count == files else { return }
        guard count < StoreError.manyOfServer else { throw first }
        try list()
    }
}
