import LLVS
@testable import LLVSNetwork

/// Listings of servers: XML of WebDAV and of S3, and lines over SFTP.
///
///     input = kind u8 · cut u8 · the answer as it comes
///     kind 0: WebDAV, of a collection at /dav/notes/versions/
///          1: WebDAV, of the root
///          2: one page of a bucket
///          3: lines
///          4: any XML
///     cut: the size of the pieces in which the answer comes the second time
enum ListingsTarget {
    static let target = FuzzTarget(name: "listings", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let kind = input.byte() % 5, piece = max(1, Int(input.byte())), document = input.rest()
        let whole = listed(kind, [document])
        // Parsing the document in pieces gives the same result.
        let pieces = stride(from: 0, to: document.count, by: piece).map { Array(document[$0..<min($0 + piece, document.count)]) }
        let again = listed(kind, pieces)
        require(whole == again, "in pieces of \(piece) bytes an answer says something else: \(whole) and \(again)")
        guard case .success(let names) = whole else { return }
        // Nothing is expanded: at most, a byte that is no text becomes three.
        let size = names.reduce(0) { $0 + $1.utf8.count }
        require(size <= document.count * 3, "an answer of \(document.count) bytes has become \(size)")
    }

    private struct Refusal: Error, Equatable { let code: Int32 }

    /// A line for each entry, or the code of the error.
    private static func listed(_ kind: UInt8, _ pieces: [[UInt8]]) -> Result<[String], Refusal> {
        do { return .success(try read(kind, pieces)) } catch let error as StoreError {
            require(error.code != .internal && !error.message.isEmpty, "an error says nothing: \(error)")
            require(error.code == .transport || error.code == .outOfMemory, "an answer is refused with \(error.code.rawValue): \(error)")
            return .failure(Refusal(code: error.code.rawValue))
        } catch { fail("an error of another kind: \(error)") }
    }

    private static func read(_ kind: UInt8, _ pieces: [[UInt8]]) throws -> [String] {
        let expat = try NetworkLibraries.expat(for: "fuzzing")
        func take(_ reader: any HTTPBodyReader) throws { for piece in pieces { try piece.withUnsafeBytes(reader.take) } }
        switch kind {
        case 0, 1:
            let address = try HTTPAddress(kind == 0 ? "https://host/dav/notes/versions/" : "https://host/", schemes: ["https"])
            let listing = try WebDAVListing(of: address, expat: expat)
            try take(listing)
            return try listing.entries(at: 1_800_000_000).map { entry in
                require(!entry.name.isEmpty && !entry.name.utf8.contains(UInt8(ascii: "/")), "a name has a slash, or is empty")
                require((entry.size ?? 0) >= 0 && (entry.age ?? 0) >= 0, "a size or an age is below zero")
                return "\(entry.name)"
            }
        case 2:
            let listing = try S3Listing("The list", expat: expat)
            try take(listing)
            try listing.finish()
            require(listing.next != "", "the position of the next page is empty")
            return listing.found.map { key, size, _ in
                require((size ?? 0) >= 0, "a size is below zero")
                return key
            }
        case 3:
            let listing = SFTPListing("The list")
            try take(listing)
            return try listing.lines().map { line in
                require(!line.name.isEmpty && line.name != "." && line.name != ".." && line.size >= 0, "a line is none")
                require((SFTPListing.age(line.date, now: 1_800_000_000) ?? 0) >= 0, "an age is below zero")
                return line.name
            }
        default:
            let texts = Texts(), reader = try XMLReader("The document", expat: expat, handler: texts)
            try take(reader)
            try reader.finish()
            require(texts.depth == 0, "a document ends within an element")
            return [String(decoding: texts.all, as: UTF8.self)]
        }
    }

    /// All texts of a document, in succession.
    private final class Texts: XMLReader.Handler {
        var depth = 0, all: [UInt8] = []
        func begin(_ element: String) { depth += 1 }
        func end(_ element: String) { depth -= 1 }
        func text(_ bytes: UnsafeRawBufferPointer) { all.append(contentsOf: bytes) }
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        func seed(_ name: String, _ kind: UInt8, _ text: String) -> FuzzTarget.Seed {
            FuzzTarget.Seed(name: name, bytes: [kind, 7] + Array(text.utf8))
        }
        let response = { (path: String, properties: String) in
            "<D:response><D:href>\(path)</D:href><D:propstat><D:prop>\(properties)</D:prop>"
                + "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        }
        let folder = "<D:resourcetype><D:collection/></D:resourcetype>"
        let file =
            "<D:resourcetype/><D:getcontentlength>17</D:getcontentlength>"
            + "<D:getlastmodified>Sun, 22 Nov 2026 20:00:00 GMT</D:getlastmodified>"
        let multistatus = { (responses: String) in
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\(responses)</D:multistatus>"
        }
        let bucket = { (rest: String) in
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(rest)</ListBucketResult>"
        }
        return [
            seed("webdav", 0, multistatus(response("/dav/notes/versions/", folder) + response("/dav/notes/versions/A%20b", file))),
            seed(
                "webdav-addresses", 0,
                multistatus(
                    response("https://host/dav/notes/versions", folder) + response("https://host/dav/notes/versions/&#x43;&amp;", file))),
            seed("webdav-prefix", 0, multistatus(response("/other/versions/", folder) + response("/other/versions/C", file))),
            seed("webdav-root", 1, multistatus(response("/", folder) + response("/d/", folder) + response("/E", file))),
            seed("entities", 0, "<!DOCTYPE a [<!ENTITY b \"cccc\"><!ENTITY d \"&b;&b;\">]>" + multistatus("&d;")),
            seed(
                "bucket", 2,
                bucket(
                    "<IsTruncated>true</IsTruncated><Contents><Key>pack1/log/a%2Bb</Key><Size>12</Size></Contents>"
                        + "<CommonPrefixes><Prefix>pack1/</Prefix></CommonPrefixes><NextContinuationToken>a/b=</NextContinuationToken>")),
            seed("bucket-last", 2, bucket("<IsTruncated>false</IsTruncated><Contents><Key>A</Key><Size>1</Size></Contents>")),
            seed("lines", 3, "drwxr-xr-x    2 ann      the staff     4096 Nov 25 21:29 .\n-rw-r--r--    1 a b    12 Nov 25  2025 A b\n"),
            seed("html", 4, "<html><head><title>Sign in</title></head><body>&lt;here&gt;<br/></body></html>"),
        ]
    }
}
