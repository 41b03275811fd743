import LLVS
@testable import LLVSCore
@testable import LLVSLive

/// One side of a direct connection, which receives anything from the other side.
///
///     input = how u8 · ...
///     how 0: frames of a paired device after a HELLO: (size u16 · frame) ...; an empty one lets half a minute pass
///         1: frames of a paired device, as they come
///         2: frames of an inviting device
///         3: the beginning of the connection, as it comes
enum LiveTarget {
    static let target = FuzzTarget(name: "live", run: run, seeds: seeds)

    private static func pairing() throws -> Pairing {
        try [UInt8](repeating: 0x17, count: Pairing.size).withUnsafeBytes { try Pairing($0) }
    }
    private static let code = "0ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZZ"

    /// The session under test, and the link of the other side.
    private struct Wire {
        let session: PeerSession
        var link: LiveLink
        var seconds = 0.0

        init(_ store: Store, isInvited: Bool = false) throws {
            let invitation = try Invitation(LiveTarget.code)
            var options = isInvited ? PeerSession.Options(invitation: invitation) : PeerSession.Options(pairing: try pairing())
            options.isInitiator = false
            session = try PeerSession(store, options: options)
            link = try LiveLink(
                isInvited ? invitation.pairing : pairing(), identity: Secret([UInt8](repeating: 3, count: 32)), isInitiator: true)
        }

        /// Carries the bytes of both sides. Returns the frames of the session under test.
        @discardableResult
        mutating func carry() throws -> [[UInt8]] {
            var heard: [[UInt8]] = [], buffer = [UInt8](repeating: 0, count: 50_000), isQuiet = false
            while !isQuiet {
                let there = buffer.withUnsafeMutableBytes { link.take(into: $0) }
                if there > 0 { try buffer.withUnsafeBytes { try session.receive(UnsafeRawBufferPointer(rebasing: $0[..<there])) } }
                let back = try buffer.withUnsafeMutableBytes { try session.send(into: $0) }
                try buffer.withUnsafeBytes { try link.append(UnsafeRawBufferPointer(rebasing: $0[..<back])) }
                while let frame = try link.next() { heard.append(frame) }
                isQuiet = there == 0 && back == 0
            }
            return heard
        }
    }

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte() % 4
        guard let store = Examining.attempt({ try Examining.memoryStore() }) else { return }
        Examining.attempt { try Examples.fill(store) }
        let before = Examining.attempt { try store.allVersionIDs() } ?? []
        Examining.attempt {
            var wire = try Wire(store, isInvited: how == 2)
            if how == 3 {
                let rest = input.rest()
                try rest.withUnsafeBytes { try wire.session.receive($0) }
            } else {
                try wire.carry()
                if how == 2 { try wire.link.send(LiveFrame.pairing([UInt8](repeating: 1, count: Pairing.size)).encoded()) }
                if how != 1 { try wire.link.send(LiveFrame.hello(LiveFrame.Hello()).encoded()) }
                while !input.isAtEnd {
                    let frame = input.part()
                    if frame.isEmpty {
                        wire.seconds += 31
                        try wire.session.tick(wire.seconds)
                    } else {
                        try wire.link.send(frame)
                    }
                    try wire.carry()
                }
            }
            for problem in wire.session.takeProblems() {
                require(problem.error.code != .internal, "an internal error among the problems: \(problem.error.message)")
            }
            try wire.session.receiveEnd()
        }
        // No version disappears, whatever is received.
        let after = Set(Examining.attempt { try store.allVersionIDs() } ?? [])
        require(before.allSatisfy(after.contains), "a version is gone")
        Examining.examine(store)
    }

    /// The frames of a store to a peer without versions, and to one with all of them.
    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        let store = try Examining.memoryStore()
        try Examples.fill(store)
        _ = try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("own"), data: [UInt8](repeating: 9, count: 300))])
        var wire = try Wire(store)
        try wire.carry()
        try wire.link.send(LiveFrame.hello(LiveFrame.Hello()).encoded())
        try wire.link.send(LiveFrame.have(LiveFrame.Have()).encoded())
        var said = try wire.carry()
        try wire.link.send(LiveFrame.list(LiveFrame.Listed(hasAll: false, hasMore: false, bits: [], hashes: [])).encoded())
        said += try wire.carry()
        let frames = said.filter { $0.count <= 0xFFFF }.map(FuzzInput.part)
        let invited = said.dropFirst().filter { $0.count <= 0xFFFF }.map(FuzzInput.part)
        // A peer with too many versions for a list, so ranges are compared.
        var count = 0
        for frame in said { if case .have(let have) = try LiveFrame(frame) { count = have.ids.count } }
        let end = VersionRange.Place(generation: 1, id: VersionID(high: 1, low: 2))
        let ranges: [LiveFrame] = [
            .have(LiveFrame.Have(headCount: 1, versionCount: 9)),
            .list(LiveFrame.Listed(hasMore: true, bits: [Bool](repeating: false, count: count))),
            .ranges([VersionRange(contents: .sum(count: 1, fingerprint: [1, 2, 3, 4]), end: end), VersionRange(contents: .list([7]))]),
            .ranges([VersionRange(contents: .here([7]), end: end), VersionRange(contents: .unknown)]),
        ]
        var link = try LiveLink(pairing(), identity: Secret([UInt8](repeating: 3, count: 32)), isInitiator: true)
        var beginning = [UInt8](repeating: 0, count: LiveLink.beginning)
        _ = beginning.withUnsafeMutableBytes { link.take(into: $0) }
        return [
            FuzzTarget.Seed(name: "session", bytes: [1] + frames.flatMap { $0 }),
            FuzzTarget.Seed(name: "behind-hello", bytes: [0] + invited.flatMap { $0 } + FuzzInput.part(LiveFrame.bye.encoded())),
            FuzzTarget.Seed(name: "invited", bytes: [2] + invited.flatMap { $0 }),
            FuzzTarget.Seed(name: "ranges", bytes: [0] + ranges.flatMap { FuzzInput.part($0.encoded()) }),
            FuzzTarget.Seed(name: "silence", bytes: [0, 0, 0, 0, 0, 0, 0]),
            FuzzTarget.Seed(name: "beginning", bytes: [3] + beginning),
        ]
    }
}
