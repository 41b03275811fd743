extension Syncer {
    /// What a syncer does at a moment, and what it did so far.
    public struct Status: Sendable {
        /// What it does.
        public enum State: UInt32, Sendable {
            /// Nothing any more: it was stopped, or the coordinator was closed.
            case off = 0
            /// It waits for the next round, or for something to do.
            case idle
            /// A round runs, or a place that took long in one is still being exchanged with.
            case running
            /// Every place waits: for the network, or for the end of the pause after a failure.
            case waiting
            /// The host paused it, or every place waits for somebody to do something.
            case paused
        }

        /// What it does.
        public var state = State.off
        /// Why it waits or is paused: what the first place that waits does so for.
        public var reason = Reason.none
        /// When the next round is due, in seconds since 2001-01-01 UTC; nil when only something that happens leads to one.
        public var nextRound: Double?
        /// How far the running round has come.
        public var progress: Progress?
        /// Of the place that it exchanges with just now, while it retrieves or sends packs: bytes that are to come or go, and those that
        /// did. What comes is counted in bytes of files, a large value once the pack that names it is there; what goes in bytes of values.
        /// 0 where nobody counts.
        public var bytesDone: UInt64 = 0, bytesTotal: UInt64 = 0
        /// Rounds that ended, failed ones included.
        public var rounds: UInt64 = 0
        /// Versions that came and went in them.
        public var retrieved: UInt64 = 0, sent: UInt64 = 0
        /// When a round ended without any failure, in seconds since 2001-01-01 UTC; nil: never.
        public var lastSuccess: Double?
        /// Why the last merge failed; nil when it did not.
        public var mergeFailure: StoreError?
        /// One for each attached exchange, in the order of attaching.
        public var places: [Place] = []
    }

    /// Why a place, or all of them, are not visited.
    public enum Reason: UInt32, Sendable {
        /// Nothing is the matter.
        case none = 0
        /// The host said so.
        case offline
        /// The server wants to be left alone for a while.
        case rateLimited
        /// The folder or server cannot be reached.
        case unreachable
        /// Something else went wrong; the error tells what.
        case failed
        /// The user, the password or the rights are refused: somebody has to give the right ones.
        case signIn
        /// There is no room, on this device or at the place. The user has to make some.
        case noSpace
        /// The other side was written by a newer version of this library.
        case updateApp
        /// The host paused the syncer.
        case paused
        /// What is there is encrypted, and the passphrase or the identities do not open it, or are missing: somebody has to give the
        /// right ones.
        case passphrase
        /// A place in packs was emptied, or a place belongs to another store: somebody brings it back, or has it joined.
        case remoteReset
        /// Another process exchanges with the place for this store.
        case alreadyRunning
    }

    /// What is known of one attached exchange.
    public struct Place: Sendable {
        /// What it was called as it was attached.
        public var place: String
        /// What it waits for.
        public var reason = Reason.none
        /// Rounds that failed there, one after the other.
        public var failures: UInt64 = 0
        /// When it is tried again by the clock, in seconds since 2001-01-01 UTC; nil when nothing failed, or only somebody helps.
        public var retryAt: Double?
        /// When it was exchanged with last without a failure, in seconds since 2001-01-01 UTC; nil: never.
        public var lastSuccess: Double?
        /// Why the last round failed there.
        public var error: StoreError?
        /// What could not be taken or sent in the last round.
        public var problems: [ExchangeProblem] = []
        /// How many files that the place lists could not be read in the last round, and since when some could not, in seconds since
        /// 2001-01-01 UTC; nil: all could. A round may end without a failure although nothing comes.
        public var unread: UInt64 = 0, unreadSince: Double?
        /// What waits to be sent there; nil: nobody knows before a round there ended without a failure.
        public var pending: Pending?
        /// When retrieving from there, and sending there, ended without a failure last, in seconds since 2001-01-01 UTC; nil: never.
        public var lastRetrieve: Double?, lastSend: Double?
        /// What the last round asked and moved, and what all did since the day began (UTC), or the syncer. 0 where nobody counts.
        public var round = Traffic(), today = Traffic()
        /// What is known of a place in packs, as of the last exchange; nil: nothing, or it has none.
        public var remote: RemoteStatus?
        /// Whether something waits there until somebody did something: `reason` tells what.
        public var needsSomebody: Bool { SyncSchedule.needsSomebody(reason) || reason == .noSpace || reason == .paused }
    }

    /// Requests, and the bytes of their bodies.
    public struct Traffic: Hashable, Sendable {
        /// Requests to a server, files and folders opened in a folder.
        public var requests: UInt64 = 0
        /// Bytes that went and came.
        public var bytesUp: UInt64 = 0, bytesDown: UInt64 = 0

        mutating func add(_ other: Traffic) {
            requests &+= other.requests
            bytesUp &+= other.bytesUp
            bytesDown &+= other.bytesDown
        }
    }

    /// Versions that are here and were not sent yet.
    public struct Pending: Hashable, Sendable {
        /// How many.
        public var versions: UInt64 = 0
        /// Bytes of the values that they stored, as they are.
        public var bytes: UInt64 = 0
    }

    /// What a syncer tells.
    public struct Event: Sendable {
        /// What it does now.
        public var status: Status
        /// What a round did that has just ended; nil when only the status is another. Its `move` leads from one current version to
        /// another: `Store.differences` tells which values those differ in.
        public var round: StoreCoordinator.SyncOutcome?
    }

    /// What the host says of the device.
    public struct Conditions: OptionSet, Sendable, Hashable {
        /// The bits.
        public let rawValue: UInt32
        /// From bits; those that have no meaning are ignored.
        public init(rawValue: UInt32) { self.rawValue = rawValue }
        /// There is no network: nothing is tried, but when the user asks.
        public static let offline = Conditions(rawValue: 1)
        /// Bytes cost money: polls are four times as seldom.
        public static let metered = Conditions(rawValue: 2)
        /// The battery is low: polls are four times as seldom.
        public static let lowBattery = Conditions(rawValue: 4)
        /// The application is not in front: there are no polls, and what failed is not tried again by the clock. `run` when the system
        /// lets the application work.
        public static let background = Conditions(rawValue: 8)
        /// Nothing is done, but when the user asks.
        public static let paused = Conditions(rawValue: 16)
    }

    /// What happened that a round may be due for. Saves are noticed without being told.
    public enum Trigger: UInt32, Sendable {
        /// The user asks: a round begins at once.
        case user = 1
        /// The application came to the front, or the network is back or another one: a round at once, unless one was done in the last
        /// 5 seconds; what had failed is tried again.
        case front
        /// The other side has news, as a push says.
        case news
    }

    /// Delays, in seconds.
    public struct Options: Sendable {
        /// After the last save, before it is sent.
        public var afterSave = 2.0
        /// After the first of a row of saves, before they are sent at the latest.
        public var afterSaves = 10.0
        /// Between rounds without another reason, as long as something came or went in the last 5 minutes.
        public var poll = 30.0
        /// The same at most, when nothing comes or goes.
        public var longestPoll = 900.0
        /// After failures: the longest pause.
        public var longestPause = 900.0
        /// Which heads are merged.
        public var selection = HeadSelection.unbranched
        /// How long the other places of a round, and the merge, wait for one; for tests.
        var turn = SyncSchedule.Pace().turn
        /// The delays that docs/background-sync.md tells.
        public init() {}
    }
}
