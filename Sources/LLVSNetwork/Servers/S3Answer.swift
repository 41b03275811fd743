/// Parses a bucket's answer in XML: the texts in its root, and those in each element of one name.
final class S3Answer: XMLReader.Handler, HTTPBodyReader {
    private static let mostText = 16 << 10, mostRecords = 10_000

    private let what: String, root: String, each: String
    private var reader: XMLReader?
    private var depth = 0
    private var text: [UInt8]?
    private var record: [String: String]?
    private(set) var fields: [String: String] = [:]
    private(set) var records: [[String: String]] = []

    /// - Parameters:
    ///   - what: the answer in messages.
    ///   - root: the prefix of the root element's name. A document with another root is not this answer.
    ///   - each: the name of the elements.
    init(_ what: String, root: String, each: String = "", expat: Expat) throws {
        self.what = what; self.root = root; self.each = each
        reader = try XMLReader(what, expat: expat, handler: self)
    }

    /// Returns the parsed answer of a response. Throws unless it is complete.
    static func whole(_ response: HTTPResponse) throws -> S3Answer {
        guard case .read(let reader) = response.body, let answer = reader as? S3Answer else {
            throw StoreError(.internal, "The body of a response was not received.")
        }
        try answer.finish()
        return answer
    }
    /// - Throws: an error if it is not complete.
    func finish() throws {
        try reader?.finish()
        reader = nil
    }

    func take(_ bytes: UnsafeRawBufferPointer) throws { try reader?.take(bytes) }

    func begin(_ element: String) throws {
        let name = S3Listing.local(element)
        if depth == 0, !name.utf8.starts(with: root.utf8) {
            var error = StoreError(
                .transport,
                "\(what) cannot be read: it begins with \"\(name.prefix(64))\". Check that the address is that of an S3 service.")
            error.httpStatus = 200
            throw error
        }
        depth += 1
        if depth == 2, name == each { record = [:] }
        if depth == (record == nil ? 2 : 3) { text = [] }
    }

    func text(_ bytes: UnsafeRawBufferPointer) throws {
        guard let count = text?.count else { return }
        guard bytes.count + count <= S3Answer.mostText else {
            throw StoreError(.transport, "\(what) cannot be read: a text in it has more than \(S3Answer.mostText) bytes. Try again.")
        }
        text?.append(contentsOf: bytes)
    }

    func end(_ element: String) throws {
        let name = String(S3Listing.local(element)), said = text.map { String(decoding: $0, as: UTF8.self) }
        if depth == 3, record != nil, let said { record?[name] = said }
        if depth == 2 {
            if let record { if records.count < S3Answer.mostRecords { records.append(record) } } else if let said { fields[name] = said }
            record = nil
        }
        if depth <= 3 { text = nil }
        depth -= 1
    }
}
