/// Caches the last rules of a store that were parsed: every merge asks for them, and they seldom change.
package final class SchemaCache: Sendable {
    private enum Outcome {
        case rules(MergeSchema)
        case invalid(InvalidRules)
    }

    private static let most = 4
    /// Longer rules are parsed each time.
    private static let longest = 1 << 20
    private let known = Guarded<[(bytes: [UInt8], outcome: Outcome)]>([])

    /// Returns the rules in the bytes.
    /// - Throws: `InvalidRules`, `.outOfMemory`.
    package func schema(_ bytes: UnsafeRawBufferPointer) throws -> MergeSchema {
        let found = known.withLock { known in
            known.first { entry in entry.bytes.withUnsafeBytes { Bytes.equal($0, bytes) } }?.outcome
        }
        switch try found ?? read(bytes) {
        case .rules(let schema): return schema
        case .invalid(let problem): throw problem
        }
    }

    private func read(_ bytes: UnsafeRawBufferPointer) throws -> Outcome {
        let outcome: Outcome
        do {
            outcome = .rules(try MergeSchema(bytes))
        } catch let problem as InvalidRules {
            outcome = .invalid(problem)
        }
        guard bytes.count <= Self.longest else { return outcome }
        known.withLock { known in
            if known.count == Self.most { known.removeFirst() }
            known.append((Array(bytes), outcome))
        }
        return outcome
    }
}

extension Store {
    /// The rules for merging that were read last.
    package var schemaCache: SchemaCache { attachments.object(SchemaCache.self) { SchemaCache() } }
}
