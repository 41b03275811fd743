import LLVSModel

@Model(prefix: "contact/")
struct Contact {
    var name = ""
    var tags: Set<String> = []
    @Merge(.counter) var visits = 0
}

/// Opens a device that meets the others in a folder.
func open(_ name: String, sharing folder: String) async throws -> ModelCollection<Contact> {
    var options = StoreCoordinator.Options()
    options.device = name
    let device = try await StoreCoordinator.open(path: "\(name).llvs", options: options)
    try await device.connect(to: folder)
    return try await device.collection(Contact.self)
}

@main struct Contacts {
    static func main() async throws {
        let phone = try await open("phone", sharing: "file:///tmp/contacts")
        let laptop = try await open("laptop", sharing: "file:///tmp/contacts")
        try await phone.save(Contact(name: "Ann"), id: "ann")
        for device in [phone, laptop] { try await device.coordinator.sync() }

        // Both devices change the same contact while they are apart.
        try await phone.edit("ann") { $0.visits += 1 }
        try await laptop.edit("ann") {
            $0.visits += 2
            $0.tags.insert("friend")
        }
        for device in [phone, laptop, phone] { try await device.coordinator.sync() }
        let ann = try await phone.object("ann")
        print(ann?.visits ?? 0, ann?.tags ?? [])

        // From now on a syncer exchanges and merges by itself.
        let syncer = try Syncer(phone.coordinator)
        let changes = phone.changes
        let following = Task {
            for try await list in changes {
                for change in list { print(change.kind, change.id, "by", change.device ?? "a merge") }
            }
        }
        try await phone.edit("ann") { $0.name = "Anne" }
        try await syncer.run()
        for device in [phone, laptop] { try await device.coordinator.close() }
        try await following.value
    }
}
