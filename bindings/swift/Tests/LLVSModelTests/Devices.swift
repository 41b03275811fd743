import LLVS
import LLVSModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Two devices that exchange through a folder.
final class Devices {
    let directory: String
    let phone: StoreCoordinator, laptop: StoreCoordinator

    /// - Parameter merger: decides for both devices, where rules leave the decision to it.
    init(merger: (any ValueMerger)? = nil) throws {
        let directory = FileManager.default.temporaryDirectory.path + "/llvs-model-\(UUID())"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        func open(_ name: String) throws -> StoreCoordinator {
            var options = StoreCoordinator.Options()
            options.device = name
            options.arbiter = RulesArbiter(merger: merger)
            let device = try StoreCoordinator(path: "\(directory)/\(name).llvs", options: options)
            try device.attach(Exchange(store: device.store, transport: FolderTransport(path: directory + "/shared")), name: "shared")
            return device
        }
        self.directory = directory
        (phone, laptop) = (try open("phone"), try open("laptop"))
    }

    func sync() throws { for device in [phone, laptop, phone] { _ = try device.sync() } }
    deinit { try? FileManager.default.removeItem(atPath: directory) }
}

func text(_ coordinator: StoreCoordinator, _ id: String) throws -> String? {
    try coordinator.value(ValueID(id)).map { String(decoding: $0.data, as: UTF8.self) }
}

func save(_ text: String, _ id: String, in coordinator: StoreCoordinator) throws {
    try coordinator.save([.update(ValueID(id), data: Array(text.utf8))])
}
