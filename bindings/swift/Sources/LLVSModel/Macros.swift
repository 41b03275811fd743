/// Makes a structure one whose instances are values of a store, and are merged member by member.
///
///     @Model(prefix: "contact/")
///     struct Contact {
///         var name = ""
///         var tags: Set<String> = []
///         @Merge(.counter) var visits = 0
///         @Merge(.text) var bio = ""
///         var phones: [Phone] = []
///     }
///
/// Each stored property is a member of the JSON object that the value is, under its own name or that of `@Named`. It has a default, or is
/// optional: a merge can leave a member out that one side removed, and a version of the app that does not know it writes none.
/// (A property `id` needs none: elements of lists are told apart by it.)
///
/// A property under `#if` is a member in the builds that have it. The other builds keep it as it is, as any member that they do not know.
/// Static, lazy and computed properties are no members. A constant with a value (`let id = UUID()`) is an error, since nothing can be read
/// into it. Only if the value is a literal and the name is not `id`, it is allowed, and no member: it is the same in all objects.
///
/// What kind of merging a member gets goes by its type: `Set` is a set; an array whose elements are `Identifiable` a list of elements that
/// are told apart by `id`; a structure that is a model or a part of one is merged member by member; any other type that is coded as an
/// object stands as a whole. `@Merge` says otherwise, and a static member `rules` says what stands at no member
/// (`StorableModel.rules`).
/// - Parameter prefix: what the ids of its values begin with, as "contact/". No other model has ids that begin so.
@attached(
    extension, conformances: StorableModel,
    names: named(CodingKeys), named(init(from:)), named(encode(to:)), named(mergePatterns), named(idPrefix))
public macro Model(prefix: String) = #externalMacro(module: "LLVSModelMacros", type: "ModelMacro")

/// Makes a structure one that can be a part of a model: a member, or an element of a list.
@attached(
    extension, conformances: ModelPart, names: named(CodingKeys), named(init(from:)), named(encode(to:)), named(mergePatterns))
public macro Model() = #externalMacro(module: "LLVSModelMacros", type: "ModelMacro")

/// Says how a member is merged: `@Merge(.counter) var visits = 0`.
@attached(peer)
public macro Merge(_ rules: MergeRule...) = #externalMacro(module: "LLVSModelMacros", type: "MarkMacro")

/// Says what a member is called in the value: `@Named("full_name") var fullName = ""`.
@attached(peer)
public macro Named(_ name: String) = #externalMacro(module: "LLVSModelMacros", type: "MarkMacro")
