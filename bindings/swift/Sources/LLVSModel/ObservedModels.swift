#if canImport(Observation)
import LLVS
import LLVSAsync
import Observation

/// The objects of a collection for a user interface: they follow every save and every merge.
///
///     @State private var people: ObservedModels<Contact>
///     ...
///     List(people.objects, id: \.id) { Text($0.object.name) }
///
/// Used on the main actor. It stops following when it is released, or when the coordinator is closed.
@MainActor @Observable
public final class ObservedModels<Model: StorableModel> {
    /// The ids and objects, in the order of the ids. Those that cannot be read are left out.
    public private(set) var objects: [(id: String, object: Model)]
    /// The error that ended following; nil while it goes on.
    public private(set) var failure: (any Error)?
    /// The collection.
    @ObservationIgnored public let collection: ModelCollection<Model>
    @ObservationIgnored private var following: Task<Void, Never>?

    /// Reads the objects, and follows their changes from then on.
    /// - Throws: what `ModelCollection.readAll` throws.
    public init(_ collection: ModelCollection<Model>) async throws {
        let changes = collection.changes
        let start = changes.start
        self.collection = collection
        objects = try await onOwnThread { _ in try collection.at(start).readAll().objects }
        following = Task { [weak self] in
            do {
                for try await found in changes {
                    guard let self else { return }
                    self.apply(found)
                }
            } catch is CancellationError {} catch { self?.failure = error }
        }
    }

    deinit { following?.cancel() }

    private func apply(_ changes: [ModelChange<Model>]) {
        var byID = Dictionary(objects.map { ($0.id, $0.object) }) { $1 }
        for change in changes { byID[change.id] = change.object }
        objects = byID.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map { ($0.key, $0.value) }
    }
}
#endif
