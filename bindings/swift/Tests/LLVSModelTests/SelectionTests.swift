import LLVS
import LLVSModel
import Testing

@Suite struct SelectionTests {
    private func people(_ devices: Devices) throws -> ModelCollection<Contact> {
        let indexes =
            #""by-town":{"prefix":"contact/","on":["/home_town","/name"]},"by-tag":{"prefix":"contact/","on":["/tags/*"]},"#
            + #""by-name":{"prefix":"contact/","on":["/name"],"text":"fold"},"by-visits":{"prefix":"contact/","on":["/visits"]},"#
            + #""some":{"prefix":"contact/","on":["/stock"],"where":{"/name":"x"}}"#
        _ = try devices.phone.register(Array("{\"merge\":1,\"indexes\":{\(indexes)}}".utf8))
        let people = try devices.phone.collection(Contact.self)
        for (number, name) in ["Zoë", "Ann", "ben", "Cyd"].enumerated() {
            var contact = Contact(name: name)
            contact.town = number % 2 == 0 ? "Ulm" : "Rom"
            contact.tags = number == 3 ? [] : ["friend", "t\(number)"]
            contact.visits = number
            try people.save(contact, id: "\(number)")
        }
        return people
    }

    @Test func membersAndOrders() throws {
        let devices = try Devices(), people = try people(devices)
        #expect(try people.filter(where: ["home_town": "Ulm"]).ids() == ["0", "2"])
        #expect(try people.filter(where: ["home_town": "Ulm"]).ordered(by: "name", reversed: true).ids() == ["2", "0"])
        #expect(try people.filter(where: ["name": "BEN"]).all().map(\.object.name) == ["ben"])
        #expect(try people.filter(where: ["tags": "friend"]).count() == 3 && people.filter(where: ["tags": "t1"]).first()?.id == "1")
        #expect(try people.filter(where: ["visits": 2]).first()?.object.visits == 2 && people.filter(where: ["visits": 7]).first() == nil)
        #expect(try people.ordered(by: "name").all().map(\.object.name) == ["Ann", "ben", "Cyd", "Zoë"])
    }

    @Test func otherVersionsAndPages() throws {
        let devices = try Devices(), people = try people(devices)
        let before = people.ordered(by: "visits"), version = before.version
        try people.save(Dictionary(uniqueKeysWithValues: (0..<2_500).map { ("n\($0)", Contact(name: "N")) }))
        #expect(try before.ids() == ["0", "1", "2", "3"])
        #expect(try people.ordered(by: "visits").ids().count == 2_504 && people.ordered(by: "visits").all().count == 2_504)
        #expect(try people.ordered(by: "visits").at(version).count() == 4)
    }

    @Test func whereNoIndexServes() throws {
        let devices = try Devices(), people = try people(devices)
        for selection in [
            people.filter(where: ["bio": "x"]), people.filter(where: ["stock": 1]), people.ordered(by: "home_town", "tags"),
            people.filter(where: ["home_town": "Ulm", "visits": 1]),
        ] {
            #expect(throws: StoreError.self) { try selection.ids() }
            do { _ = try selection.count() } catch let error as StoreError { #expect(error.code == .notFound) }
        }
    }
}
