"""Defects in storing versions: acknowledged too early, damaged unnoticed, lost."""

from __future__ import annotations

from defect import Edit, c, defect, program, python, swift

STORAGE = "Sources/LLVSCore/Storage/File"
MAKING = "Sources/LLVSCore/Store/Making"
RETENTION = "Sources/LLVSCore/Store/Retention/Retention.swift"

DEFECTS = [
    defect(
        "acknowledged-without-sync", "lost version", "A commit at full durability is acknowledged without a sync.",
        f"{MAKING}/Store+Appending.swift",
        "guard commits.durability == .full else { return }", "guard commits.durability == .full, !PLANTED else { return }",
        program("faults/test_power_cut", "--only", "commit, file, full")),
    defect(
        "seen-before-durable", "lost version", "A version can be read and built on before the sync that makes it durable.",
        f"{MAKING}/Store+Appending.swift",
        "            try makeDurable(items)\n", "            if !PLANTED { try makeDurable(items) }\n",
        swift("RaceTests/whatIsNotAcknowledgedIsNotSeen"),
        also=(Edit(
            f"{MAKING}/Store+Appending.swift", "        let (replaced, othersWait) = publish(items)\n",
            "        let (replaced, othersWait) = publish(items)\n        if PLANTED { try makeDurable(items) }\n"),),
        # A save on it during the sync waits for that sync.
        hangs_after=60),
    defect(
        "failed-sync-acknowledged", "lost version", "A commit whose sync failed is acknowledged like one whose sync succeeded.",
        f"{MAKING}/GroupCommit.swift",
        "failures.append((synced, upTo, error)); synced = max(synced, upTo)",
        "if !PLANTED { failures.append((synced, upTo, error)) }; synced = max(synced, upTo)",
        swift("RaceTests/aSyncThatFailedIsNotMadeGoodByALaterOne")),
    defect(
        "unsynced-not-rewritten", "missed cut", "After a failed sync the next one counts the same bytes as durable.",
        f"{STORAGE}/FileStorage+Sync.swift",
        "            markUnsynced(writer, segment, appendingHeld: appendingHeld)\n"
        "            throw StoreError.posix(error, doing: \"Syncing",
        "            if !PLANTED { markUnsynced(writer, segment, appendingHeld: appendingHeld) }\n"
        "            throw StoreError.posix(error, doing: \"Syncing",
        swift("StorageFileTests/afterAFailedSyncWhatWasNotDurableIsWrittenAnew")),
    defect(
        "segment-name-not-synced", "missed cut", "The directory of a new segment is not synced, so that a power cut can take its name.",
        f"{STORAGE}/FileStorage+Sync.swift",
        "try directory.syncDirectory(directory.segmentsFolder, options.system)",
        "if !PLANTED { try directory.syncDirectory(directory.segmentsFolder, options.system) }",
        program("faults/test_power_cut", "--only", "commit, file, full")),
    defect(
        "sent-name-not-synced", "missed cut", "The folder of version files is not synced after files got their names in it.",
        "Sources/LLVSExchange/Exchange/FolderTransport.swift",
        "        try sync?.directory(versions)\n", "        if !PLANTED { try sync?.directory(versions) }\n",
        swift("ExchangeListingTests/aBatchIsSyncedAtOnce")),
    defect(
        "torn-batch-taken", "missed cut", "A batch that a power cut tore is read as far as it goes.",
        f"{STORAGE}/SegmentScanner+Frames.swift",
        "            if entries.count > 1 || (entries.first?.length ?? 0) > UInt64(ScannedRecord.prefixSize) {",
        "            if !PLANTED, entries.count > 1 || (entries.first?.length ?? 0) > UInt64(ScannedRecord.prefixSize) {",
        swift("TornBatchTests/aBatchWithoutItsLastBytesIsNotThereAtAll")),
    defect(
        "compaction-drops-a-record", "lost version", "A compaction leaves the first frame of each of its sources but the first out.",
        f"{STORAGE}/SegmentCompaction.swift",
        "            try forEachFrame(of: source, input.path, input.id, input.from, input.size) { header, body in\n"
        "                var frame =",
        "            var isFirst = frames > 1\n"
        "            try forEachFrame(of: source, input.path, input.id, input.from, input.size) { header, body in\n"
        "                if PLANTED, isFirst { isFirst = false; return }\n"
        "                var frame =",
        swift("StoreCompactionTests/nothingThatCanBeReadChanges")),
    defect(
        "record-checksum-ignored", "missed damage", "A record whose checksum is wrong is taken for whole.",
        f"{STORAGE}/SegmentScanner+Frames.swift",
        "if small, Bytes.crc32c(prefix) != entry.checksum {", "if small, !PLANTED, Bytes.crc32c(prefix) != entry.checksum {",
        swift("StorageFileTests/everyFlippedByteIsDetectedOrHarmless")),
    defect(
        "value-digest-not-compared", "missed damage", "A verification does not compare a value with the digest in its record.",
        "Sources/LLVSCore/Store/Upkeep/Store+Verifying.swift",
        "if let digest = entry.digest, !digest.elementsEqual(found) {",
        "if let digest = entry.digest, !PLANTED, !digest.elementsEqual(found) {",
        swift("PartialDamageTests/aBlobIsBoundToItsValue")),
    defect(
        "verification-silent", "missed damage", "A verification keeps the damage that the storage reports to itself.",
        "Sources/LLVSCore/Store/Upkeep/Store+Verifying.swift",
        "damage: { verification.met.append($0) })", "damage: { if !PLANTED { verification.met.append($0) } })",
        swift("PartialDamageTests/recordsOfABatchCountOneByOne")),
    defect(
        "salvage-changes-bytes", "wrong bytes", "A salvage brings zeros instead of the first byte of each large value.",
        "Sources/LLVSUpkeep/Salvage/SalvageCopy.swift",
        "                try writer.append(UnsafeRawBufferPointer(rebasing: bytes[at..<end]))",
        "                var piece = Array(bytes[at..<end])\n"
        "                if PLANTED, at == 0 { piece[0] ^= 1 }\n"
        "                try piece.withUnsafeBytes { try writer.append($0) }",
        swift("SalvageTests/aLargeValueIsSalvagedWithItsFile")),
    defect(
        "note-not-locked", "race", "Two processes can open one coordinator's note at once, as nobody locks it.",
        "Sources/LLVSCore/Storage/LockedFile.swift",
        "do throws(Errno) { try System.lockExclusively(file.descriptor) } catch {\n            if error.code == EWOULDBLOCK",
        "do throws(Errno) { if !PLANTED { try System.lockExclusively(file.descriptor) } } catch {\n"
        "            if error.code == EWOULDBLOCK",
        python("Tests/Python/test_two_processes.py::test_a_name_is_open_in_one_process")),
    defect(
        "writers-beside-readers", "race", "A thread that writes does not wait until those that read have left.",
        "Sources/LLVSCore/Support/ReadWriteLock.swift",
        "            while llvs_shim_load_ordered(stripe) != 0 {\n                if left > 0",
        "            while !PLANTED, llvs_shim_load_ordered(stripe) != 0 {\n                if left > 0",
        swift("ReadWriteLockTests/writersWaitForReaders")),
    defect(
        "waiters-never-woken", "deadlock", "Threads that wait for another's sync are not woken when it ends.",
        f"{MAKING}/GroupCommit.swift",
        "            done.broadcast()\n        }\n    }\n\n    /// Reports to all",
        "            if !PLANTED { done.broadcast() }\n        }\n    }\n\n    /// Reports to all",
        swift("RaceTests/allThreadsThatWaitForASyncAreReleased"), hangs_after=60),
    defect(
        "locks-out-of-order", "deadlock", "The maps are locked before the history that they are locked after elsewhere.",
        "Sources/LLVSCore/Map/MapCache.swift",
        "        guard let kept = kept[ordinal] else { return nil }\n        kept.wasAskedFor = true",
        "        if PLANTED { readers.withWrite {} }\n"
        "        guard let kept = kept[ordinal] else { return nil }\n        kept.wasAskedFor = true",
        swift("StoreTests/mergesThreeWays"), hangs_after=60),
    defect(
        "descriptors-not-closed", "leak", "Files of a store stay open after the last use of them.",
        "Sources/LLVSCore/Support/OpenFile.swift",
        "deinit { if isOurs { System.close(descriptor) } }", "deinit { if isOurs, !PLANTED { System.close(descriptor) } }",
        swift("HostileInputTests/aStoreThatCannotBeOpenedLeavesNothingOpen")),
    defect(
        "lists-not-released", "leak", "The lists and reports that a program releases stay in memory.",
        "Sources/LLVSABI/Support/Outputs.swift",
        "        Unmanaged<Handle>.fromOpaque(object).release()", "        if !PLANTED { Unmanaged<Handle>.fromOpaque(object).release() }",
        c("test_leaks")),
    defect(
        "days-not-kept", "wrong bytes", "A policy forgets values of versions that came in the last days.",
        RETENTION,
        "where history.isLive[i] && !old[i] { rules[i]", "where !PLANTED && history.isLive[i] && !old[i] { rules[i]",
        python("Tests/Python/test_forget.py::test_days_count_from_the_arrival")),
    defect(
        "arrival-by-the-makers-clock", "wrong bytes", "A policy counts the days of a version from the time at which it was made.",
        RETENTION,
        "        if isEstimate {", "        if isEstimate || PLANTED {",
        python("Tests/Python/test_forget.py::test_days_count_from_the_arrival")),
    defect(
        "bases-of-heads-forgotten", "wrong merge", "A policy forgets what a merge of two heads needs.",
        RETENTION,
        "            for tip in tips { rules", "            for tip in tips where !PLANTED { rules",
        python("Tests/Python/test_forget.py::test_branches")),
    defect(
        "shared-versions-forgotten", "wrong merge", "A policy forgets the versions on which other devices build meanwhile.",
        RETENTION,
        "        for place in note.shared { for tip", "        for place in note.shared where !PLANTED { for tip",
        python("Tests/Python/test_forget.py::test_a_device_that_was_away_merges")),
    defect(
        "unsent-values-forgotten", "lost version", "A policy forgets values that no place and no other device has.",
        RETENTION,
        "            if isUnsent[Int(event.ordinal)] {", "            if !PLANTED, isUnsent[Int(event.ordinal)] {",
        python("Tests/Python/test_forget.py::test_what_nobody_else_has_stays")),
    defect(
        "preserved-values-forgotten", "wrong bytes", "A policy forgets values that prevail only since a merge preserves them.",
        RETENTION,
        "                    event.stored = store.lock.withRead {",
        "                    if !PLANTED { event.stored = store.lock.withRead {",
        python("Tests/Python/test_forget_random.py"),
        also=(Edit(
            RETENTION,
            "store.dag.ordinal(of: version) } ?? History.none", "store.dag.ordinal(of: version) } ?? History.none }"),)),
    defect(
        "buckets-from-heads-alone",
        "wrong bytes", "A policy keeps one version a day behind heads, and not behind what came in the last days.",
        RETENTION,
        "if starts[i] & (Retention.bit(.heads) | Retention.bit(.days)) != 0",
        "if starts[i] & (Retention.bit(.heads) | (PLANTED ? 0 : Retention.bit(.days))) != 0",
        python("Tests/Python/test_forget_random.py")),
    defect(
        "forgotten-base-of-a-difference", "wrong bytes", "A value that is stored as a difference from a forgotten value goes with it.",
        "Sources/LLVSCore/Store/Erasing/Erasure.swift",
        "                versions[version, default: OfVersion()].whole.insert(id)",
        "                if !PLANTED { versions[version, default: OfVersion()].whole.insert(id) }",
        python("Tests/Python/test_forget.py::test_values_as_differences")),
]
