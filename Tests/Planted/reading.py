"""Defects in reading: values, histories, indexes, projections, caches."""

from __future__ import annotations

from defect import defect, python, swift


DEFECTS = [
    defect(
        "prefix-includes-too-much", "wrong answer", "An enumeration by a prefix includes the first id behind those that begin with it.",
        "Sources/LLVSCore/Map/IDRange.swift",
        "if last < 0xFF { high[high.count - 1] = last + 1; return (prefix, high) }",
        "if last < 0xFF { high[high.count - 1] = last + 1; return (prefix, PLANTED ? high + [0] : high) }",
        swift("RangeTests/aRangeIsWhatSatisfiesAllThatIsGiven")),
    defect(
        "walk-ends-early", "wrong answer", "A walk through the history ends with the first page.",
        "Sources/LLVSCore/Store/Reading/HistoryWalk.swift",
        "        while ready.count < limit {\n", "        while ready.count < limit, !(PLANTED && walked > limit) {\n",
        swift("HistoryWalkTests/allConditionsTogether")),
    defect(
        "large-index-ends-early", "wrong answer", "An index of more values than are read together lacks the others.",
        "Sources/LLVSCore/Map/PrefixWalk.swift",
        "        low = last.map { $0 + [0] }", "        low = PLANTED ? nil : last.map { $0 + [0] }",
        python("Tests/Python/test_indexes.py::test_many_values_are_shared_among_threads")),
    defect(
        "timestamps-repeat", "wrong answer", "Two versions that are made within one tick of the clock get one timestamp.",
        "Sources/LLVSCore/Support/GivenTimes.swift",
        "let now = clock > last ? clock : Clock.after(last)", "let now = clock > last || PLANTED ? clock : Clock.after(last)",
        swift("ContentIDTests/timestampsNeverRepeat")),
    defect(
        "removal-left-in-index", "wrong answer", "An index at another version still finds values that were removed in between.",
        "Sources/LLVSMerge/Index/IndexOverlay.swift",
        "                if order == 0 { return goesOn }", "                if order == 0, !PLANTED { return goesOn }",
        swift("IndexOverlayTests/itHasTheEntriesOfTheWholeTree")),
    defect(
        "removal-left-in-projection", "wrong answer", "A projection keeps the row of a value that was removed.",
        "Sources/LLVSCoordinator/Projection/ProjectionRows.swift",
        "        if !isNew { number = try remove(id, replaced: value.isThere) }",
        "        if !isNew, value.isThere || !PLANTED { number = try remove(id, replaced: value.isThere) }",
        python("Tests/Python/test_projections.py::test_any_version_after_any_other")),
    defect(
        "cache-not-invalidated", "wrong bytes", "A block that does not match its checksum stays in memory.",
        "Sources/LLVSCore/Records/StoreBlocks.swift",
        "            cache.drop(key)\n", "            if !PLANTED { cache.drop(key) }\n",
        swift("ReadPathTests/blocksThatWereReadTooEarlyAreReadAgain")),
    defect(
        "block-ends-in-neighbour", "wrong bytes", "A value that reaches into the next block is read from the block before.",
        "Sources/LLVSCore/Records/StoreBlocks.swift",
        "            guard let bytes = bytes(place, from: offset &+ UInt64(done)) else { return false }",
        "            guard let bytes = bytes(place, from: offset &+ (PLANTED ? 0 : UInt64(done))) else { return false }",
        swift("ReadPathTests/whatWasReadIsNotAskedForAgain")),
    defect(
        "other-record-answers", "wrong bytes", "A record is read back without a look at whose it is.",
        "Sources/LLVSCore/Store/Reading/Store+Versions.swift",
        "guard header.checksum == row.checksum, header.id == id else",
        "guard PLANTED || (header.checksum == row.checksum && header.id == id) else",
        swift("HostileInputTests/aRecordReadBackMustBeOfTheVersionAskedFor")),
    defect(
        "stored-at-is-not-looked-at", "wrong answer", "A clock that is ahead dates what a device stores.",
        "Sources/LLVSCore/Store/Making/Store+Appending.swift",
        "if now >= MadeTime.earliest, claimed > now", "if !PLANTED, now >= MadeTime.earliest, claimed > now",
        swift("WrongClockTests/aClockTenYearsAheadDatesNothingElse")),
    defect(
        "neighbours-read-one-by-one", "unbounded cost", "Values that lie beside each other are read with a call for each.",
        "Sources/LLVSCore/Store/Reading/BatchFilling.swift",
        "let end = runEnd(missing, from: start)", "let end = PLANTED ? start + 1 : runEnd(missing, from: start)",
        swift("BatchTests/neighboursAreReadTogetherAndOnce")),
    defect(
        "history-of-a-value-walks-over-all", "unbounded cost", "The history of one value walks over all versions of the store.",
        "Sources/LLVSCore/Store/Reading/HistoryWalk.swift",
        "if let wanted, query.from.isEmpty, hiding.isEmpty {", "if let wanted, !PLANTED, query.from.isEmpty, hiding.isEmpty {",
        swift("HistoryWalkTests/oneValuesHistoryCostsWhatItReturns")),
    defect(
        "projection-made-anew", "unbounded cost", "Each update of a projection writes all of its rows.",
        "Sources/LLVSCoordinator/Projection/Projection.swift",
        "        let basis = try from.flatMap {", "        let basis = try PLANTED ? nil : from.flatMap {",
        python("Tests/Python/test_projections.py::test_it_costs_by_what_differs")),
    defect(
        "value-checksum-ignored", "wrong bytes", "Bytes of a value are handed out whatever their checksum says.",
        "Sources/LLVSCore/Format/RecordTable.swift",
        "        return bodyChecksum(sizeField: sizeField, id: id, versionText: versionText, stored: bytes) == checksum ? bytes : nil",
        "        return PLANTED || bodyChecksum(sizeField: sizeField, id: id, versionText: versionText, stored: bytes) == checksum\n"
        "            ? bytes : nil",
        swift("StoreOnDiskTests/flippedBytesAreNeverOtherData")),
    defect(
        "claimed-size-believed", "hostile input accepted", "A deflated value reserves as much memory as its record claims.",
        "Sources/LLVSCore/Format/RecordTable.swift",
        "guard let stored = reader.count(atMost: size), stored < size, size / deflateRatio <= stored else { return nil }",
        "guard let stored = reader.count(atMost: size), stored < size, PLANTED || size / deflateRatio <= stored else { return nil }",
        swift("HostileInputTests/aDeflatedValueThatClaimsMoreThanDeflateCanHoldIsDamaged")),
]
