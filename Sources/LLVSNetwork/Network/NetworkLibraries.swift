import CNetwork

/// libcurl's functions, which are never unloaded.
typealias Curl = UnsafePointer<llvs_curl>
/// libexpat's functions, which are never unloaded.
typealias Expat = UnsafePointer<llvs_expat>

/// The system's libcurl and libexpat, loaded when the first exchange over a network is used: hosts without one need neither.
enum NetworkLibraries {
    #if canImport(Darwin)
    private static let curlFile = "/usr/lib/libcurl.4.dylib", expatFile = "/usr/lib/libexpat.1.dylib"
    #else
    private static let curlFile = "libcurl.so.4", expatFile = "libexpat.so.1"
    #endif
    private static let curlLibrary = library("libcurl", curlFile, "Debian's package libcurl4, Fedora's libcurl, Alpine's libcurl")
    private static let expatLibrary = library("libexpat", expatFile, "Debian's package libexpat1, Fedora's expat, Alpine's expat")

    private static func library(_ name: String, _ file: String, _ packages: String) -> SharedLibrary {
        SharedLibrary(
            name: name, file: file, packages: packages, purpose: "Reaching", spared: "Folders need neither libcurl nor libexpat.")
    }

    /// The first version with all functions that are used, and a curl_multi_poll that does not wait if there is nothing to wait for:
    /// 2020.
    private static let oldest: UInt32 = 0x07_44_00

    /// - Parameter place: the place to reach, for the message.
    /// - Throws: `.unsupported` if there is none, or it is too old; `.tooManyFiles`.
    static func curl(for place: String) throws -> Curl {
        let functions = try curlLibrary.functions(for: place) { llvs_curl_open($0, $1, $2) }
        guard let about = functions.pointee.version_info(CURLVERSION_FIRST), about.pointee.version_num >= oldest else {
            throw curlLibrary.unusable(for: place, "the libcurl in \(curlLibrary.file) is older than 7.68", "Install a newer one.")
        }
        return functions
    }

    /// Returns a libcurl that supports SFTP.
    /// - Throws: like `curl`.
    static func curlWithSFTP(for place: String) throws -> Curl {
        let functions = try curl(for: place)
        var name = functions.pointee.version_info(CURLVERSION_FIRST)?.pointee.protocols
        while let protocols = name, let text = protocols.pointee {
            if strcmp(text, "sftp") == 0 { return functions }
            name = protocols + 1
        }
        throw curlLibrary.unusable(
            for: place, "the libcurl in \(curlLibrary.file) was built without SFTP",
            "Install one that has it: Debian's libcurl4, Fedora's libcurl in the place of libcurl-minimal.")
    }

    /// - Throws: like `curl`.
    static func expat(for place: String) throws -> Expat { try expatLibrary.functions(for: place) { llvs_expat_open($0, $1, $2) } }
}
