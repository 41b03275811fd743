import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// A property that is kept in the value: its name, type and default as they are written.
struct StoredMember {
    /// As it is written, perhaps in backquotes.
    var name: String
    /// nil when the type is to be told from the default.
    var type: String?
    /// What `Optional` wraps, when the type is one.
    var wrapped: String?
    var initial: String?
    /// A string literal: what the member is called in the value.
    var key: String?
    /// The arguments of `@Merge`.
    var rules: [String]

    var plainName: String { name.filter { $0 != "`" } }
    /// Whether one side stands because it is the larger or smaller.
    var isPickedBySize: Bool { rules.contains { rule in [".pick(.max)", ".pick(.min)"].contains { rule.hasSuffix($0) } } }
    /// Whether it is a counter or a text.
    var isAddedTo: Bool { rules.contains { $0.contains(".counter") || $0.contains(".text") } }

    /// The properties of a model that are kept. What cannot be is told, and left out.
    static func all(of structure: StructDeclSyntax, in context: some MacroExpansionContext) -> [StoredMember] {
        var found: [StoredMember] = []
        for variable in structure.memberBlock.members.compactMap({ $0.decl.as(VariableDeclSyntax.self) }) {
            if variable.modifiers.contains(where: { ["static", "class", "lazy"].contains($0.name.text) }) { continue }
            let isConstant = variable.bindingSpecifier.tokenKind == .keyword(.let)
            var type: TypeSyntax?
            // `var a, b: Int`: the type stands behind the last.
            for binding in variable.bindings.reversed() {
                type = binding.typeAnnotation?.type.trimmed ?? (binding.initializer == nil ? type : nil)
                guard binding.isStored, let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier.text else { continue }
                // A constant with a value says nothing of the object.
                if isConstant, binding.initializer != nil { continue }
                var member = StoredMember(
                    name: name, type: type?.description, wrapped: type.flatMap(wrappedType),
                    initial: binding.initializer?.value.trimmedDescription, key: nil, rules: [])
                read(variable.attributes, into: &member)
                if member.initial == nil, member.wrapped == nil, member.plainName != "id" {
                    context.diagnose(Problem.noDefault(member.plainName).diagnostic(at: binding))
                    continue
                }
                found.append(member)
            }
        }
        return found
    }

    private static func read(_ attributes: AttributeListSyntax, into member: inout StoredMember) {
        for attribute in attributes.compactMap({ $0.as(AttributeSyntax.self) }) {
            guard case .argumentList(let arguments)? = attribute.arguments else { continue }
            switch attribute.attributeName.trimmedDescription {
            case "Merge", "LLVSModel.Merge": member.rules += arguments.map(\.expression.trimmedDescription)
            case "Named", "LLVSModel.Named": member.key = arguments.first?.expression.trimmedDescription
            default: break
            }
        }
    }

    private static func wrappedType(_ type: TypeSyntax) -> String? {
        if let optional = type.as(OptionalTypeSyntax.self) { return optional.wrappedType.trimmedDescription }
        if let name = type.as(IdentifierTypeSyntax.self), name.name.text == "Optional",
            let argument = name.genericArgumentClause?.arguments.first
        {
            return argument.argument.trimmedDescription
        }
        return nil
    }
}

extension PatternBindingSyntax {
    /// Whether it is kept, and not computed; observers do not matter.
    fileprivate var isStored: Bool {
        switch accessorBlock?.accessors {
        case nil: true
        case .getter: false
        case .accessors(let list): list.allSatisfy { ["willSet", "didSet"].contains($0.accessorSpecifier.text) }
        }
    }
}

/// What a model cannot be, told where it stands.
enum Problem: DiagnosticMessage {
    case notAStruct
    case notAMember
    case noDefault(String)

    var message: String {
        switch self {
        case .notAStruct: "@Model is for structures"
        case .notAMember: "@Merge and @Named stand before one property of a model"
        case .noDefault(let name):
            "'\(name)' needs a default: a merge can leave a member out that one side removed, and a version of the app that does not know "
                + "it writes none. Give it one, or make it optional"
        }
    }
    var diagnosticID: MessageID {
        let id =
            switch self {
            case .notAStruct: "notAStruct"
            case .notAMember: "notAMember"
            case .noDefault: "noDefault"
            }
        return MessageID(domain: "LLVSModel", id: id)
    }
    var severity: DiagnosticSeverity { .error }

    func diagnostic(at node: some SyntaxProtocol) -> Diagnostic { Diagnostic(node: Syntax(node), message: self) }
}
