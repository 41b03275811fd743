/// Makes the instances of a structure values of a store, which are merged member by member.
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
/// Each stored property is a member of the value, which is a JSON object, under its own name or that of `@Named`. It must have a default,
/// or be optional: a merge can omit a member that one side removed, and an app version that does not know the member does not write it. (A
/// property `id` needs no default: it identifies elements of lists.)
///
/// A property under `#if` is a member in the builds that have it. The other builds keep it unchanged, as any member that they do not know.
/// Static, lazy and computed properties are not members. A constant with a value (`let id = UUID()`) is an error, since decoding cannot set
/// it. The exception is a literal value under another name than `id`: it is allowed and not a member, since it is the same in all objects.
///
/// The type of a member decides how it is merged: a `Set` as a set; an array of `Identifiable` elements as a list of elements identified by
/// `id`; a structure that is a model or a part of one member by member; any other type that is coded as an object as a whole. `@Merge`
/// overrides that. Rules for other places are in a static member `rules` (`StorableModel.rules`).
/// - Parameter prefix: the prefix of the ids of its values, such as "contact/". No other model may use it.
@attached(
    extension, conformances: ModelPart, StorableModel,
    names: named(CodingKeys), named(init(from:)), named(encode(to:)), named(mergePatterns), named(memberPaths), named(idPrefix))
public macro Model(prefix: String) = #externalMacro(module: "LLVSModelMacros", type: "ModelMacro")

/// Lets a structure be a part of a model: a member, or an element of a list.
@attached(
    extension, conformances: ModelPart,
    names: named(CodingKeys), named(init(from:)), named(encode(to:)), named(mergePatterns), named(memberPaths))
public macro Model() = #externalMacro(module: "LLVSModelMacros", type: "ModelMacro")

/// Sets how a member is merged: `@Merge(.counter) var visits = 0`.
@attached(peer)
public macro Merge(_ rules: MergeRule...) = #externalMacro(module: "LLVSModelMacros", type: "MarkMacro")

/// Sets the name of a member in the value: `@Named("full_name") var fullName = ""`.
@attached(peer)
public macro Named(_ name: String) = #externalMacro(module: "LLVSModelMacros", type: "MarkMacro")
