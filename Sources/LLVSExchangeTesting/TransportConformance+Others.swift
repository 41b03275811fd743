import LLVSCore
import LLVSExchange
import LLVSTesting
import LLVSUpkeep

// Checks of several transports at one place, and of everything besides the files of versions.
extension TransportConformance {
    static func sharing(_ subject: Subject) throws {
        try skip(unless: subject.isShared, "only one transport may be open")
        let a = try subject.open(), b = try subject.open()
        for round in 0..<5 {
            let ours = files("A\(round)", seed: UInt64(round)), theirs = files("B\(round)", seed: UInt64(100 + round))
            try send(a, [ours])
            try expect(try list(b).contains(ours.name), "a version that the first transport sent is not listed by the second")
            try compare([ours], in: b, "sent by another transport")
            try send(b, [theirs])
            try expect(try list(a).contains(theirs.name), "a version that the second transport sent is not listed by the first")
            try compare([theirs], in: a, "sent by another transport")
        }
        a.close()
        try expect(try list(b).count == 10, "closing one transport removes versions from the other")
        b.close()
        let c = try subject.open()
        try expect(try list(c).count == 10, "\(try list(c).count) of 10 versions are listed after all transports were closed")
        c.close()
    }

    static func publishing(_ subject: Subject) throws {
        try skip(unless: subject.isShared, "only one transport may be open")
        let sender = try subject.open(), reader = try subject.open()
        let all = (0..<120).map { files("P\($0)", seed: UInt64($0), size: $0 % 10 == 0 ? 300_000 : 500) }
        let lock = Lock(), condition = Condition()
        nonisolated(unsafe) var looks = 0, isSent = false, looksOn = true
        let failures = Parallel.run(threads: 2, times: 1) { thread, _ in
            if thread == 0 {
                defer { lock.withLock { isSent = true } }
                for start in stride(from: 0, to: all.count, by: 6) {
                    // Wait for the reader before each batch, so that it reads between the batches however the threads are scheduled.
                    lock.withLock { while looks <= start / 6, looksOn { condition.wait(lock) } }
                    try send(sender, Array(all[start..<start + 6]))
                }
            } else {
                defer {
                    lock.withLock {
                        looksOn = false; condition.broadcast()
                    }
                }
                while !lock.withLock({ isSent }) {
                    let listed = try list(reader)
                    // The newest files are the ones that may be incomplete.
                    try compare(Array(all.filter { listed.contains($0.name) }.suffix(8)), in: reader, "listed while versions were sent")
                    lock.withLock {
                        looks += 1; condition.broadcast()
                    }
                }
            }
        }
        if let failure = failures.first { throw failure }
        try compare(all, in: reader, "at the end")
        sender.close()
        reader.close()
    }

    static func sendingAtOnce(_ subject: Subject) throws {
        try skip(unless: subject.isShared, "only one transport may be open")
        let both = [try subject.open(), try subject.open()]
        let file = { (thread: Int, turn: Int) in files("T\(thread)-\(turn)", seed: UInt64(thread * 1000 + turn)) }
        // Both also send one identical version, as two devices do that made the same merge.
        let failures = Parallel.run(threads: 2, times: 50) { thread, turn in
            try send(both[thread], [file(thread, turn), files("SAME\(turn)", seed: 9)])
        }
        if let failure = failures.first { throw failure }
        let all = (0..<100).map { file($0 / 50, $0 % 50) } + (0..<50).map { files("SAME\($0)", seed: 9) }
        for transport in both {
            let listed = try list(transport)
            try expect(listed.count == 150, "of 150 versions that two transports sent at once \(listed.count) are listed")
            try compare(all, in: transport, "sent by two transports at once")
            transport.close()
        }
    }

    static func marks(_ subject: Subject) throws {
        let transport = try subject.open()
        var seen: [UInt64: Set<String>] = [:]
        for round in 0..<12 {
            if round % 3 != 2 { try send(transport, [files("K\(round)", seed: UInt64(round))]) }
            let listing = try transport.list(OperationControl())
            let names = Set(listing.versions.map(\.description))
            guard let mark = listing.mark else { continue }
            if let before = seen[mark] {
                try expect(before == names, "the mark of a listing of \(before.count) versions is also that of one of \(names.count)")
            }
            seen[mark] = names
        }
        transport.close()
    }

