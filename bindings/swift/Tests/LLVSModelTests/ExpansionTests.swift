import LLVSModelMacros
import SwiftParser
import SwiftSyntax
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacrosGenericTestSupport
import Testing

/// What the macro says of structures that cannot be models.
@Suite struct ExpansionTests {
    private let macros: [String: MacroSpec] = [
        "Model": MacroSpec(type: ModelMacro.self), "Merge": MacroSpec(type: MarkMacro.self),
    ]

    private func problems(_ source: String) -> [String] {
        let context = BasicMacroExpansionContext()
        let file = Parser.parse(source: source)
        _ = file.expand(macroSpecs: macros) { _ in context }
        return context.diagnostics.map(\.message)
    }

    @Test func aMemberWithoutADefaultIsTold() {
        let members = "var id: String; var name: String; let born: Int; var town: String?; var n = 1"
        let found = problems("@Model(prefix: \"a/\") struct A { \(members) }")
        #expect(found.count == 2)
        #expect(found.first?.hasPrefix("'name' needs a default") == true && found.last?.hasPrefix("'born' needs a default") == true)
    }

    @Test func classesAreNone() {
        #expect(problems("@Model(prefix: \"a/\") final class A { var n = 1 }") == ["@Model is for structures"])
    }

    @Test func aMarkStandsBeforeOneProperty() {
        #expect(problems("@Merge(.counter) func f() {}") == ["@Merge and @Named stand before one property of a model"])
    }
}
