/// Who signs orders to erase for a group: the public keys of stewards, and how many of them must sign.
struct Stewards: Equatable {
    /// Public keys of Ed25519.
    var keys: [[UInt8]] = []
    var need = 1
    /// How often the stewards were replaced by an order that the stewards before them signed.
    var step: UInt64 = 0

    /// The most keys.
    static let most = 16

    /// The members of their JSON, in canonical order, without the braces: those before and behind the name of the mode.
    var keysMember: String { "\"keys\":[\(keys.map { "\"\(Hex.text(of: $0))\"" }.joined(separator: ","))]" }
    var needMembers: String { "\"need\":\(need)\(step > 0 ? ",\"step\":\(step)" : "")" }

    /// Reads one of the members "keys", "need" and "step".
    /// - Returns: false if it is none of them.
    mutating func read(_ key: JSONReader.Text, _ reader: inout JSONReader) throws -> Bool {
        if try reader.equals(key, "keys") {
            var read: [[UInt8]] = []
            try reader.beginArray()
            while try reader.nextElement() {
                guard read.count <= Stewards.most else { throw reader.failure("too many keys of stewards") }
                read.append(Hex.bytes(spelledBy: try reader.string()) ?? [])
            }
            keys = read
        } else if try reader.equals(key, "need") {
            need = Int(clamping: try reader.unsigned())
        } else if try reader.equals(key, "step") {
            step = try reader.unsigned()
        } else {
            return false
        }
        return true
    }

    /// Whether there are keys, each once, and not more are needed.
    var areValid: Bool {
        (1...Stewards.most).contains(keys.count) && keys.allSatisfy { $0.count == Ed25519.keySize } && Set(keys).count == keys.count
            && (1...keys.count).contains(need)
    }

    /// Returns the keys that signed an order, each once. Of several signatures of one key the first counts.
    /// - Throws: `.unsupported` if there is no libcrypto.
    func signers(of json: [UInt8]) throws -> [[UInt8]] {
        guard let (rest, signatures) = EraseOrder.signatures(json), !signatures.isEmpty else { return [] }
        let curve = try Ed25519(for: "orders to erase"), signed = ForgettingPolicy.signed(rest)
        return keys.filter { key in
            signatures.first { $0.key == key }.map { curve.verify($0.signature, of: signed, by: key) } ?? false
        }
    }

    /// Returns an order with the signatures of others and that of a seed beside those that it has.
    /// - Parameter others: orders that say the same, with other signatures.
    func signing(_ json: [UInt8], also others: [[UInt8]], with seed: [UInt8]) throws -> [UInt8] {
        guard json.first == UInt8(ascii: "{") else { return json }
        let curve = try Ed25519(for: "an order to erase"), rest = EraseOrder.signatures(json)?.rest ?? json
        var signatures: [[UInt8]: [UInt8]] = [:]
        for one in [json] + others {
            let right = Set(try signers(of: one))
            for (key, signature) in EraseOrder.signatures(one)?.signatures ?? [] where right.contains(key) && signatures[key] == nil {
                signatures[key] = signature
            }
        }
        let own = try curve.publicKey(of: seed)
        if signatures[own] == nil { signatures[own] = try curve.sign(ForgettingPolicy.signed(rest), with: seed) }
        let texts = signatures.map { "{\"key\":\"\(Hex.text(of: $0.key))\",\"signature\":\"\(Hex.text(of: $0.value))\"}" }.sorted()
        return Array("{\"by\":[\(texts.joined(separator: ","))],".utf8) + rest.dropFirst()
    }
}
