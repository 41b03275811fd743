import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSNetwork

/// Listings of SFTP servers. Tests/Network/test_sftp.py uses a real server.
@Suite struct SFTPListingTests {
    private func line(_ text: String) -> SFTPListing.Line? { SFTPListing.read(Array(text.utf8)) }

    @Test(arguments: [
        ("-rw-r--r--    1 ann      staff        2048 Nov 25 21:29 name", "name", false, 2048, ["Nov", "25", "21:29"]),
        ("-rw-r--r--+   ? 0        0              0 Nov  5  2024 a  b ", "a  b ", false, 0, ["Nov", "5", "2024"]),
        ("drwxr-xr-x    2 root     root         4096 Jan 31 00:00 .", ".", true, 4096, ["Jan", "31", "00:00"]),
        ("lrwxrwxrwx    1 root     root            7 Jan 31 00:00 a -> b", "a -> b", true, 7, ["Jan", "31", "00:00"]),
        // Users and groups whose names contain spaces, some of which look like other columns.
        ("-rw-------    1 DOM\\Ann B Domain Users 12 Feb 28 23:59 x", "x", false, 12, ["Feb", "28", "23:59"]),
        ("-rw-------    1 7 Feb 12 3 Mar 1 1999 x", "x", false, 3, ["Mar", "1", "1999"]),
    ])
    func lines(text: String, name: String, isDirectory: Bool, size: Int, date: [String]) {
        #expect(line(text) == SFTPListing.Line(name: name, isDirectory: isDirectory, size: size, date: date))
    }

    @Test(arguments: [
        "", " ", "total 8", "name", "<html><body>", "-rw-r--r-- 1 a b 5 Nov 25 21:29", "-rw-r--r-- 1 a b 5 Nov 25 21:29 ",
        "-rw-r--r-- 1 a b -5 Nov 25 21:29 x", "-rw-r--r-- 1 a b 99999999999999999999 Nov 25 21:29 x", "-rw-r--r-- 1 a b 5 Nov 0 21:29 x",
        "-rw-r--r-- 1 a b 5 Nov 32 21:29 x", "-rw-r--r-- 1 a b 5 nov 25 21:29 x", "-rw-r--r-- 1 a b +5 Nov 25 21:29 x",
        "xrw-r--r-- 1 a b 5 Nov 25 21:29 x", "-rw-r--r-- 1 a b 5 Nov 25 late x",
    ])
    func whatIsNoLine(text: String) { #expect(line(text) == nil) }

    @Test func aListIsReadInAnyPieces() throws {
        let text = "drwxr-xr-x 2 a b 4096 Jan 1 00:00 .\n-rw-r--r-- 1 a b 5 Nov 25 21:29 é\n-rw-r--r-- 1 a b 6 Nov 25 21:29 y\n"
        for size in 1...text.utf8.count {
            let listing = SFTPListing("The list")
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                try Array(rest.prefix(size)).withUnsafeBytes(listing.take)
                rest = rest.dropFirst(size)
            }
            #expect(try listing.lines().map(\.name) == ["é", "y"])
        }
        #expect(try SFTPListing("The list").lines().isEmpty)
    }

    /// Foreign names with line ends. Other files are listed, and no part of such a name counts as a name.
    @Test(arguments: [
        ("new\nline", ["x", "new\nline", "y"]), ("a\n\nb\n", ["x", "a\n\nb\n", "y"]), (".\nb", ["x", "y"]), ("\nb", ["x", "y"]),
    ])
    func aNameWithALineEnd(name: String, found: [String]) throws {
        let start = "-rw-r--r-- 1 a b 5 Nov 25 21:29 "
        let listing = SFTPListing("The list")
        try Array("\(start)x\n\(start)\(name)\n\(start)y\n".utf8).withUnsafeBytes(listing.take)
        #expect(try listing.lines().map(\.name) == found)
    }

    @Test func whatIsNoListIsAnError() throws {
        for text in ["<html>\n", "-rw-r--r-- 1 a b 5 Nov 25 21:29 x\nabc", String(repeating: "-", count: 9_000)] {
            let listing = SFTPListing("The list of sftp://host/")
            let error = #expect(throws: StoreError.self) {
                try Array(text.utf8).withUnsafeBytes(listing.take)
                _ = try listing.lines()
            }
            #expect(error?.code == .transport && error?.message.contains("sftp://host/") == true)
        }
    }

    @Test func ages() {
        // 2026-03-01 12:00:00.
        let now: Int64 = 1_772_366_400
        #expect(SFTPListing.age(["Mar", "1", "11:00"], now: now) == 3_600)
        #expect(SFTPListing.age(["Mar", "2", "01:00"], now: now) == 0, "already tomorrow in the server's zone")
        #expect(SFTPListing.age(["Dec", "31", "12:00"], now: now) == Int64(60 * 86_400), "of last year")
        #expect(SFTPListing.age(["Mar", "1", "2025"], now: now) == Int64(365 * 86_400 + 43_200))
        #expect(SFTPListing.age(["Mar", "1", "9:"], now: now) == nil && SFTPListing.age(["Mar", "1", "25:00"], now: now) == nil)
    }

    @Test(arguments: [
        ("//host/a%20b", "sftp://host/a%20b/", "/a b/"), ("//host:22/", "sftp://host/", "/"),
        ("//HOST:443/~/x/", "sftp://host:443/~/x/", "x/"), ("//[::1]:2222", "sftp://[::1]:2222/", "/"),
        ("//host/~", "sftp://host/~/", ""), ("//host/~ann/x", "sftp://host/~ann/x/", "/~ann/x/"),
    ])
    func places(rest: String, shown: String, path: String) throws {
        let place = try SFTPFiles.Place(rest)
        #expect(place.address.shown == shown && place.path == path)
    }
}
