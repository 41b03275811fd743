import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// A property that is stored in the value: its name, type and default as written.
struct StoredMember {
    /// As written, perhaps in backquotes.
    var name: String
    /// nil if the type follows from the default.
    var type: String?
    /// The wrapped type, if the type is optional.
    var wrapped: String?
    var initial: String?
    /// A string literal: the name of the member in the value.
    var key: String?
    /// The arguments of `@Merge`.
    var rules: [String]

    var plainName: String { name.filter { $0 != "`" } }
    /// Whether the larger or smaller side wins.
    var isPickedBySize: Bool { rules.contains { rule in [".pick(.max)", ".pick(.min)"].contains { rule.hasSuffix($0) } } }
    /// Whether it is a counter or a text.
    var isAddedTo: Bool { rules.contains { $0.contains(".counter") || $0.contains(".text") } }

    /// The properties of a model that are stored, with their `#if` conditions. Reports properties that cannot be stored.
    static func all(of structure: StructDeclSyntax, in context: some MacroExpansionContext) -> [StoredItem] {
        items(structure.memberBlock.members, in: context)
    }

    private static func items(_ list: MemberBlockItemListSyntax, in context: some MacroExpansionContext) -> [StoredItem] {
        list.flatMap { item -> [StoredItem] in
            if let variable = item.decl.as(VariableDeclSyntax.self) { return members(variable, in: context).map { .member($0) } }
            guard let conditional = item.decl.as(IfConfigDeclSyntax.self) else { return [] }
            let clauses = conditional.clauses.map { clause in
                let inside: [StoredItem] = if case .decls(let list)? = clause.elements { items(list, in: context) } else { [] }
                let condition = clause.condition.map { " " + $0.trimmedDescription } ?? ""
                return StoredItem.Clause(directive: clause.poundKeyword.text + condition, items: inside)
            }
            return clauses.allSatisfy(\.items.isEmpty) ? [] : [.conditional(clauses)]
        }
    }

    private static func members(_ variable: VariableDeclSyntax, in context: some MacroExpansionContext) -> [StoredMember] {
        if variable.modifiers.contains(where: { ["static", "class", "lazy"].contains($0.name.text) }) { return [] }
        let isConstant = variable.bindingSpecifier.tokenKind == .keyword(.let)
        var found: [StoredMember] = []
        var type: TypeSyntax?
        // `var a, b: Int`: the type follows the last name.
        for binding in variable.bindings.reversed() {
            type = binding.typeAnnotation?.type.trimmed ?? (binding.initializer == nil ? type : nil)
            guard binding.isStored else { continue }
            guard let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier.text else {
                context.diagnose(Problem.severalAtOnce.diagnostic(at: binding.pattern))
                continue
            }
            var member = StoredMember(
                name: name, type: type?.description, wrapped: type.flatMap(wrappedType),
                initial: binding.initializer?.value.trimmedDescription, key: nil, rules: [])
            // Decoding cannot set a constant that has a value already. If the value is a literal, it is the same in all objects, so
            // decoding need not set it. (But an `id` that is the same in all objects identifies no element.)
            if isConstant, let value = binding.initializer?.value {
                if member.plainName == "id" || !value.isLiteral {
                    context.diagnose(Problem.constant(member.plainName).diagnostic(at: binding, fixIts: variable.withoutConstants))
                }
                continue
            }
            if let mark = variable.attributes.firstConditionalMark {
                context.diagnose(Problem.conditionalMark.diagnostic(at: mark))
            }
            read(variable.attributes, into: &member)
            if member.initial == nil, member.wrapped == nil, member.plainName != "id" {
                context.diagnose(Problem.noDefault(member.plainName).diagnostic(at: binding))
                continue
            }
            found.append(member)
        }
        return found
    }

    /// The attributes that annotate a member.
    fileprivate static let marks = ["Merge", "Named"]

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

/// A stored property, or several under a build condition.
enum StoredItem {
    struct Clause {
        /// `#if os(Linux)`, `#elseif`, `#else`.
        let directive: String
        let items: [StoredItem]
    }

    case member(StoredMember)
    case conditional([Clause])

