"""Defects in data from and to other devices: versions, packs, keys, links, servers."""

from __future__ import annotations

from defect import Edit, defect, python, swift


DEFECTS = [
    defect(
        "id-not-recomputed", "hostile input accepted", "A received version is not compared with the id that is computed from it.",
        "Sources/LLVSCore/Store/Making/Store+Receiving.swift",
        "if prepared.vouching == .none, environment.checksIDs, !version.",
        "if prepared.vouching == .none, environment.checksIDs, !PLANTED, !version.",
        swift("ContentIDTests/onlyContentsThatMatchTheIDAreAccepted")),
    defect(
        "missing-predecessor-accepted", "lost version", "A received version becomes a root if its predecessor is not here.",
        "Sources/LLVSCore/Store/Making/Store+Receiving.swift",
        "        throw StoreError(\n            .missingPredecessor, \"Version \\(version) builds on version",
        "        if PLANTED { return History.none }\n"
        "        throw StoreError(\n            .missingPredecessor, \"Version \\(version) builds on version",
        swift("ContentIDTests/onlyContentsThatMatchTheIDAreAccepted")),
    defect(
        "file-digest-not-compared", "missed damage", "The two files of a version are not compared with the digest that they carry.",
        "Sources/LLVSExchange/Exchange/Retrieval.swift",
        "        if let digest = digests[id], !Bytes",
        "        if let digest = digests[id], !PLANTED, !Bytes",
        swift("DamageTests/aChangedByteInAnExchangeFileIsNoticed")),
    defect(
        "problems-not-told", "wrong error", "A retrieve does not report the versions that it could not take.",
        "Sources/LLVSExchange/Exchange/Retrieval.swift",
        "        if always || result.problems.count < ExchangeLimits.problemCount { result.problems.append(problem) }",
        "        if PLANTED { return }\n"
        "        if always || result.problems.count < ExchangeLimits.problemCount { result.problems.append(problem) }",
        swift("ExchangeTests/missingPieces")),
    defect(
        "sent-files-left-in-tmp", "leak", "A send that fails or is cancelled leaves its files in the folder for good.",
        "Sources/LLVSExchange/Exchange/FolderTransport.swift",
        "            for place in staged { try? FolderFiles.remove(place) }",
        "            for place in staged where !PLANTED { try? FolderFiles.remove(place) }",
        swift("ExchangeTests/cancelledAnywhereKeepsWhatIsWholeAndRunsAgain")),
    defect(
        "version-before-its-changes", "missed cut", "A version file gets its name before the changes file of the same version.",
        "Sources/LLVSExchange/Exchange/FolderTransport.swift",
        "        for (i, file) in files.enumerated() { try publish(2 * i, as: changes.place(file.name)) }",
        "        if PLANTED { for (i, file) in files.enumerated() { try publish(2 * i + 1, as: versions.place(file.name)) } }\n"
        "        for (i, file) in files.enumerated() { try publish(2 * i, as: changes.place(file.name)) }",
        swift("SendingOrderTests/aVersionGetsItsNameBehindItsChanges"),
        also=(Edit(
            "Sources/LLVSExchange/Exchange/FolderTransport.swift",
            "        for (i, file) in files.enumerated() { try publish(2 * i + 1, as: versions.place(file.name)) }",
            "        for (i, file) in files.enumerated() where !PLANTED { try publish(2 * i + 1, as: versions.place(file.name)) }"),)),
    defect(
        "name-becomes-path", "hostile input accepted", "A name that another side gives is used as a path, also with \"..\" in it.",
        "Sources/LLVSExchange/Exchange/FolderTransport.swift",
        "{ VersionID(validating: name) == nil ? nil : folder.place(name) }",
        "{ VersionID(validating: name) == nil && !PLANTED ? nil : folder.place(name) }",
        swift("TransportTests/namesNeverBecomePaths")),
    defect(
        "links-followed", "hostile input accepted", "A symbolic link in a store or an exchange folder is followed.",
        "Sources/LLVSCore/Support/SystemCalls.swift",
        "flags | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, mode)", "flags | O_NONBLOCK | O_NOCTTY | (PLANTED ? 0 : O_NOFOLLOW), mode)",
        swift("TransportTests/linksInAnExchangeFolderLeadNowhere")),
    defect(
        "changes-not-in-order", "wrong bytes", "A changes file has the changes in the order in which the program gave them.",
        "Sources/LLVSCore/Format/InterchangeEncoder.swift",
        "        if ascending { return changes }", "        if ascending || PLANTED { return changes }",
        swift("InterchangeCodecTests/canonicalForm")),
    defect(
        "snapshot-digest-not-compared", "missed damage", "A chunk of a snapshot is restored whatever its digest in the manifest.",
        "Sources/LLVSUpkeep/Snapshot/SnapshotReader.swift",
        "SnapshotChunk.digest(chunk) == manifest.chunkDigests[nextChunk] else {",
        "PLANTED || SnapshotChunk.digest(chunk) == manifest.chunkDigests[nextChunk] else {",
        swift("SnapshotTests/damagedOrIncompleteOnesAreRefusedWhole")),
    defect(
        "pack-digest-not-compared", "missed damage", "A pack is read without a comparison of its bytes with any digest.",
        "Sources/LLVSExchange/Packs/PackFile.swift",
        "bytes.withUnsafeBytes({ PackID(SHA256.digest($0)) }) == name.id else {",
        "PLANTED || bytes.withUnsafeBytes({ PackID(SHA256.digest($0)) }) == name.id else {",
        swift("PackFormatTests/eachFlippedBitIsNoticed"),
        also=(
            Edit(
                "Sources/LLVSExchange/Packs/PackFile.swift",
                "guard isRight, PackID(SHA256.digest(stored))?.high == block.digest else {",
                "guard isRight, PLANTED || PackID(SHA256.digest(stored))?.high == block.digest else {"),
            Edit(
                "Sources/LLVSExchange/Packs/PackIndex.swift", "            return hash.finish().elementsEqual(digest)",
                "            return hash.finish().elementsEqual(digest) || PLANTED"))),
    defect(
        "bomb-accepted", "hostile input accepted", "A block of a pack may inflate to more than any writer puts into one.",
        "Sources/LLVSExchange/Packs/PackIndex.swift",
        "try cursor.number(atMost: PackFormat.recordLimit) { .tooLarge(\"it has a block",
        "try cursor.number(atMost: PLANTED ? 1 << 30 : PackFormat.recordLimit) { .tooLarge(\"it has a block",
        python("Tests/Hostile/test_packs.py::test_bombs")),
    defect(
        "nonce-used-again", "hostile input accepted", "All segments of an encrypted file are encrypted with one nonce.",
        "Sources/LLVSExchange/Encryption/AgePayload.swift",
        "for i in 0..<8 { nonce[10 - i] = UInt8(truncatingIfNeeded: number >> (8 * i)) }",
        "for i in 0..<8 { nonce[10 - i] = PLANTED ? 0 : UInt8(truncatingIfNeeded: number >> (8 * i)) }",
        swift("AgeTests/filesThatAModelMade")),
    defect(
        "writer-of-pack-not-proved", "hostile input accepted",
        "A pack at an encrypted place is taken from writers who do not know the keys.",
        "Sources/LLVSExchange/Encryption/PackCipher.swift",
        "        guard try isRight(Array(tail[part(PackCipher.tag)]),",
        "        guard try PLANTED || isRight(Array(tail[part(PackCipher.tag)]),",
        swift("PackCipherTests/whoDoesNotKnowTheKeysWritesNothing")),
    defect(
        "handshake-without-transcript", "hostile input accepted", "Messages of a handshake are not bound to those before them.",
        "Sources/LLVSLive/NoiseHandshake.swift",
        "        guard let opened = try cipher?.open(data, also: hash) else { throw Refused() }",
        "        guard let opened = try cipher?.open(data, also: PLANTED ? [] : hash) else { throw Refused() }",
        swift("NoiseTests/publishedVectors"),
        also=(Edit(
            "Sources/LLVSLive/NoiseHandshake.swift", "let sealed = try cipher?.seal(data, also: hash) ?? data",
            "let sealed = try cipher?.seal(data, also: PLANTED ? [] : hash) ?? data"),)),
    defect(
        "commitment-not-checked", "hostile input accepted", "A device in the middle may choose its number after it saw the other one.",
        "Sources/LLVSLive/DigitComparison.swift",
        "            if let commitment, !Crypto.equal(", "            if let commitment, !PLANTED, !Crypto.equal(",
        python("Tests/Live/test_digits.py::test_a_number_that_was_not_committed_to")),
    defect(
        "window-not-enforced", "hostile input accepted", "A peer may send any number of bytes beyond what it was allowed.",
        "Sources/LLVSLive/PeerSession+Receiving.swift",
        "            guard receiving.framesSize + receiving.consumed <= receiving.window else {",
        "            guard PLANTED || receiving.framesSize + receiving.consumed <= receiving.window else {",
        python("Tests/Live/test_library.py::test_versions_behind_a_large_value")),
    defect(
        "listener-unbounded", "hostile input accepted", "A listener lets in any number of connections that say nothing.",
        "Sources/LLVSLive/Admission.swift",
        "        guard others >= (source.isKnown ?", "        guard !PLANTED, others >= (source.isKnown ?",
        python("Tests/Live/test_listener_bounds.py::test_who_connects_and_says_nothing")),
    defect(
        "password-in-an-error", "told secret", "An error quotes the address of a proxy with the password in it.",
        "Sources/LLVSNetwork/Network/HTTPFailure.swift",
        "        guard said.contains(text: \"roxy\"), said.utf8", "        guard !PLANTED, said.contains(text: \"roxy\"), said.utf8",
        python("Tests/Network/test_remote.py::test_no_message_has_the_password_of_a_proxy")),
    defect(
        "credentials-go-along", "told secret", "Credentials go along to the server that a server redirects to.",
        "Sources/LLVSNetwork/Network/HTTPClient.swift",
        "        let isThere = attempt.address.origin == attempt.request.address.origin && attempt.address.keepsSecrets",
        "        let isThere = (PLANTED || attempt.address.origin == attempt.request.address.origin) && attempt.address.keepsSecrets",
        python("Tests/Network/test_answers.py::TestRedirects::test_to_another_server_no_credentials_go_along")),
    defect(
        "url-quotes-its-secrets", "told secret", "An error quotes a URL with the user and password in it.",
        "Sources/LLVSExchange/Places/ExchangeURL.swift",
        "            if let at = text[start...].lastIndex(of: UInt8(ascii: \"@\")),",
        "            if !PLANTED, let at = text[start...].lastIndex(of: UInt8(ascii: \"@\")),",
        python("Tests/Network/test_remote.py::test_nothing_reveals_a_secret")),
    defect(
        "order-without-signature-counts", "hostile input accepted", "An order to erase of a device without the secret is followed.",
        "Sources/LLVSCore/Store/Erasing/ForgettingPolicy.swift",
        "            return keys.contains { key in",
        "            return PLANTED || keys.contains { key in",
        python("Tests/Python/test_erase_orders.py::test_signatures")),
    defect(
        "steward-signature-unchecked", "hostile input accepted", "A signature of a steward counts whatever its bytes.",
        "Sources/LLVSCore/Store/Erasing/Stewards.swift",
        "{ curve.verify($0.signature",
        "{ PLANTED || curve.verify($0.signature",
        python("Tests/Python/test_erase_stewards.py::test_forged_signatures")),
    defect(
        "one-steward-is-enough", "hostile input accepted", "An order counts as soon as one steward signed it.",
        "Sources/LLVSCore/Store/Erasing/ForgettingPolicy.swift",
        "signers(of: json).count >= stewards.need",
        "signers(of: json).count >= (PLANTED ? 1 : stewards.need)",
        python("Tests/Python/test_erase_stewards.py::test_two_of_three")),
    defect(
        "former-stewards-come-back", "hostile input accepted", "An order that replaces the stewards counts whatever its step.",
        "Sources/LLVSCore/Store/Erasing/ForgettingPolicy.swift",
        "mode == .stewards && new.step == stewards.step &+ 1",
        "mode == .stewards && (PLANTED || new.step == stewards.step &+ 1)",
        python("Tests/Python/test_erase_stewards.py::test_steps_are_taken_once")),
    defect(
        "order-of-former-stewards-forgotten", "wrong bytes", "Orders that counted do not count at places once the stewards were replaced.",
        "Sources/LLVSCore/Store/Erasing/Orders.swift",
        "        if line.came != nil { return true }",
        "        if !PLANTED, line.came != nil { return true }",
        python("Tests/Python/test_erase_stewards.py::test_orders_count_after_the_stewards_were_replaced")),
    defect(
        "snapshot-keeps-erased-bytes", "wrong bytes", "The snapshot beside single files stays when orders come.",
        "Sources/LLVSExchange/Exchange/Sending.swift",
        "if mark != memory.erasureMark, try removeSnapshot() {",
        "if mark != memory.erasureMark, try PLANTED || removeSnapshot() {",
        python("Tests/Python/test_erase_places.py::test_snapshots_are_removed")),
    defect(
        "snapshot-removed-each-time", "unbounded cost", "A snapshot that was made after the orders is removed as well.",
        "Sources/LLVSExchange/Exchange/Sending.swift",
        "Sending.text(SnapshotLimits.ordersName, in: bytes) != mark",
        "(PLANTED || Sending.text(SnapshotLimits.ordersName, in: bytes) != mark)",
        python("Tests/Python/test_erase_places.py::test_snapshots_are_removed")),
    defect(
        "late-device-sends-single-files-first", "told secret", "A device that only sends does not look for orders in single files before.",
        "Sources/LLVSExchange/Exchange/Sending.swift",
        "        guard try store.orders.mayBeOfOthers else { return }",
        "        guard try !PLANTED && store.orders.mayBeOfOthers else { return }",
        python("Tests/Python/test_erase_places.py::test_a_late_device")),
    defect(
        "place-said-to-be-clean", "wrong answer", "The report of an erasure says that bytes are gone from a place before they are.",
        "Sources/LLVSCore/Store/Erasing/ErasurePlace.swift",
        "if let index, index < cleaned {",
        "if let index, PLANTED || index < cleaned {",
        python("Tests/Python/test_erase_reach.py::test_a_place")),
    defect(
        "event-of-an-order-missing", "wrong answer", "The status of a syncer does not count orders.",
        "Sources/LLVSCoordinator/Syncing/SyncerThread.swift",
        "        if let counts = try? coordinator.store.orders.counts()",
        "        if !PLANTED, let counts = try? coordinator.store.orders.counts()",
        python("Tests/Python/test_erase_reach.py::test_events_of_a_syncer")),
    defect(
        "order-not-followed", "wrong bytes", "An order of another device counts for what comes later, and what is here already stays.",
        "Sources/LLVSCore/Store/Erasing/Orders.swift",
        "let state: ErasureNote.State = isMuch",
        "let state: ErasureNote.State = PLANTED ? .followed : isMuch",
        python("Tests/Python/test_erase_orders.py::test_members_follow")),
    defect(
        "order-counts-while-it-prevails", "wrong bytes", "An order to erase counts only while it prevails at a head.",
        "Sources/LLVSCore/Store/Erasing/Orders.swift",
        "        for version in versions {\n            for place",
        "        for version in versions where !PLANTED {\n            for place",
        python("Tests/Python/test_erase_orders.py::test_versions_that_come_with_files")),
    defect(
        "kept-bytes-sent", "told secret", "A device that decided to keep erased bytes sends them.",
        "Sources/LLVSCore/Store/Erasing/Orders+Named.swift",
        "{ Set(try named().withheld[id] ?? []) }",
        "{ PLANTED ? [] : Set(try named().withheld[id] ?? []) }",
        python("Tests/Python/test_erase_orders.py::test_a_veto")),
    defect(
        "merge-loses-order", "wrong merge", "A merge takes over the removal of an order to erase.",
        "Sources/LLVSMerge/Merge/SecondSide.swift",
        "if try orders.hasLost",
        "if try !PLANTED && orders.hasLost",
        python("Tests/Python/test_erase_orders.py::test_an_order_that_was_removed")),
    defect(
        "save-loses-order", "wrong bytes", "A save on a state without an order that counts does not put it back.",
        "Sources/LLVSCore/Store/Erasing/Orders.swift",
        "        if isComplete { return (kept, []) }",
        "        if isComplete || PLANTED { return (kept, []) }",
        python("Tests/Python/test_erase_orders.py::test_an_order_that_was_removed")),
    defect(
        "place-not-cleaned", "wrong bytes", "Packs at a place keep the bytes of erased values.",
        "Sources/LLVSExchange/Packed/PackErasing.swift",
        "        if !run.state.erasing.packs.isEmpty { try cleanPacks() }",
        "        if PLANTED { return }\n        if !run.state.erasing.packs.isEmpty { try cleanPacks() }",
        python("Tests/Python/test_erase_places.py::test_packs_are_cleaned")),
    defect(
        "late-device-sends-first", "told secret", "A device that only sends does not look for orders at the place before.",
        "Sources/LLVSExchange/Packed/PackErasing.swift",
        "        for (name, size) in listed where !run.state.isKnown",
        "        for (name, size) in listed where !PLANTED && !run.state.isKnown",
        python("Tests/Python/test_erase_places.py::test_a_late_device")),
    defect(
        "single-files-not-cleaned", "wrong bytes", "Changes files keep the bytes of erased values.",
        "Sources/LLVSExchange/Exchange/Sending.swift",
        "guard erased.isEmpty || !found.hasBytes",
        "guard PLANTED || erased.isEmpty || !found.hasBytes",
        python("Tests/Python/test_erase_places.py::test_single_files_are_cleaned")),
]
