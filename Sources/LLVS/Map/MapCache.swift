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
        var replay = 0
        /// Changes since the flat map that it builds on, or since there was nothing: what may be nodes in memory.
        var overlay = 0
    }
    /// So many changes are replayed at most between two anchors, while the budget lasts.
    static let anchorSpacing = 1_024
    /// Memory that one changed value costs in copied nodes, about.
    private static let costPerChange = 2_048
    /// The same for many at once, which share what is copied: for one of them, and for each value when all are copied.
    private static let nodesPerChange = 1_024
    private static let nodesPerValue = 80

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

    /// Keeps a flat map, which takes no memory of its own but was much to make.
    @discardableResult
    func store(_ ordinal: UInt32, flat root: MapNode?) -> Slot {
        store(ordinal, root, changes: MapCache.anchorSpacing, overlay: 0, replayBehind: 0)
    }

    /// Keeps a map that was made by applying `changes` changes to another; answers what it kept.
    @discardableResult
    func store(_ ordinal: UInt32, _ root: MapNode?, changes: Int, on behind: Slot) -> Slot {
        store(ordinal, root, changes: changes, overlay: behind.overlay + changes, replayBehind: behind.replay)
    }

    private func store(_ ordinal: UInt32, _ root: MapNode?, changes: Int, overlay: Int, replayBehind: Int) -> Slot {
        lock.lock()
        defer { lock.unlock() }
        var slot = Slot(root: root, replay: replayBehind + changes, overlay: overlay)
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

    /// Whether so much of a map is nodes in memory that it had better be a flat one.
    ///
    /// Writing one costs by all values, so it is done when as many changes have come as will pay for it, be it that the
    /// budget is too small for them: a quarter of it for nodes, and for small budgets at least a few thousand changes.
    func isHeavy(_ slot: Slot) -> Bool {
        guard let count = slot.root?.count else { return false }
        let memory = min(slot.overlay * MapCache.nodesPerChange, count * MapCache.nodesPerValue)
        return memory > budget / 4 && slot.overlay >= max(MapCache.anchorSpacing, min(count / 16, budget / 2 / MapCache.nodesPerChange))
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
