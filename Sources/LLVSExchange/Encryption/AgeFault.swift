/// Why an encrypted file cannot be opened.
struct AgeFault: Error {
    enum Kind {
        /// The file does not begin as a file of age.
        case foreign
        /// The file was encrypted for other keys, or with another passphrase.
        case wrongKey
        /// The file was changed, or breaks a rule of the format.
        case damaged
        /// It is cut short.
        case cutShort
        /// It exceeds a limit.
        case tooLarge
        /// A newer version of the format.
        case newer
    }
    let kind: Kind
    /// Becomes part of a sentence: "its header was changed".
    let why: String

    static func damaged(_ why: String) -> AgeFault { AgeFault(kind: .damaged, why: why) }
    static func tooLarge(_ why: String) -> AgeFault { AgeFault(kind: .tooLarge, why: why) }
    static let cutShort = AgeFault(kind: .cutShort, why: "it ends too early")
    static let foreign = AgeFault(kind: .foreign, why: "it is not a file of age")
    static let wrongKey = AgeFault(kind: .wrongKey, why: "it is encrypted for other keys than those given")
    static let wrongPassphrase = AgeFault(kind: .wrongKey, why: "the passphrase is another one")

    /// Returns the error to throw.
    /// - Parameter what: what is being opened: "The pack".
    func error(_ what: String) -> StoreError {
        let (code, advice): (StoreError.Code, String) =
            switch kind {
            case .foreign: (.foreignFile, "Pass the encrypted bytes, in the binary form.")
            case .wrongKey: (.wrongKey, "Nothing was changed. Give the passphrase or identity that it was made for.")
            case .damaged: (.damaged, "Nothing more of it was read. Fetch it again, or have it made again.")
            case .cutShort: (.cutShort, "Read it again when it is complete.")
            case .tooLarge: (.tooLarge, "This library writes no such file. Have it made again within the limits.")
            case .newer: (.newerFormat, "Update this library.")
            }
        return StoreError(code, "\(what) was not opened: \(why). \(advice)")
    }
}
