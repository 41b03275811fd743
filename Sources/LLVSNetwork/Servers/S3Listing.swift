/// Parses one page of a bucket's answer to ListObjectsV2.
final class S3Listing: XMLReader.Handler, HTTPBodyReader {
    private static let mostText = 16 << 10
    private let what: String
    private var reader: XMLReader?
    private var path: [Substring] = []
    private var text: [UInt8]?
    private var key: [UInt8]?, size: Int?, digest: RemoteDigest?
    /// Decoded keys with sizes, nil for common prefixes ("folders"), and digests of objects that were uploaded as a whole.
    private(set) var found: [(key: String, size: Int?, digest: RemoteDigest?)] = []
    /// Where the next page begins; nil if this is the last.
    private(set) var next: String?
    private var isTruncated = false
    /// Whether names are encoded as in a query. The service says so, since it may ignore the request for that.
    private var isEncoded = false
    private var raw: [(key: [UInt8], size: Int?, digest: RemoteDigest?)] = []

    init(_ what: String, expat: Expat) throws {
        self.what = what
        reader = try XMLReader(what, expat: expat, handler: self)
    }

    func take(_ bytes: UnsafeRawBufferPointer) throws { try reader?.take(bytes) }

    /// Ends the parsing. Throws unless the document is complete.
    func finish() throws {
        try reader?.finish()
        reader = nil
        try Memory.grow(&found, by: raw.count, "A listing")
        for (key, size, digest) in raw { found.append((String(decoding: decoded(key), as: UTF8.self), size, digest)) }
        raw = []
        if !isTruncated {
            next = nil
        } else if next == nil {
            throw StoreError(
                .transport, "\(what) cannot be read: it does not say where it continues. Check that the address is that of an S3 service.")
        }
    }

    /// Returns the local name. Some services use another namespace than Amazon's, or none.
    static func local(_ element: String) -> Substring { element.split(separator: " ").last ?? "" }

    func begin(_ element: String) throws {
        let name = S3Listing.local(element)
        if path.isEmpty, name != "ListBucketResult" {
            throw StoreError(
                .transport,
                "\(what) cannot be read: it is not a list of a bucket, but begins with \"\(name.prefix(64))\". "
                    + "Check that the address is that of an S3 service."
            )
        }
        path.append(name)
        if name == "Contents" || name == "CommonPrefixes" { (key, size, digest) = (nil, nil, nil) }
        if ["Key", "Size", "ETag", "Prefix", "IsTruncated", "NextContinuationToken", "EncodingType"].contains(name) { text = [] }
    }

    func text(_ bytes: UnsafeRawBufferPointer) throws {
        guard text != nil else { return }
        guard bytes.count + (text?.count ?? 0) <= S3Listing.mostText else {
            throw StoreError(
                .transport, "\(what) cannot be read: a name in it has more than \(S3Listing.mostText) bytes. Move that object away.")
        }
        text?.append(contentsOf: bytes)
    }

    func end(_ element: String) throws {
        guard let name = path.popLast() else { return }
        let said = text ?? []
        switch (path.last, name) {
        case ("Contents", "Key"), ("CommonPrefixes", "Prefix"): key = said
        case ("ListBucketResult", "EncodingType"): isEncoded = said.elementsEqual("url".utf8)
        case ("Contents", "Size"): size = Int(String(decoding: said, as: UTF8.self)).flatMap { $0 >= 0 ? $0 : nil }
        // The digest is in quotes, which some services omit.
        case ("Contents", "ETag"): digest = RemoteDigest(hex: String(decoding: said.filter { $0 != UInt8(ascii: "\"") }, as: UTF8.self))
        case ("ListBucketResult", "IsTruncated"): isTruncated = said.elementsEqual("true".utf8)
        case ("ListBucketResult", "NextContinuationToken"): next = said.isEmpty ? nil : String(decoding: said, as: UTF8.self)
        case (_, "Contents"), (_, "CommonPrefixes"):
            if let key {
                try Memory.grow(&raw, "A listing")
                raw.append((key, name == "Contents" ? size ?? 0 : nil, digest))
            }
        default: break
        }
        text = nil
    }

    /// In the encoding of queries, a + is a space. Amazon's service uses it; others use %20.
    private func decoded(_ key: [UInt8]) -> [UInt8] {
        let text = isEncoded ? key.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 } : key
        return PercentCoding.decode(text) ?? text
    }
}
