import CNetwork

/// Parses XML as it arrives, by libexpat, and reports elements and texts.
///
/// Everything that a server could make large is limited: the depth, the bytes of one name, tag, comment or text, and the whole. A
/// document type, which could define entities, ends the parsing: none is ever expanded. Namespaces are resolved: an element is "DAV:
/// href".
final class XMLReader: HTTPBodyReader {
    /// Receives the parts of a document. Throwing ends the parsing.
    protocol Handler: AnyObject {
        func begin(_ element: String) throws
        func end(_ element: String) throws
        /// Consecutive calls may have parts of one text.
        func text(_ bytes: UnsafeRawBufferPointer) throws
    }

    static let mostDepth = 64
    /// The most bytes between one element or text and the next.
    static let mostAtOnce = 1 << 20
    /// The most bytes of a document.
    static let mostInAll = 512 << 20
    /// Separates the address of a namespace and a name.
    private static let separator: CChar = 0x20

    /// The handler owns this reader.
    private unowned let handler: any Handler
    private let expat: Expat
    private let parser: XML_Parser
    /// The document in messages: "The list of https://host/path".
    private let what: String
    private var depth = 0
    private var sinceEvent = 0, total = 0
    private var failure: (any Error)?
    private var hasEnded = false

    init(_ what: String, expat: Expat, handler: any Handler) throws {
        guard let parser = expat.pointee.ParserCreateNS(nil, XMLReader.separator) else {
            throw StoreError(.outOfMemory, "\(what) cannot be read: libexpat has no memory. Free some, and try again.")
        }
        self.what = what; self.expat = expat; self.handler = handler; self.parser = parser
        expat.pointee.SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
        expat.pointee.SetElementHandler(parser, { context, name, _ in reader(of: context)?.begin(name) }, { reader(of: $0)?.end($1) })
        expat.pointee.SetCharacterDataHandler(parser) { reader(of: $0)?.text($1, $2) }
        expat.pointee.SetStartDoctypeDeclHandler(parser) { context, _, _, _, _ in reader(of: context)?.refuseDocumentType() }
    }
    deinit { expat.pointee.ParserFree(parser) }

    /// - Throws: `.transport` if it is not XML, or exceeds a limit; the errors of the handler.
    func take(_ bytes: UnsafeRawBufferPointer) throws { try parse(bytes, isLast: false) }

    /// Ends the parsing. Throws unless the document is complete.
    func finish() throws {
        guard !hasEnded else { return }
        hasEnded = true
        try parse(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true)
    }

    private func parse(_ bytes: UnsafeRawBufferPointer, isLast: Bool) throws {
        if let failure { throw failure }
        // Parse in pieces, so that the limit is checked between events.
        var left = bytes[...]
        repeat {
            let piece = UnsafeRawBufferPointer(rebasing: left.prefix(64 << 10))
            left = left.dropFirst(piece.count)
            total += piece.count
            sinceEvent += piece.count
            guard total <= XMLReader.mostInAll, sinceEvent <= XMLReader.mostAtOnce else {
                throw refused("it, or one name or text in it, is larger than it could be")
            }
            let status = expat.pointee.Parse(
                parser, piece.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(piece.count), isLast && left.isEmpty ? 1 : 0)
            if let failure { throw failure }
            guard status == XML_STATUS_OK else {
                let why = expat.pointee.ErrorString(expat.pointee.GetErrorCode(parser)).map { String(cString: $0) } ?? "unknown"
                throw refused("it is not XML, or was cut short (\(why))")
            }
        } while !left.isEmpty
    }

    private func refused(_ why: String) -> StoreError {
        let error = StoreError(
            .transport, "\(what) cannot be read: \(why). Check that the address is that of the service which its scheme names.")
        failure = failure ?? error
        return error
    }

    // MARK: Calls by libexpat

    private func passing(_ body: () throws -> Void) {
        guard failure == nil else { return }
        sinceEvent = 0
        do { try body() } catch {
            failure = error
            _ = expat.pointee.StopParser(parser, 0)
        }
    }
    private func begin(_ name: UnsafePointer<CChar>?) {
        passing {
            depth += 1
            guard depth <= XMLReader.mostDepth else { throw refused("its elements are nested more than \(XMLReader.mostDepth) deep") }
            try handler.begin(name.map { String(cString: $0) } ?? "")
        }
    }
    private func end(_ name: UnsafePointer<CChar>?) {
        passing {
            depth -= 1
            try handler.end(name.map { String(cString: $0) } ?? "")
        }
    }
    private func text(_ start: UnsafePointer<CChar>?, _ count: Int32) {
        passing { try handler.text(UnsafeRawBufferPointer(start: start, count: Int(max(0, count)))) }
    }
    private func refuseDocumentType() {
        passing { throw refused("it has a document type, which is not supported") }
    }
}

private func reader(of context: UnsafeMutableRawPointer?) -> XMLReader? {
    context.map { Unmanaged<XMLReader>.fromOpaque($0).takeUnretainedValue() }
}
