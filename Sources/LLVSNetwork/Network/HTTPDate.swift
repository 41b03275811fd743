/// Parses dates in headers, in the three forms of RFC 9110, section 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37
/// GMT" and "Sun Nov  6 08:49:37 1994".
enum HTTPDate {
    static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Returns the seconds since 1970; nil for anything else.
    static func seconds(_ text: String) -> Int64? {
        var words = text.split { $0 == " " || $0 == "," }.map(String.init)
        if words.count == 4 {
            let date = words[1].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
            guard date.count == 3, date[2].utf8.count == 2, let year = UInt8(date[2]), date[2].utf8.first != UInt8(ascii: "+") else {
                return nil
            }
            // Two digits mean a year from 1970 to 2069.
            words = [words[0], date[0], date[1], "\(Int(year) + (year < 70 ? 2000 : 1900))", words[2], words[3]]
        } else if words.count == 5 {
            words = [words[0], words[2], words[1], words[4], words[3], "GMT"]
        }
        guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(of: words[2]) else { return nil }
        guard let day = Int64(words[1]), let year = Int64(words[3]), (1...31).contains(day), (1970...9999).contains(year) else {
            return nil
        }
        let clock = words[4].split(separator: ":", omittingEmptySubsequences: false).map { Int64($0) }
        guard clock.count == 3, let hour = clock[0], let minute = clock[1], let second = clock[2] else { return nil }
        guard (0...23).contains(hour), (0...59).contains(minute), (0...60).contains(second) else { return nil }
        return days(year, Int64(month) + 1, day) * 86_400 + hour * 3_600 + minute * 60 + second
    }

    /// Returns the days since 1970 in the Gregorian calendar. Internally, years begin in March.
    static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let y = month <= 2 ? year - 1 : year
        let era = y / 400, ofEra = y - era * 400
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }
}
