#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Handles types whose own coding writes equal values in different orders: a type that writes the elements of a set into its own array, or
// an unordered collection that is not Swift's. `ModelEncoder` cannot see that these have no order.

extension EncodedNode {
    /// Returns this value, with parts replaced by those of an earlier one if both were encoded from equal Swift values.
    ///
    /// A part is replaced if it differs from the earlier one only in the order of arrays, the Swift values are equal by `==`, and the type
    /// does not preserve that order: decoding and encoding it again gives another order. The last condition is for types whose `==`
    /// compares only a part, such as the `id`: for these, a reordered array is a change.
    func settled(with earlier: EncodedNode) -> EncodedNode {
        if isWritten(as: earlier) { return earlier }
        let made: EncodedNode
        switch (content, earlier.content) {
        case (.object(let new), .object(let old)):
            let members = Dictionary(
                uniqueKeysWithValues: new.map { name, node in (name, old[name].map { node.settled(with: $0) } ?? node) })
            made = EncodedNode(.object(members), of: value)
        case (.array(let new), .array(let old)):
            let places = Dictionary(old.compactMap { node in node.id.map { ($0, node) } }) { first, _ in first }
            let elements = new.enumerated().map { index, node in
                let before = node.id.map { places[$0] } ?? (new.count == old.count ? old[index] : nil)
                return before.map { node.settled(with: $0) } ?? node
            }
            made = EncodedNode(.array(elements), of: value)
        default: return self
        }
        if made.isWritten(as: earlier) { return earlier }
        guard let places = made.reordered(from: earlier), let value, let before = earlier.value, Self.areEqual(value, before),
            made.isReordered(at: places, by: value)
        else { return made }
        return earlier
    }

    /// The text of the member `id` of an object.
    private var id: [UInt8]? {
        guard case .object(let members) = content, case .scalar(let text)? = members["id"]?.content else { return nil }
        return text
    }

    private static func areEqual(_ one: any Encodable, _ other: any Encodable) -> Bool {
        func isEqual<Value: Equatable>(_ value: Value) -> Bool { (other as? Value).map { $0 == value } ?? false }
        return (one as? any Equatable).map { isEqual($0) } ?? false
    }

    /// Returns the arrays, as paths of names and indices, that have the elements of the other value in another order; nil if something else
    /// differs. Of nested arrays, only the outermost.
    private func reordered(from other: EncodedNode) -> Set<[String]>? {
        switch (content, other.content) {
        case (.scalar(let one), .scalar(let two)): return one == two ? [] : nil
        case (.object(let one), .object(let two)):
            guard one.count == two.count else { return nil }
            var found: Set<[String]> = []
            for (name, node) in one {
                guard let inside = two[name].flatMap({ node.reordered(from: $0) }) else { return nil }
                found.formUnion(inside.map { [name] + $0 })
            }
            return found
        case (.array(let one), .array(let two)):
            guard one.count == two.count else { return nil }
            var found: Set<[String]>? = []
            for (index, pair) in zip(one, two).enumerated() {
                guard let inside = pair.0.reordered(from: pair.1) else { found = nil; break }
                found?.formUnion(inside.map { ["\(index)"] + $0 })
            }
            return found ?? (unordered == other.unordered ? [[]] : nil)
        default: return nil
        }
    }

    /// Returns a text that is equal for values that differ only in the order of arrays.
    private var unordered: [UInt8] {
        switch content {
        case .scalar(let text): return text
        case .array(let elements):
            let texts = elements.map(\.unordered).sorted { $0.lexicographicallyPrecedes($1) }
            return [UInt8(ascii: "[")] + texts.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
        case .object(let members):
            let texts = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
                .map { Array(JSONText.string($0.key).utf8) + [UInt8(ascii: ":")] + $0.value.unordered }
            return [UInt8(ascii: "{")] + texts.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
        }
    }

    /// Returns whether a type writes arrays in another order than it reads them.
    private func isReordered(at places: Set<[String]>, by value: any Encodable) -> Bool {
        guard let type = type(of: value) as? any Decodable.Type else { return false }
        var left = places, read: [Any] = []
        // (A set of two elements has one of two random orders. The chance that 40 sets all have the same one is 2^-40. All decoded values
        // are retained meanwhile, since the order depends on a set's address in memory.)
        for _ in 0..<40 {
            guard let again = try? ModelCoding.decoder().decode(type, from: [self]) as? any Encodable,
                let node = try? ModelEncoder.node(of: again), let found = node.reordered(from: self)
            else { return false }
            read.append(again)
            left = left.filter { place in !found.contains { place.starts(with: $0) } }
            if left.isEmpty { return true }
        }
        return false
    }
}

extension JSONDecoder {
    /// Returns the only element of an array.
    fileprivate func decode<Value: Decodable>(_ type: Value.Type, from nodes: [EncodedNode]) throws -> Any? {
        try decode([Value].self, from: Data(EncodedNode(.array(nodes)).bytes)).first
    }
}
