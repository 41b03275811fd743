import Testing

@testable import LLVSDocuments

/// Texts designed to make comparisons slow. Their cost is counted in steps, which are the same on all machines.
@Suite("Texts made to defeat the comparison") struct HostileTextTests {
    private static let size = 1 << 14

    /// A deterministic source of numbers.
    private struct Draw {
        var state: UInt64
        mutating func below(_ limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
    }

    /// Returns how often a merge polls. It polls about once in a million steps, and at least once.
    private func looks(_ o: String, _ x: String, _ y: String, _ rules: String) throws -> Int {
        var looks = 0
        _ = try Documents.merged(o, x, y, schema: rules) { looks += 1 }
        return looks
    }

    private static func words(_ count: Int, _ draw: inout Draw, _ word: (Int, inout Draw) -> String) -> String {
        (0..<count).map { word($0, &draw) }.joined(separator: " ")
    }

    /// Texts named for what is difficult about them: base, newer and older.
    private static func texts() -> [(String, [String])] {
        var draw = Draw(state: 1)
        let n = size / 8, line = "the same line\n", lines = size / line.utf8.count
        let numbered = (0..<n).map { "\(1_000_000 + $0)\n" }
        func all(_ make: (inout Draw) -> String) -> [String] { (0..<3).map { _ in make(&draw) } }
        return [
            (
                "all lines equal",
                [
                    String(repeating: line, count: lines), String(repeating: line, count: lines - 7) + "end\n",
                    "start\n" + String(repeating: line, count: lines + 5),
                ]
            ),
            (
                "alternating",
                [
                    String(repeating: "a\nb\n", count: n), String(repeating: "b\na\n", count: n),
                    String(repeating: "a\na\nb\nb\n", count: n / 2),
                ]
            ),
            ("reversed", [numbered.joined(), numbered.reversed().joined(), (numbered[(n / 2)...] + numbered[..<(n / 2)]).joined()]),
            (
                "one line of unique words",
                (0..<3).map { k in
                    words(n, &draw) { i, _ in "\(1_000_000 + 10 * i + (i % 97 == 7 * k ? k : 0))" }
                }
            ),
            (
                "long unique words",
                (0..<3).map { k in
                    words(n / 2, &draw) { i, _ in "\(1_000_000_000_000 + 10 * i + (i % 97 == k ? k : 0))" }
                }
            ),
            ("other words on each side", (0..<3).map { k in words(n, &draw) { i, _ in "\(k)\(1_000_000 + i)" } }),
            (
                "shuffled",
                all { draw in
                    var words = numbered
                    for i in words.indices.dropFirst() { words.swapAt(i, draw.below(i + 1)) }
                    return words.joined()
                }
            ),
            ("two words at random", all { draw in words(size / 2, &draw) { _, draw in draw.below(2) == 0 ? "a" : "b" } }),
            (
                "few that differ among many equal ones",
                all { draw in
                    var text = [UInt8](repeating: UInt8(ascii: "."), count: size)
                    for _ in 0..<300 { text[draw.below(size)] = UInt8(ascii: ",") }
                    return String(decoding: text, as: UTF8.self)
                }
            ),
        ]
    }

    /// An algorithm of quadratic time would take a thousand million steps for these texts. Benchmarks/bench_merging.py measures texts of 16
    /// MiB.
    @Test("their steps are counted, and are few") func stepsAreCounted() throws {
        for (name, texts) in Self.texts() {
            #expect(try looks(texts[0], texts[1], texts[2], "\"text\"") <= 4, "\(name)")
            #expect(try looks(texts[0], texts[1], texts[2], "{\"as\":\"text\",\"unit\":\"line\"}") <= 4, "\(name), by lines")
        }
    }

    @Test("words of all lengths have hashes of their own") func wordsHaveHashesOfTheirOwn() {
        for length in 1...40 {
            let digits = min(length, 3), count = [10, 100, 1_000][digits - 1]
            for atTheEnd in [false, true] {
                let hashes = (0..<count).map { number in
                    let text = String(String(count + number).dropFirst()), filling = String(repeating: "a", count: length - digits)
                    let word: String = atTheEnd ? filling + text : text + filling
                    return Array(word.utf8).withUnsafeBytes { (bytes: UnsafeRawBufferPointer) -> UInt64 in
                        bytes.baseAddress.map { ValueDigest.of(word: $0, bytes.count, ValueDigest.seed) >> 32 } ?? 0
                    }
                }
                #expect(Set(hashes).count > count - 3, "\(length)")
            }
        }
    }
}
