import Foundation
import Glibc
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSUpkeep

/// The odd zips of libzip, which are no part of this project. `LLVS_CONFORMANCE` names the folder of public test inputs; by default it is
/// `shared/conformance` beside the checkout.
enum OddZips {
    static let folder: URL = {
        let named = ProcessInfo.processInfo.environment["LLVS_CONFORMANCE"] ?? ""
        return URL(fileURLWithPath: named.isEmpty ? Repository.path + "/../shared/conformance" : named).appendingPathComponent("zip")
    }()
    static let isThere = FileManager.default.fileExists(atPath: folder.path)
}

/// Compares the entries with those that Python's `zipfile` reads. `Tests/Python/test_public_zips.py` reads them as snapshots.
@Suite("Import: the odd zips of libzip", .enabled(if: OddZips.isThere)) struct OddZipsTests {
    /// Prints for each zip that Python can list the names of its entries in hexadecimal, and the bytes in base64 of those that it can read.
    private static let judge = """
        import base64, json, pathlib, sys, zipfile
        found = {}
        for path in pathlib.Path(sys.argv[1]).glob("*.zip"):
            try:
                archive = zipfile.ZipFile(path)
            except (zipfile.BadZipFile, OSError, NotImplementedError):
                continue
            found[path.name] = entries = {}
            for entry in archive.infolist():
                name = entry.orig_filename.encode("utf-8" if entry.flag_bits & 0x800 else "cp437").hex()
                try:
                    entries[name] = base64.b64encode(archive.read(entry)).decode()
                except Exception:
                    entries[name] = None
        print(json.dumps(found))
        """

    @Test func whatIsReadIsWhatOthersRead() throws {
        let process = Process(), output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-c", Self.judge, OddZips.folder.path]
        process.standardOutput = output
        try process.run()
        let said = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        let theirs = try JSONDecoder().decode([String: [String: String?]].self, from: said)
        let files = try FileManager.default.contentsOfDirectory(at: OddZips.folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "zip" }.sorted { $0.path < $1.path }
        #expect(files.count >= 163)
        var archives = 0, entries = 0
        for url in files {
            let name = url.lastPathComponent, size = try Data(contentsOf: url).count
            let archive: ZipArchive
            do {
                archive = try ZipArchive(OpenFile(url.path, O_RDONLY), size: UInt64(size), source: "a test")
            } catch let error as StoreError {
                #expect([.snapshotDamaged, .foreignSnapshot].contains(error.code), "\(name): \(error)")
                continue
            }
            archives += 1
            let listed = theirs[name]
            for entry in archive.entries.keys {
                let hex = entry.map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined()
                do {
                    let data = try #require(try archive.read(entry, atMost: 20 << 20))
                    entries += 1
                    // Python does not list zips with a broken extra field, which the library does not read.
                    guard let listed else { continue }
                    #expect(listed[hex] == .some(.some(Data(data).base64EncodedString())), "\(name)")
                } catch let error as StoreError {
                    #expect([.snapshotDamaged, .foreignSnapshot].contains(error.code), "\(name): \(error)")
                }
            }
            if let listed { #expect(listed.count == archive.entries.count, "\(name)") }
        }
        #expect(archives >= 120 && entries >= 120, "\(archives) and \(entries)")
        // The longer end record exists although the short one has room.
        #expect(try read("zip64.zip") == ["-": Array("a\n".utf8)])
    }

    private func read(_ name: String) throws -> [String: [UInt8]] {
        let url = OddZips.folder.appendingPathComponent(name), size = try Data(contentsOf: url).count
        let archive = try ZipArchive(OpenFile(url.path, O_RDONLY), size: UInt64(size), source: "a test")
        var found: [String: [UInt8]] = [:]
        for entry in archive.entries.keys { found[String(decoding: entry, as: UTF8.self)] = try archive.read(entry, atMost: 1 << 20) }
        return found
    }
}
