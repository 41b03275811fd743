import LLVSExchangeTestHelpers
import LLVSTestHelpers

@testable import LLVSCore
@testable import LLVSExchange

/// Devices that share one place, and the invariants that must hold.
final class PackedWorld {
    /// The rules that the simulation breaks; the code of the library is unchanged.
    enum Mutant: CaseIterable {
        /// Pitfall 1: a device that made a pack removes packs of others if it has all their versions, whatever its pack lists.
        case content
        /// Pitfall 2: a device that merges packs removes all other packs with numbers in the same range.
        case ranges
        /// Pitfall 3: names are the same at each attempt.
        case noSalt
        /// Pitfall 4: reading a file back returns what should have been written.
        case noVerification
    }
    let place: MemoryPlace
    var random: SeededRandom
    var devices: [PackedDevice] = []
    let mutant: Mutant?, restores: Bool
    /// Whether more uploads are torn, more answers are lost, and fewer versions are made, so that the same ones are sent again and again.
    let isRough: Bool
    /// The versions that some device received from the place, or knows to be at the place.
    var safe: Set<VersionID> = []
    var backup: [String: [UInt8]]?
    var depth = 0, commits = 0
    /// The packs of each device, for the mutant that deletes by content.
    private var made: [ObjectIdentifier: [String]] = [:]
    var wrong: String?

    init(_ seed: UInt64, _ mutant: Mutant?, restores: Bool, isRough: Bool) throws {
        place = MemoryPlace(seed: seed &* 7 &+ 1)
        random = SeededRandom(seed: seed)
        self.mutant = mutant; self.restores = restores; self.isRough = isRough
        if isRough { (place.tearing, place.losing) = (0.3, 0.4) }
        for _ in 0..<Int.random(in: 2...4, using: &random) {
            // A writer counts as silent after some days without a number, so packs are adopted again and again.
            try add(PackedDevice(place, fanIn: 3, silence: 40 * MemoryPlace.step, random: salt()))
        }
        // All devices know one root. A device that does not find a known root rightly refuses to send.
        try commit(devices[0])
        for device in devices { try exchange(device) }
        place.hasFaults = true
    }

    /// The source of a device's random numbers.
    private func salt() -> @Sendable () -> UInt64 {
        guard mutant == .noSalt else { return { [place] in place.random.next() } }
        let own = place.random.next()
        return { own }
    }

    private func add(_ device: PackedDevice) {
        devices.append(device)
        device.files.before = { [unowned self, unowned device] in
            // Other devices run between any two requests.
            if place.hasFaults, depth < 3, Int.random(in: 0..<4, using: &random) == 0 {
                depth += 1
                defer { depth -= 1 }
                try step()
            }
            if place.hasFaults, Int.random(in: 0..<60, using: &random) == 0 {
                device.storage.isDead = true
                throw MemoryFiles.died
            }
        }
        var meant: [String: [UInt8]] = [:]
        if mutant == .noVerification {
            device.files.made = { meant[$0] = $1 }
            device.files.readsInstead = { meant[$0] }
            // Sizes would reveal a torn upload before the packs that it replaces are deleted.
            device.files.tellsSizes = false
        }
        if mutant == .content {
            device.files.published = { [unowned self, unowned device] name in made[ObjectIdentifier(device), default: []].append(name) }
        }
        if mutant == .ranges {
            device.files.published = { [unowned self] text in
                guard let name = PackName(text), name.kind == .base else { return }
                for other in place.names(.log) + place.names(.base) where other != name && other.writer == name.writer {
                    if name.first <= other.first, other.last <= name.last { place.remove(other.description) }
                }
            }
        }
    }

