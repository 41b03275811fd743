import LLVS
import LLVSModel
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests/Vectors/documents/model_edits.json: random edits of one object on two devices. The merged values are those of the Python model
/// (Tests/Python/documents). Tests/Python/test_model_shared.py tests the same file.
@Suite struct RandomEditTests {
    private struct Vectors: Decodable {
        struct Edit: Decodable {
            let name: String
            let number: Int

            init(from decoder: any Decoder) throws {
                var both = try decoder.unkeyedContainer()
                (name, number) = (try both.decode(String.self), try both.decode(Int.self))
            }
        }
        struct Round: Decodable {
            /// The edits of the device that saves first, and of the other.
            let first: [Edit]
            let second: [Edit]
            /// The expected value after the sync.
            let value: String
        }
        struct Case: Decodable { let rounds: [Round] }
        let base: String
        let cases: [Case]
    }

    /// Makes the edit that Tests/Vectors/documents/model_edits.py makes in the JSON.
    private static func make(_ edit: Vectors.Edit, _ one: inout SharedContact) {
        let n = edit.number, at = one.phones.isEmpty ? nil : n % one.phones.count
        switch edit.name {
        case "rename": one.name = "N\(n)"
        case "tag": one.tags.formSymmetricDifference([["a", "b", "c", "d", "e", "f"][n % 6]])
        case "sell": one.stock -= n
        case "write_line":
            var lines = one.bio.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            lines[n % lines.count] = "line \(n)"
            one.bio = lines.joined(separator: "\n")
        case "add_line": one.bio += "more \(n)\n"
        case "call": if let at { one.phones[at].calls += n }
        case "dial": if let at { one.phones[at].number = "\(n)" }
        case "add_phone":
            guard !one.phones.contains(where: { $0.id == "p\(n)" }) else { break }
            one.phones.append(SharedPhone(id: "p\(n)", number: "\(n)", calls: n))
        case "drop_phone": if let at { one.phones.remove(at: at) }
        case "move_phone": if let at { one.phones.insert(one.phones.remove(at: at), at: 0) }
        case "see": one.seen = Date(timeIntervalSince1970: 1_798_761_600 + Double(n) / 4)
        case "shelve": one.shelf = "S\(n)"
        case "set": one.settings["k\(n % 3)"] = "\(n)"
        case "unset": one.settings["k\(n % 3)"] = nil
        case "relocate": one.town = "T\(n)"
        case "forget_town": one.town = nil
        case "level": one.level = n % 2 == 1 ? .low : .high
        case "count": one.more["m\(n % 3)"] = n
        case "discount": one.more["m\(n % 3)"] = nil
        case "place": one.place = SharedPlace(x: Double(n), y: -Double(n) / 2)
        case "forget_place": one.place = nil
        case "weigh": one.ratio = Double(n) / 4
        case "activate": one.active = n % 2 == 0
        default: Issue.record("no edit \(edit.name)")
        }
    }

    private func meaning(_ text: String?) throws -> JSONValue? {
        try text.map { try JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) }
    }

    @Test func randomEditsComeToWhatTheModelSays() throws {
        var folder = URL(fileURLWithPath: #filePath)
        for _ in 0..<5 { folder.deleteLastPathComponent() }
        let file = folder.appendingPathComponent("Tests/Vectors/documents/model_edits.json")
        let vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
        #expect(vectors.cases.count >= 150)
        for (number, one) in vectors.cases.enumerated() {
            let devices = try Devices()
            try save(vectors.base, "shared/1", in: devices.phone)
            try devices.sync()
            for (i, round) in one.rounds.enumerated() {
                for (device, edits) in [(devices.phone, round.first), (devices.laptop, round.second)] where !edits.isEmpty {
                    try device.collection(SharedContact.self).edit("1") { one in for edit in edits { Self.make(edit, &one) } }
                }
                try devices.sync()
                let expected = try meaning(round.value)
                for device in [devices.phone, devices.laptop] {
                    let found = try text(device, "shared/1")
                    #expect(try meaning(found) == expected, "case \(number), round \(i): \(found ?? "nothing")")
                }
            }
        }
    }
}
