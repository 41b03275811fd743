#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Dates as text: as in ISO 8601, in UTC, and exact. Every `Date` of the years 0 to 9999 is read exactly as it was written.
///
/// A whole second has no fraction. A whole microsecond has six digits, as Python's models and pydantic write it, so that one moment is one
/// text in all languages. Any other date has as many digits as it needs, at least seven: a reader of microseconds cuts them off.
///
/// A date is a binary number of seconds since 2001, but programs usually make one from seconds since 1970. With a fraction, the two round
/// differently. The number of digits says which of them a text means: up to six digits, seconds since 1970; more, seconds since 2001.
enum Moment {
    /// From 1970 to 2001, in seconds.
    private static let reference = 978_307_200
    /// The first second of the year 0, and that after the year 9999, since 2001.
    private static let range = -63_145_526_400.0..<252_423_993_600.0
    /// More digits than the fraction of any date has.
    private static let digitsMax = 1_100

    // MARK: Writing

    /// Returns the text of a date.
    /// - Parameter isSortable: whether whole seconds get six digits as well, so that texts are in the order of their dates, to the
    ///   microsecond.
    /// - Throws: `EncodingError` for a date that is infinite or not a number, and for years of more than four digits.
    static func text(_ date: Date, isSortable: Bool = false, at path: [any CodingKey] = []) throws -> String {
        let number = date.timeIntervalSinceReferenceDate
        guard range.contains(number) else {
            // (Print the number, since printing such a date ends the process.)
            let why =
                number.isFinite
                ? "The date is not in the years 0 to 9999, and has no text as in ISO 8601. Give another one."
                : "The date is no moment. Give another one."
            throw EncodingError.invalidValue(date.timeIntervalSince1970, .init(codingPath: path, debugDescription: why))
        }
        let whole = Int(number.rounded(.down)) + reference
        if number == number.rounded(.down) { return second(whole) + (isSortable ? ".000000Z" : "Z") }
        let micros = Int((date.timeIntervalSince1970 * 1_000_000).rounded())
        if Self.date(micros: micros) == date {
            let (seconds, rest) = divided(micros, 1_000_000)
            return second(seconds) + "." + padded(rest, 6) + "Z"
        }
        let digits = fraction(number)
        return second(whole) + "." + digits + String(repeating: "0", count: max(0, 7 - digits.count)) + "Z"
    }

    /// The decimal digits of the fraction of a number above its whole part, rounded down: the fewest from which the number is restored.
    private static func fraction(_ number: Double) -> String {
        let parts = "\(number.magnitude)".split(separator: "e"), exponent = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
        let mantissa = parts[0].split(separator: ".", omittingEmptySubsequences: false)
        // (If a number with a fraction is printed with an exponent, that is negative.)
        var digits = String(repeating: "0", count: max(0, -exponent - 1))
        if exponent < 0 { digits += mantissa[0] }
        digits += mantissa.count > 1 && mantissa[1] != "0" ? mantissa[1] : ""
        return number < 0 ? complement(digits) : digits
    }

    /// The digits of 1 less a fraction that is not 0.
    private static func complement(_ digits: some StringProtocol) -> String {
        var made: [UInt8] = [], isBehind = true
        for digit in digits.utf8.reversed() {
            let value = digit &- 0x30
            // Subtract the last digit that is not 0 from ten, and those before it from nine.
            made.append(0x30 + (isBehind ? (value == 0 ? 0 : 10 - value) : 9 - value))
            if value != 0 { isBehind = false }
        }
        return String(decoding: made.reversed(), as: UTF8.self)
    }

    /// A second since 1970 as text, without a zone.
    private static func second(_ seconds: Int) -> String {
        let (days, time) = divided(seconds, 86_400)
        let (year, month, day) = civil(days)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T"
            + "\(padded(time / 3_600, 2)):\(padded(time / 60 % 60, 2)):\(padded(time % 60, 2))"
    }

