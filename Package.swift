// swift-tools-version: 6.1
import CompilerPluginSupport
import PackageDescription

// `swift build` and `swift test` work as they are. The shared library that people install is built by
// CMake (or scripts/build), which passes the flags that link the Swift runtime statically and export
// `llvs_*` alone; see CMakeLists.txt for why they are not here.
// CMake sets this: modules that wait for disks and servers, and those that only call others, are then compiled for size. Nobody may depend
// on a package with such flags, so other builds do without them.
let forSize: [SwiftSetting] = Context.environment["LLVS_DISTRIBUTION"] == nil ? [] : [.unsafeFlags(["-Osize"])]
// CMake sets "size" for the library without the network: all modules but the first are then compiled for size.
let forSmallSize = Context.environment["LLVS_DISTRIBUTION"] == "size" ? forSize : []

// The modules of the engine. A target that imports LLVS names each: SwiftPM compiles it again only when one of these changes.
let withoutNetwork: [Target.Dependency] = ["LLVSCoordinator", "LLVSUpkeep", "LLVSExchange", "LLVSMerge", "LLVSDocuments", "LLVSCore"]
let network = ["LLVSServices", "LLVSLive", "LLVSCloud", "LLVSNetwork"]
let engine: [Target.Dependency] = withoutNetwork + network.map { .target(name: $0) } + ["LLVS"]
// What a program in Swift uses. A package that depends on this one without the trait Network compiles none of the network's modules: no
// source outside them and `#if Network` may name them. CMake's build has no traits, and all modules.
let hasTraits = Context.environment["LLVS_DISTRIBUTION"] == nil
let exported: [Target.Dependency] =
    withoutNetwork + network.map { .target(name: $0, condition: hasTraits ? .when(traits: ["Network"]) : nil) }
let modules = exported + ["LLVS"]
let withNetwork: [SwiftSetting] = hasTraits ? [] : [.define("Network")]
// What the tests of each module use.
let helpers: [Target.Dependency] = ["LLVSTestHelpers", "LLVSTestSupport", "LLVSTesting"]
let tested = helpers + ["LLVSCore"]

