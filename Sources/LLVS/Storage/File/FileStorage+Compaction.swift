/// Compacting many small segments into few large ones.
///
/// Every handle that writes leaves a segment, and opening a store costs by segments. So those that are small, and
/// that nobody will add to any more, are compacted into one; it is written aside, made durable, and then named. What was
/// compacted is deleted by a later look, once that has been there for the time of grace, and holds it byte for byte.
/// Nobody waits for any of this: readers find each record in one place or the other.
extension FileStorage {
    /// Larger ones stay as they are: so a record is copied a few times only, whatever the size of the store.
    var compactLimit: UInt64 { options.segmentLimit / 2 }
    /// Segments of different sizes are compacted together only when the largest is at most as large as the others
    /// together, so that each compaction at least doubles what a record lies in. Below this many bytes it does not matter.
    static let smallSegment: UInt64 = 64 << 10
    /// Fewer at once do not pay.
    static let fewestFolded = 4

    public func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport {
        let report = CompactionReport()
        if isReadOnly {
            if trigger == .request { throw StorageRange.readOnly(description) }
            return report
        }
        try state.withLock { try checkOpen() }
        if trigger != .request, options.compaction == .onRequest { return report }
        // Its progress callback belongs to the host, which may compact or close the store there.
        if let report = try compacting.runUnlessWithin({ try compactHeld(trigger, control) }) { return report }
        guard trigger != .request else {
            throw StoreError(
                .busy,
                "Compacting \(description) was asked for from within the progress callback of a compaction of it. "
                    + "Do it after that has returned."
            )
        }
        return report
    }

