import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSLive

@Suite("Live: sockets") struct LiveSocketTests {
    /// The advice in an error depends on the failure.
    @Test func eventsOfConnecting() {
        func told(_ code: Int32, isToListen: Bool = false) -> StoreError { LiveSocket.failure(Errno(code), isToListen, "It") }
        let (reset, refused) = (told(ECONNRESET), told(ECONNREFUSED))
        #expect(reset.message.contains("reset the connection while it was made") && reset.message.hasSuffix("Connect again in a minute."))
        #expect(refused.message.hasSuffix("Check that it listens there.") && !refused.message.contains("while it was made"))
        #expect(told(EADDRINUSE, isToListen: true).message.hasSuffix("Give another address."))
        #expect(reset.code == .transport && refused.code == .transport)
    }
}
