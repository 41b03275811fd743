/// Makes the bytes that were there of what stands behind `LLZF`; nil when that is no such data, from its beginning to its end.
public typealias ForeignDecoder = @Sendable ([UInt8]) throws -> [UInt8]?
