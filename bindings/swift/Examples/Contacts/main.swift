// A book of contacts on two devices, whose edits are merged member by member.
//
//     swift run Contacts [directory]      (default: a new one in the system's temporary directory)
import LLVS
import LLVSModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Model struct Phone: Identifiable {
    var id: String
    var number = ""
    @Merge(.counter) var calls = 0
}

@Model(prefix: "contact/")
struct Contact {
    var name = ""
    var tags: Set<String> = []
    var phones: [Phone] = []
    @Merge(.counter) var visits = 0
    @Merge(.text) var bio = ""
    var birthday: Date?
}

extension Phone {
    init(_ id: String, _ number: String) { self.id = id; self.number = number }
}

extension Contact {
    init(_ name: String) { self.name = name }
}

func open(_ name: String, _ directory: String) throws -> ModelCollection<Contact> {
    let device = try StoreCoordinator(path: "\(directory)/\(name).llvs")
    try device.attach(Exchange(store: device.store, transport: FolderTransport(path: directory + "/shared")), name: "shared")
    return try device.collection(Contact.self)
}

let directory = CommandLine.arguments.dropFirst().first ?? FileManager.default.temporaryDirectory.path + "/contacts-\(UUID())"
let phone = try open("phone", directory), laptop = try open("laptop", directory)
func exchangeAll() throws { for device in [phone, laptop, phone] { _ = try device.coordinator.sync() } }

var ann = Contact("Ann")
ann.bio = "Plays the violin on Sundays"
ann.phones = [Phone("home", "030 1")]
try phone.save(ann, id: "1")
try exchangeAll()

// Both devices are offline, and change the same contact.
try phone.edit("1") {
    $0.tags.insert("friend")
    $0.visits += 2
    $0.bio = "Plays the violin on Sundays and Mondays"
}
try laptop.edit("1") {
    $0.tags.insert("orchestra")
    $0.visits += 3
    $0.bio = "Plays the old violin on Sundays"
    $0.phones[0].calls += 1
    $0.phones.append(Phone("work", "030 2"))
}
try exchangeAll()

// Both change the name. The later name wins until the user decides.
try phone.edit("1") { $0.name = "Anne" }
try laptop.edit("1") { $0.name = "Anna" }
try exchangeAll()
for (id, conflicts) in try phone.openConflicts() {
    for conflict in conflicts {
        func text(_ json: [UInt8]?) -> String { json.map { String(decoding: $0, as: UTF8.self) } ?? "nothing" }
        let record = conflict.record
        print("open: \(id) \(text(record.path)): \(text(record.newer)) stands, the other is \(text(record.older))")
        try phone.resolve(conflict, with: .older)
    }
}
try exchangeAll()
print("named: " + (try phone.history("1").compactMap(\.object?.name).reversed().joined(separator: ", ")))

// A value that cannot be read is reported. The other values are read.
try laptop.coordinator.save([.insert(ValueID("contact/2"), data: Array(#"{"name":7}"#.utf8))])
for (id, error) in try laptop.readAll().problems { print("not read: \(id) \(error.member)") }

for (name, device) in [("phone", phone), ("laptop", laptop)] {
    guard let contact = try device["1"] else { continue }
    print("\(name): \(contact.name), \(contact.tags.sorted()), \(contact.visits) visits, \(contact.bio)")
    print("  " + contact.phones.map { "\($0.id) \($0.number) (\($0.calls))" }.joined(separator: ", "))
}
