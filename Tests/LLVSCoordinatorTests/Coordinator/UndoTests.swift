import LLVSDocuments
import LLVSMerge
import LLVSTestHelpers
import Testing

@testable import LLVSCoordinator
@testable import LLVSCore

/// Undo and redo by device, also after a restart; rules of an app; compare and set.
@Suite("Undo, rules and compare-and-set of a coordinator") struct UndoTests {
    private func options(_ device: String?) -> StoreCoordinator.Options {
        var options = StoreCoordinator.Options()
        options.device = device
        return options
    }
    private func save(_ coordinator: StoreCoordinator, _ text: String, _ marks: [[UInt8]: String] = [:]) throws {
        try coordinator.save([.update(id("x"), data: bytes(text))], metadata: Metadata(marks.map { ($0.key, bytes("\"\($0.value)\"")) }))
    }
    private func text(_ coordinator: StoreCoordinator) throws -> String? { try CoordinatorTests.text(coordinator, "x") }

    @Test("the last save is undone first and redone last") func inTurn() throws {
        let notes = try StoreCoordinator(store: memoryStore(), options: options("a"))
        #expect(try notes.undoable().undo == nil && notes.undo().undoable == nil)
        for i in 1...3 { try save(notes, "\(i)", [UndoMarks.descriptionKey: "number \(i)"]) }
        #expect(try notes.undoable().undo?.description == "number 3" && notes.undoable().redo == nil)
        for expected in ["2", "1", nil] {
            #expect(try notes.undo().move.isMove)
            #expect(try text(notes) == expected)
        }
        #expect(try notes.undo().undoable == nil && notes.undoable().redo?.description == "number 1")
        for expected in ["1", "2", "3"] {
            _ = try notes.redo()
            #expect(try text(notes) == expected)
        }
        #expect(try notes.redo().undoable == nil)
        // After a save nothing can be redone.
        _ = try notes.undo()
        try save(notes, "4")
        #expect(try notes.undoable().redo == nil)
    }

