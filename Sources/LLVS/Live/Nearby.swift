import CLLVSShims

/// Devices on the local network that offer stores: announced and found by DNS-SD (RFC 6763), through the daemon of Avahi.
///
/// Whoever is found may be anybody: the pairing says who is let in. Everybody on the network sees the names, and not which stores there
/// are. Where no daemon runs, programs find devices by what they have.
public enum Nearby {
    /// What is told.
    public enum Event: Sendable, Equatable {
        /// A device of that name listens at an address: numbers, and `%` with the interface where it is good there alone.
        case found(name: String, address: String, port: UInt16)
        /// It does no more.
        case gone(name: String, address: String, port: UInt16)
        /// This device is called so from now on: another has the name that it had.
        case named(String)
    }

    /// Of a service that speaks docs/live-protocol.md. Which stores it has is not told.
    static let service = "_llvs._tcp"
    static let nameLimit = 63

    /// Finds devices, and announces this one, on a thread of its own until it is cancelled. When the daemon is started anew, all is
    /// announced and looked for again.
    /// - Parameters:
    ///   - name: what this device is called there, at most 63 bytes of UTF-8; empty: the host's name. Where another has it, a number is
    ///     added.
    ///   - port: where it listens; nil: it is not announced.
    ///   - told: called on that thread, which waits for it. Not for what is announced here.
    /// - Throws: `.unsupported` when Avahi is not installed or its daemon does not run, `.invalidArgument` for a name that cannot be one.
    public static func observe(
        name: String = "", port: UInt16? = nil, _ told: @escaping @Sendable (Event) -> Void
    ) throws -> any ExchangeObservation {
        let name = name.isEmpty ? hostName() : name
        guard (1...nameLimit).contains(name.utf8.count), !name.utf8.contains(0) else {
            throw StoreError(.invalidArgument, "A name on the network has 1 to \(nameLimit) bytes of UTF-8. Give another one.")
        }
        var problem = [CChar](repeating: 0, count: 256)
        guard let avahi = llvs_shim_avahi_open("libavahi-client.so.3", &problem, problem.count) else {
            throw StoreError(
                .unsupported,
                "Finding devices on the local network needs Avahi (Debian: avahi-daemon, libavahi-client3). Install it, or give addresses.")
        }
        let finder = Finder(avahi.pointee, name: name, port: port, told)
        try finder.open()
        do {
            return try ObservationThread(body: { state in finder.run(state) }, wake: { finder.wake() })
        } catch {
            finder.shut()
            throw error
        }
    }

    private static func hostName() -> String {
        var bytes = [CChar](repeating: 0, count: 256)
        guard gethostname(&bytes, bytes.count - 1) == 0 else { return "llvs" }
        let name = bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return name.isEmpty ? "llvs" : String(decoding: name.prefix(nameLimit), as: UTF8.self)
    }

    /// What is asked of the daemon. All but `wake` is called by the one that makes it, and then by the thread alone.
    private final class Finder: @unchecked Sendable {
        // Sendable: the thread owns what changes, but for `poll`, which the lock guards while it is made and freed.
        private let avahi: llvs_shim_avahi
        private let port: UInt16?
        private let told: @Sendable (Event) -> Void
        private var label: String
        private let lock = Lock(.leaf)
        private var poll: UnsafeMutableRawPointer?
        private var client: UnsafeMutableRawPointer?
        private var group: UnsafeMutableRawPointer?
        private var hasFailed = false
        /// Where devices were found, by their names.
        private var known: [String: [Place: Address]] = [:]
        private struct Place: Hashable { let interface: Int32, protocolNumber: Int32 }
        private struct Address: Equatable { let text: String, port: UInt16 }
        /// Devices that are announced: how often their address could not be had, and when it is asked for anew; infinite: not at all.
        private var announced: [Service: (misses: Int, again: Double)] = [:]
        private struct Service: Hashable { let name: String, kind: String, domain: String, place: Place }

