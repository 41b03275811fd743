// Structures that cannot be models. The compiler has to report exactly these errors (scripts/suites/13-swift-models).
import LLVSModel

@Model(prefix: "a/") struct WithoutDefaults {
    var id: String
    var name: String // expected-error {{'name' needs a default}}
    let born: Int // expected-error {{'born' needs a default}}
    var town: String?
    var number = 1
}

@Model(prefix: "a/") final class AClass { var number = 1 } // expected-error {{@Model is for structures}}

@Merge(.counter) func aFunction() {} // expected-error {{@Merge and @Named stand before one property of a model}}

func made() -> Int { 1 }

@Model(prefix: "a/") struct Constants {
    let id = "1" // expected-error {{'id' cannot be stored}}
    // expected-note@-1 {{make it a variable}} {{5-8=var}}
    // expected-note@-2 {{make it static}} {{5-17=static let id = "1"}}
    let born = made() // expected-error {{'born' cannot be stored}}
    // expected-note@-1 {{make it a variable}} {{5-8=var}}
    // expected-note@-2 {{make it static}} {{5-22=static let born = made()}}
    let text = "\(made())" // expected-error {{'text' cannot be stored}}
    // expected-note@-1 {{make it a variable}} {{5-8=var}}
    // expected-note@-2 {{make it static}} {{5-27=static let text = "\\(made())"}}
    let both = [1, made()] // expected-error {{'both' cannot be stored}}
    // expected-note@-1 {{make it a variable}} {{5-8=var}}
    // expected-note@-2 {{make it static}} {{5-27=static let both = [1, made()]}}
    let kind = "contact"
    let limit = -1, list = [1: ["a"]]
    static let all = made()
    var number = 1
}

@Model(prefix: "a/") struct SeveralAtOnce {
    var (a, b) = (1, 2) // expected-error {{a pattern of several names cannot be stored}}
}

@Model(prefix: "a/") struct UnderConditions {
    #if os(Linux)
    var name: String // expected-error {{'name' needs a default}}
    #else
    let born = made() // expected-error {{'born' cannot be stored}}
    // expected-note@-1 {{make it a variable}} {{5-8=var}}
    // expected-note@-2 {{make it static}} {{5-22=static let born = made()}}
    #endif
    #if os(Linux)
    @Merge(.counter) // expected-error {{@Merge and @Named cannot stand under a condition of their own}}
    #endif
    var visits = 0
}
