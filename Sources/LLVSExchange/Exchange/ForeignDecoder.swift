/// Decompresses the data after `LLZF`; nil if it is not, from beginning to end, such data.
public typealias ForeignDecoder = @Sendable ([UInt8]) throws -> [UInt8]?