let package = Package(
    name: "llvs",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "llvs", type: .dynamic, targets: ["LLVSABI", "LLVSABILinks", "LLVSServices"]),
        .library(name: "LLVS", targets: ["LLVS", "LLVSAsync"]),
        // For Tests/Fuzz, which is not a part of this package.
        .library(name: "LLVSABI", targets: ["LLVSABI", "LLVSABILinks"]),
    ],
    targets: [
        // include/llvs.h as a Clang module: the contract, redeclared nowhere.
        .target(name: "CLLVS"),
        // C that Swift calls: checksums, digests, deflate, system calls that Swift cannot import.
        .target(name: "CLLVSShims", linkerSettings: [.linkedLibrary("z")]),
        // SQLite's functions by pointers: opened at first use, not linked. Needs sqlite3.h (Debian's libsqlite3-dev).
        .target(name: "CSQLite", dependencies: ["CLLVSShims"]),
        // libcurl's and libexpat's functions, likewise. Needs curl.h and expat.h (libcurl4-openssl-dev, libexpat1-dev).
        .target(name: "CNetwork", dependencies: ["CLLVSShims"]),
        // What encryption needs of libcrypto, likewise. Needs no headers.
        .target(name: "CCrypto", dependencies: ["CLLVSShims"]),
        // The engine, from the lowest module to the highest; ARCHITECTURE.md says what is in each. It knows nothing of C.
        // What runs for every value is in the first alone: `package` declarations are not inlined in other modules.
        .target(name: "LLVSCore", dependencies: ["CLLVSShims", "CSQLite", "CCrypto"]),
        .target(name: "LLVSDocuments", dependencies: ["LLVSCore"], swiftSettings: forSmallSize),
        .target(name: "LLVSMerge", dependencies: ["LLVSDocuments", "LLVSCore", "CLLVSShims"], swiftSettings: forSmallSize),
        .target(name: "LLVSExchange", dependencies: ["LLVSCore", "CLLVSShims", "CCrypto"], swiftSettings: forSmallSize),
        .target(name: "LLVSNetwork", dependencies: ["LLVSExchange", "LLVSCore", "CNetwork"], swiftSettings: forSize),
        .target(name: "LLVSCloud", dependencies: ["LLVSNetwork", "LLVSDocuments", "LLVSExchange", "LLVSCore"], swiftSettings: forSize),
        // Lists the services of the modules above it here, for URLs. A program without it has none.
        .target(
            name: "LLVSServices", dependencies: ["LLVSCloud", "LLVSNetwork", "LLVSExchange", "LLVSCore", "CLLVSShims"],
            swiftSettings: forSize),
        .target(name: "LLVSLive", dependencies: ["LLVSExchange", "LLVSCore", "CLLVSShims"], swiftSettings: forSize),
        .target(name: "LLVSUpkeep", dependencies: ["LLVSExchange", "LLVSCore", "CLLVSShims"], swiftSettings: forSize),
        .target(
            name: "LLVSCoordinator",
            dependencies: ["LLVSMerge", "LLVSUpkeep", "LLVSExchange", "LLVSDocuments", "LLVSCore", "CLLVSShims"], swiftSettings: forSize),
        // What a Swift program imports: all of them.
        .target(name: "LLVS", dependencies: exported, swiftSettings: withNetwork),
        // For Swift programs: async functions and sequences. Apart, so that libllvs.so does not carry Swift's concurrency runtime.
        .target(name: "LLVSAsync", dependencies: modules, swiftSettings: withNetwork),
        // What include/llvs_testing.h exports: faults to inject, and the suites that prove a storage or transport.
        .target(name: "LLVSTesting", dependencies: ["LLVSCore"], swiftSettings: forSize),
        .target(
            name: "LLVSExchangeTesting", dependencies: ["LLVSTesting", "LLVSUpkeep", "LLVSExchange", "LLVSCore"], swiftSettings: forSize),
        // The engine behind include/llvs.h and include/llvs_testing.h: unpack, call, translate.
        // The functions of links are apart: another module has the same names in a library without the network, and refuses each call.
        .target(
            name: "LLVSABI", dependencies: withoutNetwork + ["LLVSTesting", "LLVSExchangeTesting", "CLLVS", "CLLVSShims"],
            swiftSettings: forSize),
        // It depends on all modules, so that a build of the whole library has what programs in Swift import.
        .target(name: "LLVSABILinks", dependencies: engine + ["LLVSABI", "CLLVS", "CLLVSShims"], swiftSettings: forSize),
        .target(name: "LLVSABIWithoutNetwork", dependencies: ["LLVSABI", "LLVSCore", "CLLVS", "CLLVSShims"], swiftSettings: forSize),
        // Storages that tests and the simulator interfere with.
        .target(name: "LLVSTestSupport", dependencies: ["LLVSTesting", "LLVSCore"]),
        // Random histories of many stores that exchange and merge: scripts/simulate.
        .executableTarget(name: "simulate", dependencies: engine + ["LLVSTestSupport", "LLVSTesting"], path: "Tests/Simulator"),
        // Tests of a module use that module and those below it. Tests that need modules above the one they test are in LLVSTests.
        // The first two have no tests: they are what tests of several modules share.
        .testTarget(name: "LLVSTestHelpers", dependencies: ["LLVSTestSupport", "LLVSTesting", "LLVSCore"]),
        .testTarget(name: "LLVSExchangeTestHelpers", dependencies: tested + ["LLVSExchange"]),
        .testTarget(name: "LLVSCoreTests", dependencies: tested + ["CLLVSShims", "CSQLite"]),
        .testTarget(name: "LLVSDocumentsTests", dependencies: tested + ["LLVSDocuments"]),
        .testTarget(name: "LLVSMergeTests", dependencies: tested + ["LLVSMerge", "LLVSDocuments"]),
        .testTarget(
            name: "LLVSExchangeTests", dependencies: tested + ["LLVSExchangeTestHelpers", "LLVSExchange", "CLLVSShims"]),
        .testTarget(name: "LLVSNetworkTests", dependencies: tested + ["LLVSNetwork", "LLVSExchange"]),
        .testTarget(name: "LLVSCloudTests", dependencies: tested + ["LLVSCloud", "LLVSNetwork", "LLVSExchange"]),
        .testTarget(
            name: "LLVSServicesTests", dependencies: tested + ["LLVSServices", "LLVSCloud", "LLVSNetwork", "LLVSExchange"]),
        .testTarget(name: "LLVSLiveTests", dependencies: tested + ["LLVSLive", "LLVSExchange"]),
        .testTarget(name: "LLVSUpkeepTests", dependencies: tested + ["LLVSUpkeep", "LLVSExchange", "CLLVSShims"]),
        .testTarget(
            name: "LLVSCoordinatorTests",
            dependencies: tested + [
                "LLVSExchangeTestHelpers", "LLVSCoordinator", "LLVSUpkeep", "LLVSExchange", "LLVSMerge", "LLVSDocuments",
            ]),
        .testTarget(
            name: "LLVSTests",
            dependencies: engine + helpers + ["LLVSExchangeTesting", "LLVSExchangeTestHelpers", "CLLVSShims", "CSQLite"]),
        .testTarget(name: "LLVSAsyncTests", dependencies: engine + ["LLVSAsync", "LLVSTestSupport", "LLVSTesting", "Notes"]),
        // Shown in Sources/LLVS/LLVS.docc; scripts/suites/12-swift-product runs it.
        .executableTarget(name: "Notes", dependencies: engine + ["LLVSAsync"], path: "examples/swift/Notes", exclude: ["expected.txt"]),
    ],
    swiftLanguageModes: [.v6]
)

