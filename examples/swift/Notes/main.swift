import LLVS
import LLVSAsync

// Notes on a phone and a laptop: versions, branches, merging, and an exchange through a folder.
//
//     swift run Notes [directory]      (default: a new one in the system's temporary directory)
//
// The parts between "begin" and "end" are shown in the documentation (Sources/LLVS/LLVS.docc).
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

// MARK: A store, and its versions

// begin: arbiter
/// Keeps both texts, in alphabetical order, so that all devices merge them to the same value.
struct BothTexts: MergeArbiter {
    func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
        try merge.forks.filter(\.fork.isConflicting).map { id, fork in
            let values = try [fork.first, fork.second].compactMap { reference in try reference.flatMap { try store.value($0) } }
            return .update(id, data: Array(values.map(text).sorted().joined(separator: " + ").utf8))
        }
    }
}
// end: arbiter

func text(_ value: Value?) -> String { value.map { String(decoding: $0.data, as: UTF8.self) } ?? "(nothing)" }

func saveAndMerge(in directory: String) async throws {
    // begin: saving
    let store = try await Store.open(path: directory + "/notes.llvs")
    let note: ValueID = "note/1"
    let first = try await store.makeVersion(basedOn: nil, changes: [.insert(note, text: "hello")])
    let second = try await store.makeVersion(basedOn: first.id, changes: [.update(note, text: "hello, world")])
    // Every version remains readable.
    print("was: \(text(try await store.value(note, at: first.id))), is: \(text(try await store.value(note, at: second.id)))")
    // end: saving

    // begin: branching
    var draft = Metadata()
    draft.branch = "draft"
    let milk = Value.Change.insert("note/2", text: "milk")
    let mine = try await store.makeVersion(
        basedOn: second.id, changes: [.update(note, text: "hello, Ann"), milk], metadata: draft)
    let theirs = try await store.makeVersion(basedOn: second.id, changes: [.update(note, text: "hello, Ben")])
    print("heads on the branch: \(try store.heads(onBranch: "draft").count), in all: \(try store.heads().count)")
    // end: branching

    // begin: merging
    let merged = try await store.merge(mine.id, with: theirs.id, arbiter: BothTexts())
    for value in try await store.values(at: merged.id, limit: 10) { print("merged: \(value.id) = \(text(value))") }
    // end: merging

    // begin: verifying
    let report = try await store.verify { progress in _ = progress.completed }
    print("\(report.versions) versions, whole: \(report.isWhole)")
    try await store.close()
    // end: verifying
}

// MARK: Two devices

/// A store, attached to a folder that both devices share.
func openDevice(_ name: String, in directory: String) async throws -> (StoreCoordinator, Exchange) {
    // begin: device
    let device = try await StoreCoordinator.open(path: directory + "/" + name + ".llvs")
    let exchange = try await Exchange(store: device.store, transport: FolderTransport.open(path: directory + "/shared"))
    try await device.attach(exchange, name: "shared")
    // end: device
    return (device, exchange)
}

func exchange(in directory: String) async throws {
    let (phone, _) = try await openDevice("phone", in: directory)
    let (laptop, exchange) = try await openDevice("laptop", in: directory)

    // begin: rules
    // Notes are merged field by field; `visits` is a counter. The store holds the rules, and exchanges send them.
    let rules = #"{"merge":1,"ids":{"note/":{"/visits":"counter"}}}"#
    for device in [phone, laptop] { try await device.register(rules) }
    // end: rules

    // begin: syncing
    let note: ValueID = "note/1"
    try await phone.save([.insert(note, text: #"{"text":"milk","visits":1}"#)])
    for device in [phone, laptop] { try await device.sync() }
    // Both devices save while they are offline.
    try await phone.save([.update(note, text: #"{"text":"oat milk","visits":2}"#)])
    try await laptop.save([.update(note, text: #"{"text":"milk","visits":4}"#)])
    for device in [phone, laptop, phone] { try await device.sync() }
    print("phone: \(text(try await phone.value(note)))")
    print("laptop: \(text(try await laptop.value(note))), at the same version: \(phone.currentVersion == laptop.currentVersion)")
    // end: syncing

    // begin: observing
    // The laptop observes the folder, and syncs when new files arrive.
    let news = try exchange.news(), moves = laptop.moves()
    let listening = Task { for await _ in news { try await laptop.sync() } }
    let call: ValueID = "note/2"
    try await phone.save([.insert(call, text: #"{"text":"call Ann"}"#)])
    try await phone.sync()
    for await version in moves {
        guard let value = try await laptop.store.value(call, at: version) else { continue }
        print("the laptop heard of \(text(value))")
        break
    }
    listening.cancel()
    // end: observing
    _ = await listening.result

    // begin: cancelling
    // Cancelling a task ends the call that it waits for.
    let syncing = Task { try await phone.sync() }
    syncing.cancel()
    do {
        _ = try await syncing.value
    } catch is CancellationError {
        // Versions that were transferred completely are kept. Sync again later.
    }
    // end: cancelling
    for device in [phone, laptop] { try await device.close() }
}

/// A new directory in the system's temporary directory.
func temporaryDirectory() throws -> String {
    var name = Array("/tmp/llvs-notes-XXXXXX".utf8CString)
    return try name.withUnsafeMutableBufferPointer { name in
        guard let start = name.baseAddress, mkdtemp(start) != nil else {
            throw StoreError(.io, "No temporary directory can be made. Name a directory.", systemCode: errno)
        }
        return String(cString: start)
    }
}

do {
    let directory = try CommandLine.arguments.dropFirst().first ?? temporaryDirectory()
    try await saveAndMerge(in: directory)
    try await exchange(in: directory)
} catch {
    "\(error)\n".withCString { message in _ = write(2, message, strlen(message)) }
    exit(1)
}
