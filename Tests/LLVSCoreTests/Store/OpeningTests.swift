import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Opening polls its control, in every kind of storage.
@Suite struct OpeningTests {
    private static let versions = 3_000

    private static func options(_ kind: String, _ control: OperationControl = OperationControl()) -> Store.Options {
        var options = Store.Options()
        options.storage = kind.hasPrefix("sqlite") ? .sqlite : .file
        options.durability = .normal
        options.control = control
        return options
    }

    private final class Heard: @unchecked Sendable {
        var all: [OperationProgress] = []
        var limit = Int.max
        /// Cancels at the poll of number `limit`, once.
        var control: OperationControl {
            OperationControl(progress: { [self] in
                all.append($0); return all.count != limit
            })
        }
    }

    /// Opens from an index of the history, and from the records.
    @Test(arguments: ["file", "sqlite", "file, without caches", "sqlite, without caches"]) func openingIsCancelledAnywhere(kind: String)
        throws
    {
        let directory = TemporaryDirectory(), path = directory.path + "/store"
        do {
            let store = try Store(path: path, options: Self.options(kind))
            var last: VersionID?
            for i in 0..<Self.versions {
                last = try store.makeVersion(basedOn: last, changes: [.insert(ValueID("v\(i % 20)"), data: [1])]).id
            }
            try store.close()
            if kind.hasSuffix("without caches") {
                let storage = try Store.makeStorage(path, Self.options(kind))
                try storage.cacheDelete(Store.historyName)
                try storage.close(discarding: false)
            }
        }
        let whole = Heard()
        try Store(path: path, options: Self.options(kind, whole.control)).close()
        #expect(whole.all.count >= 5 && whole.all.map(\.completed) == whole.all.map(\.completed).sorted())
        #expect(whole.all.last?.completed == UInt64(Self.versions) && whole.all.allSatisfy { $0.stage == .reading })
        for limit in 1...5 {
            let heard = Heard()
            heard.limit = limit
            let thrown = #expect(throws: StoreError.self) { _ = try Store(path: path, options: Self.options(kind, heard.control)) }
            #expect(thrown?.code == .cancelled && heard.all.count == limit)
        }
        // A caller's error with the code for damage is not mistaken for damage.
        let failing = OperationControl(progress: { state in
            if state.completed > 1_000 { throw StoreError(.damaged, "of the caller") }
            return true
        })
        let thrown = #expect(throws: StoreError.self) { _ = try Store(path: path, options: Self.options(kind, failing)) }
        #expect(thrown?.code == .damaged && thrown?.message == "of the caller")
        let store = try Store(path: path, options: Self.options(kind))
        #expect(try store.statistics().versions == UInt64(Self.versions) && store.statistics().damaged == 0)
        try store.close()
    }

    /// The control of a loop polls now and then, and stays cancelled.
    @Test func aPacedControlLooksNowAndThen() throws {
        let heard = Heard(), paced = heard.control.paced(.reading, doing: "Trying")
        for _ in 0..<2_000 { try paced.step() }
        #expect(heard.all.count >= 2 && heard.all.count < 1_000)
        let before = heard.all.count
        try paced.step(bytes: 1 << 20)
        #expect(heard.all.count == before + 1)
        heard.limit = heard.all.count + 1
        #expect(throws: StoreError.self) { try paced.look() }
        #expect(throws: StoreError.self) { try paced.look() }
        #expect(heard.all.count == before + 2)
        // Cancelling a part cancels the whole.
        let other = Heard(), whole = other.control.paced(.reading, doing: "Trying")
        other.limit = 1
        #expect(throws: StoreError.self) { try whole.forPart.check(.writing, 0, of: 0, doing: "A part") }
        #expect(throws: StoreError.self) { try whole.look() }
    }

    @Test func timesThatCannotBeAreRefused() throws {
        for seconds in [-1, -.infinity, .infinity, Double.nan] {
            var grace = Store.Options(), busy = Store.Options()
            (grace.storage, busy.storage) = (.memory, .memory)
            (grace.compactionGrace, busy.busyTimeout) = (seconds, seconds)
            for options in [grace, busy] {
                do {
                    _ = try Store(path: "", options: options)
                    Issue.record("\(seconds) s were accepted")
                } catch let error as StoreError { #expect(error.code == .invalidArgument) }
            }
        }
    }
}