    private func compactHeld(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport {
        var report = CompactionReport()
        switch trigger {
        case .opened: if !mayPay(trigger) { return report }
        case .closing: if !mayPay(trigger), !mayDelete() { return report }
        case .request: break
        }
        if options.compaction != .always, let marker = SyncedFolder.marker(above: directory.path) {
            report.syncMarker = marker
            return report
        }
        // One process at a time, so that no two compact what overlaps. That would be right, but wasteful; so where there
        // are no locks we do without.
        let turn = try posix("Opening", directory.segments) { () throws(Errno) in try directory.segmentsFolder.readable() }
        do throws(Errno) { try System.lockExclusively(turn.descriptor) } catch { if error.code == EWOULDBLOCK { return report } }
        // A child that the host forks meanwhile has the open file as well: closing it here alone would leave the lock with that one.
        defer { try? System.unlock(turn.descriptor) }
        return try compactNow(trigger, control)
    }

    /// Whether there may be enough to compact. Looks at what the scans met only.
    private func mayPay(_ trigger: CompactionTrigger) -> Bool {
        let limit = threshold(trigger)
        return state.withLock {
            var count = 0
            for segment in segments where segment.position > 0 && segment.position < compactLimit && isFoldable(segment) { count += 1 }
            return count > limit
        }
    }

    private func threshold(_ trigger: CompactionTrigger) -> Int {
        let threshold = min(max(0, options.compactionThreshold), 1 << 30)
        return trigger == .opened ? threshold * 4 : threshold
    }

    /// Under `state`.
    private func isFoldable(_ segment: Segment) -> Bool {
        !segment.replaced && !segment.gone && !segment.damaged && segment.pinned == nil && segment !== durability.ownSegment
    }

    /// Whether segments are there that were compacted, long enough ago. Looks at the last compaction only: while others follow,
    /// those look, too; and to look costs by all that was ever compacted.
    private func mayDelete() -> Bool {
        let (any, compacted) = state.withLock {
            (
                !passedOver.isEmpty || segments.contains { $0.replaced && !$0.gone },
                segments.filter { $0.name.hasPrefix(CompactionSource.namePrefix) }.map(\.name)
            )
        }
        guard any else { return false }
        let looks = compacted.compactMap { name in try? directory.segment(name).status() }
        return !looks.isEmpty && looks.allSatisfy(isOldEnough)
    }

    private func isOldEnough(_ status: System.Status) -> Bool {
        let grace = min(max(0, options.compactionGrace), 1e9)
        return Double(System.now &- status.modified) / 1e9 >= grace
    }

    private func compactNow(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport {
        var report = CompactionReport()
        let what = "Compacting \(description)"
        let names = try segmentNames(control.paced(.writing, doing: what)).sorted()
        var done = 0, stopped: (any Error)?
        // Who has said that it shall stop is not asked again: where errors of reading are passed over, this one is not.
        let compaction = SegmentCompaction(
            system: options.system,
            check: {
                if let stopped { throw stopped }
                Work.looks.count()
                do { try control.check(.writing, done, of: 0, doing: what) } catch {
                    stopped = error
                    throw error
                }
            })
        try compaction.check()
        try removeLeftovers(compaction.check)

        var here = Set(names.lazy.compactMap { RandomName(hex: $0.dropLast(4)) }), covered: Set<RandomName> = []
        var compacted: [(name: String, head: CompactedSegment)] = []
        for name in names where name.hasPrefix(CompactionSource.namePrefix) {
            try compaction.check()
            if let head = readHead(name) { compacted.append((name, head)) }
        }
        for (name, head) in compacted {
            let old = head.sources.filter { $0.id != head.id && here.contains($0.id) }
            if !old.isEmpty, let status = try? directory.segment(name).status(), isOldEnough(status) {
                guard try compaction.isWhole(directory.segment(name), head.id, size: status.size) else {
                    // Bytes of it were changed. Made again from the same segments it is the same; else they are kept.
                    try remake(name, head, compaction, &report)
                    covered.formUnion(head.sources.map(\.id))
                    continue
                }
                try delete(old, compactedInto: name, head, compaction, &here, &report)
            }
            covered.formUnion(head.sources.map(\.id))
        }

        var summaries: [(name: String, summary: SegmentCompaction.Summary)] = []
        for name in names {
            guard let id = RandomName(hex: name.dropLast(4)), here.contains(id), !covered.contains(id),
                state.withLock({ segmentsByName[name].map { isFoldable(segments[$0]) } ?? true })
            else { continue }
            try compaction.check()
            if let summary = SegmentCompaction.summary(directory.segment(name)), summary.size < compactLimit {
                summaries.append((name, summary))
            }
        }
        for group in groups(summaries, trigger) {
            var inputs: [CompactionInput] = []
            for (name, summary) in group {
                try compaction.check()
                if let input = try compaction.examine(directory.segment(name), summary) { inputs.append(input) }
            }
            guard inputs.count >= 2 else { continue }
            try write(inputs, compaction, &report)
            done = Int(clamping: report.bytesWritten)
        }
        return report
    }

    /// Which are compacted together.
    private func groups(_ summaries: [(name: String, summary: SegmentCompaction.Summary)], _ trigger: CompactionTrigger) -> [[(
        name: String, summary: SegmentCompaction.Summary
    )]] {
        typealias Group = [(name: String, summary: SegmentCompaction.Summary)]
        var groups: [Group] = []
        var group: Group = []
        var sum: UInt64 = 0
        let sorted: Group
        let isByRequest = trigger == .request
        if !isByRequest {
            guard summaries.count > threshold(trigger) else { return [] }
            sorted = summaries.sorted {
                $0.summary.size != $1.summary.size ? $0.summary.size < $1.summary.size : $0.summary.id < $1.summary.id
            }
        } else {
            sorted = summaries.sorted {
                $0.summary.created != $1.summary.created ? $0.summary.created < $1.summary.created : $0.summary.id < $1.summary.id
            }
        }
        for next in sorted {
            let size = next.summary.size
            if sum + size > options.segmentLimit || (!isByRequest && size > max(sum, FileStorage.smallSegment)) {
                groups.append(group)
                group = []
                sum = 0
            }
            group.append(next)
            sum += size
        }
        groups.append(group)
        return groups.filter { $0.count >= (isByRequest ? 2 : FileStorage.fewestFolded) }
    }

    private func write(_ inputs: [CompactionInput], _ compaction: SegmentCompaction, _ report: inout CompactionReport) throws {
        let size: UInt64
        // What is gone meanwhile, or has become shorter, is compacted another time, if it comes back.
        do { size = try compaction.write(inputs, in: directory) } catch is SegmentCompaction.Vanished { return }
        countSync()
        report.made += 1
        report.folded += UInt64(inputs.count)
        report.bytesWritten += size
        let name = SegmentCompaction.id(of: inputs).hex + ".seg"
        guard let head = readHead(name) else { return }
        try state.withLock {
            try checkOpen()
            counters.bytesWritten &+= size
            let segment = try segmentLocked(named: name)
            forget(segment)
            try applyRelocations(of: head, in: segment, here: [])
            // Where all that it holds was reported from where it was, no scan need look at it.
            let isKnown = inputs.allSatisfy { input in
                segmentsByName[input.id.hex + ".seg"].map { !segments[$0].damaged && segments[$0].position >= input.from + input.size }
                    ?? false
            }
            guard isKnown else { return }
            segment.id = head.id
            segment.position = head.end
            segment.complete = true
            retire(head, by: segment)
        }
    }

    // MARK: What was compacted

    private func delete(
        _ old: [CompactionSource], compactedInto name: String, _ head: CompactedSegment, _ compaction: SegmentCompaction,
        _ here: inout Set<RandomName>,
        _ report: inout CompactionReport
    ) throws {
        let place = directory.segment(name), path = place.path
        guard let compacted = try? OpenFile(place, O_RDONLY) else { return }
        // It may have come from another machine, or from a backup.
        try posix("Syncing the segment", path) { () throws(Errno) in try options.system.sync(compacted) }
        try directory.syncDirectory(directory.segmentsFolder, options.system)
        countSync()
        for source in old {
            try compaction.check()
            let oldName = source.id.hex + ".seg", oldPlace = directory.segment(oldName), oldPath = oldPlace.path
            guard let file = try? OpenFile(oldPlace, O_RDONLY), let status = try? System.status(file.descriptor),
                status.size == source.length
            else { continue }
            // The lock of one that was never sealed says whether its writer lives.
            if !source.sealed, (try? System.lockExclusively(file.descriptor)) == nil { continue }
            // Damaged meanwhile, or not of the same bytes: it stays, whatever it holds.
            guard (try? compaction.holds(source, at: head.data + source.at, in: compacted, path, head.id, file, oldPath)) ?? false else {
                try compaction.check()
                continue
            }
            try posix("Removing the segment", oldPath) { () throws(Errno) in
                do throws(Errno) { try options.system.unlink(oldPlace) } catch { if error.code != ENOENT { throw error } }
            }
            here.remove(source.id)
            report.deleted += 1
            report.bytesDeleted += status.size
            state.withLock {
                passedOver.remove(oldName)
                guard let index = segmentsByName[oldName] else { return }
                segments[index].gone = true
                forget(segments[index])
            }
        }
    }

    /// Makes a compacted segment again that is damaged, when all that it was made of is there.
    private func remake(_ name: String, _ head: CompactedSegment, _ compaction: SegmentCompaction, _ report: inout CompactionReport) throws
    {
        var inputs: [CompactionInput] = []
        for source in head.direct {
            try compaction.check()
            let old = source.id.hex + ".seg", place = directory.segment(old)
            guard let summary = SegmentCompaction.summary(place), let input = try compaction.examine(place, summary) else { break }
            inputs.append(input)
        }
        guard inputs.count == head.direct.count, SegmentCompaction.id(of: inputs) == head.id else {
            Log.write(
                .warning,
                "The segment \(directory.segments)/\(name) is damaged. Those that were compacted into it and are still there are kept. "
                    + "Verify the store."
            )
            return
        }
        Log.write(.warning, "The segment \(directory.segments)/\(name) is damaged. It is made again of those that were compacted into it.")
        try write(inputs, compaction, &report)
    }

    /// What those left behind who were killed while they compacted.
    private func removeLeftovers(_ check: () throws -> Void) throws {
        for name in (try? directory.segmentsFolder.names()) ?? []
        where name.hasPrefix(SegmentCompaction.asidePrefix) && name.hasSuffix(".tmp") {
            try check()
            let place = directory.segment(name)
            guard let status = try? place.status(), status.isRegularFile, isOldEnough(status), let file = try? OpenFile(place, O_RDONLY),
                (try? System.lockExclusively(file.descriptor)) != nil
            else { continue }
            try? options.system.unlink(place)
        }
    }
}
