/// The names of coordinators, under which they store their state.
enum CoordinatorName {
    static func isNameByte(_ b: UInt8) -> Bool {
        switch b {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
    static func exchangeName(_ coordinator: String, _ exchange: String) -> String { "exchange-\(coordinator)-\(exchange)" }
}
