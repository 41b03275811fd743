import LLVS
import Testing

@testable import LLVSModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Model(prefix: "moment/")
struct Moments: Equatable {
    var at = Date(timeIntervalSince1970: 0)
    @Merge(.pick(.max)) var last: Date?
    @Merge(.pick(.min)) var first = Date(timeIntervalSince1970: 0)
    var all: Set<Date> = []
    init(_ date: Date) { (at, last, first, all) = (date, date, date, [date]) }
}

/// Dates are read exactly as they were written.
@Suite struct MomentTests {
    private func areExact(_ dates: [Date]) throws {
        let devices = try Devices(), moments = try devices.phone.collection(Moments.self)
        try moments.save(Dictionary(uniqueKeysWithValues: dates.enumerated().map { ("\($0)", Moments($1)) }))
        for (index, date) in dates.enumerated() {
            let found = try moments["\(index)"], text = try Moment.text(date)
            #expect(found == Moments(date), "\(text), \(date.timeIntervalSinceReferenceDate)")
        }
    }

    @Test func datesOfMilliseconds() throws {
        try areExact((0..<1_000).map { Date(timeIntervalSince1970: 1_700_000_000 + Double($0) / 1_000) })
        try areExact((0..<1_000).map { Date(timeIntervalSince1970: -1_700_000_000.0 - Double($0) / 1_000) })
        #expect(try Moment.text(Date(timeIntervalSince1970: 1_700_000_000.123)) == "2023-11-14T22:13:20.123000Z")
    }

    @Test func datesOfAllKinds() throws {
        var random = Seeded(1)
        try areExact((0..<2_000).map { _ in Change.date(&random) })
        try areExact(
            (0..<500).map { _ in Date(timeIntervalSinceReferenceDate: Double(random.upTo(1_000_000_000)) + Double(random.upTo(999)) / 1_000)
            })
        let bits = (0..<2_000).map { _ in Double(bitPattern: random.next()) }.filter { (-6.3e10...2.5e11).contains($0) }
        #expect(bits.count > 500)
        try areExact(bits.map { Date(timeIntervalSinceReferenceDate: $0) })
        try areExact(
            [Date(), .distantPast, .distantFuture]
                + [.leastNonzeroMagnitude, -Double.leastNonzeroMagnitude, -0.1, -0.5, -1e-20, 0.1, 1e-7].map {
                    Date(timeIntervalSinceReferenceDate: $0)
                })
    }

    /// The calendar agrees with Foundation's, except before 1582, when Foundation's is the Julian calendar.
    @Test func theDaysAreThoseOfTheCalendar() throws {
        var random = Seeded(2)
        for _ in 0..<2_000 {
            let date = Date(timeIntervalSince1970: Double(Int.random(in: -12_200_000_000...253_402_300_799, using: &random)))
            #expect(try Moment.text(date) == date.formatted(Date.ISO8601FormatStyle()))
        }
        // Each day of 800 years, in order.
        var last = ""
        for day in -500_000 ..< -200_000 {
            let text = try Moment.text(Date(timeIntervalSince1970: Double(day) * 86_400))
            if text <= last || Moment.date(text)?.timeIntervalSince1970 != Double(day) * 86_400 { Issue.record("\(text) after \(last)") }
            last = text
        }
    }

    @Test func whatIsNoMomentIsRefused() {
        for none in [Double.infinity, -.infinity, .nan, 1e300, 253_402_300_800, -62_167_219_200.5] {
            #expect(throws: EncodingError.self) { try Moment.text(Date(timeIntervalSince1970: none)) }
        }
    }

    @Test func textsOfOthersAreRead() {
        let at = Date(timeIntervalSince1970: 1_800_000_000)
        for text in [
            "2027-01-15T08:00:00Z", "2027-01-15t08:00:00z", "2027-01-15 08:00:00+00:00", "2027-01-15T08:00Z", "2027-01-15T09:30:00+01:30",
            "2027-01-15T00:00:00-0800", "2027-01-15T10:00:00+02", "2027-01-15T08:00:00.000Z", "2027-01-15T08:00:00,0000000Z",
        ] {
            #expect(Moment.date(text) == at, "\(text)")
        }
        for text in [
            "", "2027-01-15", "2027-01-15T08:00:00", "2027-02-29T08:00:00Z", "2027-13-01T08:00:00Z", "2027-01-15T24:00:00Z",
            "2027-01-15T08:60:00Z", "2027-01-15T08:00:60Z", "2027-01-15T08:00:00.Z", "2027-01-15T08:00:00Zz", "2027-01-15T08:00:00+",
            "2027-01-15T08:00:00+1", "2027-01-15T08:00:00+01:", "27-01-15T08:00:00Z", "2027-01-15T08:00:00.٣Z", "2027-00-15T08:00:00Z",
            "2027-01-15T08:00:00." + String(repeating: "1", count: 2_000) + "Z",
        ] {
            #expect(Moment.date(text) == nil, "\(text)")
        }
    }

    /// To the microsecond, sortable texts are in the order of their dates.
    @Test func sortableTextsAreInOrder() throws {
        var random = Seeded(3)
        let micros = Set((0..<2_000).map { _ in Int.random(in: -2_000_000_000_000_000...4_000_000_000_000_000, using: &random) }).sorted()
        let texts = try micros.map { try Moment.text(Date(timeIntervalSince1970: Double($0) / 1_000_000), isSortable: true) }
        #expect(texts == texts.sorted() && texts.allSatisfy { $0.utf8.count == 27 })
        let between = try Moment.text(Date(timeIntervalSinceReferenceDate: 800_000_000.123_456_7), isSortable: true)
        #expect(between == "2026-05-09T06:13:20.1234567Z", "as many digits as it takes")
    }
}
