import LLVSCore
import LLVSExchange
import LLVSTesting

// Checks of directories, large and many files, concurrent users of a place, and stores.
extension RemoteFilesConformance {
    static func directories(_ subject: Subject) throws {
        let files = try opened(subject)
        let name = packName(1), directories = ["versions", "changes", log, "pack1/base", "snapshots"]
        let all: [File] = directories.enumerated().map { ("\($1)/\(name)", StorageConformance.bytes(seed: UInt64($0), count: 60 + $0)) }
        let root: File = ("pack1/root-\(packName(2).suffix(26))", Array("root".utf8))
        try publish(files, all + [root])
        try compare(all + [root], in: files, "with one name in several directories")
        for (directory, file) in zip(directories, all) {
            try expectListed([file], in: files, directory, "with one name in several directories")
        }
        try expectListed([root], in: files, "pack1", "with files in directories below it")
        try files.delete([all[2].name]) {}
        try compare(all.enumerated().filter { $0.offset != 2 }.map(\.element), in: files, "after the one in another directory was deleted")
        try expectListed([], in: files, log, "after its only file was deleted")
        files.close()
    }

    static func largeFiles(_ subject: Subject) throws {
        let files = try opened(subject)
        // Around the limits of memory (1 MiB), parts of large values (8 MiB), and base packs (16 MiB).
        let all = [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 8 << 20, (16 << 20) + 5].enumerated().map { file($0, size: $1) }
        for file in all { try publish(files, [file]) }
        try compare(all, in: files, "with large files")
        try expectListed(all, in: files, log, "with large files")
        // Produced piece by piece, as parts of values are.
        let source = all[2].bytes, name = file(77).name
        let pieces = OutgoingFile(size: source.count) { sink in
            for at in stride(from: 0, to: source.count, by: 100_000) {
                try source[at..<min(at + 100_000, source.count)].withUnsafeBytes(sink)
            }
        }
        guard case .published? = try files.publish([RemoteUpload(name: name, data: pieces, replaces: false)], {}).first else {
            throw Checks.Problem(message: "a file produced in pieces is not published")
        }
        try compare([(name, source)], in: files, "produced in pieces")
        files.close()
    }

    static func manyFiles(_ subject: Subject) throws {
        let files = try opened(subject)
        // More than services list on one page.
        let all = (0..<1_100).map { file($0, size: 40) }
        for start in stride(from: 0, to: all.count, by: 275) { try publish(files, Array(all[start..<start + 275])) }
        try expectListed(all, in: files, log, "of many")
        try compare(Array(all.prefix(50) + all.suffix(150)), in: files, "of many")
        files.close()
    }

    static func sharing(_ subject: Subject) throws {
        try skip(unless: subject.isShared, "only one may use it at a time")
        let a = try opened(subject), b = try opened(subject)
        var all: [File] = []
        for round in 0..<5 {
            for (from, to, number) in [(a, b, round * 2), (b, a, round * 2 + 1)] {
                all.append(file(number))
                try publish(from, [file(number)])
                try expectListed(all, in: to, log, "published through another handle")
                try compare(all, in: to, "published through another handle")
            }
        }
        a.close()
        try compare(all, in: b, "after another handle was closed")
        b.close()
        let c = try subject.open()
        try expectListed(all, in: c, log, "after all handles were closed")
        c.close()
    }

