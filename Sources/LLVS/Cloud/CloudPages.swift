/// The pages of a list that a service gives one after another. It may lead back to where it was, or never end.
struct CloudPages {
    /// How many there may be, and how many of them one after another with nothing on them.
    private static let most = 20_000, mostEmpty = 100
    private var tokens: Set<String> = []
    private var empty = 0

    /// Whether the list goes on with a page of that token.
    /// - Parameter count: what was on the page before.
    mutating func goOn(to next: String, behind count: Int) -> Bool {
        empty = count == 0 ? empty + 1 : 0
        return empty <= CloudPages.mostEmpty && tokens.count < CloudPages.most && tokens.insert(next).inserted
    }
}
