/// Finds what remains to be sent.
extension Store {
    /// Returns the number of versions after the first `rows` rows of the history, and the bytes of the values that they stored.
    func pending(behind rows: Int) -> Syncer.Pending {
        var found = Syncer.Pending()
        forEachLive(behind: rows, {}) { ordinal, dag in
            found.versions += 1
            found.bytes &+= dag.rows[Int(ordinal)].valueDataSize
        }
        return found
    }

    /// Returns the first row whose version is among these; else the number of rows.
    func firstRow(among ids: Set<VersionID>) -> Int {
        var first = rowCount
        forEachLive(behind: 0, {}) { ordinal, dag in if Int(ordinal) < first, ids.contains(dag.id(ordinal)) { first = Int(ordinal) } }
        return first
    }

    /// Returns the first row after the first `rows` whose version is not among these; else the number of rows.
    func firstRow(behind rows: Int, notAmong ids: Set<VersionID>) -> Int {
        var first = rowCount
        forEachLive(behind: rows, {}) { ordinal, dag in
            if Int(ordinal) < first, !ids.contains(dag.id(ordinal)) { first = Int(ordinal) }
        }
        return first
    }
}
