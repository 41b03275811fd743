import LLVS
import LLVSTestSupport
import Testing

/// A store in memory.
var memory: Store.Options {
    var options = Store.Options()
    options.storage = .memory
    return options
}

final class Counter: @unchecked Sendable {
    private let lock = Lock()
    private var number = 0
    func add() { lock.withLock { number += 1 } }
    var count: Int { lock.withLock { number } }
}

final class Box<Content: Sendable>: @unchecked Sendable {
    private let lock = Lock()
    private var content: Content?
    var value: Content? {
        get { lock.withLock { content } }
        set { lock.withLock { content = newValue } }
    }
}

/// Waits until a condition holds.
func become(_ what: String, _ isSo: () throws -> Bool) async throws {
    for _ in 0..<Parallel.patience * 100 {
        if try isSo() { return }
        try await Task.sleep(nanoseconds: 10_000_000)
    }
    Issue.record("\(what) did not occur")
}

extension Store {
    /// Saves a version with these values on top of another.
    func set(_ pairs: [String: String], _ base: Version?) throws -> Version {
        try makeVersion(basedOn: base?.id, changes: pairs.map { .update(try ValueID($0), data: Array($1.utf8)) })
    }
}
