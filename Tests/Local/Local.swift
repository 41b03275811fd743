/// A program of a package without the trait `Network`: two devices save, exchange through a folder and merge; the rest is refused.
import LLVS
import LLVSAsync

@main struct Local {
    static func open(_ name: String, in folder: String) async throws -> StoreCoordinator {
        let notes = try await StoreCoordinator.open(path: "\(folder)/\(name).llvs")
        try await notes.connect(to: "file://\(folder)/shared")
        return notes
    }

    static func main() async throws {
        let folder = CommandLine.arguments[1], phone = try await open("phone", in: folder), laptop = try await open("laptop", in: folder)
        try await phone.save([.insert("note/1", text: "milk")])
        try await laptop.save([.insert("note/2", text: "bread")])
        for device in [phone, laptop, phone] { try await device.sync() }
        for try await value in phone.store.allValues(at: phone.currentVersion) { print(value.id, value.text) }
        for url in ["https+webdav://localhost:1/notes", "s3://bucket/notes", "gdrive:notes"] {
            do {
                _ = try await phone.connect(to: url)
                print("connected to \(url)")
            } catch let error as StoreError where error.code == .unsupported {
                print(error.message.contains("without the trait Network") ? "refused" : error.message)
            }
        }
        for device in [phone, laptop] { try await device.close() }
    }
}
