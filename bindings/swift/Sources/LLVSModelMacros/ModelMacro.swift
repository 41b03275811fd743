import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Model(prefix:)` and `@Model`: coding that tolerates missing members, and the rules for merging.
///
/// All generated code is in an extension, so that the structure keeps its memberwise initializer.
public struct ModelMacro: ExtensionMacro {
    public static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax, providingExtensionsOf type: some TypeSyntaxProtocol,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard let structure = declaration.as(StructDeclSyntax.self) else {
            throw DiagnosticsError(diagnostics: [Problem.notAStruct.diagnostic(at: node)])
        }
        let members = StoredMember.all(of: structure, in: context)
        let access = structure.modifiers.contains { ["public", "package"].contains($0.name.text) } ? "public " : ""
        var made = [
            keys(members), initializer(members, access), encoder(members, access), patterns(members, access), paths(members, access),
        ]
        if let prefix = prefix(of: node) {
            made.append("\(raw: access)static var idPrefix: String { \(prefix) }")
        }
        let conformance = prefix(of: node) == nil ? "LLVSModel.ModelPart" : "LLVSModel.ModelPart, LLVSModel.StorableModel"
        let body = made.map(\.description).joined(separator: "\n")
        return [try ExtensionDeclSyntax("extension \(type.trimmed): \(raw: conformance) {\n\(raw: body)\n}")]
    }

    private static func prefix(of node: AttributeSyntax) -> ExprSyntax? {
        guard case .argumentList(let arguments)? = node.arguments else { return nil }
        return arguments.first { $0.label?.text == "prefix" }?.expression.trimmed
    }

    private static func keys(_ members: [StoredItem]) -> DeclSyntax {
        guard !members.isEmpty else { return "enum CodingKeys: CodingKey {}" }
        var cases = members.lines { member in member.key.map { "case \(member.name) = \($0)" } ?? "case \(member.name)" }
        // (An enumeration of strings needs at least one case, even if no condition holds.)
        if !members.contains(where: \.isUnconditional) { cases += "\ncase __llvs_none" }
        return "enum CodingKeys: String, CodingKey {\n\(raw: cases)\n}"
    }

    private static func initializer(_ members: [StoredItem], _ access: String) -> DeclSyntax {
        let reads = members.lines { member in
            let key = "forKey: .\(member.name)"
            if let wrapped = member.wrapped {
                return "self.\(member.name) = try members.optional(\(wrapped).self, \(key), else: \(member.initial ?? "nil"))"
            }
            guard let initial = member.initial else {
                return "self.\(member.name) = try members.decode(\(member.type ?? "").self, \(key))"
            }
            return "self.\(member.name) = try members.value(\(key), else: \(initial))"
        }
        let container = members.contains(where: \.isUnconditional) ? "let members = try" : members.isEmpty ? "_ = try" : "var members = try"
        return """
            \(raw: access)init(from decoder: any Decoder) throws {
            \(raw: container) decoder.container(keyedBy: CodingKeys.self)\(raw: used(members))
            \(raw: reads)
            }
            """
    }

    private static func encoder(_ members: [StoredItem], _ access: String) -> DeclSyntax {
        let writes = members.lines { member in
            // (nil is omitted only if the default is nil: otherwise it would be read as the default.)
            let encode = member.wrapped == nil || ![nil, "nil"].contains(member.initial) ? "encode" : "encodeIfPresent"
            let own = member.isPickedBySize ? "LLVSModel.ModelCoding.sortable(self.\(member.name))" : "self.\(member.name)"
            return "try members.\(encode)(\(own), forKey: .\(member.name))"
        }
        let container = members.isEmpty ? "_ =" : "var members ="
        return """
            \(raw: access)func encode(to encoder: any Encoder) throws {
            \(raw: container) encoder.container(keyedBy: CodingKeys.self)\(raw: used(members))
            \(raw: writes)
            }
            """
    }

    private static func patterns(_ members: [StoredItem], _ access: String) -> DeclSyntax {
        let list = members.lines { member in
            let rules = "[\(member.rules.joined(separator: ", "))]"
            let type = member.type.map { "\($0).self" } ?? "LLVSModel.MergePattern.type(of: \(member.initial ?? ""))"
            let key = member.key ?? "\"\(member.plainName)\""
            let initial = member.wrapped == nil || member.isAddedTo ? member.initial ?? "nil" : "nil"
            return "members += LLVSModel.MergePattern.member(\(key), \(type), \(rules), from: \(initial))"
        }
        let container = members.isEmpty ? "let" : "var"
        return """
            \(raw: access)static var mergePatterns: [LLVSModel.MergePattern] {
            \(raw: container) members: [LLVSModel.MergePattern] = []\(raw: used(members))
            \(raw: list)
            return members
            }
            """
    }

    private static func paths(_ members: [StoredItem], _ access: String) -> DeclSyntax {
        let list = members.lines { member in
            "members += LLVSModel.ModelMember.of(\\Self.\(member.name), \(member.key ?? "\"\(member.plainName)\""))"
        }
        let container = members.isEmpty ? "let" : "var"
        return """
            \(raw: access)static var memberPaths: [LLVSModel.ModelMember<Self>] {
            \(raw: container) members: [LLVSModel.ModelMember<Self>] = []\(raw: used(members))
            \(raw: list)
            return members
            }
            """
    }

    /// Refers to `members`, in case no other code does: the compiler warns about unused variables.
    private static func used(_ members: [StoredItem]) -> String {
        members.isEmpty || members.contains(where: \.isUnconditional) ? "" : "\nLLVSModel.ModelCoding.use(&members)"
    }
}

/// `@Merge` and `@Named` annotate a member; `@Model` reads them.
public struct MarkMacro: PeerMacro {
    public static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard declaration.as(VariableDeclSyntax.self)?.bindings.count == 1 else {
            throw DiagnosticsError(diagnostics: [Problem.notAMember.diagnostic(at: node)])
        }
        return []
    }
}
