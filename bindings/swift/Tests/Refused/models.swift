// What cannot be a model. The compiler has to report exactly these errors (scripts/suites/13-swift-models).
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