    @Test("forged marks of other devices are ignored") func forgedMarks() throws {
        let notes = try StoreCoordinator(store: memoryStore(), options: options("a"))
        try save(notes, "1", [UndoMarks.descriptionKey: "mine"])
        let ids = (0..<25_000).map { VersionID(high: 0x4000 | UInt64($0) << 16, low: 1 << 63) }
        for forged in [[UndoMarks.undoKey: UndoMarks.json(ids)], [UndoMarks.redoKey: UndoMarks.json(ids)]] {
            var marks = try Metadata(forged.map { ($0.key, $0.value) })
            marks[UndoMarks.deviceKey] = bytes("\"a\"")
            let forger = try notes.store.makeVersion(
                basedOn: notes.currentVersion, changes: [.update(id("x"), data: bytes("forged"))], metadata: marks)
            try notes.setCurrentVersion(forger.id)
        }
        let looks = Guarded(0)
        let found = try notes.undoable(
            control: OperationControl(progress: { _ in
                looks.withLock { $0 += 1 }; return true
            }))
        #expect(found.undo?.description == "mine" && looks.withLock { $0 } > 25)
        looks.withLock { $0 = 20 }
        #expect(throws: StoreError.self) {
            try notes.undoable(
                control: OperationControl(progress: { _ in
                    looks.withLock {
                        $0 -= 1; return $0 > 0
                    }
                }))
        }
        #expect(looks.withLock { $0 } == 0)
        // Marks that are not valid JSON still name the ids that can be read, and nothing else.
        var named: [VersionID] = []
        try UndoMarks.forEachID(bytes("[\"\(ids[0])\", 7, \"a b\" \"\(ids[1])"), .none) { named.append($0) }
        #expect(named == [ids[0]])
    }

    @Test("saves of one group are one") func groups() throws {
        let notes = try StoreCoordinator(store: memoryStore(), options: options("a"))
        try save(notes, "0")
        for i in 1...3 { try save(notes, "\(i)", [UndoMarks.groupKey: "typing"]) }
        let undone = try notes.undo()
        #expect(try text(notes) == "0" && undone.undoable?.versions.count == 3)
        _ = try notes.redo()
        #expect(try text(notes) == "3")
    }

    @Test("a device undoes its own saves, also after reopening") func restarts() throws {
        let directory = TemporaryDirectory()
        try withExtendedLifetime(directory) {
            let path = directory.path + "/store"
            let one = try StoreCoordinator(path: path, options: options("a"))
            try save(one, "mine")
            try one.close()
            let other = try StoreCoordinator(path: path, options: options("b"))
            try other.save([.update(id("y"), data: bytes("theirs"))])
            #expect(try other.undoable().undo?.versions.count == 1)
            try other.close()
            let again = try StoreCoordinator(path: path, options: options("a"))
            _ = try again.undo()
            #expect(try text(again) == nil && CoordinatorTests.text(again, "y") == "theirs")
            try again.close()
        }
        let nobody = try StoreCoordinator(store: memoryStore(), options: options(nil))
        #expect(throws: StoreError.self) { try nobody.undo() }
    }

    @Test("saves that cannot be undone are skipped, also after reopening") func passedOver() throws {
        let directory = TemporaryDirectory()
        try withExtendedLifetime(directory) {
            let path = directory.path + "/store"
            func opened<R>(_ device: String, _ body: (StoreCoordinator) throws -> R) throws -> R {
                let notes = try StoreCoordinator(path: path, options: options(device))
                defer { try? notes.close() }
                return try body(notes)
            }
            let first = try opened("a") { notes in
                try save(notes, "1")
                try notes.save([.update(id("y"), data: bytes("mine"))])
                try save(notes, "2")
                return notes.currentVersion
            }
            try opened("b") { try save($0, "theirs") }
            let superseded = try opened("a") { try $0.undo() }
            #expect(superseded.undoable?.versions == [first] && superseded.reverted.version == nil && !superseded.move.isMove)
            let undone = try opened("a") { try $0.undo() }
            #expect(try undone.reverted.version != nil && undone.reverted.undone == [id("y")])
            #expect(try opened("a") { try $0.undo() }.reverted.version == nil)
            #expect(try opened("a") { try $0.undo() }.undoable == nil)
        }
    }

    @Test("rules are added; the store's own rules win") func rules() throws {
        let notes = try StoreCoordinator(store: memoryStore())
        func schema(_ ids: String) -> [UInt8] { bytes("{\"merge\":1,\"ids\":{\(ids)}}") }
        // Rules that are registered before the first save are remembered.
        let first = try notes.register(schema("\"a\":\"set\""))
        #expect(first.version == nil && !first.move.isMove)
        try notes.save([.insert(id("a"), data: bytes("[]"))])
        #expect(try notes.value(id(MergeSchema.valueID))?.data == schema("\"a\":\"set\""))
        let more = try notes.register(schema("\"a\":\"list\",\"b\":\"text\""))
        #expect(more.version != nil && more.schema.contradictions.count == 1 && more.move.isMove)
        #expect(try notes.value(id(MergeSchema.valueID))?.data == bytes("{\"ids\":{\"a\":\"set\",\"b\":\"text\"},\"merge\":1}"))
        #expect(try notes.register(schema("\"b\":\"text\"")).version == nil)
        #expect(throws: StoreError.self) { try notes.register(bytes("no rules")) }
        #expect(try notes.store.schema(at: notes.currentVersion).problem == nil)
    }

    @Test("who expects another version saves nothing, and goes again") func expected() throws {
        let notes = try StoreCoordinator(store: memoryStore())
        try save(notes, "0")
        // A transaction that retries. Each one adds one to the number that it read.
        func add(meanwhile: () throws -> Void = {}) throws -> Int {
            for attempt in 1...10 {
                let at = notes.currentVersion, number = Int(try text(notes) ?? "") ?? 0
                if attempt == 1 { try meanwhile() }
                do {
                    try notes.save([.update(id("x"), data: bytes("\(number + 1)"))], expected: at)
                    return attempt
                } catch let error as StoreError where error.code == .moved { continue }
            }
            return 0
        }
        #expect(try add() == 1)
        #expect(try add { _ = try add() } == 2)
        #expect(try text(notes) == "3")
    }
}
