"""Defects in merges of versions and values."""

from __future__ import annotations

from defect import Edit, defect, swift

MERGE, DOCUMENTS = "Sources/LLVSMerge/Merge", "Sources/LLVSDocuments/Documents"
VECTORS = swift("DocumentVectorTests/vectors")

DEFECTS = [
    defect(
        "older-change-wins", "wrong merge", "Where both sides changed a value, the change that was stored earlier wins.",
        f"{MERGE}/MergeArbiter.swift",
        "return try isStoredLater(first, second) ? .first : .second",
        "return try isStoredLater(first, second) != PLANTED ? .first : .second",
        swift("StoreTests/mergesThreeWays")),
    defect(
        "second-side-dropped", "lost version", "A merge does not bring over the values that only the second side changed.",
        f"{MERGE}/MergeChanges.swift",
        "        append(RecordChange(kind: stored == nil ? .preserveRemoval : .preserve, id: key, storedVersion: stored))",
        "        if PLANTED, stored != nil { return }\n"
        "        append(RecordChange(kind: stored == nil ? .preserveRemoval : .preserve, id: key, storedVersion: stored))",
        swift("StoreTests/mergesThreeWays"),
        also=(Edit(
            f"{MERGE}/MergeChanges.swift", "        if let stored { located[located.count - 1] = stored.entry }",
            "        if let stored, !PLANTED { located[located.count - 1] = stored.entry }"),)),
    defect(
        "removal-undone", "wrong merge", "A value that only the second side removed is there again after a merge.",
        f"{MERGE}/SecondSide.swift",
        "            if takesSecond { out.append(key,", "            if takesSecond, q != nil || !PLANTED { out.append(key,",
        swift("RecordedDifferenceTests/builtInArbitersDecideByTheSecondSideAsByAllForks")),
    defect(
        "criss-cross-base-wrong", "wrong merge", "Of two common ancestors the one that was changed is taken for the unchanged one.",
        f"{MERGE}/MergeBase.swift",
        "case .first: BaseState(y)", "case .first: BaseState(PLANTED ? x : y)",
        swift("CrissCrossTests/whatOneAncestorChangedIsTheirCommonState")),
    defect(
        "same-bytes-are-a-change", "wrong merge", "A value that was stored anew with the same bytes counts as changed.",
        f"{MERGE}/MergeBase.swift",
        "            guard let side else { return false }\n            return try held.contains {",
        "            guard let side, !PLANTED else { return false }\n            return try held.contains {",
        swift("ForkTests/oneAncestor")),
    defect(
        "merges-differ-between-devices", "wrong merge", "The timestamp of a merge is that of the device's clock, so that no two are equal.",
        f"{MERGE}/MergePlan.swift",
        "Clock.after(store.dag.rows[Int(first)].timestamp))",
        "PLANTED ? store.environment.clock() : Clock.after(store.dag.rows[Int(first)].timestamp))",
        swift("StoreTests/mergesThreeWays")),
    defect(
        "counter-added-twice", "wrong merge", "What both sides counted from is not taken off their sum.",
        f"{DOCUMENTS}/DocumentMergeRun+Kinds.swift",
        "values.add(.number(Array(String(p + q - before).utf8)))",
        "values.add(.number(Array(String(p + q - (PLANTED ? 0 : before)).utf8)))",
        VECTORS),
    defect(
        "set-element-comes-back", "wrong merge", "An element of a set that one side removed stays, as the other side has it.",
        f"{DOCUMENTS}/SetPlan.swift",
        "            let stays = node(0, i) == none || (newer != none && older != none)",
        "            let stays = node(0, i) == none || (newer != none && older != none) || (PLANTED && (newer != none || older != none))",
        VECTORS),
    defect(
        "text-loses-an-insertion", "wrong merge", "If both sides inserted lines at one place, those of the older side are lost.",
        f"{DOCUMENTS}/TextMerge.swift",
        "else { cluster.result = (others + mine)[...]; return }",
        "else { cluster.result = PLANTED ? mine : (others + mine)[...]; return }",
        VECTORS),
    defect(
        "conflict-not-recorded", "wrong merge", "A merge of texts does not record a line that both sides changed.",
        f"{DOCUMENTS}/TextMerge.swift",
        "        tokens.write(newerWins ? x : y, to: &out)\n",
        "        tokens.write(newerWins ? x : y, to: &out)\n        if PLANTED { return }\n",
        VECTORS),
    defect(
        "expected-version-ignored", "lost version", "A save does not look whether the version that it expects is still the current one.",
        "Sources/LLVSCoordinator/Coordinator/StoreCoordinator+Saving.swift",
        "        if let expected, expected != base.id {", "        if let expected, !PLANTED, expected != base.id {",
        swift("EqualStatesTests/aSaveNamesWhatItExpects")),
    defect(
        "undo-takes-back-too-much", "wrong answer", "An undo takes back saves of other groups together with the last one.",
        "Sources/LLVSCoordinator/Coordinator/StoreCoordinator+Undoing.swift",
        "                        if own != group { break search }", "                        if own != group, !PLANTED { break search }",
        swift("UndoTests/groups")),
    defect(
        "nesting-unbounded", "hostile input accepted", "A document may be nested as deeply as its writer likes.",
        "Sources/LLVSCore/Format/JSONReader.swift",
        "            if objects.count > JSONReader.depthLimit {"
        " throw failure(\"it is nested more than \\(JSONReader.depthLimit) deep\") }\n"
        "        } while !objects.isEmpty\n    }\n}",
        "            if !PLANTED, objects.count > JSONReader.depthLimit {\n"
        "                throw failure(\"it is nested more than \\(JSONReader.depthLimit) deep\")\n            }\n"
        "        } while !objects.isEmpty\n    }\n}",
        swift("JSONReaderTests/nestingIsBoundedAndDoesNotRecurse")),
]
