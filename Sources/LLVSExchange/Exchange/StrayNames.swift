/// Names in an exchange folder that are no version ids.
package enum StrayNames {
    /// Returns whether a name is one that syncing programs and desktops leave behind, and so is not worth reporting: dotfiles (`.DS_Store`,
    /// `.syncthing.NAME.tmp`, `.NAME.icloud`), conflict copies (`NAME.sync-conflict-…`, `NAME (conflicted copy)`, `NAME (2)`),
    /// `desktop.ini`, `Thumbs.db`.
    ///
    /// A conflict copy can be ignored without loss: both copies are files of one version, and the one that kept the name is complete or is
    /// rewritten by a device that has the version.
    package static func isExpected(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        if bytes.first == UInt8(ascii: ".") { return true }
        if contains(bytes, ".sync-conflict-") || contains(bytes, "onflicted copy") { return true }
        if name == "desktop.ini" || name == "Thumbs.db" { return true }
        return isNumberedCopy(bytes)
    }

    /// Returns whether a name that could be a version id is a syncing program's copy of a version file: `ID-COMPUTER`,
    /// `ID_conflict-20240102`.
    /// - Parameter id: the id of the version in the file.
    static func isCopy(_ name: VersionID, of id: VersionID) -> Bool {
        if name == id { return false }
        let name = Array(name.description.utf8), id = Array(id.description.utf8)
        return name.count > id.count && name.starts(with: id) && [UInt8(ascii: "-"), UInt8(ascii: "_")].contains(name[id.count])
    }

    /// Matches "NAME (2)".
    private static func isNumberedCopy(_ name: [UInt8]) -> Bool {
        guard name.last == UInt8(ascii: ")"), let open = name.lastIndex(of: UInt8(ascii: "(")), open > 1,
            name[open - 1] == UInt8(ascii: " ")
        else { return false }
        let number = name[(open + 1)..<(name.count - 1)]
        return !number.isEmpty && number.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
    }

    private static func contains(_ name: [UInt8], _ part: StaticString) -> Bool {
        let length = part.utf8CodeUnitCount
        let part = UnsafeRawBufferPointer(start: part.utf8Start, count: length)
        guard name.count >= length else { return false }
        return name.withUnsafeBytes { name in
            (0...(name.count - length)).contains { Bytes.equal(UnsafeRawBufferPointer(rebasing: name[$0..<($0 + length)]), part) }
        }
    }
}
