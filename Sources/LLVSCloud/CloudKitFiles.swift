/// Files as records of CloudKit: packs have records of their own; the records of versions, which apps with other implementations use, each
/// represent a file in `versions/` and one in `changes/` (docs/cloud-drives.md).
package final class CloudKitFiles: RemoteFiles, @unchecked Sendable {
    // Sendable: the state and the account have locks of their own.
    /// The most bytes inside a record; larger contents become an asset.
    private static let inlinePack = 700_000, inlineChanges = 10_000
    /// The most bytes of an asset.
    private static let largestAsset = 15 << 20
    /// The most records of one request, and about the most bytes.
    private static let recordsAtOnce = 200, bytesAtOnce = 2 << 20
    private static let readAtOnce = 16
    /// The most records with remembered change tags; others are read again.
    private static let mostSeen = 1_000

    private let account: CloudKitAccount
    private let mustExist: Bool
    private let state = Guarded(State())
    private struct State {
        /// The state of the feed: files by directory and name, each with its size if known; nil before the first request.
        var known: (token: String, since: Double, names: CloudKitListing)?
        /// Changes files that wait for their version files.
        var waiting: [String: OutgoingFile] = [:]
        /// Records of versions that were read, with their change tags; nil if missing.
        var seen: [String: String?] = [:]
        /// Records of another type found under names of versions.
        var foreign: Set<String> = []
        /// Whether a record was accepted since this was opened, which shows that the account may write.
        var hasWritten = false
    }

    private var place: CloudKitPlace { account.place }
    package var description: String { place.description }
    package var usualDescription: @Sendable () -> String { { [place] in place.usualDescription } }
    package var capabilities: RemoteCapabilities {
        RemoteCapabilities(
            requestsToPublish: 1, isExclusive: true, hasRanges: account.hasRanges, hasFeed: place.hasFeed, largestFile: 12 << 20)
    }
    package var counts: RemoteCounts { account.counts }
    package func account(_ check: Check?) throws -> String? { account.user }

    /// - Parameters:
    ///   - tokens: provides keys or tokens.
    ///   - mustExist: whether a missing zone is an error instead of being created.
    package init(_ place: CloudKitPlace, tokens: any TokenKeeper, settings: HTTPSettings, mustExist: Bool) {
        account = CloudKitAccount(place, tokens: tokens, settings: settings)
        self.mustExist = mustExist
    }
    package func close() {
        state.withLock { $0 = State() }
        account.close()
    }

    // MARK: Listing

    package func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        let listing = try place.hasFeed ? follow(check) : query(CloudKitRecord.kind(ofDirectory: directory), check)
        guard let listing else {
            guard !mustExist else {
                throw StoreError(
                    .notFound, "There is no such place: \(description). Check the address, and which account the token is of.")
            }
            return nil
        }
        return listing.entries(directory)
    }

    /// Returns all records of a type, for databases without a feed.
    private func query(_ type: CloudKitRecord.Kind, _ check: Check) throws -> CloudKitListing? {
        var listing = CloudKitListing(store: place.store), marker: String?, pages = CloudPages()
        let filter = CloudJSON.object([
            ("comparator", .text("EQUALS")), ("fieldName", .text("storeIdentifier")),
            ("fieldValue", .object([("value", .text(place.store)), ("type", .text("STRING"))])),
        ])
        repeat {
            var members = [
                place.zoneID, ("query", .object([("recordType", .text(type.rawValue)), ("filterBy", .array([filter]))])),
                ("desiredKeys", .list(["size", "storeIdentifier"])), ("resultsLimit", .number(CloudKitFiles.recordsAtOnce)),
            ]
            if let marker { members.append(("continuationMarker", .text(marker))) }
            let what = "Listing what is"
            guard let page = try account.ask("records/query", .object(members), what, check) else { return marker == nil ? listing : nil }
            let records = page["records"]?.elements ?? []
            for record in records { try listing.take(record) }
            let next = page["continuationMarker"]?.string
            if let next, !pages.goOn(to: next, behind: records.count) { throw account.unusable(what, "does not end") }
            marker = next
        } while marker != nil
        return listing
    }

    /// Returns all records, using the zone's feed of changes. Nil if there is no such zone.
    private func follow(_ check: Check) throws -> CloudKitListing? {
        let old = state.withLock { $0.known.flatMap { $0.since + 86_400 > Clock.steady() ? $0 : nil } }
        var listing = old?.names ?? CloudKitListing(store: place.store), token = old?.token, since = old?.since ?? Clock.steady()
        var pages = CloudPages()
        while true {
            var zone: [(String, CloudJSON)] = [
                place.zoneID, ("desiredKeys", .list(["size", "storeIdentifier"])), ("resultsLimit", .number(CloudKitFiles.recordsAtOnce)),
                ("desiredRecordTypes", .list(CloudKitRecord.Kind.listed.map(\.rawValue))),
            ]
            if let token { zone.append(("syncToken", .text(token))) }
            let what = "Listing what is"
            guard let answer = try account.ask("changes/zone", .object([("zones", .array([.object(zone)]))]), what, check),
                let page = answer["zones"]?.elements.first
            else { return nil }
            if page["serverErrorCode"] != nil {
                guard let error = account.failure(page, what) else { return nil }
                // The service no longer knows the token: all is listed.
                guard token != nil, page["serverErrorCode"]?.string == "BAD_REQUEST" else { throw error }
                (listing, token, since) = (CloudKitListing(store: place.store), nil, Clock.steady())
                continue
            }
            let records = page["records"]?.elements ?? []
            for record in records { try listing.take(record) }
            guard let next = page["syncToken"]?.string else { throw account.unusable(what, "has no syncToken") }
            let isLast = page["moreComing"]?.bool != true
            guard isLast || pages.goOn(to: next, behind: records.count) else { throw account.unusable(what, "does not end") }
            token = next
            guard isLast else { continue }
            let known = (token: next, since: since, names: listing)
            state.withLock { $0.known = known }
            return listing
        }
    }

    // MARK: Reading

    package func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents] {
        var contents: [RemoteContents] = files.map { _ in .missing }
        let records = files.map { CloudKitRecord($0.name, in: place) }
        let known = files.indices.filter { records[$0] != nil }
        for start in stride(from: 0, to: known.count, by: CloudKitFiles.readAtOnce) {
            try check()
            let part = known[start..<min(start + CloudKitFiles.readAtOnce, known.count)]
            var names: [CloudJSON] = []
            for name in Set(part.compactMap { records[$0]?.name }) { names.append(.object([("recordName", .text(name))])) }
            let keys = Set(part.flatMap { records[$0]?.keys ?? [] }).sorted()
            let json = CloudJSON.object([place.zoneID, ("records", .array(names)), ("desiredKeys", .list(keys))])
            guard let answer = try account.ask("records/lookup", json, "Reading", check) else { continue }
            var found: [String: CloudAnswer] = [:], refused: [String: StoreError] = [:]
            for record in answer["records"]?.elements ?? [] {
                guard let name = record["recordName"]?.string else { continue }
                if record["serverErrorCode"] != nil {
                    guard let error = account.failure(record, "Reading \(name) in \(description)") else {
                        note(name, tag: nil)
                        continue
                    }
                    guard account.isOfRecord(record) else { throw error }
                    refused[name] = error
                } else if record["deleted"]?.bool == true {
                    note(name, tag: nil)
                } else {
                    found[name] = record
                    let isVersion = record["recordType"]?.string == CloudKitRecord.Kind.version.rawValue
                    if !isVersion, part.contains(where: { records[$0]?.name == name && records[$0]?.kind == .version }) {
                        noteForeign(name)
                    }
                    if isVersion, let tag = record["recordChangeTag"]?.string { note(name, tag: tag) }
                }
            }
            var assets: [(index: Int, url: String, range: Range<Int>?, limit: Int)] = []
            for i in part {
                if let name = records[i]?.name, let error = refused[name] { contents[i] = .unreadable(CloudKitFiles.ofOne(error)) }
                guard let record = records[i], let fields = found[record.name]?["fields"] else { continue }
                switch try record.contents(fields) {
                case .none: break
                case .bytes(let bytes):
                    contents[i] = bytes.count > files[i].limit ? tooLarge(files[i]) : .bytes(bytes, isWhole: true)
                case .asset(let url): assets.append((i, url, files[i].range, files[i].limit))
                case .unusable:
                    contents[i] = .unreadable(
                        StoreError(
                            .damaged, "\(files[i].name) in \(description) is damaged: its record holds no such bytes.", path: record.name))
                }
            }
            let read = try account.download(assets.map { ($0.url, $0.range, $0.limit) }, "Reading", check)
            for (asset, outcome) in zip(assets, read) { contents[asset.index] = outcome }
        }
        return contents
    }

    private func note(_ name: String, tag: String?) {
        state.withLock { state in
            if state.seen.count >= CloudKitFiles.mostSeen { state.seen = [:] }
            state.seen.updateValue(tag, forKey: name)
            state.foreign.remove(name)
        }
    }

    private func noteForeign(_ name: String) {
        state.withLock { state in
            if state.foreign.count >= CloudKitFiles.mostSeen { state.foreign = [] }
            state.foreign.insert(name)
        }
    }

    private func tooLarge(_ file: RemoteRead) -> RemoteContents {
        .unreadable(
            StoreError(.tooLarge, "\(file.name) in \(description) has more than \(file.limit) bytes, and is not read.", path: file.name))
    }

    // MARK: Publishing

    package func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        var published: [RemotePublished] = files.map { _ in .published }, denied: StoreError?
        var batch: [Write] = [], size = 0
        let records = files.map { CloudKitRecord($0.name, in: place) }
        let changes = files.indices.filter { records[$0]?.part == .changes }
        // Both files of a version are one record, so the changes, which come first, wait for the version.
        if !changes.isEmpty {
            let waiting = Dictionary(changes.map { (files[$0].name, files[$0].data) }, uniquingKeysWith: { $1 })
            state.withLock { $0.waiting = waiting }
        }
        for i in files.indices {
            guard let record = records[i], record.part != .manifest, record.part != .chunk else {
                published[i] = .refused(StoreError(.unsupported, "CloudKit holds no file of that name", path: files[i].name))
                continue
            }
            guard record.part != .changes else { continue }
            guard let act = act(record, files[i].replaces) else {
                // The next attempt reads the record again.
                let isForeign = state.withLock { $0.foreign.remove(record.name) != nil }
                published[i] = isForeign ? .refused(StoreError(.foreignFile, "a record of another kind has its name")) : .exists
                continue
            }
            let made: (members: [(String, CloudJSON)], size: Int)?
            do { made = try fields(of: record, files[i], isUpdate: act.type == CloudKitFiles.update, check) } catch let refusal as Refusal {
                published[i] = .refused(refusal.error)
                continue
            }
            guard let fields = made else {
                published[i] = .refused(StoreError(.tooLarge, "CloudKit holds nothing of that size or form", path: files[i].name))
                continue
            }
            var members: [(String, CloudJSON)] = [
                ("recordName", .text(record.name)), ("recordType", .text(record.kind.rawValue)), ("fields", .object(fields.members)),
            ]
            if let tag = act.tag { members.append(("recordChangeTag", .text(tag))) }
            let operation = CloudJSON.object([("operationType", .text(act.type)), ("record", .object(members))])
            if batch.count == CloudKitFiles.recordsAtOnce || size + fields.size > CloudKitFiles.bytesAtOnce {
                try modify(&batch, &published, &denied, check)
                size = 0
            }
            batch.append((i, record.name, act.type, operation))
            size += fields.size
        }
        try modify(&batch, &published, &denied, check)
        // If the account may not create any record, that is reported once, not per record.
        if let denied, !state.withLock({ $0.hasWritten }) { throw denied }
        return published
    }

    private static let create = "create", update = "update"

    /// Returns the operation for a record, with the change tag that the record must still have, so that writes by other devices or apps are
    /// not overwritten. Nil: the record must be read first.
    private func act(_ record: CloudKitRecord, _ replaces: Bool) -> (type: String, tag: String?)? {
        guard replaces else { return (CloudKitFiles.create, nil) }
        // The name of a pack determines its content, and snapshots are replaced as a whole.
        guard record.part == .version else { return ("forceReplace", nil) }
        guard let seen = state.withLock({ $0.seen.removeValue(forKey: record.name) }) else { return nil }
        return (seen == nil ? CloudKitFiles.create : CloudKitFiles.update, seen)
    }

    /// Returns the fields of a record, and their approximate bytes. Nil if they exceed a record or an asset.
    /// - Parameter isUpdate: fields that are not named stay unchanged.
    private func fields(
        of record: CloudKitRecord, _ file: RemoteUpload, isUpdate: Bool, _ check: Check
    ) throws -> (members: [(String, CloudJSON)], size: Int)? {
        var members = [CloudKitRecord.field("storeIdentifier", "STRING", .text(place.store))], size = 200
        func add(_ data: OutgoingFile, _ inlineKey: String, upTo limit: Int, _ assetKey: String) throws -> Bool {
            if isUpdate { members.append((data.size <= limit ? assetKey : inlineKey, .object([("value", .null)]))) }
            if data.size <= limit {
                let text = Base64.encode(try data.bytes())
                members.append(CloudKitRecord.field(inlineKey, "BYTES", .text(String(decoding: text, as: UTF8.self))))
                size += text.count
                return true
            }
            guard data.size <= CloudKitFiles.largestAsset else { return false }
            let value = try asset(data, record, assetKey, check)
            members.append(CloudKitRecord.field(assetKey, "ASSETID", value))
            return true
        }
        switch record.part {
        case .pack:
            members.append(CloudKitRecord.field("size", "INT64", .number(file.data.size)))
            return try add(file.data, "data", upTo: CloudKitFiles.inlinePack, "asset") ? (members, size) : nil
        case .manifest, .chunk: return nil
        case .version, .changes:
            guard file.data.size <= CloudKitFiles.inlinePack, let version = CloudKitRecord.list(ofFile: try file.data.bytes()) else {
                return nil
            }
            let changes = "changes/" + record.name
            // If only the version is rewritten, its existing changes are used.
            guard let data = try state.withLock({ $0.waiting[changes] }) ?? there(changes, check) else { return nil }
            let text = Base64.encode(version)
            members.append(CloudKitRecord.field("version", "BYTES", .text(String(decoding: text, as: UTF8.self))))
            size += text.count
            return try add(data, "valueChanges", upTo: CloudKitFiles.inlineChanges, "valueChangesAsset") ? (members, size) : nil
        }
    }

    private func there(_ name: String, _ check: Check) throws -> OutgoingFile? {
        switch try read([RemoteRead(name: name, limit: CloudKitFiles.largestAsset)], check).first {
        case .bytes(let bytes, _): return OutgoingFile(bytes)
        case .large(let reader):
            var bytes = [UInt8](repeating: 0, count: reader.size), at = 0
            while at < bytes.count {
                let got = try bytes.withUnsafeMutableBytes { try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[at...])) }
                guard got > 0 else { return nil }
                at += got
            }
            return OutgoingFile(bytes)
        case .unreadable(let error): throw Refusal(error: CloudKitFiles.ofOne(error))
        case .missing, nil: return nil
        }
    }
    /// A failure of one record.
    private struct Refusal: Error { let error: StoreError }
    private static func ofOne(_ error: StoreError) -> StoreError {
        var error = error
        error.circumstance = .oneFile
        return error
    }

    private func asset(_ data: OutgoingFile, _ record: CloudKitRecord, _ field: String, _ check: Check) throws -> CloudJSON {
        let what = "Writing \(record.name)"
        let token = CloudJSON.object([
            ("recordName", .text(record.name)), ("recordType", .text(record.kind.rawValue)), ("fieldName", .text(field)),
        ])
        let json = CloudJSON.object([place.zoneID, ("tokens", .array([token]))])
        var answer = try account.ask("assets/upload", json, what, check)
        if answer == nil {
            try makeZone(check)
            answer = try account.ask("assets/upload", json, what, check)
        }
        let given = answer?["tokens"]?.elements.first
        if let given, account.isOfRecord(given), let error = account.failure(given, "\(what) to \(description)") {
            throw Refusal(error: CloudKitFiles.ofOne(error))
        }
        let url = given?["url"]?.string
        return try account.upload(HTTPRequest.Body(data, check), to: url, what, check)
    }

    private typealias Write = (index: Int, name: String, type: String, operation: CloudJSON)

    private func modify(
        _ batch: inout [Write], _ published: inout [RemotePublished], _ denied: inout StoreError?, _ check: Check
    ) throws {
        guard !batch.isEmpty else { return }
        let operations = batch.map(\.operation)
        let found = try modify(operations, "Writing", check)
        for ((i, name, type, _), record) in zip(batch, found) {
            guard record["recordName"]?.string == name else {
                throw account.unusable("Writing \(name) to \(description)", "describes another record")
            }
            guard record["serverErrorCode"] != nil else {
                published[i] = .published
                state.withLock { $0.hasWritten = true }
                continue
            }
            switch record["serverErrorCode"]?.string {
            case "EXISTS": published[i] = .exists
            // Another device wrote or deleted it since it was read.
            case "CONFLICT" where type == CloudKitFiles.update, "NOT_FOUND" where type == CloudKitFiles.update: published[i] = .exists
            case "LIMIT_EXCEEDED": published[i] = .refused(StoreError(.tooLarge, "CloudKit holds nothing of that size"))
            case let code:
                let what = "Writing \(name) to \(description)"
                let error = account.failure(record, what) ?? account.unusable(what, "says that the record is missing")
                guard account.isOfRecord(record) else { throw error }
                published[i] = .refused(CloudKitFiles.ofOne(error))
                if code == "ACCESS_DENIED", type == CloudKitFiles.create { denied = denied ?? error }
            }
        }
        batch = []
    }

    /// Returns the results of the operations, in order.
    private func modify(_ operations: [CloudJSON], _ what: String, _ check: Check) throws -> [CloudAnswer] {
        let json = CloudJSON.object([place.zoneID, ("operations", .array(operations)), ("atomic", .bool(false))])
        var answer = try account.ask("records/modify", json, what, check)
        if answer == nil {
            try makeZone(check)
            answer = try account.ask("records/modify", json, what, check)
        }
        guard let found = answer?["records"]?.elements, found.count == operations.count else {
            throw account.unusable("\(what) in \(description)", "does not describe each record")
        }
        return found
    }

    private func makeZone(_ check: Check) throws {
        guard let zone = place.zone, !mustExist, place.database == "private" else {
            throw StoreError(.notFound, "There is no such place: \(description). Check the address, and which account the token is of.")
        }
        let operation = CloudJSON.object([
            ("operationType", .text("create")), ("zone", .object([("zoneID", .object([("zoneName", .text(zone))]))])),
        ])
        _ = try account.ask("zones/modify", .object([("operations", .array([operation]))]), "Making the zone", check)
    }

    // MARK: Deleting

    package func delete(_ names: [String], _ check: Check) throws {
        let records = names.compactMap { CloudKitRecord($0, in: place) }.filter { $0.part == .pack }
        for start in stride(from: 0, to: records.count, by: CloudKitFiles.recordsAtOnce) {
            let part = records[start..<min(start + CloudKitFiles.recordsAtOnce, records.count)]
            let operations = part.map { record in
                CloudJSON.object([
                    ("operationType", .text("forceDelete")), ("record", .object([("recordName", .text(record.name))])),
                ])
            }
            for (pack, record) in try zip(part, modify(operations, "Deleting", check)) where record["serverErrorCode"] != nil {
                if let error = account.failure(record, "Deleting \(pack.name) in \(description)") { throw error }
            }
        }
    }
}
