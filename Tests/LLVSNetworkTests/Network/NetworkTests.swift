import LLVSCore
import Testing

@testable import LLVSExchange
@testable import LLVSNetwork

/// The parts of exchanges over a network that need no server. Tests/Network has the rest.
@Suite struct NetworkTests {
    // MARK: Addresses

    private func address(_ text: String) -> HTTPAddress? { try? HTTPAddress(text) }

    @Test(arguments: [
        ("https://example.org", "https://example.org/", "example.org"),
        ("HTTPS://Example.ORG:443/a%20b/?x=1#y", "https://example.org/a%20b/", "example.org"),
        ("http://127.0.0.1:8080/dav", "http://127.0.0.1:8080/dav", "127.0.0.1:8080"),
        ("https://[::1]:444/x", "https://[::1]:444/x", "[::1]:444"),
        ("https://[FE80::1%25eth0]/x", "https://[fe80::1%25eth0]/x", "[fe80::1%25eth0]"),
        ("https://a-b_c.example.org./x", "https://a-b_c.example.org./x", "a-b_c.example.org."),
    ])
    func addresses(text: String, shown: String, authority: String) {
        #expect(address(text)?.shown == shown)
        #expect(address(text)?.authority == authority)
    }

    /// RFC 3986, section 6.2.
    @Test(arguments: [
        ("https://example.org", "https://example.org/"), ("https://EXAMPLE.org:443/a", "https://example.org/a/"),
        ("https://example.org./a/", "https://example.org/a/"), ("https://example.org/./a//b/", "https://example.org/a/b/"),
        ("https://example.org/x/../a/%2e%2E/b", "https://example.org/b/"), ("https://example.org/../a", "https://example.org/a/"),
        ("https://example.org/%61%7e%2f%c3%A9", "https://example.org/a~%2F%C3%A9/"), ("sftp://h:22/~/x", "sftp://h/~/x/"),
        ("https://example.org:444/(a)", "https://example.org:444/%28a%29/"), ("https://example.org/%zz", "https://example.org/%zz"),
    ])
    func usualSpellings(text: String, usual: String) throws {
        let address = try HTTPAddress(text, schemes: ["https", "sftp"])
        #expect(address.usual.shown == usual && address.usual.usual == address.usual)
    }

