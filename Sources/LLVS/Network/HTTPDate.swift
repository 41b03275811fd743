/// The form of dates in headers: "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, section 5.6.7; the two old forms are not read).
enum HTTPDate {
    static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Seconds since 1970; nil for anything else.
    static func seconds(_ text: String) -> Int64? {
        let words = text.split { $0 == " " || $0 == "," }.map(String.init)
        guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(of: words[2]) else { return nil }
        guard let day = Int64(words[1]), let year = Int64(words[3]), (1...31).contains(day), (1970...9999).contains(year) else {
            return nil
        }
        let clock = words[4].split(separator: ":", omittingEmptySubsequences: false).map { Int64($0) }
        guard clock.count == 3, let hour = clock[0], let minute = clock[1], let second = clock[2] else { return nil }
        guard (0...23).contains(hour), (0...59).contains(minute), (0...60).contains(second) else { return nil }
        return days(year, Int64(month) + 1, day) * 86_400 + hour * 3_600 + minute * 60 + second
    }

    /// Days since 1970 in the Gregorian calendar, years beginning in March.
    static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let y = month <= 2 ? year - 1 : year
        let era = y / 400, ofEra = y - era * 400
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }
}
