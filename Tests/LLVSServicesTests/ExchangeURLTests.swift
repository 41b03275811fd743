import LLVSCore
import LLVSExchange
import LLVSServices
import LLVSTestHelpers
import Testing

@testable import LLVSNetwork

/// Exchanges with places that are given by URL, from Swift.
@Suite struct ExchangeURLTests {
    private static func memory() throws -> Store {
        var options = Store.Options()
        options.storage = .memory
        return try Store(path: "", options: options)
    }

    @Test func versionsGoThroughThePlaceOfAURL() throws {
        let directory = TemporaryDirectory()
        let folders = ["file://\(directory.path)/a%20place", "file:\(directory.path)/b", "FILE://localhost\(directory.path)/c"]
        for url in folders + ["memory:ExchangeURLTests"] {
            let here = try Self.memory(), there = try Self.memory()
            let version = try here.makeVersion(basedOn: nil, changes: [.insert(ValueID("x"), data: [1])])
            let sending = try Exchange(store: here, url: url)
            _ = try sending.send()
            #expect(try Exchange(store: there, url: url).retrieve().versions == [version.id], "\(url)")
            sending.close()
        }
        #expect(try FolderTransport(path: directory.path + "/a place").list(OperationControl()).versions.count == 1)
    }

    @Test(arguments: [
        ("", StoreError.Code.invalidArgument), ("/x", .invalidArgument), (":x", .invalidArgument), ("memory:", .invalidArgument),
        ("file:x", .invalidArgument), ("file://host/x", .invalidArgument), ("file:///x%2", .invalidArgument),
        ("file:///x%00", .invalidArgument), ("file:///%FF", .invalidArgument), ("ftp://host/x", .unsupported),
        ("http+webdav://host/x", .invalidArgument),
    ]) func whatIsNoURLIsRefused(url: String, code: StoreError.Code) throws {
        do {
            _ = try Exchange(store: Self.memory(), url: url)
            Issue.record("\(url) was accepted")
        } catch let error as StoreError { #expect(error.code == code, "\(url): \(error)") }
    }

    /// The linked services have registered their schemes.
    @Test func anUnknownSchemeNamesTheBuiltInOnes() throws {
        let error = #expect(throws: StoreError.self) { try Exchange(store: Self.memory(), url: "ftp://host/x") }
        let schemes = "file:, memory:, https+webdav:, s3:, sftp:, gdrive:, onedrive:, box:, pcloud:, cloudkit:"
        #expect(error?.message.contains("not built in; \(schemes) are. Others") == true, "\(error?.message ?? "")")
    }

    @Test func optionsAreChecked() throws {
        let store = try Self.memory(), directory = TemporaryDirectory()
        func code(_ url: String, _ change: (inout Exchange.URLOptions) -> Void) -> StoreError.Code? {
            var place = Exchange.URLOptions()
            change(&place)
            do { _ = try Exchange(store: store, url: url, options: place); return nil } catch { return (error as? StoreError)?.code }
        }
        #expect(code("file://\(directory.path)/none") { $0.mustExist = true } == .notFound)
        let server = "https+webdav://localhost:1/x"
        #expect(
            code(server) {
                $0.user = "ann"; $0.password = "secret"
            } == nil)
        #expect(code(server) { $0.token = "secret" } == nil)
        #expect(
            code(server) {
                $0.user = "ann"; $0.token = "secret"
            } == .invalidArgument)
        for text in ["a\r\nHost: b", "a\u{0}", "\u{7F}"] {
            #expect(code(server) { $0.user = text } == .invalidArgument)
            #expect(code(server) { $0.password = text } == .invalidArgument)
            #expect(code(server) { $0.token = text } == .invalidArgument)
            #expect(code(server) { $0.certificateAuthorities = text } == .invalidArgument)
            #expect(code(server) { $0.proxy = text } == .invalidArgument)
        }
        #expect(code(server) { $0.askForCredentials = { _, _ in Exchange.Credentials(token: "secret") } } == nil)
        #expect(
            code(server) {
                $0.user = "ann"; $0.askForCredentials = { _, _ in Exchange.Credentials() }
            } == .invalidArgument)
    }

    @Test func aServerIsReachedAsTheOptionsSay() throws {
        var place = Exchange.URLOptions()
        #expect(place.timeout == 30)
        place.certificateAuthorities = "/etc/ours.pem"
        place.proxy = "http://localhost:3128"
        place.askForCredentials = { place, again in Exchange.Credentials(user: place, password: again ? "new" : "a\nb") }
        for (seconds, whole) in [(0.2, 1), (1, 1), (1.5, 2), (90, 90), (1e9, 86_400), (-1, 1), (.nan, 1)] {
            place.timeout = seconds
            #expect(HTTPSettings(place).stall == whole, "\(seconds)")
        }
        let http = HTTPSettings(place)
        #expect(http.certificateAuthorities == "/etc/ours.pem" && http.proxy == "http://localhost:3128")
        let refused = HTTPCredentials()
        #expect(try http.credentials(for: "here", refused: refused, {}) == Exchange.Credentials(user: "here", password: "new"))
        #expect(throws: StoreError.self, "a line end") { try http.credentials(for: "here", refused: nil, {}) }
        #expect(try HTTPSettings().credentials(for: "here", refused: nil, {}) == nil)
    }
}
