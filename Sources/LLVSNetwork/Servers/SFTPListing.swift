/// Parses a server's listing of a directory: lines like those of `ls -l`, which OpenSSH and similar servers send.
///
///     -rw-r--r--    1 ann      staff        2048 Nov 25 21:29 name
final class SFTPListing: HTTPBodyReader {
    static let mostEntries = 1_000_000
    private static let longestLine = 8_192

    private let what: String
    private var line: [UInt8] = []
    private(set) var found: [Line] = []
    /// Whether the previous line is the last of `found`; nil if there was none.
    private var isLastFound: Bool?

    /// An entry.
    struct Line: Equatable {
        var name: String
        var isDirectory: Bool
        var size: Int
        /// "Nov 25 21:29", or "Nov 25 2025" if that is long ago; in the server's time zone.
        var date: [String]
    }

    init(_ what: String) { self.what = what }

    func take(_ bytes: UnsafeRawBufferPointer) throws {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                try finishLine()
            } else {
                let most = SFTPListing.longestLine
                guard line.count < most else { throw unreadable("a line is longer than \(most) bytes") }
                line.append(byte)
            }
        }
    }

    /// Returns all entries except `.` and `..`.
    func lines() throws -> [Line] {
        guard line.isEmpty else { throw unreadable("it is cut short") }
        return found
    }

    private func finishLine() throws {
        defer { line.removeAll(keepingCapacity: true) }
        guard let read = SFTPListing.read(line) else { return try finishRest() }
        isLastFound = read.name != "." && read.name != ".."
        guard isLastFound == true else { return }
        guard found.count < SFTPListing.mostEntries else { throw unreadable("it has more than \(SFTPListing.mostEntries) names") }
        try Memory.grow(&found, what)
        found.append(read)
    }

    /// Handles a line that is not an entry: the rest of a name with a line end in it, which is not one of the library's files.
    private func finishRest() throws {
        // A name of several lines may begin with a line end.
        let isBeginning = SFTPListing.read(line + Array(line.last == UInt8(ascii: " ") ? "x".utf8 : " x".utf8)) != nil
        guard isBeginning || isLastFound != nil else { throw unreadable("it does not list as OpenSSH does") }
        if isBeginning {
            isLastFound = false
        } else if isLastFound == true, var last = found.popLast() {
            last.name += "\n" + String(decoding: line, as: UTF8.self)
            guard last.name.utf8.count <= SFTPListing.longestLine else { throw unreadable("a name has too many bytes") }
            found.append(last)
        }
    }

    private func unreadable(_ why: String) -> StoreError {
        StoreError(.transport, "\(what) cannot be read: \(why). Check that the address is that of an SFTP server.")
    }

    /// Returns nil if it is not such a line.
    static func read(_ line: [UInt8]) -> Line? {
        let space = UInt8(ascii: " ")
        guard let kind = line.first, "-dlbcps".utf8.contains(kind) else { return nil }
        // The words, and where each ends. Names of users and groups may contain spaces, so the size is found by the date after it.
        var words: [(text: String, end: Int)] = [], at = 0
        while at < line.count, words.count < 24 {
            while at < line.count, line[at] == space { at += 1 }
            let start = at
            while at < line.count, line[at] != space { at += 1 }
            if start < at { words.append((String(decoding: line[start..<at], as: UTF8.self), at)) }
            guard words.count >= 8 else { continue }
            let last = words.suffix(4).map(\.text)
            guard let size = Int(last[0]), last[0].utf8.allSatisfy({ 0x30...0x39 ~= $0 }), isDate(Array(last[1...])) else { continue }
            // After one space, the rest is the name.
            guard at + 1 < line.count else { return nil }
            return Line(
                name: String(decoding: line[(at + 1)...], as: UTF8.self), isDirectory: kind != UInt8(ascii: "-"), size: size,
                date: Array(last[1...]))
        }
        return nil
    }

    private static func isDate(_ words: [String]) -> Bool {
        guard HTTPDate.months.contains(words[0]), let day = Int(words[1]), (1...31).contains(day) else { return false }
        return words[2].utf8.contains(UInt8(ascii: ":")) || Int(words[2]) != nil
    }

    /// Returns the age of a date in seconds, given `now` in seconds since 1970. It may be half a day off, since the time zone is not
    /// known.
    static func age(_ date: [String], now: Int64) -> Int64? {
        guard date.count == 3, let month = HTTPDate.months.firstIndex(of: date[0]), let day = Int64(date[1]) else { return nil }
        let clock = date[2].split(separator: ":").compactMap { Int64($0) }
        if clock.count == 1, (1970...9999).contains(clock[0]) {
            return max(0, now - HTTPDate.days(clock[0], Int64(month) + 1, day) * 86_400)
        }
        guard clock.count == 2, (0...23).contains(clock[0]), (0...59).contains(clock[1]) else { return nil }
        // A date without a year is within the last half year, or tomorrow in another time zone.
        let year = 1970 + now / 31_556_952
        let candidates = [year + 1, year, year - 1].map {
            HTTPDate.days($0, Int64(month) + 1, day) * 86_400 + clock[0] * 3_600 + clock[1] * 60
        }
        return candidates.first { $0 <= now + 86_400 }.map { max(0, now - $0) }
    }
}
