/// Follows the pages of a list. Detects lists that return to an earlier page or never end.
struct CloudPages {
    /// The most pages, and the most successive empty pages.
    private static let most = 20_000, mostEmpty = 100
    private var tokens: Set<String> = []
    private var empty = 0

    /// Returns whether to continue with the page of a token.
    /// - Parameter count: the number of items on the page before.
    mutating func goOn(to next: String, behind count: Int) -> Bool {
        empty = count == 0 ? empty + 1 : 0
        return empty <= CloudPages.mostEmpty && tokens.count < CloudPages.most && tokens.insert(next).inserted
    }
}
