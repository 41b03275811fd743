// swift-tools-version: 6.1
import PackageDescription

// Fuzz targets: see README.md. A package of its own, since `fuzz` links only with libFuzzer (scripts/fuzz).
let package = Package(
    name: "fuzz",
    dependencies: [.package(name: "llvs", path: "../..")],
    targets: [
        // What is called with bytes, and must hold for any.
        .target(
            name: "FuzzTargets",
            dependencies: [.product(name: "LLVS", package: "llvs"), .product(name: "LLVSABI", package: "llvs")]),
        // libFuzzer's entry points.
        .executableTarget(name: "fuzz", dependencies: ["FuzzTargets"]),
        // The same functions in a usual build: runs files, and makes the seeds.
        .executableTarget(name: "fuzz-files", dependencies: ["FuzzTargets"]),
    ],
    // One thread.
    swiftLanguageModes: [.v5]
)
