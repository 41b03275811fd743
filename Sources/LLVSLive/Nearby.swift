import CLLVSShims

/// Devices on the local network that offer stores: announced and found by DNS-SD (RFC 6763), through the Avahi daemon.
///
/// Any device may announce itself: the pairing decides which one is let in. Every device on the network sees the names, but not which
/// stores there are. On systems without the daemon, programs find devices by other means.
public enum Nearby {
    /// An event that is reported.
    public enum Event: Sendable, Equatable {
        /// A device of that name listens at an address: a numeric one, and `%` with the interface if it is valid only there.
        case found(name: String, address: String, port: UInt16)
        /// The device no longer listens there.
        case gone(name: String, address: String, port: UInt16)
        /// This device has this name from now on, since another has the name that it had.
        case named(String)
    }

    /// A service that speaks docs/live-protocol.md. It does not say which stores it has.
    static let service = "_llvs._tcp"
    static let nameLimit = 63

    /// Finds devices, and announces this one, on a thread of its own until it is cancelled. If the daemon restarts, everything is
    /// announced and searched again.
    /// - Parameters:
    ///   - name: the name of this device, at most 63 bytes of UTF-8; empty for the host's name. If another device has it, a number is
    ///     appended.
    ///   - port: the port that it listens at; nil if it is not to be announced.
    ///   - told: called on that thread, which waits for it. Not called for what this device announces.
    /// - Throws: `.unsupported` if Avahi is not installed or its daemon does not run, `.invalidArgument` for an invalid name.
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

    /// The session with the daemon. After the thread starts, only the thread calls it, except `wake`.
    private final class Finder: @unchecked Sendable {
        // Sendable: the thread owns the mutable state, except `poll`, which the lock guards while it is created and freed.
        private let avahi: llvs_shim_avahi
        private let port: UInt16?
        private let told: @Sendable (Event) -> Void
        private var label: String
        private let lock = Lock(.leaf)
        private var poll: UnsafeMutableRawPointer?
        private var client: UnsafeMutableRawPointer?
        private var group: UnsafeMutableRawPointer?
        private var hasFailed = false
        /// The addresses of the found devices, by their names.
        private var known: [String: [Place: Address]] = [:]
        private struct Place: Hashable { let interface: Int32, protocolNumber: Int32 }
        private struct Address: Equatable { let text: String, port: UInt16 }
        /// Announced devices: how often their address could not be resolved, and when to try again; infinity for never.
        private var announced: [Service: (misses: Int, again: Double)] = [:]
        private struct Service: Hashable { let name: String, kind: String, domain: String, place: Place }

        // Numbers in Avahi's headers. `nameIsTaken` is a result of `entry_group_add_service_strlst`, `browserFailed` an event of a
        // browser.
        private static let nameIsTaken: Int32 = -8, browserFailed: Int32 = 4
        private static let anywhere: Int32 = -1, running: Int32 = 2, failure: Int32 = 100, collision: Int32 = 3, new: Int32 = 0
        private static let removed: Int32 = 1, found: Int32 = 0, ourOwn: Int32 = 16, noDaemon: Int32 = -26
        /// Seconds before the next search for a daemon that ended.
        private static let pause = 2.0
        /// The longest backoff in seconds before an address is resolved again. It doubles each time.
        private static let longestPause = 60.0
        /// The most devices that are remembered: any device may announce any number.
        private static let limit = 1_000, announcedLimit = 4_000

        init(_ avahi: llvs_shim_avahi, name: String, port: UInt16?, _ told: @escaping @Sendable (Event) -> Void) {
            self.avahi = avahi; label = name; self.port = port; self.told = told
        }
        private var me: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
        /// Returns nil in a child process that a callback of the host forked: the connection to the daemon is the parent's, which gets
        /// the same events.
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
                let hint = error == Finder.noDaemon ? "Start avahi-daemon, or give addresses." : "Check avahi-daemon's log."
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
            if let client { avahi.client_free(client) } // also frees what was created with it
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
                // The daemon may not be ready yet.
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
            // If another program on this host has the name, the call reports it, and no later event does.
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

        /// Resolves the address of a device.
        private func resolve(_ service: Service) {
            let place = service.place
            let resolver = avahi.service_resolver_new(
                client, place.interface, place.protocolNumber, service.name, service.kind, service.domain, Finder.anywhere, 0,
                { resolver, interface, protocolNumber, event, name, kind, domain, _, address, port, _, _, payload in
                    guard let finder = Finder.of(payload) else { return }
                    // Free the resolver, or it would continue to report changes, which the browser reports as well.
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

        /// Handles an address that could not be resolved. While the device is announced, it is tried again.
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
            // The address is valid only on this interface.
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
