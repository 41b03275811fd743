import LLVSModel

@Model(prefix: "contact/")
struct Contact {
    var name = ""
    var tags: Set<String> = []
    @Merge(.counter) var visits = 0
}