    @Test(arguments: [
        "", "https", "https:", "https:/x", "https://", "https://:80", "ftp://x/", "https://a@b/", "https://a:b@c/", "https://x:/",
        "https://x:0/",
        "https://x:65536/", "https://x:-1/", "https://[::1/", "https://x y/", "https://x/\u{0}", "https://x/\r\nA: b", "https://é/",
        "https://x\\y/", "https://a%2eb/", "https://localhost%2e/", "https://a..b/", "https://.a/", "https://a../", "https://./",
        "https://[::1]x/", "https://[]/", "https://[a]/", "https://[::g]/", "https://[::1%25/]/", "https://a]/", "https://a[b/",
        "https://x:+1/", "https://x:-0/", "https://x:0x50/", "https://[::1]:+1/",
    ])
    func whatIsNoAddress(text: String) { #expect(address(text) == nil) }

    @Test(arguments: [
        ("http://localhost/", true), ("http://127.0.0.1/", true), ("http://127.255.0.9/", true), ("http://[::1]/", true),
        ("http://127.0.0.1.org/", false),
        ("http://127.0.0/", false), ("http://127.0.0.256/", false), ("http://10.0.0.1/", false), ("http://localhost.org/", false),
        ("http://1127.0.0.1/", false), ("http://0127.0.0.1/", false), ("http://127.0.0.01/", false), ("http://127.00.0.1/", false),
        ("http://0177.0.0.1/", false), ("http://127.-0.0.1/", false), ("http://0x7f.0.0.1/", false), ("http://127.1/", false),
        ("http://2130706433/", false), ("http://[::ffff:127.0.0.1]/", false), ("http://127.0.0.1./", false), ("http://127.10.200.0/", true),
        ("http://LocalHost/", true), ("http://localhost./", false), ("http://000127.0.0.1/", false),
    ])
    func loopback(text: String, isLoopback: Bool) { #expect(address(text)?.isLoopback == isLoopback) }

    @Test(arguments: [
        ("https://x/a/b?c", "https://x/a/b"), ("//y:1/z", "https://y:1/z"), ("/z", "https://x/z"), ("z", "https://x/a/z"),
        ("?q", "https://x/a/b"),
        ("http://x/a:b", "http://x/a:b"), ("mailto:x", nil), ("", "https://x/a/"),
    ])
    func redirections(location: String, to shown: String?) throws {
        #expect((try? HTTPAddress("https://x/a/b").resolving(location))?.shown == shown)
    }

    @Test func percents() {
        #expect(PercentCoding.encode("a/é %-._~", keeping: "/") == "a/%C3%A9%20%25-._~")
        #expect(PercentCoding.encode("a/b") == "a%2Fb")
        #expect(PercentCoding.decode("a%2fB%C3%A9".utf8) == Array("a/Bé".utf8))
        for bad in ["%", "%1", "%zz", "a%2", "%+1"] { #expect(PercentCoding.decode(bad.utf8) == nil) }
    }

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Tue, 29 Feb 2000 23:59:60 GMT", 951_868_800),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Sun, 06 Nov 1994 08:49:37 UTC", nil),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Sun Nov 06 08:49:37 1994", 784_111_777),
        ("Friday, 31-Dec-69 23:59:59 GMT", 3_155_759_999), ("Thursday, 01-Jan-70 00:00:00 GMT", 0),
        ("Sunday, 06-Nov-194 08:49:37 GMT", nil), ("Sunday, 06-Nov--4 08:49:37 GMT", nil), ("Sunday, 06-Nov-94 08:49:37", nil),
        ("Sun Nov  6 08:49:37 94", nil), ("Sun 6 Nov 08:49:37 1994", nil), ("Sunday, 06-Nov-94 08:49:37 UTC", nil),
        ("", nil),
        ("Sun, 06 Nov 1994 08:49 GMT", nil), ("Sun, 99 Nov 1994 08:49:37 GMT", nil), ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", nil),
    ])
    func dates(text: String, seconds: Int64?) { #expect(HTTPDate.seconds(text) == seconds) }

    // MARK: Lists

    /// A + means a space if the service declares that names are encoded as in a query. Amazon's service writes it; others write %20.
    @Test(arguments: [
        ("<EncodingType>url</EncodingType>", "a+b%2Bc%20d", "a b+c d"), ("", "a+b%20c", "a+b c"), ("", "a%b", "a%b"),
    ])
    func namesInABucket(encoding: String, written: String, name: String) throws {
        let document = "<ListBucketResult><Contents><Key>\(written)</Key><Size>1</Size></Contents>\(encoding)</ListBucketResult>"
        let listing = try S3Listing("The list", expat: NetworkLibraries.expat(for: "a test"))
        try Array(document.utf8).withUnsafeBytes(listing.take)
        try listing.finish()
        #expect(listing.found.map(\.key) == [name])
    }

    /// A listing has the MD5 of objects that were uploaded in one request, and something else for other objects.
    @Test(arguments: [
        ("\"900150983CD24FB0D6963F7D28E17F72\"", true), ("900150983cd24fb0d6963f7d28e17f72", true),
        ("\"900150983cd24fb0d6963f7d28e17f72-2\"", nil), ("", nil), ("\"800150983cd24fb0d6963f7d28e17f72\"", false),
    ])
    func digestsInABucket(tag: String, isRight: Bool?) throws {
        let objects = "<Contents><Key>a</Key><ETag>\(tag)</ETag></Contents><Contents><Key>b</Key></Contents>"
        let document = "<ListBucketResult>\(objects)</ListBucketResult>"
        let listing = try S3Listing("The list", expat: NetworkLibraries.expat(for: "a test"))
        try Array(document.utf8).withUnsafeBytes(listing.take)
        try listing.finish()
        #expect(listing.found.first?.digest?.isRight(of: Array("abc".utf8)) == isRight && listing.found.last?.digest == nil)
    }

    // MARK: Signatures

    /// Amazon's own examples ("Signature Calculations for the Authorization Header").
    @Test(arguments: [
        (
            "https://examplebucket.s3.amazonaws.com/test.txt", "bytes=0-9",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        ),
        ("https://examplebucket.s3.amazonaws.com/?lifecycle", "", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        (
            "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", "",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        ),
    ])
    func signatures(url: String, range: String, signature: String) throws {
        var request = HTTPRequest(method: .get, address: try HTTPAddress(url), doing: "Reading")
        if !range.isEmpty { request.headers = [("Range", range)] }
        let keys = HTTPCredentials(user: "AKIAIOSFODNN7EXAMPLE", password: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
        let headers = try AWSSignature(region: "us-east-1").headers(for: request, to: request.address, keys, now: 1_369_353_600)
        #expect(headers.last?.name == "Authorization")
        #expect(headers.last?.value.hasSuffix("Signature=\(signature)") == true)
    }

    @Test func sharedCredentials() {
        let file =
            "[default]\naws_access_key_id=a\r\naws_secret_access_key = b=c \n[x]\n aws_access_key_id =d\naws_session_token= e\n nonsense\n"
        #expect(S3Location.credentials(in: file, profile: "default") == HTTPCredentials(user: "a", password: "b=c"))
        #expect(S3Location.credentials(in: file, profile: "x") == HTTPCredentials(user: "d", token: "e"))
        #expect(S3Location.credentials(in: file, profile: "y").isEmpty)
    }

    @Test func placesOfObjects() throws {
        let amazon = try S3Location("//notes/a%20b?region=eu-west-1")
        #expect(amazon.address("versions/X").text == "https://notes.s3.eu-west-1.amazonaws.com/a%20b/versions/X")
        let own = try S3Location("//notes?endpoint=https%3A%2F%2Fh:9000%2Fs3&region=r")
        #expect(own.address("x").text == "https://h:9000/s3/notes/x")
        #expect(own.bucketAddress([("prefix", "a b/")]).text == "https://h:9000/s3/notes?prefix=a%20b%2F")
        #expect(try S3Location("//notes?endpoint=https://h&addressing=virtual").address("x").text == "https://notes.h/x")
        for path in ["../x", "a/./b", "%2E%2E/x"] {
            #expect(throws: HTTPAddress.Refusal.self) { try S3Location("//notes/\(path)?region=r") }
        }
        // A name with dots matches no certificate with a wildcard.
        #expect(try S3Location("//a.b.c?region=r").address("x").text == "https://s3.r.amazonaws.com/a.b.c/x")
    }

    // MARK: Lists

    private final class Collected: XMLReader.Handler {
        var seen: [String] = []
        func begin(_ element: String) { seen.append("<\(element)") }
        func end(_ element: String) { seen.append(">\(element)") }
        func text(_ bytes: UnsafeRawBufferPointer) {
            let text = String(decoding: bytes, as: UTF8.self)
            if let last = seen.last, last.hasPrefix("'") { seen[seen.count - 1] = last + text } else { seen.append("'" + text) }
        }
    }

    private func read(_ text: String, by count: Int) throws -> [String] {
        let handler = Collected(), bytes = Array(text.utf8)
        let reader = try XMLReader("A test", expat: NetworkLibraries.expat(for: "a test"), handler: handler)
        for start in stride(from: 0, to: bytes.count, by: count) {
            try bytes[start..<min(start + count, bytes.count)].withUnsafeBytes { try reader.take($0) }
        }
        try reader.finish()
        return handler.seen
    }

    @Test(arguments: [1, 3, 1000]) func documents(count: Int) throws {
        let text = "<?xml version='1.0'?><a:x xmlns:a='DAV:'><y xmlns='n'>1&lt;<![CDATA[<2>]]>&#x33;</y><!-- no --><z/></a:x>"
        #expect(try read(text, by: count) == ["<DAV: x", "<n y", "'1<<2>3", ">n y", "<z", ">z", ">DAV: x"])
    }

    /// A document that is truncated anywhere is an error.
    @Test func documentsThatAreCut() {
        let text = "<x xmlns='DAV:'><y>1&lt;</y></x>"
        for count in 0..<text.utf8.count { #expect(throws: StoreError.self) { try read(String(text.prefix(count)), by: 7) } }
    }

    // MARK: Knowledge

    @Test func digests() throws {
        let ids = try (0..<50).map { try VersionID("V\($0)") }
        var grown = RemoteKnowledge.Digest([])
        for id in ids { grown.add(id) }
        #expect(RemoteKnowledge.Digest(ids.shuffled()) == grown)
        #expect(RemoteKnowledge.Digest(Array(ids.dropLast())) != grown)
        #expect(RemoteKnowledge.Digest(bytes: grown.bytes[...]) == grown)
        var knowledge = RemoteKnowledge()
        _ = knowledge.take(ExchangeListing(versions: ids.map(\.description)), grown, [:], [])
        var later = RemoteKnowledge()
        later.state = knowledge.state
        #expect(later.checked == grown)
        for bad in [[], [1], [2] + grown.bytes, [1] + grown.bytes + [0]] as [[UInt8]] {
            later.state = bad
            #expect(later.checked == nil)
        }
    }
}
