import CNetwork

/// libcurl's functions; there for good.
typealias Curl = UnsafePointer<llvs_curl>
/// libexpat's.
typealias Expat = UnsafePointer<llvs_expat>

/// The system's libcurl and libexpat, opened when the first exchange over a network is used: hosts without one need neither.
enum NetworkLibraries {
    #if canImport(Darwin)
    static let curlName = "/usr/lib/libcurl.4.dylib", expatName = "/usr/lib/libexpat.1.dylib"
    #else
    static let curlName = "libcurl.so.4", expatName = "libexpat.so.1"
    #endif

    /// The first whose functions are all there, and work: curl_multi_poll without a wait where nothing is to be waited for, 2020.
    private static let oldest: UInt32 = 0x07_44_00

    /// - Parameter place: what is to be reached, for the message.
    /// - Throws: `.unsupported` when there is none, or it is too old; `.tooManyFiles`.
    static func curl(for place: String) throws -> Curl {
        let curl = try open(place, "libcurl", "Debian's package libcurl4, Fedora's libcurl, Alpine's libcurl") {
            llvs_curl_open(curlName, $0, $1)
        }
        guard let about = curl.pointee.version_info(CURLVERSION_FIRST), about.pointee.version_num >= oldest else {
            throw unusable(place, "the libcurl in \(curlName) is older than 7.68", "Install a newer one.")
        }
        return curl
    }

    /// - Throws: as `curl`.
    static func expat(for place: String) throws -> Expat {
        try open(place, "libexpat", "Debian's package libexpat1, Fedora's expat, Alpine's expat") { llvs_expat_open(expatName, $0, $1) }
    }

    private static func open<T>(
        _ place: String, _ library: String, _ packages: String, _ open: (UnsafeMutablePointer<CChar>, Int) -> UnsafePointer<T>?
    ) throws -> UnsafePointer<T> {
        let found: Result<UnsafePointer<T>, StoreError> = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { problem in
            guard let room = problem.baseAddress else { return .failure(unusable(place, "there is no memory", "Free some.")) }
            guard let functions = open(room, problem.count) else {
                return .failure(missing(place, library, packages, String(cString: room)))
            }
            return .success(functions)
        }
        return try found.get()
    }

    private static func missing(_ place: String, _ library: String, _ packages: String, _ problem: String) -> StoreError {
        // The dynamic linker has words for that, but no number.
        do throws(Errno) { System.close(try System.open("/", O_RDONLY)) } catch {
            if error.code == EMFILE || error.code == ENFILE { return StoreError.posix(error, doing: "Opening \(library) for", path: place) }
        }
        return unusable(place, "\(library) cannot be opened: \(problem)", "Install it (\(packages)).")
    }

    private static func unusable(_ place: String, _ why: String, _ advice: String) -> StoreError {
        StoreError(.unsupported, "Reaching \(place) failed: \(why). \(advice) Folders need neither libcurl nor libexpat.")
    }
}
