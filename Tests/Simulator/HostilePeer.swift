import LLVS
import LLVSTestSupport

/// An attacker who may write to the folders. It writes:
///
/// - other contents under the ids of honest versions, whether these have arrived or not, and different contents in different folders
/// - the same ids in lower case
/// - false empty roots
/// - versions that name each other
/// - versions without changes, and others on top of these
/// - versions whose ids differ from honest ones only in case
///
/// Versions of the last kind are valid, since such ids imply no contents. All others must be refused, and must not delay any honest
/// version.
struct HostilePeer {
    /// The names of versions that no store can ever accept.
    var junk: Set<String> = []
    /// The acceptable versions that it made.
    var made = VersionSet()
    private var count = 0

    mutating func next() -> Int {
        count += 1
        return count
    }
}

extension Simulation {
    /// Attacks before a step.
    func attack(_ step: Step) throws {
        var random = SeededRandom(seed: step.seed ^ 0xBAD)
        guard Int.random(in: 0..<3, using: &random) > 0, let folder = folders.randomElement(using: &random) else { return }
        let number = peer.next()
        let honest = replicas.reduce(into: VersionSet()) { $0.formUnion($1.known) }.numbers.filter { model[$0].version.id != EmptyRoot.id }
        func evil(_ name: String, after: [String] = [], time: Double = Plan.beginning, withChanges: Bool = true) {
            var file = "{\"version\":{\"identifier\":\"\(name)\",\"timestamp\":\(time),\"metadata\":[]"
            if let first = after.first {
                file += ",\"predecessors\":{\"idOfFirst\":\"\(first)\"" + (after.count > 1 ? ",\"idOfSecond\":\"\(after[1])\"}" : "}")
            }
            if withChanges {
                folder.write(
                    .init(area: .changes, id: name), Array("[{\"insert\":{\"id\":\"evil \(number)\",\"data\":\"ZXZpbA==\"}}]".utf8))
            }
            folder.write(.init(area: .versions, id: name), Array((file + "}}").utf8))
        }
        counted(faults: 1)
        switch Int.random(in: 0..<7, using: &random) {
        case 0...2:
            let computed = honest.filter { model[$0].version.id.hasContentForm }
            guard let one = computed.randomElement(using: &random).map({ model[$0].version }) else { return }
            let after =
                Bool.random(using: &random) ? one.predecessors : honest.randomElement(using: &random).map { [model[$0].version.id] } ?? []
            evil("\(one.id)", after: after.filter { $0 != one.id }.map(\.description), time: one.timestamp)
            say("the peer forges \(model.name(one.id))")
            guard Bool.random(using: &random) else { return }
            let lower = "\(one.id)".lowercased()
            peer.junk.insert(lower)
            evil(lower, after: one.predecessors.map(\.description), time: one.timestamp)
        case 3:
            peer.junk.insert("\(EmptyRoot.id)")
            evil("\(EmptyRoot.id)", time: Bool.random(using: &random) ? 0 : 1)
            say("the peer forges the empty root")
        case 4:
            peer.junk.formUnion(["evil-a\(number)", "evil-b\(number)"])
            evil("evil-a\(number)", after: ["evil-b\(number)"])
            evil("evil-b\(number)", after: ["evil-a\(number)"])
            say("the peer publishes a circle")
        case 5:
            peer.junk.formUnion(["evil-c\(number)", "evil-d\(number)"])
            evil("evil-c\(number)", withChanges: false)
            evil("evil-d\(number)", after: ["evil-c\(number)"])
            say("the peer publishes a version without changes")
        default: try publishTwin(in: folder, honest, &random)
        }
    }

    private func publishTwin(in folder: SimulatedFolder, _ honest: [Int], _ random: inout SeededRandom) throws {
        let free = honest.filter { !model[$0].version.id.hasContentForm }
        guard let twin = free.randomElement(using: &random), let base = honest.randomElement(using: &random) else { return }
        let like = "\(model[twin].version.id)"
        let name = like.lowercased() == like ? like.uppercased() : like.lowercased()
        guard name != like, let id = try? VersionID(name), model[id] == nil else { return }
        let before = model[base], key = try ValueID("twin"), data = Array("\(name)".utf8.prefix(3))
        let version = Version(
            id: id, predecessors: [before.version.id], timestamp: after(before.version.timestamp), valueDataSize: UInt64(data.count),
            metadata: Metadata())
        var state = before.state
        state[key] = Held(stored: id, data: data)
        let change: Value.Change = before.state[key] == nil ? .insert(key, data: data) : .update(key, data: data)
        let number = try model.add(version, [change], state: state)
        peer.made.insert(number)
        counted(versions: 1)
        let label = before.state[key] == nil ? "insert" : "update"
        let encoded = base64Of3(data)
        folder.write(.init(area: .changes, id: name), Array("[{\"\(label)\":{\"id\":\"twin\",\"data\":\"\(encoded)\"}}]".utf8))
        folder.write(
            .init(area: .versions, id: name),
            Array(
                ("{\"version\":{\"identifier\":\"\(name)\",\"predecessors\":{\"idOfFirst\":\"\(before.version.id)\"},"
                    + "\"timestamp\":\(version.timestamp),\"valueDataSize\":3,\"metadata\":[]}}").utf8))
        say("the peer publishes V\(number), \(name), a twin of V\(twin), on V\(base)")
    }

    /// The Base64 of three bytes.
    private func base64Of3(_ bytes: [UInt8]) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        let word = bytes.reduce(0) { $0 << 8 | Int($1) }
        return String([18, 12, 6, 0].map { digits[word >> $0 & 63] })
    }

    /// The attacks have ended. Each store reads everything in the folders once, and rewrites what was forged.
    func cleanUp() throws {
        for _ in 0..<2 {
            for replica in replicas {
                for folder in replica.attachments {
                    guard let exchange = replica.exchanges[folder] else { continue }
                    try takeIn(replica, exchange.retrieve(verifyKnown: true).versions)
                    _ = try exchange.send()
                }
            }
        }
    }

    /// Problems that must not occur. Versions that no store can ever accept, and versions that the peer made and lost, may have any.
    func unexpected(_ problems: [ExchangeProblem]) -> [ExchangeProblem] {
        problems.filter { problem in
            if peer.junk.contains(problem.name) || problem.error.code == .clockAhead { return false }
            guard let number = (try? VersionID(problem.name)).flatMap({ model.numbers[$0] }) else { return true }
            return !(peer.made.contains(number) && !replicas.contains { $0.known.contains(number) })
        }
    }
}
