extension Syncer {
    /// The present state of a syncer, and its results so far.
    public struct Status: Sendable {
        /// The present state of a syncer.
        public enum State: UInt32, Sendable {
            /// The syncer has ended: it was stopped, or the coordinator was closed.
            case off = 0
            /// The syncer waits for the next round, or for an event.
            case idle
            /// A round runs, or the exchange with a slow place continues after its round.
            case running
            /// Every place waits: for the network, or for the end of the pause after a failure.
            case waiting
            /// The host paused it, or every place waits for a person.
            case paused
        }

        /// The present state.
        public var state = State.off
        /// Why it waits or is paused: the reason of the first place that waits.
        public var reason = Reason.none
        /// The time of the next round, in seconds since 2001-01-01 UTC; nil if only an event leads to one.
        public var nextRound: Double?
        /// The progress of the running round.
        public var progress: OperationProgress?
        /// The progress of the current exchange while it receives or sends packs: bytes done, and bytes in all. Received bytes are bytes of
        /// files; a large value counts once the pack that names it has arrived. Sent bytes are bytes of values. 0 if they are not counted.
        public var bytesDone: UInt64 = 0, bytesTotal: UInt64 = 0
        /// Rounds that ended, failed ones included.
        public var rounds: UInt64 = 0
        /// The number of versions that the rounds received and sent.
        public var retrieved: UInt64 = 0, sent: UInt64 = 0
        /// When a round last ended without any failure, in seconds since 2001-01-01 UTC; nil: never.
        public var lastSuccess: Double?
        /// The error of the last merge; nil if it succeeded.
        public var mergeFailure: StoreError?
        /// The attached exchanges, in the order of attaching.
        public var places: [Place] = []
        /// The orders to erase that count here, by where they stand: more that are announced or held, or that were followed, are news for
        /// the user. `Store.erasures` lists them.
        public var erasures = ErasureCounts()
    }

    /// The reason why a place, or all of them, are not visited.
    public enum Reason: UInt32, Sendable {
        /// There is no problem.
        case none = 0
        /// The host reported that there is no network.
        case offline
        /// The server asked for a pause (a rate limit).
        case rateLimited
        /// The folder or server cannot be reached.
        case unreachable
        /// Another failure, which the error describes.
        case failed
        /// The user, the password or the rights are refused: a person must provide the right ones.
        case signIn
        /// This device or the place has no room: the user must make some.
        case noSpace
        /// The other side was written by a newer version of this library.
        case updateApp
        /// The host paused the syncer.
        case paused
        /// The place is encrypted, and the passphrase or the identities are missing or do not open it: a person must provide the right
        /// ones.
        case passphrase
        /// A place in packs was emptied, or a place belongs to another store: a person restores it, or lets the store join it.
        case remoteReset
        /// Another process exchanges with the place for this store.
        case alreadyRunning
    }

    /// The state of one attached exchange.
    public struct Place: Sendable {
        /// The name of the place when it was attached.
        public var place: String
        /// The reason why it waits.
        public var reason = Reason.none
        /// The number of successive rounds that failed there.
        public var failures: UInt64 = 0
        /// When it is retried by the clock, in seconds since 2001-01-01 UTC; nil if nothing failed, or if only a person can help.
        public var retryAt: Double?
        /// When an exchange with it last succeeded, in seconds since 2001-01-01 UTC; nil: never.
        public var lastSuccess: Double?
        /// The error of the last round there.
        public var error: StoreError?
        /// The items that the last round could not receive or send.
        public var problems: [ExchangeProblem] = []
        /// The number of listed files that the last round could not read, and since when there have been such files, in seconds since
        /// 2001-01-01 UTC; nil: there are none. A round may succeed although it could not read any file.
        public var unread: UInt64 = 0, unreadSince: Double?
        /// The versions that wait to be sent there; nil: unknown until a round there succeeds.
        public var pending: Pending?
        /// When receiving from there, and sending there, last succeeded, in seconds since 2001-01-01 UTC; nil: never.
        public var lastRetrieve: Double?, lastSend: Double?
        /// The traffic of the last round, and of all rounds since the day began (UTC) or the syncer started. 0 if it is not counted.
        public var round = Traffic(), today = Traffic()
        /// The state of a place in packs, as of the last exchange; nil: unknown, or the place has none.
        public var remote: RemoteStatus?
        /// Whether the place waits for a person; `reason` says for what.
        public var needsSomebody: Bool { SyncSchedule.needsSomebody(reason) || reason == .noSpace || reason == .paused }
    }

    /// Requests, and the bytes of their bodies.
    public struct Traffic: Hashable, Sendable {
        /// Requests to a server, or files and folders opened in a folder.
        public var requests: UInt64 = 0
        /// Bytes sent and received.
        public var bytesUp: UInt64 = 0, bytesDown: UInt64 = 0

        mutating func add(_ other: Traffic) {
            requests &+= other.requests
            bytesUp &+= other.bytesUp
            bytesDown &+= other.bytesDown
        }
    }

    /// Versions in the store that were not sent yet.
    public struct Pending: Hashable, Sendable {
        /// The number of versions.
        public var versions: UInt64 = 0
        /// The bytes of the values that they stored, uncompressed.
        public var bytes: UInt64 = 0
    }

    /// A report of a syncer.
    public struct Event: Sendable {
        /// The present status.
        public var status: Status
        /// The result of the round that has just ended; nil if only the status changed. `Store.differences` lists the values that differ
        /// between the two versions of its `move`.
        public var round: StoreCoordinator.SyncResult?
    }

    /// Conditions of the device, as the host reports them.
    public struct Conditions: OptionSet, Sendable, Hashable {
        /// The bits.
        public let rawValue: UInt32
        /// Creates conditions from bits. Bits without a meaning are ignored.
        public init(rawValue: UInt32) { self.rawValue = rawValue }
        /// There is no network: no exchange is tried, unless the user asks.
        public static let offline = Conditions(rawValue: 1)
        /// Bytes cost money: polls are four times less frequent.
        public static let metered = Conditions(rawValue: 2)
        /// The battery is low: polls are four times less frequent.
        public static let lowBattery = Conditions(rawValue: 4)
        /// The application is in the background: there are no polls, and failures are not retried by the clock. Call `run` when the system
        /// lets the application work.
        public static let background = Conditions(rawValue: 8)
        /// The syncer is paused: it does nothing, unless the user asks.
        public static let paused = Conditions(rawValue: 16)
    }

    /// An event for which a round may be due. Saves need no trigger.
    public enum Trigger: UInt32, Sendable {
        /// The user asks: a round begins at once.
        case user = 1
        /// The application came to the front, or the network returned or changed: a round begins at once, unless one was done in the last 5
        /// seconds. Failures are retried.
        case front
        /// The other side has news, as a push notification reported.
        case news
    }

    /// Delays, in seconds.
    public struct Options: Sendable {
        /// The delay between the last save and its sending.
        public var afterSave = 2.0
        /// The longest delay between the first of several saves and their sending.
        public var afterSaves = 10.0
        /// The interval between polls, if versions were received or sent in the last 5 minutes.
        public var poll = 30.0
        /// The longest interval between polls, if no versions move.
        public var longestPoll = 900.0
        /// The longest pause after failures.
        public var longestPause = 900.0
        /// The heads to merge.
        public var selection = HeadSelection.unbranched
        /// How long the other places of a round, and the merge, wait for one place; for tests.
        var turn = SyncSchedule.Pace().turn
        /// The default delays, as docs/background-sync.md lists them.
        public init() {}
    }
}
