import Foundation
import LLVS
import LLVSModel
import Testing

@Suite struct ErrorTests {
    @Test func anErrorOfTheStoreIsItsSentenceToo() {
        let error: any Error = StoreError(.notFound, "There is no store at /x. Give the path of one.")
        #expect(error.localizedDescription == "There is no store at /x. Give the path of one.")
    }
}
