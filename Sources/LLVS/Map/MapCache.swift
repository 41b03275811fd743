/// The maps that are in memory, by the ordinal of their version, within a budget.
///
/// Two generations make a cheap least-recently-used: what is asked for moves to the young one; when that is
/// full, it becomes the old one and what was old is let go. Maps that were costly to make (many changes
/// since the nearest other) are anchors and are kept apart, so that reading the past never replays much.
/// Safe from all threads.
final class MapCache: @unchecked Sendable {
    struct Slot {
        var root: MapNode?
        /// Changes to replay from the nearest anchor behind.
        var replay: Int
    }
    /// So many changes are replayed at most between two anchors, while the budget lasts.
    static let anchorSpacing = 1_024
    /// Memory that one changed value costs in copied nodes, about.
    private static let costPerChange = 2_048

    private let lock = Lock()
    private var young: [UInt32: Slot] = [:]
    private var old: [UInt32: Slot] = [:]
    private var anchors: [UInt32: Slot] = [:]
    private var anchorOrder: [UInt32] = []
    private var anchorCosts: [Int] = []
    private var youngCost = 0
    private var anchorCost = 0
    private let budget: Int

    init(budget: Int) { self.budget = max(1 << 20, budget) }

    /// The map of a version, when it is here.
    func slot(_ ordinal: UInt32) -> Slot? {
        lock.lock()
        defer { lock.unlock() }
        if let slot = young[ordinal] { return slot }
        if let slot = old[ordinal] {
            insertYoung(ordinal, slot, cost: MapCache.costPerChange)
            return slot
        }
        return anchors[ordinal]
    }

    /// Keeps a map that was made by applying `changes` changes to one whose replay is `replayBehind`; answers what it kept.
    @discardableResult
    func store(_ ordinal: UInt32, _ root: MapNode?, changes: Int, replayBehind: Int) -> Slot {
        lock.lock()
        defer { lock.unlock() }
        var slot = Slot(root: root, replay: replayBehind + changes)
        if slot.replay >= MapCache.anchorSpacing {
            let cost = min(slot.replay * MapCache.costPerChange, (root?.count ?? 0) * 72)
            slot.replay = 0
            if anchors.updateValue(slot, forKey: ordinal) == nil {
                anchorOrder.append(ordinal)
                anchorCosts.append(cost)
                anchorCost += cost
                trimAnchors()
            }
        }
        insertYoung(ordinal, slot, cost: min(max(1, changes) * MapCache.costPerChange, max(MapCache.costPerChange, (root?.count ?? 0) * 72)))
        return slot
    }

    private func insertYoung(_ ordinal: UInt32, _ slot: Slot, cost: Int) {
        young[ordinal] = slot
        youngCost += cost
        if youngCost > budget / 4 {
            old = young
            young = [:]
            youngCost = 0
        }
    }

    /// Over the budget, every other anchor goes: what remains is evenly spread over the past.
    private func trimAnchors() {
        guard anchorCost > budget / 2, anchorOrder.count > 4 else { return }
        var order: [UInt32] = [], costs: [Int] = []
        for (i, ordinal) in anchorOrder.enumerated() {
            if i % 2 == 0 || i == anchorOrder.count - 1 { order.append(ordinal); costs.append(anchorCosts[i]) } else { anchors[ordinal] = nil }
        }
        anchorOrder = order
        anchorCosts = costs
        anchorCost = costs.reduce(0, +)
    }

    /// Forgets all: they are made again from the records when they are asked for.
    func removeAll() {
        lock.withLock {
            young = [:]
            old = [:]
            anchors = [:]
            anchorOrder = []
            anchorCosts = []
            youngCost = 0
            anchorCost = 0
        }
    }

    /// Forgets a version whose commit failed.
    func drop(_ ordinal: UInt32) {
        lock.withLock {
            young[ordinal] = nil
            old[ordinal] = nil
            if anchors.removeValue(forKey: ordinal) != nil, let i = anchorOrder.firstIndex(of: ordinal) {
                anchorOrder.remove(at: i)
                anchorCost -= anchorCosts.remove(at: i)
            }
        }
    }
}
