// swift-tools-version: 6.1
import CompilerPluginSupport
import PackageDescription

// Typed models for Swift programs. A package of its own, since its macro needs swift-syntax, which the library does not.
let package = Package(
    name: "llvs-model",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [.library(name: "LLVSModel", targets: ["LLVSModel"])],
    dependencies: [
        .package(name: "llvs", path: "../.."),
        .package(url: "https://github.com/swiftlang/swift-syntax", "602.0.0"..<"604.0.0"),
    ],
    targets: [
        // The implementation of `@Model` and `@Merge`. Runs in the compiler.
        .macro(
            name: "LLVSModelMacros",
            dependencies: [
                .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
                .product(name: "SwiftCompilerPlugin", package: "swift-syntax"),
            ]),
        .target(name: "LLVSModel", dependencies: [.product(name: "LLVS", package: "llvs"), "LLVSModelMacros"]),
        .executableTarget(name: "Contacts", dependencies: ["LLVSModel"], path: "Examples/Contacts", exclude: ["expected.txt"]),
        // Does not depend on the macro itself: SwiftPM would build the engine a second time, as a part of the compiler's plugin.
        .testTarget(name: "LLVSModelTests", dependencies: ["LLVSModel"]),
    ],
    swiftLanguageModes: [.v6]
)
