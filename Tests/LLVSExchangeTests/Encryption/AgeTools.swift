import Foundation
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Debian's `age`, and other things that tests of encryption share.
enum AgeTools {
    static let vectors = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Vectors/age")

    /// Runs a program. Returns its output; nil if it failed.
    static func run(_ arguments: [String], input: [UInt8]? = nil) throws -> [UInt8]? {
        let process = Process(), output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return process.terminationStatus == 0 ? [UInt8](bytes) : nil
    }
    /// Runs a program on a terminal and types a passphrase.
    static func run(passphrase: String, _ arguments: [String]) throws -> Bool {
        try run(["python3", vectors.appendingPathComponent("with_passphrase.py").path, passphrase] + arguments) != nil
    }

    /// Opens a file with `age`; nil if `age` refuses it.
    static func open(_ bytes: [UInt8], _ identity: AgeIdentity, in folder: String) throws -> [UInt8]? {
        let file = folder + "/file.age", key = folder + "/key"
        try Data(bytes).write(to: URL(fileURLWithPath: file))
        try identity.text().withBytes { try Data($0).write(to: URL(fileURLWithPath: key)) }
        return try run(["age", "--decrypt", "-i", key, file])
    }
    static func open(_ bytes: [UInt8], passphrase: String, in folder: String) throws -> [UInt8]? {
        let file = folder + "/file.age", out = folder + "/plain"
        try Data(bytes).write(to: URL(fileURLWithPath: file))
        guard try run(passphrase: passphrase, ["age", "--decrypt", "-o", out, file]) else { return nil }
        return try [UInt8](Data(contentsOf: URL(fileURLWithPath: out)))
    }

    static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        var random = TestRandom(state: seed)
        return [UInt8](unsafeUninitializedCapacity: count + 8) { buffer, filled in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            var at = 0
            while at < count {
                raw.storeBytes(of: random.next(), toByteOffset: at, as: UInt64.self)
                at += 8
            }
            filled = count
        }
    }
    static func plain(_ secret: Secret) -> [UInt8] { secret.withBytes { Array($0) } }
}

struct TestRandom: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ state >> 29
    }
}
