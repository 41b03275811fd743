import LLVSCore
import Testing

@testable import LLVSNetwork

/// The rate of requests of an account if the service states none.
@Suite struct PaceTests {
    private func settings(_ text: String, user: String) throws -> HTTPSettings {
        var settings = HTTPSettings()
        settings.credentials = HTTPCredentials(user: user, password: "p")
        return settings.sharingPace(with: try HTTPAddress(text))
    }

    @Test func aServiceIsAskedTwentyTimesASecondInTheLongRun() throws {
        let pace = try #require(try settings("https://dav.example.org/x/", user: "pace").pace)
        let now = (Clock.steady() + 1_000).rounded()
        for _ in 0..<1_200 { try #require(pace.has(now) && pace.take(now)) }
        #expect(!pace.has(now) && !pace.take(now))
        for _ in 0..<20 { #expect(pace.take(now + 1)) }
        #expect(!pace.take(now + 1))
        // Another exchange of the same account shares the rate.
        let same = try #require(try settings("https://dav.example.org/y/", user: "pace").pace)
        let other = try #require(try settings("https://dav.example.org/x/", user: "another").pace)
        #expect(!same.take(now + 1) && other.take(now + 1))
    }

    /// A server on this machine has no limit.
    @Test func thisMachineIsAskedAsOftenAsItAnswers() throws {
        let pace = try #require(try settings("http://127.0.0.1:8080/x/", user: "pace").pace), now = Clock.steady()
        for _ in 0..<5_000 { try #require(pace.take(now)) }
    }

    @Test(arguments: [
        ("https://0123.r2.cloudflarestorage.com/", 2), ("https://r2.cloudflarestorage.com.example.org/", 4), ("https://s3.example.org/", 4),
    ])
    func transfersAtOnce(endpoint: String, most: Int) throws {
        let settings = try settings(endpoint, user: "pace")
        #expect(settings.transfersAtOnce == most)
        let transfers = CurlTransfers("the test", most: settings.transfersAtOnce, stall: settings.stall)
        #expect(transfers.hasRoom && transfers.isEmpty)
    }
}
