import LLVS

/// The value that prevails under an id: the version that stored it, and the bytes.
struct Held: Equatable {
    var stored: VersionID
    var data: [UInt8]
}

/// A version in the model, with all its ancestors and its whole state.
struct ModelVersion {
    var version: Version
    /// The changes as the store that made the version recorded them.
    var changes: [Value.Change]
    var predecessors: [Int]
    /// Includes the version itself.
    var ancestors: VersionSet
    var state: [ValueID: Held]
}

/// All versions that any store made in a history, in plain dictionaries and sets. Shares nothing with the engine; a store's answers are
/// compared with it.
struct Model {
    private(set) var versions: [ModelVersion] = []
    private(set) var numbers: [VersionID: Int] = [:]

    subscript(number: Int) -> ModelVersion { versions[number] }
    subscript(id: VersionID) -> ModelVersion? { numbers[id].map { versions[$0] } }

    /// Adds a version with its expected state, or finds the equal version of another store. Checks that the recorded changes lead to that
    /// state.
    /// - Throws: `Failure` if the changes lead to another state, or if a change is not canonical.
    mutating func add(_ version: Version, _ changes: [Value.Change], state: [ValueID: Held]) throws -> Int {
        var ancestors = VersionSet()
        let predecessors = try version.predecessors.map { id in
            guard let number = numbers[id] else { throw Failure("unknown predecessor", "\(version.id) builds on \(id)") }
            return number
        }
        for number in predecessors { ancestors.formUnion(versions[number].ancestors) }
        let before = predecessors.first.map { versions[$0].state } ?? [:]
        var after = before, size = 0
        var last: ValueID?
        for change in changes {
            let id = change.id
            if let last, !(last < id) { throw Failure("changes out of order", "\(version.id): \(last), \(id)") }
            last = id
            if predecessors.count < 2, [.preserve, .preserveRemoval].contains(change.kind) {
                throw Failure("preserve without a merge", "\(version.id) says \(change.kind) of \(id)")
            }
            switch change {
            case .insert(_, let data):
                if before[id] != nil { throw Failure("wrong label", "\(version.id) inserts \(id), which exists") }
                after[id] = Held(stored: version.id, data: data)
                size += data.count
            case .update(_, let data):
                if before[id] == nil { throw Failure("wrong label", "\(version.id) updates \(id), which is not there") }
                after[id] = Held(stored: version.id, data: data)
                size += data.count
            case .remove, .preserveRemoval:
                if before[id] == nil { throw Failure("idle change", "\(version.id) removes \(id), which is not there") }
                after[id] = nil
            case .preserve(let reference):
                guard let stored = numbers[reference.version], ancestors.contains(stored), let data = versions[stored].stored(id) else {
                    throw Failure("wrong reference", "\(version.id) preserves \(id) of \(reference.version)")
                }
                if before[id]?.stored == reference.version { throw Failure("idle change", "\(version.id) preserves \(id) as it is") }
                after[id] = Held(stored: reference.version, data: data)
            }
        }
        if after != state { throw Failure("wrong changes", "\(version.id) says \(describe(after)), not \(describe(state))") }
        if version.valueDataSize != UInt64(size) { throw Failure("wrong size", "\(version.id) says \(version.valueDataSize), not \(size)") }
        if let known = numbers[version.id], version.id != EmptyRoot.id, versions[known].version == version, versions[known].state == state {
            // Another store saved the same content at the same time on the same predecessor: it is one version.
            return known
        }
        let number = versions.count
        ancestors.insert(number)
        guard numbers.updateValue(number, forKey: version.id) == nil else { throw Failure("made twice", "\(version.id)") }
        versions.append(ModelVersion(version: version, changes: changes, predecessors: predecessors, ancestors: ancestors, state: state))
        return number
    }

    func isNewer(_ a: Int, _ b: Int) -> Bool { Version.canonicalOrder(versions[b].version, versions[a].version) }
    func isNewer(_ a: VersionID, _ b: VersionID) -> Bool {
        guard let x = numbers[a], let y = numbers[b] else { return b < a }
        return isNewer(x, y)
    }

