import LLVSCore

// Short forms for tests.

package func id(_ text: String) throws -> ValueID { try ValueID(text) }
package func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
package func insert(_ id: String, _ text: String) throws -> Value.Change { .insert(try ValueID(id), data: Array(text.utf8)) }
package func update(_ id: String, _ text: String) throws -> Value.Change { .update(try ValueID(id), data: Array(text.utf8)) }

/// Returns the code of the error that the closure throws, `.internal` for an error without a code; nil if it throws none.
package func code(_ body: () throws -> Void) -> StoreError.Code? {
    do { try body(); return nil } catch let error as StoreError { return error.code } catch { return .internal }
}

/// Whether a text contains another one, compared by bytes.
package func contains(_ text: String, _ part: String) -> Bool {
    let text = Array(text.utf8), part = Array(part.utf8)
    return text.count >= part.count && (0...(text.count - part.count)).contains { text[$0...].starts(with: part) }
}

/// Counts from any thread.
package final class Counter: @unchecked Sendable {
    // Sendable: `lock` guards the count.
    private let lock = Lock()
    private var count = 0
    package init() {}
    package func next() -> Int {
        lock.withLock {
            defer { count += 1 }
            return count
        }
    }
    package var value: Int { lock.withLock { count } }
}
