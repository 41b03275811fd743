import LLVSCore

/// The result of one check of a conformance suite.
package struct CheckResult: Hashable, Sendable, CustomStringConvertible {
    package enum Outcome: UInt32, Sendable {
        case passed = 1
        case failed = 2
        /// The check does not apply, since the subject does not promise what it checks.
        case skipped = 3
    }
    /// The name of the check, as a sentence that is true if it passed.
    package var name: String
    package var outcome: Outcome
    /// What was wrong, or why it was skipped; empty if it passed.
    package var message: String
    package var description: String { "\(name): \(outcome)\(message.isEmpty ? "" : ": \(message)")" }
}

/// A check that a backend failed.
package struct ConformanceFailure: Error, CustomStringConvertible {
    package let result: CheckResult
    init(_ result: CheckResult) { self.result = result }
    package var description: String { "conformance, \(result.description)" }
}

/// A disturbance of the place where a backend stores its data.
package enum Disturbance: UInt32, Sendable {
    /// The place fails: from now on calls must fail.
    case fail = 1
    /// It works again.
    case mend = 2
    /// Data that was not synced is lost, and so are all open handles.
    case powerCut = 3
}

/// A suite of checks for backends of one kind.
package protocol ConformanceSuite {
    /// The subject of a check: one place for a backend's data, empty at first.
    associatedtype Subject
    /// The checks, in the order in which they run.
    static var checks: [Check<Subject>] { get }
}

extension ConformanceSuite {
    /// Runs all checks, each on a subject of its own.
    /// - Throws: `ConformanceFailure` for the first that fails.
    package static func run(make: () throws -> Subject) throws {
        for result in check(make: make) where result.outcome == .failed { throw ConformanceFailure(result) }
    }

    /// Runs the checks whose names contain a text (empty: all), each on a subject of its own.
    /// - Parameter finished: called with each result.
    package static func check(only text: String = "", make: () throws -> Subject, finished: (CheckResult) -> Void = { _ in })
        -> [CheckResult]
    {
        Checks.run(checks, only: text, make: make, finished: finished)
    }

    /// The names of all checks, in their order.
    package static var names: [String] { checks.map(\.name) }
}

/// One check, by name.
package struct Check<Subject>: Sendable {
    package let name: String
    package let body: @Sendable (Subject) throws -> Void
    package init(_ name: String, _ body: @escaping @Sendable (Subject) throws -> Void) { self.name = name; self.body = body }
}

/// Runs checks, and records their results.
package enum Checks {
    package struct Problem: Error {
        let message: String
        package init(message: String) { self.message = message }
    }
    package struct Skip: Error {
        let reason: String
        package init(reason: String) { self.reason = reason }
    }

    static func run<Subject>(_ checks: [Check<Subject>], only text: String, make: () throws -> Subject, finished: (CheckResult) -> Void)
        -> [CheckResult]
    {
        let wanted = Array(text.utf8)
        return checks.filter { contains(Array($0.name.utf8), wanted) }.map { check in
            let result = verdict(check, make)
            finished(result)
            return result
        }
    }

    private static func verdict<Subject>(_ check: Check<Subject>, _ make: () throws -> Subject) -> CheckResult {
        do {
            try check.body(try make())
            return CheckResult(name: check.name, outcome: .passed, message: "")
        } catch let problem as Problem {
            return CheckResult(name: check.name, outcome: .failed, message: problem.message)
        } catch let skip as Skip {
            return CheckResult(name: check.name, outcome: .skipped, message: skip.reason)
        } catch {
            return CheckResult(name: check.name, outcome: .failed, message: "an unexpected error: \(error)")
        }
    }

    private static func contains(_ text: [UInt8], _ part: [UInt8]) -> Bool {
        guard part.count <= text.count else { return false }
        return part.isEmpty || (0...text.count - part.count).contains { text[$0..<$0 + part.count].elementsEqual(part) }
    }
}

/// Throws the message if the condition is false.
package func expect(_ holds: @autoclosure () throws -> Bool, _ message: @autoclosure () throws -> String) throws {
    if try !holds() { throw Checks.Problem(message: try message()) }
}

/// Ends the check as skipped if the condition is false.
package func skip(unless holds: Bool, _ reason: String) throws {
    if !holds { throw Checks.Skip(reason: reason) }
}

/// Requires that the body throws one of the codes; empty: any.
package func expectError(_ codes: [StoreError.Code], _ what: String, _ body: () throws -> Void) throws {
    do { try body() } catch let error as StoreError {
        guard codes.isEmpty || codes.contains(error.code) else {
            throw Checks.Problem(message: "\(what) threw the code \(error.code.rawValue), not one of \(codes.map(\.rawValue)): \(error)")
        }
        return
    }
    throw Checks.Problem(message: "\(what) did not fail")
}
