import CLLVSShims

/// A service that has remote files, by the scheme of its URLs. The modules of services make one for each scheme.
package struct RemoteService: Sendable {
    /// The options that a service accepts besides those of all servers.
    package struct Accepts: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        /// `token_file`, or a callback for tokens.
        package static let tokens = Accepts(rawValue: 1)
        /// `key_file` and `known_hosts`.
        package static let keyFiles = Accepts(rawValue: 2)
    }
    /// Opens the files of a place, without contacting the server.
    package typealias Opening = @Sendable (Exchange.URLOptions) throws -> any RemoteFiles

    /// In lower case, without the colon.
    package let scheme: String
    /// Whether messages list the scheme. A form of another scheme, for servers on this machine, is not listed.
    package let isListed: Bool
    package let accepts: Accepts
    /// Reads the part of a URL after the scheme and its colon.
    package let place: @Sendable (_ rest: String) throws(URLRefusal) -> Opening

    package init(
        scheme: String, isListed: Bool = true, accepts: Accepts = [], place: @escaping @Sendable (String) throws(URLRefusal) -> Opening
    ) {
        self.scheme = scheme; self.isListed = isListed; self.accepts = accepts; self.place = place
    }

    /// The services whose modules are linked, in the order of messages. It is empty in a library that was built without the network.
    static let linked: [RemoteService] = {
        let list = RemoteServiceList()
        llvs_shim_list_services(Unmanaged.passUnretained(list).toOpaque())
        return list.services
    }()
}

/// Receives the linked services. The linker decides which module fills it (`llvs_shim_list_services`).
package final class RemoteServiceList {
    package var services: [RemoteService] = []
}

/// The reason why a text is not the URL of a place, or not an address.
package struct URLRefusal: Error {
    package let why: String
    package init(why: String) { self.why = why }
    /// The reason for addresses whose only option is the layout.
    package static let onlyLayout = "after its question mark only layout= is allowed (packed, interchange or bridged)"
    package static let fragment = "a # in it has to be written as %23"
}