        // Numbers in Avahi's headers. `nameIsTaken` is an answer of `entry_group_add_service_strlst`, `browserFailed` an event of a
        // browser.
        private static let nameIsTaken: Int32 = -8, browserFailed: Int32 = 4
        private static let anywhere: Int32 = -1, running: Int32 = 2, failure: Int32 = 100, collision: Int32 = 3, new: Int32 = 0
        private static let removed: Int32 = 1, found: Int32 = 0, ourOwn: Int32 = 16, noDaemon: Int32 = -26
        /// Seconds until a daemon that went away is looked for again.
        private static let pause = 2.0
        /// Seconds until the address of a device is asked for anew: twice as many each time, up to so many.
        private static let longestPause = 60.0
        /// Devices that are kept in mind: anybody may announce any number.
        private static let limit = 1_000, announcedLimit = 4_000

        init(_ avahi: llvs_shim_avahi, name: String, port: UInt16?, _ told: @escaping @Sendable (Event) -> Void) {
            self.avahi = avahi; label = name; self.port = port; self.told = told
        }
        private var me: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
        /// Nil in a child that a callback of the host forked: the connection to the daemon is the parent's, and what it would be told here
        /// the parent is told.
        private static func of(_ payload: UnsafeMutableRawPointer?) -> Finder? {
            payload.map { Unmanaged<Finder>.fromOpaque($0).takeUnretainedValue() }.flatMap { $0.isInChild ? nil : $0 }
        }
        private let process = getpid()
        private var isInChild: Bool { getpid() != process }
        private static func text(_ pointer: UnsafePointer<CChar>?) -> String? { pointer.map { String(cString: $0) } }

        func open() throws {
            hasFailed = false
            guard let made = avahi.simple_poll_new() else { throw StoreError(.outOfMemory, "Reaching the daemon of Avahi took no memory.") }
            lock.withLock { poll = made }
            var error: Int32 = 0
            client = avahi.client_new(
                avahi.simple_poll_get(made), 0,
                { client, state, payload in
                    Finder.of(payload)?.clientChanged(client, state)
                }, me, &error)
            guard client != nil else {
                let why = Finder.text(avahi.strerror(error)) ?? "unknown"
                shut()
                let hint = error == Finder.noDaemon ? "Start avahi-daemon, or give addresses." : "Look at avahi-daemon's log."
                throw StoreError(.unsupported, "Reaching the daemon of Avahi failed: \(why). \(hint)")
            }
            let browser = avahi.service_browser_new(
                client, Finder.anywhere, Finder.anywhere, Nearby.service, nil, 0,
                { _, interface, protocolNumber, event, name, kind, domain, flags, payload in
                    if event == Finder.browserFailed { Finder.of(payload)?.hasFailed = true }
                    guard let name = Finder.text(name) else { return }
                    let place = Place(interface: interface, protocolNumber: protocolNumber)
                    Finder.of(payload)?.browsed(event, name, place, kind, domain, flags)
                }, me)
            if browser == nil { hasFailed = true }
        }

        func shut() {
            announced = [:]
            if let client { avahi.client_free(client) } // with all that was made of it
            (client, group) = (nil, nil)
            lock.withLock {
                if let poll { avahi.simple_poll_free(poll) }
                poll = nil
            }
        }

        func wake() { lock.withLock { if let poll { avahi.simple_poll_wakeup(poll) } } }

        func run(_ state: ObservationThread.State) {
            while !state.stops {
                if !hasFailed, let poll {
                    if avahi.simple_poll_iterate(poll, 1_000) != 0 { hasFailed = true }
                    if !isInChild { askAgain() }
                    continue
                }
                shut()
                for name in known.keys.sorted() {
                    for place in (known[name] ?? [:]).keys where !isInChild { forget(name, place) }
                }
                let until = Clock.steady() + Finder.pause
                while Clock.steady() < until, !state.stops { usleep(50_000) }
                // Not yet, maybe.
                if !state.stops { try? open() }
            }
            if !state.isInChild { shut() }
        }

        private func clientChanged(_ client: UnsafeMutableRawPointer?, _ state: Int32) {
            self.client = client
            if state == Finder.failure { hasFailed = true }
            guard state == Finder.running, port != nil else { return }
            if group == nil {
                group = avahi.entry_group_new(client, { group, state, payload in Finder.of(payload)?.groupChanged(group, state) }, me)
            }
            announce()
        }

