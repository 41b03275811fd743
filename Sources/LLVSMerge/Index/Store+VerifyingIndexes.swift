extension Store {
    /// Reads every record and every value, and reports which are damaged and which are lost. Changes nothing except removing wrong caches.
    /// Others may read and commit meanwhile.
    ///
    /// This handle remembers the damage: its next retrieve fetches those versions and repairs them.
    /// - Parameter control: called with stage `.verifying`, after each version and at least once per MiB of values.
    /// - Complexity: reads the whole store, and the values of each index in the caches once more.
    public func verify(control: OperationControl = OperationControl()) throws -> VerifyReport {
        var report = try verifyRecords(control)
        try verifyIndexes(&report, control.paced(.verifying, doing: "Verifying the indexes of \(description)"))
        return report
    }

    /// Compares each cached index with one built from the values, since its checksum only shows that it is as it was written.
    private func verifyIndexes(_ report: inout VerifyReport, _ control: PacedControl) throws {
        for name in IndexFiles.names(in: self) {
            guard let bytes = try? storage.cacheGet(name), let definition = IndexFile.definition(of: bytes),
                IndexFile.name(definition.digest) == name,
                let kept = try IndexFiles.tree(definition, in: self, control)
            else { continue }
            let made: IndexCache.Tree
            // Damaged values are reported elsewhere.
            do { made = try IndexMaking(self, definition, control).whole(kept.ordinal) } catch let error as StoreError
                where error.code.isOfOne
            {
                continue
            }
            guard try !kept.isSame(as: made, control) else { continue }
            let version = versionID(kept.ordinal)
            let what = "the index of the values under \"\(String(decoding: definition.prefix, as: UTF8.self))\" at version \(version)"
            report.damages.append(wrongCache(name, what, version))
            IndexProvider.of(self).removeAll()
            if !storage.isReadOnly { try? storage.cacheDelete(name) }
        }
    }
}

extension IndexCache.Tree {
    /// Returns whether both have the same entries.
    fileprivate func isSame(as other: IndexCache.Tree, _ control: PacedControl) throws -> Bool {
        guard values == other.values, root?.count ?? 0 == other.root?.count ?? 0 else { return false }
        var stopped: (any Error)?
        let isSame = root?.forEach { key, _ in
            do { try control.step(0) } catch { stopped = error; return false }
            return other.root?.lookup(key) != nil
        }
        if let stopped { throw stopped }
        return isSame ?? true
    }
}