    var isUnconditional: Bool { if case .member = self { true } else { false } }
}

extension [StoredItem] {
    /// A line for each property, under the conditions of the property.
    func lines(_ line: (StoredMember) -> String) -> String {
        map { item in
            switch item {
            case .member(let member): return line(member)
            case .conditional(let clauses):
                return clauses.map { $0.directive + "\n" + $0.items.lines(line) + "\n" }.joined() + "#endif"
            }
        }.joined(separator: "\n")
    }
}

extension AttributeListSyntax {
    /// The first `@Merge` or `@Named` that has a condition of its own.
    fileprivate var firstConditionalMark: AttributeSyntax? {
        lazy.compactMap { $0.as(IfConfigDeclSyntax.self) }.flatMap(\.clauses).compactMap { clause in
            guard case .attributes(let list)? = clause.elements else { return nil }
            let mark = list.lazy.compactMap { $0.as(AttributeSyntax.self) }.first { StoredMember.marks.contains($0.plainName) }
            return mark ?? list.firstConditionalMark
        }.first
    }
}

extension AttributeSyntax {
    /// `Merge` of `@LLVSModel.Merge`.
    fileprivate var plainName: String { attributeName.trimmedDescription.split(separator: ".").last.map(String.init) ?? "" }
}

extension VariableDeclSyntax {
    /// The fix-its for a constant with a value.
    fileprivate var withoutConstants: [FixIt] {
        let variable = bindingSpecifier.with(\.tokenKind, .keyword(.var))
        var everybodys = self
        everybodys.leadingTrivia = []
        everybodys.modifiers = [DeclModifierSyntax(name: .keyword(.static, trailingTrivia: .space))] + modifiers
        everybodys.leadingTrivia = leadingTrivia
        return [
            FixIt(message: Repair.variable, changes: [.replace(oldNode: Syntax(bindingSpecifier), newNode: Syntax(variable))]),
            FixIt(message: Repair.everybodys, changes: [.replace(oldNode: Syntax(self), newNode: Syntax(everybodys))]),
        ]
    }
}

extension ExprSyntax {
    /// Whether the expression is the same each time.
    fileprivate var isLiteral: Bool {
        if let text = self.as(StringLiteralExprSyntax.self) { return text.segments.allSatisfy { $0.is(StringSegmentSyntax.self) } }
        if let signed = self.as(PrefixOperatorExprSyntax.self) { return signed.operator.text == "-" && signed.expression.isLiteral }
        if let array = self.as(ArrayExprSyntax.self) { return array.elements.allSatisfy(\.expression.isLiteral) }
        if let tuple = self.as(TupleExprSyntax.self) { return tuple.elements.allSatisfy(\.expression.isLiteral) }
        if let dictionary = self.as(DictionaryExprSyntax.self) {
            guard case .elements(let elements) = dictionary.content else { return true }
            return elements.allSatisfy { $0.key.isLiteral && $0.value.isLiteral }
        }
        let kinds: [SyntaxKind] = [.integerLiteralExpr, .floatLiteralExpr, .booleanLiteralExpr, .nilLiteralExpr]
        return kinds.contains(kind)
    }
}

extension PatternBindingSyntax {
    /// Whether it is stored, not computed; observers do not matter.
    fileprivate var isStored: Bool {
        switch accessorBlock?.accessors {
        case nil: true
        case .getter: false
        case .accessors(let list): list.allSatisfy { ["willSet", "didSet"].contains($0.accessorSpecifier.text) }
        }
    }
}

/// An error in a model, reported at its place.
enum Problem: DiagnosticMessage {
    case notAStruct
    case notAMember
    case noDefault(String)
    case constant(String)
    case severalAtOnce
    case conditionalMark

    var message: String {
        switch self {
        case .notAStruct: "@Model is for structures"
        case .notAMember: "@Merge and @Named stand before one property of a model"
        case .noDefault(let name):
            "'\(name)' needs a default: a merge can leave a member out that one side removed, and a version of the app that does not know "
                + "it writes none. Give it one, or make it optional"
        case .constant(let name):
            "'\(name)' cannot be stored: nothing can be read into a constant that has a value, so each read would make that value anew. "
                + "Make it a variable, or static if it is the same for all objects"
        case .severalAtOnce: "a pattern of several names cannot be stored; declare each property by itself"
        case .conditionalMark: "@Merge and @Named cannot stand under a condition of their own; put the whole property under it"
        }
    }
    var diagnosticID: MessageID {
        let id =
            switch self {
            case .notAStruct: "notAStruct"
            case .notAMember: "notAMember"
            case .noDefault: "noDefault"
            case .constant: "constant"
            case .severalAtOnce: "severalAtOnce"
            case .conditionalMark: "conditionalMark"
            }
        return MessageID(domain: "LLVSModel", id: id)
    }
    var severity: DiagnosticSeverity { .error }

    func diagnostic(at node: some SyntaxProtocol, fixIts: [FixIt] = []) -> Diagnostic {
        Diagnostic(node: Syntax(node), message: self, fixIts: fixIts)
    }
}

/// A fix that an editor offers for a problem.
enum Repair: String, FixItMessage {
    case variable = "make it a variable"
    case everybodys = "make it static"

    var message: String { rawValue }
    var fixItID: MessageID { MessageID(domain: "LLVSModel", id: rawValue) }
}