        private func groupChanged(_ group: UnsafeMutableRawPointer?, _ state: Int32) {
            guard state == Finder.collision else { return }
            self.group = group
            guard let other = avahi.alternative_service_name(label) else { return }
            label = String(cString: other)
            avahi.free(other)
            told(.named(label))
            if !isInChild { announce() }
        }

        private func announce() {
            guard let group, let port else { return }
            // That another program on this host has the name is the answer of the call, and no later event.
            for _ in 0..<100 {
                _ = avahi.entry_group_reset(group)
                let added = avahi.entry_group_add_service_strlst(
                    group, Finder.anywhere, Finder.anywhere, 0, label, Nearby.service, nil, nil, port, nil)
                if added == 0 { _ = avahi.entry_group_commit(group) }
                guard added == Finder.nameIsTaken, let other = avahi.alternative_service_name(label) else { return }
                label = String(cString: other)
                avahi.free(other)
                told(.named(label))
                if isInChild { return }
            }
        }

        private func browsed(
            _ event: Int32, _ name: String, _ place: Place, _ kind: UnsafePointer<CChar>?, _ domain: UnsafePointer<CChar>?, _ flags: Int32
        ) {
            let service = Service(name: name, kind: Finder.text(kind) ?? Nearby.service, domain: Finder.text(domain) ?? "", place: place)
            if event == Finder.removed {
                announced[service] = nil
                forget(name, place)
            }
            guard event == Finder.new, flags & Finder.ourOwn == 0 else { return }
            if announced.count < Finder.announcedLimit { announced[service] = (0, .infinity) }
            resolve(service)
        }

        /// Asks for the address of a device.
        private func resolve(_ service: Service) {
            let place = service.place
            let resolver = avahi.service_resolver_new(
                client, place.interface, place.protocolNumber, service.name, service.kind, service.domain, Finder.anywhere, 0,
                { resolver, interface, protocolNumber, event, name, kind, domain, _, address, port, _, _, payload in
                    guard let finder = Finder.of(payload) else { return }
                    // It would go on telling of changes: those come from the browser, too.
                    defer { if !finder.isInChild { _ = finder.avahi.service_resolver_free(resolver) } }
                    guard let name = Finder.text(name) else { return }
                    let place = Place(interface: interface, protocolNumber: protocolNumber)
                    let service = Service(
                        name: name, kind: Finder.text(kind) ?? Nearby.service, domain: Finder.text(domain) ?? "", place: place)
                    guard event == Finder.found, let address else { return finder.missed(service) }
                    finder.resolved(name, place, address, port)
                }, me)
            if resolver == nil { missed(service) }
        }

        /// The address of a device could not be had. While it is announced, it is asked for again.
        private func missed(_ service: Service) {
            guard let misses = announced[service]?.misses else { return }
            let pause = min(Finder.longestPause, Finder.pause * Double(1 << min(misses, 10)))
            announced[service] = (misses + 1, Clock.steady() + pause)
        }

        private func askAgain() {
            let now = Clock.steady()
            for (service, last) in announced where last.again <= now {
                announced[service]?.again = .infinity
                resolve(service)
            }
        }

        private func resolved(_ name: String, _ place: Place, _ address: UnsafeRawPointer, _ port: UInt16) {
            var bytes = [CChar](repeating: 0, count: 64)
            guard avahi.address_snprint(&bytes, bytes.count, address) != nil else { return }
            var text = String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            // Good there alone.
            if text.utf8.starts(with: "fe80:".utf8) { text += "%\(place.interface)" }
            let found = Address(text: text, port: port), before = known[name]?[place]
            guard before != found, known[name] != nil || known.count < Finder.limit else { return }
            if before != nil { forget(name, place) }
            if isInChild { return }
            let isKnown = known[name]?.values.contains(found) ?? false
            known[name, default: [:]][place] = found
            if !isKnown { told(.found(name: name, address: text, port: port)) }
        }

        private func forget(_ name: String, _ place: Place) {
            guard let gone = known[name]?.removeValue(forKey: place) else { return }
            let isElsewhere = known[name]?.values.contains(gone) ?? false
            if known[name]?.isEmpty ?? false { known[name] = nil }
            if !isElsewhere { told(.gone(name: name, address: gone.text, port: gone.port)) }
        }
    }
}
