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