    /// Sorts by age, newest first.
    func newestFirst(_ numbers: [Int]) -> [Int] { numbers.sorted(by: isNewer) }

    /// The versions without successors among the known ones. The empty root is not included: it is virtual while no version builds on it.
    func heads(of known: VersionSet) -> [Int] {
        let all = known.numbers
        let behind = VersionSet(all.flatMap { versions[$0].predecessors })
        return newestFirst(all.filter { !behind.contains($0) && versions[$0].version.id != EmptyRoot.id })
    }

    /// The versions without a branch that are not ancestors of another such version.
    func unbranchedHeads(of known: VersionSet) -> [Int] {
        let all = known.numbers.filter { versions[$0].version.branch == nil && versions[$0].version.id != EmptyRoot.id }
        let behind = all.flatMap { versions[$0].predecessors }.reduce(into: VersionSet()) { $0.formUnion(versions[$1].ancestors) }
        return newestFirst(all.filter { !behind.contains($0) })
    }

    /// Returns the best common ancestors of one version and any of `some`, newest first: those that are not ancestors of another common
    /// ancestor.
    func bestCommonAncestors(_ some: [Int], _ one: Int) -> [Int] {
        let left = some.reduce(into: VersionSet()) { $0.formUnion(versions[$1].ancestors) }
        let common = left.intersection(versions[one].ancestors)
        let behind = common.numbers.reduce(into: VersionSet()) { set, number in
            for predecessor in versions[number].predecessors { set.formUnion(versions[predecessor].ancestors) }
        }
        return newestFirst(common.subtracting(behind).numbers)
    }

    func isAncestor(_ a: Int, of b: Int) -> Bool { a != b && versions[b].ancestors.contains(a) }

    func name(_ id: VersionID?) -> String { id.map { id in numbers[id].map { "V\($0)" } ?? "\(id)" } ?? "nothing" }
    func describe(_ state: [ValueID: Held]) -> String {
        "["
            + state.sorted { $0.key < $1.key }.map { "\($0.key): \(shortened($0.value.data)) of \(name($0.value.stored))" }.joined(
                separator: ", ") + "]"
    }
    func describe(_ change: Value.Change) -> String {
        switch change {
        case .insert(let id, let data): "insert \(id) = \(shortened(data))"
        case .update(let id, let data): "update \(id) = \(shortened(data))"
        case .remove(let id): "remove \(id)"
        case .preserve(let reference): "preserve \(reference.id) of \(name(reference.version))"
        case .preserveRemoval(let id): "preserve the removal of \(id)"
        }
    }
    func shortened(_ data: [UInt8]) -> String {
        data.count <= 24
            ? String(decoding: data, as: UTF8.self) : "\(String(decoding: data.prefix(8), as: UTF8.self))… (\(data.count) bytes)"
    }
}

extension ModelVersion {
    /// The bytes that the version itself stored under an id.
    func stored(_ id: ValueID) -> [UInt8]? {
        for change in changes {
            switch change {
            case .insert(id, let data), .update(id, let data): return data
            default: continue
            }
        }
        return nil
    }
}

/// What went wrong in a history.
struct Failure: Error {
    /// Equal for failures that probably have the same cause. Shrinking keeps it.
    var kind: String
    var detail: String
    init(_ kind: String, _ detail: String) { self.kind = kind; self.detail = detail }
}

extension StoreError.Code {
    /// A name for readers of the output.
    var name: String {
        let names: [StoreError.Code: String] = [
            .transport: "transport", .cancelled: "cancelled", .missingChanges: "missing changes",
            .missingPredecessor: "missing predecessor",
            .missingVersion: "missing version", .invalidJSON: "invalid JSON", .cutShort: "cut short", .invalidBase64: "invalid base64",
            .identifierMismatch: "identifier mismatch",
            .snapshotDamaged: "snapshot damaged", .snapshotMissing: "snapshot missing", .versionMismatch: "version mismatch",
            .damaged: "damaged",
        ]
        return names[self] ?? "\(rawValue)"
    }
}
