import LLVS
@testable import LLVSCore

/// The note with the current version of a coordinator: two slots in a file among the store's caches.
///
///     input = how u8 (bit 0: checksums are repaired, bit 1: opened for reading) · the file
enum NotesTarget {
    static let target = FuzzTarget(name: "notes", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte()
        var file = input.rest()
        if how & 1 != 0 { for i in 0..<2 { repair(&file, i * Int(NoteFile.slotDistance)) } }
        Examining.attempt {
            let path = Folder.empty() + "/store"
            var options = StoreCoordinator.Options()
            options.store = Examining.options(.file)
            let first = try StoreCoordinator(path: path, options: options)
            let saved = try first.save([.insert(try ValueID("a"), data: [1])])
            try first.close()
            guard let name = Folder.names("store/cache").first(where: { $0.hasSuffix(".note") }) else { fail("there is no note") }
            Folder.write("store/cache/" + name, file)
            options.store.readOnly = how & 2 != 0
            let again = try StoreCoordinator(path: path, options: options)
            // The current version exists, whatever the note claims.
            let known = Set(try again.store.allVersionIDs() + [EmptyRoot.id])
            require(known.contains(again.currentVersion), "it is at \(again.currentVersion), which is not there")
            if !options.store.readOnly {
                let next = try again.save([.update(try ValueID("a"), data: [2])])
                try again.close()
                let third = try StoreCoordinator(path: path, options: options)
                require(third.currentVersion == next?.id, "the last save is not current after reopening")
                try third.close()
            } else {
                try again.close()
            }
            _ = saved
        }
        Folder.remove(Folder.path)
    }

    /// Repairs the checksum of a slot.
    private static func repair(_ file: inout [UInt8], _ at: Int) {
        guard at + NoteFile.head <= file.count else { return }
        let size = Int(Repair.integer(file, at + 16, UInt32.self))
        guard size <= NoteFile.mostData, at + NoteFile.head + size <= file.count else { return }
        Repair.put(NoteFile.magic, &file, at)
        let crc = Repair.checksum(file[(at + NoteFile.head)..<(at + NoteFile.head + size)], from: Repair.checksum(file[at..<at + 20]))
        Repair.put(crc, &file, at + 20)
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        func slot(_ number: UInt64, _ data: [UInt8]) -> [UInt8] {
            var out = ByteWriter()
            out.integer(NoteFile.magic)
            out.integer(number)
            out.integer(UInt32(data.count))
            out.integer(UInt32(0))
            out.raw(data)
            return out.bytes + [UInt8](repeating: 0, count: Int(NoteFile.slotDistance) - out.bytes.count)
        }
        let root = Array(EmptyRoot.id.description.utf8), other = Array("other".utf8)
        return [
            FuzzTarget.Seed(name: "both", bytes: [1] + slot(2, root) + slot(3, other)),
            FuzzTarget.Seed(name: "first", bytes: [1] + slot(4, other)),
            FuzzTarget.Seed(name: "parity", bytes: [1] + slot(3, root) + slot(2, other)),
            FuzzTarget.Seed(name: "highest", bytes: [1] + slot(.max - 1, root) + slot(.max, other)),
            FuzzTarget.Seed(name: "nothing", bytes: [2]), FuzzTarget.Seed(name: "wrong", bytes: [3] + slot(2, root).dropLast(400)),
        ]
    }
}
