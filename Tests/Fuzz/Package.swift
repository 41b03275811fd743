// swift-tools-version: 6.1
import PackageDescription

// Fuzz targets: see README.md. They are a package of their own, since `fuzz` links only with libFuzzer (scripts/fuzz).
let package = Package(
    name: "fuzz",
    dependencies: [.package(name: "llvs", path: "../..")],
    targets: [
        // The functions that are called with arbitrary bytes.
        .target(
            name: "FuzzTargets",
            dependencies: [.product(name: "LLVS", package: "llvs"), .product(name: "LLVSABI", package: "llvs")]),
        // libFuzzer's entry points.
        .executableTarget(name: "fuzz", dependencies: ["FuzzTargets"]),
        // The same functions in a usual build. It runs files, and writes the seeds.
        .executableTarget(name: "fuzz-files", dependencies: ["FuzzTargets"]),
    ],
    // Each target uses one thread.
    swiftLanguageModes: [.v5]
)