    static func cancelling(_ subject: Subject) throws {
        let transport = try subject.open()
        let kept = files("KEPT", seed: 1)
        try send(transport, [kept])
        let token = CancelToken()
        token.cancel()
        let control = OperationControl(token: token)
        let all = (0..<50).map { files("X\($0)", seed: UInt64($0), size: 20_000) }
        // The operation may either notice the cancellation or finish.
        func tolerating(_ what: String, _ body: () throws -> Void) throws {
            do { try body() } catch let error as StoreError {
                try expect(
                    error.code == .cancelled,
                    "\(what) fails after a cancellation with \(error.code.rawValue), not LLVS_ERROR_CANCELLED: \(error)")
            }
        }
        try tolerating("sending") { try transport.send(all, control) }
        try tolerating("listing") { _ = try transport.list(control) }
        try tolerating("fetching") { _ = try transport.fetchVersions(["KEPT"], control) }
        let listed = try list(transport)
        try expect(listed.contains("KEPT"), "an earlier version is missing after sending was cancelled")
        try compare([kept] + all.filter { listed.contains($0.name) }, in: transport, "listed after a cancelled sending")
        try send(transport, all)
        try compare(all, in: transport, "sent again after a cancellation")
        transport.close()
    }

    static func unreachable(_ subject: Subject) throws {
        guard let disturb = subject.disturb else { throw Checks.Skip(reason: "the subject cannot make its place unreachable") }
        let transport = try subject.open()
        let kept = files("KEPT", seed: 1)
        try send(transport, [kept])
        do { try disturb(.fail) } catch let error as StoreError where error.code == .unsupported {
            throw Checks.Skip(reason: error.message)
        }
        defer { try? disturb(.mend) }
        try expectError([], "listing an unreachable place") { _ = try transport.list(OperationControl()) }
        try expectError([], "fetching a version file from an unreachable place") {
            _ = try transport.fetchVersions(["KEPT"], OperationControl())
        }
        try expectError([], "fetching a changes file from an unreachable place") {
            _ = try transport.fetchChanges(["KEPT"], OperationControl())
        }
        try expectError([], "sending to an unreachable place") { try send(transport, [files("LOST", seed: 2)]) }
        try disturb(.mend)
        try compare([kept], in: transport, "when the place is reachable again")
        try send(transport, [files("LATER", seed: 3)])
        try expect(try list(transport).isSuperset(of: ["KEPT", "LATER"]), "when the place is reachable again, versions are not listed")
        transport.close()
    }

    // MARK: Snapshots, state and news

    static func snapshots(_ subject: Subject) throws {
        try skip(unless: subject.hasSnapshots, "it stores no snapshots")
        let transport = try subject.open()
        try expect(try transport.snapshotFileNames().isEmpty, "a new place has snapshot files")
        try expect(try transport.readSnapshotFile("manifest.json") == nil, "a new place has a snapshot file")
        try transport.deleteSnapshotFile("manifest.json")
        let large = StorageConformance.bytes(seed: 4, count: 3 << 20)
        try transport.writeSnapshotFile("manifest.json", text(1, 300))
        try transport.writeSnapshotFile("chunk-000", large)
        try transport.writeSnapshotFile("llvs-1/manifest.json", text(2, 50))
        try expect(
            try Set(transport.snapshotFileNames()) == ["manifest.json", "chunk-000", "llvs-1/manifest.json"],
            "3 snapshot files are listed as \(try transport.snapshotFileNames().sorted())")
        try expect(try transport.readSnapshotFile("chunk-000") == large, "a snapshot file of 3 MiB is not read back")
        try expect(try transport.readSnapshotFile("llvs-1/manifest.json") == text(2, 50), "a snapshot file in a folder is not read back")
        try transport.writeSnapshotFile("manifest.json", text(3, 20))
        try expect(try transport.readSnapshotFile("manifest.json") == text(3, 20), "a snapshot file is not replaced as a whole")
        try transport.deleteSnapshotFile("chunk-000")
        try transport.deleteSnapshotFile("chunk-000")
        try expect(
            try transport.readSnapshotFile("chunk-000") == nil && Set(transport.snapshotFileNames()).count == 2,
            "a snapshot file exists after it was deleted")
        transport.close()
    }

