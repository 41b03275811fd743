// Calls that block. In async functions the compiler refuses them, and names what to await (scripts/suites/13-swift-models).
import LLVSModel

@Model(prefix: "a/") struct Note {
    var text = ""
}

func initializers(_ path: String, _ definition: ProjectionDefinition, _ options: PeerSession.Options) async throws {
    let store = try Store(path: path) // expected-error {{Store.open(path:options:)}}
    _ = try StoreCoordinator(path: path) // expected-error {{StoreCoordinator.open(path:options:)}}
    _ = try StoreCoordinator(store: store) // expected-error {{StoreCoordinator.open(store:options:)}}
    _ = try Exchange(store: store, url: "file:///x") // expected-error {{Exchange.open(store:url:options:)}}
    _ = try FolderTransport(path: path) // expected-error {{FolderTransport.open(path:options:)}}
    _ = try Projection(store, path: path, definition) // expected-error {{Projection.open(_:path:_:options:)}}
    _ = try PeerListener(at: "127.0.0.1:0", options: options) // expected-error {{PeerListener.listen(at:options:)}}
    _ = try PeerLink(store, to: "127.0.0.1:1", options: options) // expected-error {{PeerLink.connect(_:to:options:within:)}}
}

func calls(_ notes: ModelCollection<Note>, _ projection: Projection, _ source: ValueSource) async throws {
    let store = notes.coordinator.store, version = notes.coordinator.currentVersion, reference = Value.Reference(id: "a", version: version)
    _ = try notes["1"] // expected-error {{object(_:)}}
    _ = try notes.at(version)["1"] // expected-error {{object(_:)}}
    _ = try store.withValue(reference) { $0.count } // expected-error {{value(_:)}}
    _ = try store.batch([reference]) // expected-error {{values(at:in:after:limit:)}}
    _ = try store.walk() // expected-error {{versions(matching:)}}
    _ = try projection.version // expected-error {{readVersion()}}
    _ = try notes.coordinator.save([], reading: [source]) // expected-error {{whose sources are a closure}}
    _ = try store.makeVersion(basedOn: version, changes: [], reading: [source]) // expected-error {{whose sources are a closure}}
    // Without `await` these would block: the compiler asks for it.
    _ = try store.value("a", at: version) // expected-error {{}} expected-note {{call is 'async'}}
}

/// The same calls where they may block.
func inOneThread(_ notes: ModelCollection<Note>, _ path: String) throws {
    _ = try Store(path: path).value("a", at: notes.coordinator.currentVersion)
    _ = try notes["1"]
}
