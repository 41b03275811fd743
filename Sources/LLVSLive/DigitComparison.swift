/// Six digits that two people compare to be sure that no other device is between theirs: docs/live-protocol.md, section 1.
///
/// One side commits to a random number before it has seen the other side's, so no device between them can choose the digits.
struct DigitComparison {
    static let size = 32
    /// The most seconds for the two people.
    static let patience = 600.0

    private let isInitiator: Bool
    private let hash: [UInt8]
    private var nonce = [UInt8](repeating: 0, count: size)
    private var commitment: [UInt8]?
    private(set) var digits: String?
    /// Whether the person on this side confirmed that the digits are equal.
    var isConfirmed = false
    /// Frames that arrived before that.
    var hello: LiveFrame.Hello?
    var pairing: [UInt8]?

    init(isInitiator: Bool, hash: [UInt8]) throws {
        self.isInitiator = isInitiator
        self.hash = hash
        try Pairing.fillRandom(&nonce)
    }

    private static func digest(_ word: String, _ parts: [UInt8]...) -> [UInt8] {
        (Array(word.utf8) + parts.joined()).withUnsafeBytes { SHA256.digest($0) }
    }

    /// The first frame of this side, if it sends one.
    var beginning: LiveFrame? { isInitiator ? nil : .commitment(DigitComparison.digest("llvs commit 1", hash, nonce)) }

    /// Reads a frame and returns the answer.
    /// - Throws: `LiveFault`.
    mutating func take(_ frame: LiveFrame) throws -> LiveFrame? {
        switch frame {
        case .commitment(let theirs) where isInitiator && commitment == nil:
            commitment = theirs
            return .nonce(nonce)
        case .nonce(let theirs) where digits == nil && isInitiator == (commitment != nil):
            if let commitment, !Crypto.equal(commitment, DigitComparison.digest("llvs commit 1", hash, theirs)) {
                throw LiveFault(.frame, "it sends another number than it had committed itself to")
            }
            let (first, second) = isInitiator ? (nonce, theirs) : (theirs, nonce)
            let digest = DigitComparison.digest("llvs digits 1", hash, first, second)
            let text = String(digest.first8 % 1_000_000)
            digits = String(repeating: "0", count: 6 - text.utf8.count) + text
            return isInitiator ? nil : .nonce(nonce)
        default: throw LiveFault(.frame, "a comparison of digits has other frames")
        }
    }
}
