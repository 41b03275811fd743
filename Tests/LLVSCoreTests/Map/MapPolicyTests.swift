import Testing

@testable import LLVSCore

/// A table of the decisions between lookups, deltas and maps, which shows the effect of a change of the policy.
@Suite struct MapPolicyTests {
    @Test func aMapIsMadeForReadsWhenItPays() {
        // (number of the read, changes that are worth a map at that read)
        for (reads, changes) in [(1, 16), (2, 16), (32, 16), (63, 16), (64, 128), (65, 16), (100, 16), (128, 256), (4_096, 8_192)] {
            #expect(MapPolicy.changesWorthAMap(reads: reads) == changes, "read \(reads)")
        }
        for (reads, changes) in [(1, 64), (2, 128), (3, nil), (4, 256), (63, nil), (64, 4_096), (1_024, 65_536)] as [(Int, Int?)] {
            #expect(MapPolicy.changesWorthAMap(largeReads: reads) == changes, "read \(reads)")
        }
    }

    @Test func aMapIsMadeForSavesWhenItPays() {
        for (saves, changes) in [(0, nil), (1, nil), (63, nil), (64, 256), (65, nil), (128, 512), (1_000, nil), (1_024, 4_096)]
            as [(Int, Int?)]
        {
            #expect(MapPolicy.changesWorthAMap(saves: saves) == changes, "save \(saves)")
        }
    }

    @Test func aPersistedMapIsUsedByConcurrentReaders() {
        for (limit, may) in [(16, false), (64, false), (65, true), (128, true)] {
            #expect(MapPolicy.mayBePersisted(limit: limit) == may, "\(limit)")
        }
    }

    @Test func whatIsSavedIsADeltaAMapOrNothing() {
        for (changes, kept) in [
            (0, .delta), (1, .delta), (256, .delta), (257, .map), (4_095, .map), (4_096, .nothing), (1_000_000, .nothing),
        ] as [(Int, MapPolicy.Keeping)] {
            #expect(MapPolicy.keeping(changes: changes) == kept, "\(changes) changes")
        }
    }

    @Test func aLargePartOfAMapIsWrittenFlat() {
        for (changes, values, versions) in [
            ([4_095], 0, 0), ([4_096], 0, 1), ([4_096], 32_768, 1), ([4_096], 32_776, 0), ([1_000_000], 8_000_000, 1),
            // Several versions at once, up to the first with few changes.
            ([4_096, 4_096, 10, 4_096], 65_536, 2), ([4_096, 4_096], 65_544, 0), (Array(repeating: 4_096, count: 100), 0, 64),
            // Changes so large that they would otherwise take too much memory.
            ([131_072], 10_000_000, 0), ([131_073], 10_000_000, 1),
        ] {
            #expect(
                MapPolicy.versionsWrittenFlat(changes: changes, onto: values, memory: 16 << 20) == versions,
                "\(changes) onto \(values)")
        }
    }

    @Test func whatGoesIntoAMapAtOnceFitsIntoTheReserve() {
        for (versions, values, reserve, changes) in [
            // In proportion to the number of versions.
            (1, 0, 4 << 20, 1_024), (32_768, 0, 4 << 20, 1_024), (32_800, 0, 4 << 20, 1_025), (1_000_000, 0, 4 << 20, 31_250),
            // If there are more values than fit, each change copies a leaf of its own.
            (1_000_000, 32_768, 4 << 20, 31_250), (1_000_000, 32_769, 4 << 20, 1_024), (1_000_000, 1_000_000, 16 << 20, 4_096),
            (64_000, 1_000_000, 16 << 20, 2_000), (1_000_000, 1_000_000, 0, 1_024),
        ] {
            #expect(
                MapPolicy.stretch(versions: versions, values: values, reserve: reserve) == changes, "\(versions), \(values), \(reserve)")
        }
    }

    @Test func idsAreLearnedForLargeSaves() {
        for (changes, learned, lookups) in [(4_095, 0, 1_024), (4_096, 16_384, 1_024), (1_000_000, 4_000_000, 31_250)] {
            #expect(MapPolicy.mostLearned(toSave: changes) == learned, "\(changes) changes")
            #expect(MapPolicy.mostLookedFor(toSave: changes) == lookups, "\(changes) changes")
        }
    }

    @Test func aMapOfManyNodesIsMadeFlatOnceThatIsPaidFor() {
        let budget = 1 << 20
        for (overlay, values, memory, isHeavy) in [
            (1 << 20, 100, budget / 2, false), (1_023, 100, budget / 2 + 1, false), (1_024, 100, budget / 2 + 1, true),
            (1_024, 80_000, budget, false),
            (10_000, 80_000, budget, true), (0, 80_000, budget / 3 * 4 + 1, true),
        ] {
            #expect(
                MapPolicy.isHeavy(overlay: overlay, values: values, memory: memory, budget: budget) == isHeavy,
                "\(overlay) of \(values), \(memory) bytes")
        }
        // If only entries changed and not the ids, less is written, so the map is written after fewer changes.
        for (overlay, memory, isHeavy) in [(1_023, budget, false), (1_024, budget / 2, false), (1_024, budget / 2 + 1, true)] {
            #expect(MapPolicy.isHeavy(overlay: overlay, values: 80_000, memory: memory, budget: budget, isRelisted: true) == isHeavy)
        }
    }

    @Test func chainsOfDeltasTakeAShareOfTheBudget() {
        for (budget, deltas) in [(0, 32 << 10), (4 << 20, 64 << 10), (64 << 20, 1 << 20), (1 << 30, 1 << 20)] {
            #expect(MapPolicy.chainMemory(budget: budget) == deltas, "\(budget)")
        }
    }

    @Test func versionsThatMetNearbyAreComparedByWhatTheyRecorded() {
        #expect(MapPolicy.mostCompared(mapsAreHere: true) == 4_096 && MapPolicy.mostCompared(mapsAreHere: false) == 16_384)
        for (versions, changes, each) in [(1, 1_000_000, true), (2, 65_534, true), (2, 65_535, false)] {
            #expect(MapPolicy.looksAtEach(versions: versions, changes: changes) == each, "\(versions), \(changes)")
        }
    }

    @Test func cachesAreWrittenWhenThereIsMuchNew() {
        for (new, known, isOutdated, pays) in [
            (999, 0, false, false), (1_000, 0, false, true), (1_000, 16_000, false, true), (1_000, 16_016, false, false),
            (0, 999, true, false), (0, 1_000, true, true),
            (1, 999, true, true), (0, 1_000_000, false, false),
        ] {
            #expect(MapPolicy.cachesPay(new: new, known: known, isOutdated: isOutdated) == pays, "\(new) beside \(known)")
        }
        #expect(MapPolicy.mostPatched(values: 1_001) == 500)
    }
}