    func step() throws {
        let idle = devices.filter { !$0.isRunning }
        guard let device = idle.randomElement(using: &random) else { return }
        let dice = Int.random(in: 0..<1_000, using: &random)
        switch dice {
        case ..<(isRough ? 150 : 450): try commit(device)
        case ..<460 where !isRough && devices.count < 6: try add(device.clone(random: salt()))
        case ..<465 where devices.count > 2: devices.removeAll { $0 === device }
        case ..<475 where restores:
            if let backup, Bool.random(using: &random) { place.files = backup } else { backup = place.files }
        case ..<485: place.isFull.toggle()
        // Clocks go wrong and are corrected. No clock decides what is safe.
        case ..<495 where mutant == nil:
            device.clockAhead.value = [0, 0, 7_200, -86_400, 400 * 86_400].randomElement(using: &random) ?? 0
        default: try exchange(device)
        }
    }

    private func commit(_ device: PackedDevice) throws {
        let head = try device.store.heads().randomElement(using: &random)?.id
        // A random UUID.
        let id = VersionID(high: random.next() & ~0xF000 | 0x4000, low: random.next() & ~(3 << 62) | 1 << 63)
        let data = [UInt8](repeating: 1, count: Int(random.next() % 40))
        let change: Value.Change = .insert(try ValueID("k\(random.next() % 50)"), data: data)
        // Packs, and so their names, contain the time, and a seed must determine everything.
        commits += 1
        _ = try device.store.makeVersion(basedOn: head, changes: [change], id: id, timestamp: Double(commits))
    }

    func exchange(_ device: PackedDevice) throws {
        device.isRunning = true
        if mutant == .content { removeContained(in: device) }
        let before = device.ids
        do {
            _ = try device.exchange.retrieve()
            // The device saves nothing meanwhile, so new versions came from the place.
            safe.formUnion(device.ids.subtracting(before))
            let sent = try device.exchange.send()
            safe.formUnion(Set(sent.versions).intersection(place.versions()))
        } catch let error as StoreError where [.transport, .user, .noSpace, .notFound].contains(error.code) {
            // Not found: an outdated listing shows neither roots nor packs.
            if !place.hasFaults { wrong = "an exchange failed without faults: \(error)" }
            safe.formUnion(device.ids.subtracting(before))
        }
        if device.storage.isDead {
            device.storage.isDead = false
            device.restart()
        }
        device.isRunning = false
        check()
    }

    private func removeContained(in device: PackedDevice) {
        let own = made[ObjectIdentifier(device)] ?? [], all = place.names(.log) + place.names(.base)
        for name in own where PackName(name)?.kind == .base {
            guard let has = place.versionsOnce(of: name) else { continue }
            for other in all.map(\.description) where !own.contains(other) && place.versionsOnce(of: other)?.isSubset(of: has) ?? false {
                place.remove(other)
            }
        }
    }

    private func check() {
        guard !restores, wrong == nil else { return }
        let lost = safe.subtracting(place.versions())
        if !lost.isEmpty { wrong = "\(lost.count) versions that were at the remote are gone, at step \(place.clock)" }
    }

    /// Returns nil if all is right.
    static func play(
        _ seed: UInt64, steps: Int, mutant: Mutant? = nil, restores: Bool = false, isRough: Bool = false
    ) throws -> String? {
        let world = try PackedWorld(seed, mutant, restores: restores, isRough: isRough)
        for _ in 0..<steps {
            try world.step()
            if let wrong = world.wrong { return wrong }
        }
        return try world.settle()
    }

    /// No faults from here on, and enough time.
    func settle() throws -> String? {
        place.hasFaults = false
        place.isFull = false
        for _ in 0..<(restores ? 16 : 8) {
            place.clock += 3 * MemoryPlace.stale
            for device in devices { try exchange(device) }
            if let wrong { return wrong }
        }
        guard let first = devices.first?.ids else { return nil }
        for device in devices where device.ids != first {
            return "devices end with different versions: \(device.ids.count) and \(first.count)"
        }
        if !restores, !safe.isSubset(of: first) { return "a device lacks versions that were at the remote" }
        if !first.isSubset(of: place.versions()) { return "the remote lacks versions that all devices have" }
        return nil
    }
}
