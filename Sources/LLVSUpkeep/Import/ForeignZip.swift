/// The files of a store directory in a zip: at its top, or in a single folder there, as systems pack a directory.
final class ForeignZip: ForeignFiles {
    private let archive: ZipArchive
    /// The prefix of the names: "", or "store/".
    private let prefix: String
    /// The bytes that reading entries has returned.
    private var given: UInt64 = 0
    var path: String { archive.source }

    /// Uses the store at the top if there is one, otherwise the only one in a folder, so that all readers choose the same.
    /// - Throws: `.snapshotDamaged` if there is no store, or more than one.
    init(_ archive: ZipArchive, _ control: PacedControl = .none) throws {
        self.archive = archive
        let folders = Array("/versions/".utf8)
        var isAtTop = false, prefix: ArraySlice<UInt8>?, others = false
        for name in archive.entries.keys {
            try control.step()
            if name.starts(with: folders.dropFirst()) { isAtTop = true; break }
            guard let slash = name.firstIndex(of: UInt8(ascii: "/")), name[slash...].starts(with: folders) else { continue }
            let found = name[...slash]
            others = others || !(prefix ?? found).elementsEqual(found)
            prefix = found
        }
        func damaged(_ what: String) -> StoreError {
            let message = "The zip in \(archive.source) holds \(what). Let a store that has all versions write a new snapshot."
            return StoreError(.snapshotDamaged, message, path: archive.source)
        }
        guard isAtTop || prefix != nil else { throw damaged("no store") }
        guard isAtTop || !others else { throw damaged("more than one store, and it is not known which is meant") }
        guard let prefix = String(validating: isAtTop ? [] : prefix ?? [], as: UTF8.self) else {
            throw damaged("a store in a folder whose name is not UTF-8")
        }
        self.prefix = prefix
    }

    func read(_ file: String, atMost limit: Int, _ control: PacedControl) throws -> [UInt8]? {
        let name = Array((prefix + file).utf8), all = SourceAccount.sum(given, archive.entries[name]?.size ?? 0)
        guard SourceAccount.isInProportion(all, to: archive.size) else {
            throw StoreError(
                .tooLarge,
                "\"\(file)\" was not read: what is read of the zip in \(path) would take \(all) bytes, and it has \(archive.size). What "
                    + "was read before remains. Have the store packed without compression.", path: path)
        }
        given = all
        return try archive.read(name, atMost: limit, control)
    }

    func hasFolder(_ name: String, _ control: PacedControl) throws -> Bool {
        let start = Array((prefix + name + "/").utf8)
        return try archive.entries.keys.contains {
            try control.step(); return $0.starts(with: start)
        }
    }

    func names(in folder: String, _ control: PacedControl) throws -> [String] {
        let start = Array((prefix + folder + "/").utf8)
        return try archive.entries.keys.compactMap { name in
            try control.step()
            guard name.starts(with: start), name.last != UInt8(ascii: "/") else { return nil }
            let rest = String(decoding: name[start.count...], as: UTF8.self),
                parts = rest.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            guard let first = parts.first, let last = parts.last, !StrayNames.isExpected(String(decoding: first, as: UTF8.self)) else {
                return nil
            }
            return parts.count == 1 || last.elementsEqual(".json".utf8) || !StrayNames.isExpected(String(decoding: last, as: UTF8.self))
                ? rest : nil
        }
    }

    func database(_ file: String, _ control: PacedControl) throws -> DatabaseCopy? {
        guard archive.entries[Array((prefix + file).utf8)] != nil else { return nil }
        throw StoreError(
            .foreignSnapshot,
            "The zip in \(path) holds the SQLite database \"\(file)\", which cannot be read within a zip. Use an exchange.", path: path)
    }
}