// The library without network, clouds and links: CMake's option LLVS_NETWORK. It has modules of the whole library, and one of its own in
// the place of those that are left out. So one folder of build products serves both.
if Context.environment["LLVS_DISTRIBUTION"] != nil || Context.environment["LLVS_WHOLE_TREE"] != nil {
    package.products.append(.library(name: "llvs-local", type: .dynamic, targets: ["LLVSABI", "LLVSABIWithoutNetwork"]))
}

// Typed models for Swift programs, and the bridge to swift-log. Each is behind a trait, without which its dependency is not fetched. The
// shared library has neither, so its build fetches nothing.
if hasTraits {
    package.traits = [
        .trait(name: "Network", description: "Servers, cloud drives and direct connections."),
        .trait(name: "Models", description: "LLVSModel: typed models. Needs swift-syntax for its macro."),
        .trait(name: "SwiftLog", description: "LLVSLog: the library's messages through swift-log."),
        .default(enabledTraits: ["Models", "Network"]),
    ]
    package.products += [
        .library(name: "LLVSModel", targets: ["LLVSModel"]),
        .library(name: "LLVSLog", targets: ["LLVSLog"]),
    ]
    package.dependencies += [
        .package(url: "https://github.com/swiftlang/swift-syntax", "602.0.0"..<"604.0.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    ]
    package.targets += [
        // The implementation of `@Model` and `@Merge`. Runs in the compiler.
        .macro(
            name: "LLVSModelMacros",
            dependencies: [
                .product(name: "SwiftSyntaxMacros", package: "swift-syntax", condition: .when(traits: ["Models"])),
                .product(name: "SwiftCompilerPlugin", package: "swift-syntax", condition: .when(traits: ["Models"])),
            ],
            path: "bindings/swift/Sources/LLVSModelMacros"),
        .target(
            name: "LLVSModel", dependencies: modules + ["LLVSAsync", "LLVSModelMacros"], path: "bindings/swift/Sources/LLVSModel"),
        .target(
            name: "LLVSLog",
            dependencies: modules + [.product(name: "Logging", package: "swift-log", condition: .when(traits: ["SwiftLog"]))],
            path: "bindings/swift/Sources/LLVSLog"),
        .executableTarget(
            name: "Contacts", dependencies: engine + ["LLVSModel"], path: "bindings/swift/Examples/Contacts", exclude: ["expected.txt"]),
        // Does not depend on the macro itself: SwiftPM would build the engine a second time, as a part of the compiler's plugin.
        .testTarget(
            name: "LLVSModelTests", dependencies: engine + ["LLVSAsync", "LLVSModel"], path: "bindings/swift/Tests/LLVSModelTests"),
    ]
}

// scripts/test sets this: the fuzz targets (Tests/Fuzz) then use the debug build that the engine's tests use, instead of building the
// engine again. Without it they are a package of their own: only `fuzz` is linked with libFuzzer.
if Context.environment["LLVS_WHOLE_TREE"] != nil {
    // Without optimization, digests and checksums take a quarter of the tests' time.
    package.targets.first { $0.name == "CLLVSShims" }?.cSettings = [.unsafeFlags(["-O2"], .when(configuration: .debug))]
    package.targets += [
        .target(
            name: "FuzzTargets", dependencies: engine + ["LLVSABI", "LLVSABILinks"], path: "Tests/Fuzz/Sources/FuzzTargets",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "fuzz-files", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Sources/fuzz-files",
            swiftSettings: [.swiftLanguageMode(.v5)]),
    ]
}
