import LLVS
import LLVSModel
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Model(prefix: "n/") struct OldNote {
    var title = ""
    var observer: String? = "nobody"
    @Merge(.counter) var count = 0
}

@Model(prefix: "n/") struct Note {
    static let upgrades: [ModelUpgrade] = [{ if let observer = $0["observer"] { $0["by"] = observer } }]
    static let rules: [String: [MergeRule]] = [
        "schema": [.json(["at": "/form", "renames": [["to": 2, "from": "/observer", "path": "/by"]]])]
    ]
    var title = ""
    var by: String? = "nobody"
}

@Model(prefix: "k/") struct CountedBefore {
    @Merge(.counter) var stars = 0
    @Merge(.text) var text = ""
}

@Model(prefix: "k/") struct PlainNow {
    var stars = 0
    var text = ""
    var more = 0
}

/// Apps that use an earlier form, and kinds that a later model no longer declares.
@Suite struct FormTests {
    @Test func olderProgramsReadThroughRenames() throws {
        let devices = try Devices(), old = try devices.phone.collection(OldNote.self), new = try devices.phone.collection(Note.self)
        try old.save(OldNote(title: "Marsh", observer: "Ann", count: 3), id: "1")
        let before = devices.phone.currentVersion
        try new.edit("1") { $0.title = "Marsh 2" }
        for name in ["Anna", "Bea"] {
            try old.edit("1") { $0.observer = name }
            #expect(try old["1"]?.observer == name && new["1"]?.by == name)
            try new.edit("1") { $0.by = "\(name) Zoe" }
            #expect(try old["1"]?.observer == "\(name) Zoe")
        }
        #expect(try old.at(before)["1"]?.observer == "Ann" && old.all().map(\.object.observer) == ["Bea Zoe"])
        #expect(try old.history("1").prefix(2).map(\.object?.observer) == ["Bea Zoe", "Bea"])
        try new.edit("1") { $0.by = nil }
        #expect(try old["1"]?.observer == nil && old["1"]?.count == 3)
        try old.save(OldNote(title: "Moor", observer: "Dan", count: 3), id: "1")
        #expect(try new["1"]?.by == "Dan")
    }

    @Test func kindsThatWereTakenBackAreTold() throws {
        let devices = try Devices(), phone = devices.phone
        try phone.collection(CountedBefore.self).save(CountedBefore(stars: 1, text: "a"), id: "1")
        #expect(try phone.collection(CountedBefore.self).contradictions == [])
        let told = try phone.collection(PlainNow.self).contradictions
        #expect(told.map(\.pattern) == ["/stars", "/text"])
        #expect(told.map(\.store) == ["\"counter\"", "\"text\""] && told.allSatisfy { $0.model == "\"auto\"" })
    }
}
