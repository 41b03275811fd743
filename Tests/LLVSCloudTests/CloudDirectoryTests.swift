import LLVSTestHelpers
import Testing

@testable import LLVSCloud

/// Files of one name: all devices use the oldest of them, whatever a feed reports later.
@Suite("Cloud: files of one name") struct CloudDirectoryTests {
    private func file(_ id: String, _ made: String, name: String = "x") -> CloudEntry {
        CloudEntry(id: id, name: name, parents: [], size: 1, isFolder: false, made: made, digest: nil)
    }

    @Test func entriesWithWrongTimesAreSortedAgain() throws {
        var directory = CloudDirectory([file("a", "1"), file("b", "2"), file("c", "3")], in: [], token: nil)
        #expect(directory.ids("x") == ["a", "b", "c"])
        try directory.add(file("a", "4"))
        #expect(directory.ids("x") == ["b", "c", "a"] && directory.entry("x")?.id == "b")
        try directory.add(file("c", "0"))
        #expect(directory.ids("x") == ["c", "b", "a"])
        try directory.add(file("c", "0"))
        #expect(directory.ids("x") == ["c", "b", "a"], "told twice")
        try directory.add(file("b", "1", name: "y"))
        #expect(directory.ids("x") == ["c", "a"] && directory.ids("y") == ["b"])
        directory.remove("c")
        directory.remove("a")
        #expect(directory.ids("x") == nil && directory.contains("b"))
        try directory.add(file("b", "9", name: "y"))
        #expect(directory.ids("y") == ["b"] && directory.entry("y")?.made == "9")
    }
}
