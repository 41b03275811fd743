import LLVSCore
import LLVSMerge
import LLVSTestHelpers
import Testing

/// The combined contents of two common ancestors of a criss-cross.
@Suite struct CrissCrossTests {
    /// The ancestor that changed the value is the older one, or the newer one.
    @Test(arguments: [["k", "x"], ["x", "k"]]) func whatOneAncestorChangedIsTheirCommonState(changed: [String]) throws {
        let store = try memoryStore()
        let root = try store.set(["k": "0"], nil)
        let ancestors = try changed.map { try store.set([$0: "1"], root) }
        func merged(_ mark: String) throws -> Version {
            try store.merge(
                ancestors[0].id, with: ancestors[1].id, arbiter: BuiltInArbiter.ours, metadata: Metadata([(bytes("mark"), bytes(mark))]))
        }
        let left = try store.set(["l": "1"], merged("1")), right = try store.set(["k": "2"], merged("2"))
        #expect(try store.mergeBases(left.id, right.id).count == 2)
        // Only the right side changed the value. So the arbiter, which would choose the left side, is not called.
        let both = try store.merge(left.id, with: right.id, arbiter: BuiltInArbiter.ours)
        #expect(try store.text("k", both) == "2")
    }
}
