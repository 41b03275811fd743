/// Indexes that follow the current version of a coordinator.
extension ValueIndex {
    /// Opens an index for bindings, by its name or by its definition.
    /// - Parameters:
    ///   - name: the declared name; nil if the definition is given.
    ///   - definition: JSON; empty if the name is given.
    ///   - coordinator: queries without a version use its current version; nil for the newest head.
    ///   - isWarm: whether the index is prepared at each new current version of the coordinator, on a thread of the library.
    /// - Throws: `.invalidArgument`, `.closed`.
    package convenience init(
        _ store: Store, named name: String?, definition: UnsafeRawBufferPointer, of coordinator: StoreCoordinator?, isWarm: Bool = false
    ) throws {
        guard (name == nil) != definition.isEmpty else {
            throw StoreError(.invalidArgument, "An index is opened by its name or by its definition. Give one of them.")
        }
        try self.init(store, name.map { .name($0) } ?? .definition(IndexDefinition(checking: definition)), of: coordinator, isWarm: isWarm)
    }

    /// A declared index, or a given definition.
    package enum Which {
        case name(String)
        case definition(IndexDefinition)
    }

    /// Opens a declared index, or one with a parsed definition.
    package convenience init(_ store: Store, _ which: Which, of coordinator: StoreCoordinator?, isWarm: Bool = false) throws {
        guard coordinator.map({ $0.store === store }) ?? true else {
            throw StoreError(.invalidArgument, "An index is opened with a coordinator of another store. Give the store of the coordinator.")
        }
        guard coordinator != nil || !isWarm else {
            throw StoreError(
                .invalidArgument,
                "An index is kept warm for the current version of a coordinator. Open it with one, or do not keep it warm.")
        }
        let current = coordinator.map { coordinator in { @Sendable () throws -> VersionID in coordinator.currentVersion } }
        switch which {
        case .name(let name): try self.init(store, named: name, current: current)
        case .definition(let definition): try self.init(store, definition, current: current)
        }
        guard isWarm, let coordinator else { return }
        let follower = try CurrentVersionFollower(coordinator, ifNot: "An index was not prepared") { [weak self] control in
            try self?.prepare(control)
            return self != nil
        }
        warming.withLock { $0 = follower }
    }
}

extension StoreCoordinator {
    /// Returns an index that the rules of the store declare. A query without a version uses the current version.
    /// - Parameters:
    ///   - name: the declared name.
    ///   - isWarm: whether it is prepared at each new current version, on a thread of the library, as long as the index is held.
    public func index(named name: String, isWarm: Bool = false) throws -> ValueIndex {
        try ValueIndex(store, named: name, definition: UnsafeRawBufferPointer(start: nil, count: 0), of: self, isWarm: isWarm)
    }
}