    static func snapshotsApart(_ subject: Subject) throws {
        try skip(unless: subject.hasSnapshots, "it stores no snapshots")
        let transport = try subject.open()
        try transport.writeSnapshotFile("chunk-000", text(1, 100))
        try expect(try list(transport).isEmpty, "a snapshot file is listed as a version")
        try send(transport, [files("chunk-000", seed: 2)])
        try expect(try transport.readSnapshotFile("chunk-000") == text(1, 100), "a version replaces the snapshot file with its name")
        try transport.deleteSnapshotFile("chunk-000")
        try compare([files("chunk-000", seed: 2)], in: transport, "after a snapshot file with its name was deleted")
        transport.close()
    }

    static func state(_ subject: Subject) throws {
        let transport = try subject.open()
        let state = StorageConformance.bytes(seed: 8, count: 1000)
        transport.restorationState = state
        // A transport that needs no state saves none.
        let kept = transport.restorationState
        try expect(kept == state || kept.isEmpty, "the state that is read is not the state that was set")
        try send(transport, [files("A")])
        try expect(try list(transport) == ["A"], "it cannot be used with a state of another transport")
        transport.close()
    }

    static func news(_ subject: Subject) throws {
        try skip(unless: subject.tells && subject.isShared, "it does not report news")
        let ours = try subject.open(), theirs = try subject.open()
        let lock = Lock()
        nonisolated(unsafe) var told = 0
        guard let observation = try ours.observe({ lock.withLock { told += 1 } }) else {
            throw Checks.Problem(message: "it cannot be observed, but the subject promises news")
        }
        try send(theirs, [files("NEWS")])
        for _ in 0..<1000 where lock.withLock({ told }) == 0 { usleep(10_000) }
        try expect(lock.withLock { told } > 0, "within 10 s an observer gets no news of versions that another transport sent")
        observation.cancel()
        let before = lock.withLock { told }
        try send(theirs, [files("MORE")])
        usleep(50_000)
        try expect(lock.withLock { told } == before, "a cancelled observation gets news")
        ours.close()
        theirs.close()
    }

    // MARK: Stores

    private static func store() throws -> Store {
        var options = Store.Options()
        options.storage = .memory
        return try Store(path: "", options: options)
    }

    static func storesExchange(_ subject: Subject) throws {
        let stores = [try store(), try store()]
        // One at a time, since the place may allow only that.
        func exchange(_ i: Int) throws {
            let exchange = Exchange(store: stores[i], transport: try subject.open())
            defer { exchange.close() }
            for problem in try exchange.retrieve().problems + exchange.send().problems {
                throw Checks.Problem(message: "the exchange reports a problem with \"\(problem.name)\": \(problem.error)")
            }
        }
        for round in 0..<4 {
            for (i, store) in stores.enumerated() {
                let base = try store.mostRecentHead()?.id
                let changes: [Value.Change] = [
                    .insert(
                        try ValueID("\(i)/\(round)"),
                        data: StorageConformance.bytes(seed: UInt64(round), count: round == 2 ? 2_000_000 : 300))
                ]
                try store.makeVersion(basedOn: base, changes: changes)
                try exchange(i)
            }
        }
        try exchange(0)
        let ids = try stores.map { try Set($0.allVersionIDs()) }
        try expect(ids[0] == ids[1], "after exchanging, one store has \(ids[0].count) versions and the other \(ids[1].count)")
        for id in ids[0] {
            try expect(
                try stores[0].changes(madeIn: id) == stores[1].changes(madeIn: id),
                "a version changed on its way from one store to the other")
        }
    }

    static func storeSnapshot(_ subject: Subject) throws {
        try skip(unless: subject.hasSnapshots, "it stores no snapshots")
        let first = try store(), second = try store()
        var last = try first.makeVersion(
            basedOn: nil, changes: [.insert(try ValueID("a"), data: StorageConformance.bytes(seed: 1, count: 2_000_000))]
        ).id
        for turn in 0..<20 {
            last = try first.makeVersion(basedOn: last, changes: [.insert(try ValueID("n\(turn)"), data: [UInt8(turn)])]).id
        }
        let transport = try subject.open()
        _ = try Snapshots(store: first, transport: transport).put()
        _ = try Snapshots(store: second, transport: transport).restore()
        try expect(try second.heads().map(\.id) == [last], "a store that was restored from a snapshot has other heads")
        transport.close()
    }
}