    static func publishing(_ subject: Subject) throws {
        try skip(unless: subject.isShared, "only one may use it at a time")
        let sender = try opened(subject), reader = try subject.open()
        let all = (0..<40).map { file($0, size: $0 % 5 == 0 ? 700_000 : 500) }
        let lock = Lock(), condition = Condition()
        nonisolated(unsafe) var looks = 0, isSent = false, looksOn = true
        let failures = Parallel.run(threads: 2, times: 1) { thread, _ in
            if thread == 0 {
                defer { lock.withLock { isSent = true } }
                for start in stride(from: 0, to: all.count, by: 4) {
                    // Whatever the scheduling, the reader reads while this is published.
                    lock.withLock { while looks <= start / 4, looksOn { condition.wait(lock) } }
                    try publish(sender, Array(all[start..<start + 4]))
                }
            } else {
                defer {
                    lock.withLock {
                        looksOn = false; condition.broadcast()
                    }
                }
                while !lock.withLock({ isSent }) {
                    let listed = try list(reader, log)
                    // The newest files are the ones that may be incomplete.
                    try compare(Array(all.filter { listed[$0.name] != nil }.suffix(4)), in: reader, "listed while files were published")
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

    static func publishingAtOnce(_ subject: Subject) throws {
        try skip(unless: subject.isShared, "only one may use it at a time")
        let both = [try opened(subject), try opened(subject)], turns = 20
        let file = { (thread: Int, turn: Int) -> File in
            ("\(log)/\(packName(turn))", StorageConformance.bytes(seed: UInt64(thread * 1_000 + turn), count: 3_000))
        }
        let lock = Lock()
        nonisolated(unsafe) var told: [[Bool]] = [[], []]
        let failures = Parallel.run(threads: 2, times: turns) { thread, turn in
            // Both threads begin a turn together. If one failed, the wait for it is bounded.
            for _ in 0..<2_000 where lock.withLock({ told[1 - thread].count < turn }) { usleep(500) }
            let outcome = try both[thread].publish(uploads([file(thread, turn)])) {}
            var isPublished = false
            switch outcome.first {
            case .published: isPublished = true
            case .exists: break
            case .refused(let error): throw Checks.Problem(message: "publishing through two handles at once is refused: \(error)")
            case nil: throw Checks.Problem(message: "publishing a file returns no result")
            }
            lock.withLock { told[thread].append(isPublished) }
        }
        if let failure = failures.first { throw failure }
        let isExclusive = both[0].capabilities.isExclusive
        for turn in 0..<turns {
            let winners = [0, 1].filter { told[$0][turn] }
            try expect(!winners.isEmpty, "two handles published one name at once, and neither call reports success")
            try expect(!isExclusive || winners.count == 1, "two handles published one name at once, and both calls report success")
            let found = try read(both[0], [file(0, turn).name])[0]
            try expect(
                winners.contains { found == file($0, turn).bytes }, "published by two at once, a file is not that of a call that succeeded")
        }
        try expect(try list(both[1], log).count == turns, "\(turns) names of two handles are listed as \(try list(both[1], log).count)")
        for files in both { files.close() }
    }

    static func cancelling(_ subject: Subject) throws {
        let files = try opened(subject)
        let kept = file(500)
        try publish(files, [kept])
        let all = (0..<20).map { file($0, size: 60_000) }
        func cancelled() throws { throw StoreError(.cancelled, "The call was cancelled.") }
        // The operation may either notice the cancellation or finish.
        func tolerating(_ what: String, _ body: () throws -> Void) throws {
            do { try body() } catch let error as StoreError {
                try expect(
                    error.code == .cancelled,
                    "\(what) fails after a cancellation with \(error.code.rawValue), not LLVS_ERROR_CANCELLED: \(error)")
            }
        }
        // Cancelled at once, and later.
        for delay in [0, 3, 7] {
            var looks = 0
            let check = {
                looks += 1; if looks > delay { try cancelled() }
            }
            try tolerating("publishing") { _ = try files.publish(uploads(all), check) }
            try tolerating("listing") { _ = try files.list(log, withTimes: false, check) }
            try tolerating("reading") { _ = try files.read([RemoteRead(name: kept.name, range: nil, limit: 1 << 20)], check) }
            try tolerating("deleting") { try files.delete(["\(log)/never"], check) }
        }
        let listed = try list(files, log)
        try expect(listed[kept.name] != nil, "an earlier file is missing after publishing was cancelled")
        try compare([kept] + all.filter { listed[$0.name] != nil }, in: files, "listed after a cancelled publishing")
        for outcome in try files.publish(uploads(all), {}) {
            if case .refused(let error) = outcome { throw Checks.Problem(message: "publishing again is refused: \(error)") }
        }
        try compare([kept] + all, in: files, "published again after a cancellation")
        files.close()
    }

    static func unreachable(_ subject: Subject) throws {
        guard let disturb = subject.disturb else { throw Checks.Skip(reason: "the subject cannot make its place unreachable") }
        let files = try opened(subject), kept = file(1)
        try publish(files, [kept])
        do { try disturb(.fail) } catch let error as StoreError where error.code == .unsupported {
            throw Checks.Skip(reason: error.message)
        }
        defer { try? disturb(.mend) }
        try expectError([], "listing an unreachable place") { _ = try files.list(log, withTimes: false, {}) }
        try expectError([], "reading from an unreachable place") { _ = try read(files, [kept.name]) }
        try expectError([], "publishing at an unreachable place") { _ = try files.publish(uploads([file(2)]), {}) }
        try expectError([], "deleting at an unreachable place") { try files.delete([kept.name], {}) }
        try disturb(.mend)
        try compare([kept], in: files, "when the place is reachable again")
        try publish(files, [file(3)])
        try compare([file(3)], in: files, "published when the place was reachable again")
        files.close()
    }

    // MARK: Stores

    private static func store() throws -> Store {
        var options = Store.Options()
        options.storage = .memory
        return try Store(path: "", options: options)
    }

    static func storesExchangeFiles(_ subject: Subject) throws { try exchange(subject, readers: 0) { RemoteTransport($0) } }
    static func storesExchangePacks(_ subject: Subject) throws { try exchange(subject, readers: 1) { PackedTransport($0) } }

    /// Exchanges two stores in turn, and then `readers` new ones that only read.
    private static func exchange(_ subject: Subject, readers: Int, _ layout: (any RemoteFiles) -> any ExchangeTransport) throws {
        let stores = [try store(), try store()]
        // One at a time, since the place may allow only that.
        func exchange(_ store: Store) throws {
            let exchange = Exchange(store: store, transport: layout(try subject.open()))
            defer { exchange.close() }
            for problem in try exchange.retrieve().problems + exchange.send().problems {
                throw Checks.Problem(message: "the exchange reports a problem with \"\(problem.name)\": \(problem.error)")
            }
        }
        for round in 0..<5 {
            for (i, store) in stores.enumerated() {
                let size = round == 2 ? 2_500_000 : 300
                let change = Value.Change.insert(
                    try ValueID("\(i)/\(round)"), data: StorageConformance.bytes(seed: UInt64(round * 2 + i), count: size))
                try store.makeVersion(basedOn: store.mostRecentHead()?.id, changes: [change])
                try exchange(store)
            }
        }
        try exchange(stores[0])
        let all = stores + (try (0..<readers).map { _ in try store() })
        for reader in all.dropFirst(2) { try exchange(reader) }
        let ids = try all.map { try Set($0.allVersionIDs()) }
        for (store, found) in zip(all, ids).dropFirst() {
            try expect(found == ids[0], "after exchanging, one store has \(ids[0].count) versions and another \(found.count)")
            for id in found {
                try expect(
                    try all[0].changes(madeIn: id) == store.changes(madeIn: id), "a version changed on its way from one store to another")
            }
        }
    }
}
