/// The key of a value: non-empty UTF-8 of at most 4,096 bytes.
///
/// Compared, ordered and hashed by its bytes alone. It is deliberately not a `String`: Swift's string equality is canonical equivalence,
/// under which composed and decomposed "é" are equal; as value ids they differ.
public struct ValueID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The UTF-8 bytes.
    public let bytes: [UInt8]

    /// - Throws: `.invalidValueID` if empty or longer than 4,096 bytes, `.invalidUTF8`.
    public init(utf8 bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try ValueID.check($0) }
        self.bytes = bytes
    }

    /// The UTF-8 of a string, not normalized.
    /// - Throws: `.invalidValueID` if it is empty or longer than 4,096 bytes.
    public init(_ text: String) throws { try self.init(utf8: Array(text.utf8)) }

    /// For bytes that were checked before.
    package init(unchecked bytes: [UInt8]) { self.bytes = bytes }
    package init(unchecked bytes: UnsafeRawBufferPointer) { self.bytes = Array(bytes) }

    /// Throws what `init(utf8:)` throws, without creating an id.
    public static func check(_ bytes: UnsafeRawBufferPointer) throws {
        guard !bytes.isEmpty else {
            throw StoreError(.invalidValueID, "A value id is empty. Value ids are 1 to \(Limits.valueIDSize) bytes of UTF-8.")
        }
        guard bytes.count <= Limits.valueIDSize else {
            throw StoreError(
                .invalidValueID,
                "A value id has \(bytes.count) bytes; at most \(Limits.valueIDSize) are allowed. "
                    + "It begins \"\(String(decoding: bytes.prefix(40), as: UTF8.self))\"."
            )
        }
        guard Bytes.isValidUTF8(bytes) else {
            throw StoreError(
                .invalidUTF8, "A value id is not valid UTF-8. It begins \"\(String(decoding: bytes.prefix(40), as: UTF8.self))\".")
        }
    }

    public static func == (a: ValueID, b: ValueID) -> Bool { Bytes.equal(a.bytes, b.bytes) }
    public static func < (a: ValueID, b: ValueID) -> Bool { Bytes.compare(a.bytes, b.bytes) < 0 }
    public func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension StoreError {
    /// The value id concerned, if there is one.
    public var valueID: ValueID? {
        get { valueIDBytes.map { ValueID(unchecked: $0) } }
        set { valueIDBytes = newValue?.bytes }
    }

    /// An error that concerns one value.
    public init(_ code: Code, _ message: String, valueID: ValueID?, versionID: String? = nil, path: String? = nil, systemCode: Int32 = 0) {
        self.init(code, message, versionID: versionID, path: path, systemCode: systemCode)
        self.valueID = valueID
    }
}