    private static func padded(_ number: Int, _ count: Int) -> String {
        let text = "\(number)"
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }

    // MARK: Reading

    /// Returns the date of a text: a date, a time to the minute at least, and a zone. nil for any other text.
    static func date(_ text: String) -> Date? {
        var rest = text.utf8[...]
        func take(_ characters: String) -> Bool {
            guard let next = rest.first, characters.utf8.contains(next) else { return false }
            rest = rest.dropFirst()
            return true
        }
        func number(_ count: Int, _ range: ClosedRange<Int>) -> Int? {
            guard rest.prefix(count).count == count, rest.prefix(count).allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            let value = rest.prefix(count).reduce(0) { $0 * 10 + Int($1 - 0x30) }
            rest = rest.dropFirst(count)
            return range.contains(value) ? value : nil
        }
        guard let year = number(4, 0...9_999), take("-"), let month = number(2, 1...12), take("-"), let day = number(2, 1...31),
            day <= length(month, of: year), take("Tt "), let hour = number(2, 0...23), take(":"), let minute = number(2, 0...59)
        else { return nil }
        var second = 0, digits = ""
        if take(":") {
            guard let given = number(2, 0...59) else { return nil }
            second = given
            if take(".,") {
                digits = String(decoding: rest.prefix { (0x30...0x39).contains($0) }, as: UTF8.self)
                rest = rest.dropFirst(digits.utf8.count)
                guard !digits.isEmpty, digits.utf8.count <= digitsMax else { return nil }
            }
        }
        var offset = 0
        if !take("Zz") {
            let isWest = rest.first == 0x2D
            guard take("+-"), let hours = number(2, 0...23) else { return nil }
            var minutes = 0
            if take(":") || !rest.isEmpty {
                guard let given = number(2, 0...59) else { return nil }
                minutes = given
            }
            offset = (hours * 60 + minutes) * (isWest ? -60 : 60)
        }
        guard rest.isEmpty else { return nil }
        return date(seconds: days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset, digits)
    }

    /// The date of a number of seconds since 1970, and a fraction.
    private static func date(seconds: Int, _ digits: String) -> Date? {
        let count = digits.utf8.count
        guard count > 6 else {
            let micros = (Int(digits) ?? 0) * [1_000_000, 100_000, 10_000, 1_000, 100, 10, 1][count]
            return micros == 0
                ? Date(timeIntervalSinceReferenceDate: Double(seconds - reference)) : date(micros: seconds * 1_000_000 + micros)
        }
        let whole = seconds - reference
        let text =
            whole >= 0 || digits.allSatisfy { $0 == "0" } ? "\(whole).\(digits)" : "-\(-(whole + 1)).\(complement(digits))"
        return Double(text).map { Date(timeIntervalSinceReferenceDate: $0) }
    }

    /// The date that a program makes of microseconds since 1970.
    private static func date(micros: Int) -> Date { Date(timeIntervalSince1970: Double(micros) / 1_000_000) }

    // MARK: The calendar

    /// A quotient, rounded down, and the remainder.
    private static func divided(_ number: Int, _ by: Int) -> (Int, Int) {
        let rest = number % by
        return rest < 0 ? (number / by - 1, rest + by) : (number / by, rest)
    }

    private static func length(_ month: Int, of year: Int) -> Int {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    /// The days from 1970 to a day of the Gregorian calendar, which ISO 8601 has for all years, also for those before 1582.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        // Years begin in March here, so that the leap day is the last day of a year. 400 years are an era.
        let (era, yearOfEra) = divided(month > 2 ? year : year - 1, 400)
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// The day of the Gregorian calendar that is some days after 1970.
    private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
        let (era, dayOfEra) = divided(days + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100), march = (5 * dayOfYear + 2) / 153
        let month = march < 10 ? march + 3 : march - 9
        return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * march + 2) / 5 + 1)
    }
}
