/// Compacts many small segments into few large ones.
///
/// Every handle that writes leaves a segment, and the time to open a store grows with their number. So small segments that no process
/// appends to any more are compacted into one, which is written under a temporary name, synced, and renamed. The old ones are deleted by
/// a later check, once the new one has existed for the grace period and holds their bytes unchanged. Nothing waits for this: readers find
/// each record in one place or the other.
extension FileStorage {
    /// Larger segments are not compacted: so a record is copied only a few times, whatever the size of the store.
    var compactLimit: UInt64 { options.segmentLimit / 2 }
    /// Segments of different sizes are compacted together only if the largest is at most as large as the others together. So each
    /// compaction at least doubles the size of a record's segment. Below this many bytes the size does not matter.
    static let smallSegment: UInt64 = 64 << 10
    /// The fewest segments that are worth compacting.
    static let fewestFolded = 4

    package func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport {
        let report = CompactionReport()
        if isReadOnly {
            if trigger == .request { throw StorageRange.readOnly(description) }
            return report
        }
        try state.withLock { try checkOpen() }
        if trigger != .request, options.compaction == .onRequest { return report }
        // The progress callback belongs to the host, which may call `compact` or `close` in it.
        if let report = try compacting.runUnlessWithin({ try compactHeld(trigger, control) }) { return report }
        guard trigger != .request else {
            throw StoreError(
                .busy,
                "Compacting \(description) was requested within the progress callback of a compaction of it. "
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
        // Only one process compacts at a time, so that no two compact the same segments, and none while values are erased. On a file system
        // without locks this check is skipped: two such compactions are correct, only wasteful.
        guard let hold = try RecordsHold.exclusive(self, tries: 1) else { return report }
        defer { hold.end() }
        return try HostCalls.run(hold) { try compactNow(trigger, control) }
    }

    /// Returns whether there may be enough to compact. Uses only what the scans found.
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

    /// Precondition: `state` is held.
    private func isFoldable(_ segment: Segment) -> Bool {
        !segment.replaced && !segment.gone && !segment.damaged && segment.pinned == nil && segment !== durability.ownSegment
    }

    /// Returns whether there are segments that were compacted long enough ago. Checks the last compaction only: later compactions check
    /// the earlier ones, and a full check grows with everything that was ever compacted.
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
        // If the check throws, it is not called again, and its error is not taken for a reading error.
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
                    // Bytes of the compacted segment were changed. If the same segments can be compacted again, the result is the same.
                    // Otherwise they are retained.
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

    /// Returns the groups of segments to compact together.
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
        // A segment that disappeared or became shorter meanwhile is compacted another time, if it comes back.
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
            // If everything in it was reported from the old segments, no scan needs to read it.
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

    // MARK: Compacted segments

    private func delete(
        _ old: [CompactionSource], compactedInto name: String, _ head: CompactedSegment, _ compaction: SegmentCompaction,
        _ here: inout Set<RandomName>,
        _ report: inout CompactionReport
    ) throws {
        let place = directory.segment(name), path = place.path
        guard let compacted = try? OpenFile(place, O_RDONLY) else { return }
        // The compacted segment may have come from another machine or from a backup, so sync it first.
        try posix("Syncing the segment", path) { () throws(Errno) in try options.system.sync(compacted) }
        try directory.syncDirectory(directory.segmentsFolder, options.system)
        countSync()
        for source in old {
            try compaction.check()
            let oldName = source.id.hex + ".seg", oldPlace = directory.segment(oldName), oldPath = oldPlace.path
            guard let file = try? OpenFile(oldPlace, O_RDONLY), let status = try? System.status(file.descriptor),
                status.size == source.length
            else { continue }
            // If it was never sealed, its lock shows whether its writer lives.
            if !source.sealed, (try? System.lockExclusively(file.descriptor)) == nil { continue }
            // If it was damaged meanwhile, or differs in any byte, it stays.
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

    /// Rebuilds a damaged compacted segment if all of its sources exist.
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
                "The segment \(directory.segments)/\(name) is damaged. The segments that were compacted into it stay if they still exist. "
                    + "Verify the store."
            )
            return
        }
        Log.write(.warning, "The segment \(directory.segments)/\(name) is damaged. It is rebuilt from the compacted ones.")
        try write(inputs, compaction, &report)
    }

    /// Removes the leftovers of processes that were killed while compacting.
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
