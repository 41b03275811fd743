import Testing

@testable import LLVSLive

/// Which connections a listener reads: docs/live-protocol.md, section 6.
@Suite("Live: admission") struct AdmissionTests {
    private func stranger(_ key: String) -> Admission.Source { Admission.Source(key: key, isKnown: false) }
    private func silent(_ source: Admission.Source, _ since: Double) -> Admission.HalfOpen {
        Admission.HalfOpen(source: source, since: since, isSilent: true)
    }
    private func spoken(_ source: Admission.Source, _ since: Double) -> Admission.HalfOpen {
        Admission.HalfOpen(source: source, since: since, isSilent: false)
    }

    @Test(
        "addresses that are counted together",
        arguments: [
            ("", ""), ("192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2::9", "2001:db8:1:2::/64"), ("2001:db8:1:3::9", "2001:db8:1:3::/64"), ("fe80::1%eth0", "fe80::1%eth0"),
            ("fe80::2%eth0", "fe80::2%eth0"), ("::ffff:192.0.2.7", "192.0.2.7"), ("no address", "no address"),
        ])
    func groups(host: String, counted: String) { #expect(Admission.group(host) == counted) }

    @Test func whoGivesWay() {
        let admission = Admission(), new = stranger("new")
        // Two connections from one address, and one from each of the others.
        var halfOpen = [silent(stranger("a"), 3), silent(stranger("a"), 2)]
        halfOpen += (0..<29).map { silent(stranger("\($0)"), Double($0 % 2)) }
        #expect(admission.decide(new, among: halfOpen, at: 5) == .take)
        halfOpen.append(silent(stranger("last"), 4))
        #expect(admission.decide(new, among: halfOpen, at: 5) == .replace(1), "the oldest of the address that has most")
        halfOpen[1] = spoken(stranger("a"), 2)
        #expect(admission.decide(new, among: halfOpen, at: 5) == .replace(0))
        halfOpen[0] = silent(stranger("b"), 3)
        #expect(admission.decide(new, among: halfOpen, at: 5) == .replace(2), "the oldest")
        // No connection is silent: the oldest gives way once it has lasted a second.
        let all = halfOpen.map { spoken($0.source, $0.since) }
        #expect(admission.decide(new, among: all, at: 0.5 + Admission.least) == .replace(2))
        #expect(admission.decide(new, among: halfOpen.map { spoken($0.source, 4.5) }, at: 5) == .refuse)
    }

    @Test func oneAddressHas16Places() {
        let admission = Admission(), halfOpen = [Admission.HalfOpen](repeating: silent(stranger("a"), 0), count: 16)
        #expect(admission.decide(stranger("a"), among: halfOpen, at: 1) == .refuse)
        #expect(admission.decide(stranger("b"), among: halfOpen, at: 1) == .take)
        // The address of a client on a Unix socket is unknown.
        #expect(admission.decide(stranger(""), among: [Admission.HalfOpen](repeating: silent(stranger(""), 0), count: 31), at: 1) == .take)
    }

    @Test func addressesThatGotInHaveRoomOfTheirOwn() {
        var admission = Admission()
        admission.gotIn(from: "2001:db8::7")
        admission.gotIn(from: "")
        let source = admission.source(of: "2001:db8::7")
        #expect(source == Admission.Source(key: "2001:db8::7", isKnown: true))
        #expect(admission.source(of: "2001:db8::8") == stranger(Admission.group("2001:db8::8")) && !admission.source(of: "").isKnown)
        for _ in 0..<5 { admission.refuse(Admission.group("2001:db8::8"), at: 0) }
        let strangers = (0..<32).map { spoken(stranger("\($0)"), 0) }
        #expect(admission.decide(source, among: strangers, at: 0) == .take, "strangers of its network have no part in it")
        let known = (0..<16).map { silent(Admission.Source(key: "\($0)", isKnown: true), Double($0)) }
        #expect(admission.decide(source, among: strangers + known, at: 20) == .replace(32), "the oldest of those that got in")
        #expect(admission.decide(stranger("new"), among: known, at: 20) == .take)
        for n in 0..<Admission.knownLimit { admission.gotIn(from: "192.0.2.\(n)") }
        #expect(!admission.source(of: "2001:db8::7").isKnown && admission.source(of: "192.0.2.0").isKnown)
    }

    @Test func strangersAreNotLookedAtForAMinute() {
        var admission = Admission()
        for at in 0..<5 {
            #expect(admission.decide(stranger("a"), among: [], at: Double(at)) == .take)
            admission.refuse("a", at: Double(at))
        }
        #expect(admission.decide(stranger("a"), among: [], at: 59.9) == .refuse)
        #expect(admission.decide(stranger("b"), among: [], at: 59.9) == .take)
        #expect(admission.decide(stranger("a"), among: [], at: 60) == .take)
        for _ in 0..<9 { admission.refuse("", at: 60) }
        #expect(admission.decide(stranger(""), among: [], at: 60) == .take)
        for n in 0..<(2 * Admission.sources) { admission.refuse("\(n)", at: 60) }
        #expect(admission.refusals("a", at: 60) == 0 && admission.refusals("\(2 * Admission.sources - 1)", at: 60) == 1)
    }
}
