/// A place in a container of CloudKit: `cloudkit://container/environment/database?store=ID&zone=NAME` (docs/cloud-drives.md).
package struct CloudKitPlace: Sendable {
    package static let scheme = "cloudkit"
    private static let service = "https://api.apple-cloudkit.com/"

    let container: String
    /// "development" or "production".
    let environment: String
    /// "public", "private" or "shared".
    let database: String
    /// The zone; nil for the default zone.
    let zone: String?
    /// For a shared database: the record name of the zone's owner.
    let owner: String?
    /// The name of the store, since a zone may hold several.
    let store: String
    let endpoint: HTTPAddress
    let rate: Double
    private let isElsewhere: Bool

    /// Only zones of private and shared databases have feeds, except the default zone.
    var hasFeed: Bool { zone != nil }

    /// The name of the place in messages and in notes.
    package var description: String { description(isElsewhere ? endpoint.shown : nil) }
    /// The name by the usual spelling of the address.
    var usualDescription: String {
        let there = endpoint.usual, own = try? HTTPAddress(CloudKitPlace.service)
        return description(isElsewhere && there != own?.usual ? there.shown : nil)
    }
    private func description(_ server: String?) -> String {
        let zone = (zone.map { ", zone \($0)" } ?? "") + (owner.map { " of \($0)" } ?? "")
        let whose = server.map { " at \($0)" } ?? ""
        return "the \(database) database of \(container) (\(environment)\(zone)) at CloudKit\(whose)"
    }

    /// - Parameter rest: the part of the URL after the scheme and its colon.
    package init(_ rest: String) throws(HTTPAddress.Refusal) {
        let bytes = Array(rest.utf8)
        guard bytes.starts(with: "//".utf8) else { throw HTTPAddress.Refusal(why: CloudKitPlace.form) }
        let end = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.endIndex
        let parts = bytes[2..<end].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        guard parts.count == 3 || (parts.count == 4 && parts[3].isEmpty), RemoteName.isComponent(parts[0]) else {
            throw HTTPAddress.Refusal(why: CloudKitPlace.form)
        }
        guard ["development", "production"].contains(parts[1]) else {
            throw HTTPAddress.Refusal(why: "its environment is neither development nor production")
        }
        guard ["public", "private", "shared"].contains(parts[2]) else {
            throw HTTPAddress.Refusal(why: "its database is none of public, private and shared")
        }
        var options: [String: String] = [:]
        for part in bytes[end...].dropFirst().split(separator: UInt8(ascii: "&")) {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let key = String(decoding: pair[0], as: UTF8.self)
            guard pair.count == 2, ["store", "zone", "owner", "endpoint", "rate"].contains(key),
                let value = PercentCoding.decode(pair[1])
            else {
                throw HTTPAddress.Refusal(
                    why: "after its question mark only store=, zone=, owner=, endpoint=, rate= and layout= are allowed; keys and tokens "
                        + "are options")
            }
            options[key] = String(decoding: value, as: UTF8.self)
        }
        // Part of the names of records, which have up to 255 bytes.
        guard let store = options["store"], RemoteName.isComponent(store), store.utf8.first != UInt8(ascii: "_") else {
            throw HTTPAddress.Refusal(
                why: "store= is missing, which names the store: letters, digits, dots, - and _ inside, up to 128 of them")
        }
        if let zone = options["zone"] {
            guard parts[2] != "public" else { throw HTTPAddress.Refusal(why: "the public database has one zone: leave zone= out") }
            guard RemoteName.isComponent(zone), zone.utf8.first != UInt8(ascii: "_") else {
                throw HTTPAddress.Refusal(why: "its zone is not valid: letters, digits, dots, - and _ inside, up to 128 of them")
            }
        }
        guard (parts[2] == "shared") == (options["owner"] != nil), options["owner"] == nil || options["zone"] != nil else {
            throw HTTPAddress.Refusal(
                why: "a shared database needs zone=, and owner=, the record name of the zone's owner; no other database accepts it")
        }
        if let owner = options["owner"], !RemoteName.isComponent(owner) {
            throw HTTPAddress.Refusal(why: "its owner is not valid: letters, digits, dots, - and _ inside, up to 128 of them")
        }
        var endpoint = try HTTPAddress(options["endpoint"] ?? CloudKitPlace.service)
        guard endpoint.keepsSecrets else { throw HTTPAddress.Refusal(why: "its endpoint is not encrypted (https)") }
        guard endpoint.query.isEmpty else { throw HTTPAddress.Refusal(why: "its endpoint has a query") }
        if endpoint.path.utf8.last != UInt8(ascii: "/") { endpoint.path += "/" }
        var rate = 20.0
        if let given = options["rate"] {
            guard let number = Int(given), (1...100_000).contains(number) else {
                throw HTTPAddress.Refusal(why: "its rate is not a number of requests a second from 1 to 100000")
            }
            rate = Double(number)
        }
        (container, environment, database) = (parts[0], parts[1], parts[2])
        (zone, owner, self.store, self.endpoint, self.rate) = (options["zone"], options["owner"], store, endpoint, rate)
        isElsewhere = options["endpoint"] != nil
    }
    private static let form = "write cloudkit://container/production/private?store=name&zone=name"

    /// Returns the address of a request: "records/modify".
    func address(_ what: String) -> HTTPAddress {
        var address = endpoint
        address.path += "database/1/\(container)/\(environment)/\(database)/\(what)"
        return address
    }
    var zoneID: (String, CloudJSON) {
        let owner = owner.map { [("ownerRecordName", CloudJSON.text($0))] } ?? []
        return ("zoneID", .object([("zoneName", .text(zone ?? "_defaultZone"))] + owner))
    }
}
