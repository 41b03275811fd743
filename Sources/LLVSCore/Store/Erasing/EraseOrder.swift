/// An order to erase values of versions: the bytes of a value under `__llvs_forget/order/` (docs/format.md, "Erase orders").
package struct EraseOrder {
    /// The prefix of the ids of all values that forgetting keeps in a store.
    package static let reserved = Array("__llvs_forget/".utf8)
    /// The prefix of the ids of orders.
    package static let prefix = Array("__llvs_forget/order/".utf8)
    /// The most bytes of an order.
    package static let mostBytes = 1 << 20

    /// When it was made: "2026-11-28T06:00:00Z".
    var made: [UInt8]
    /// Indexes in the lists of changes of versions, ascending.
    var what: [VersionID: [Int]]
    /// Text of the caller.
    var why: [UInt8]
    /// Stewards that replace those of the policies of devices. Nil for orders that name values.
    var stewards: Stewards?

    /// The value id for its bytes.
    static func id(of json: [UInt8]) -> ValueID { ValueID(unchecked: prefix + Array(name(of: json).utf8)) }
    /// The name of the order: 26 characters.
    static func name(of json: [UInt8]) -> String { Base32.encode(Array(json.withUnsafeBytes { SHA256.digest($0) }.prefix(16))) }
    static func id(named name: String) -> ValueID { ValueID(unchecked: prefix + Array(name.utf8)) }

    /// Canonical JSON.
    var json: [UInt8] {
        var out = Array("{\"format\":1,\"made\":".utf8)
        made.withUnsafeBytes { JSONString.append($0, to: &out) }
        if let stewards { out += Array(",\"stewards\":{\(stewards.keysMember),\(stewards.needMembers)}".utf8) }
        out += Array(",\"what\":[".utf8)
        var isFirst = true
        for (version, changes) in what.sorted(by: { $0.key < $1.key }) {
            if !isFirst { out.append(UInt8(ascii: ",")) }
            isFirst = false
            out += Array("{\"changes\":[\(changes.map { "\($0)" }.joined(separator: ","))],\"version\":\"\(version)\"}".utf8)
        }
        out += Array("],\"why\":".utf8)
        why.withUnsafeBytes { JSONString.append($0, to: &out) }
        out.append(UInt8(ascii: "}"))
        return out
    }

    /// Divides an order into several, each with at most half of `mostBytes`.
    static func divide(made: [UInt8], what: [VersionID: [Int]], why: [UInt8]) -> [EraseOrder] {
        var orders: [EraseOrder] = [], next = EraseOrder(made: made, what: [:], why: why), size = 0
        for (version, changes) in what.sorted(by: { $0.key < $1.key }) {
            var rest = changes[...]
            while !rest.isEmpty {
                let part = rest.prefix(16_384)
                rest = rest.dropFirst(part.count)
                if size + 200 + 9 * part.count > mostBytes / 2 || next.what[version] != nil {
                    orders.append(next)
                    next.what = [:]
                    size = 0
                }
                next.what[version] = Array(part)
                size += 200 + 9 * part.count
            }
        }
        if !next.what.isEmpty { orders.append(next) }
        return orders
    }

    init(made: [UInt8], what: [VersionID: [Int]], why: [UInt8]) { self.made = made; self.what = what; self.why = why }

    /// Nil if the bytes are no order of this format.
    init?(_ json: [UInt8]) {
        guard json.count <= EraseOrder.mostBytes else { return nil }
        var made: [UInt8] = [], why: [UInt8] = [], what: [VersionID: [Int]] = [:], format: UInt64?, stewards: Stewards?
        do {
            try json.withUnsafeBytes { bytes in
                var reader = JSONReader(bytes)
                try reader.beginObject()
                while let key = try reader.nextMember() {
                    if try reader.equals(key, "format") {
                        format = try reader.unsigned()
                    } else if try reader.equals(key, "made") {
                        made = try reader.string()
                    } else if try reader.equals(key, "why") {
                        why = try reader.string()
                    } else if try reader.equals(key, "stewards") {
                        var read = Stewards()
                        try reader.beginObject()
                        while let key = try reader.nextMember() { if try !read.read(key, &reader) { try reader.skip() } }
                        stewards = read
                    } else if try reader.equals(key, "what") {
                        try reader.beginArray()
                        while try reader.nextElement() {
                            var version: VersionID?, changes: [Int] = []
                            try reader.beginObject()
                            while let key = try reader.nextMember() {
                                if try reader.equals(key, "version") {
                                    version = try reader.string().withUnsafeBytes { try? VersionID(ascii: $0) }
                                } else if try reader.equals(key, "changes") {
                                    try reader.beginArray()
                                    while try reader.nextElement() { changes.append(Int(clamping: try reader.unsigned())) }
                                } else {
                                    try reader.skip()
                                }
                            }
                            if let version { what[version, default: []] += changes }
                        }
                    } else {
                        try reader.skip()
                    }
                }
                try reader.end()
            }
        } catch { return nil }
        guard format == 1, stewards?.areValid ?? true else { return nil }
        self.init(made: made, what: what, why: why)
        self.stewards = stewards
    }

    /// Returns a time in seconds since 2001-01-01 UTC as text: "2026-11-28T06:00:00Z".
    static func text(ofTime time: Double) -> [UInt8] {
        let seconds = Int(min(max(time, 0), 2.5e11)), day = CalendarMonth.day(ofDaysSince2001: seconds / 86_400)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let rest = seconds % 86_400
        let month = String(decoding: CalendarMonth.text(CalendarMonth.number(ofSecondsSince2001: time)), as: UTF8.self)
        return Array("\(month)-\(two(day))T\(two(rest / 3_600)):\(two(rest / 60 % 60)):\(two(rest % 60))Z".utf8)
    }
}
