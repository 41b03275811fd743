import FuzzTargets
import Glibc

// fuzz-files seeds <folder>                 writes the seeds of each target to <folder>/<target>/
// fuzz-files run <target> <file>...         calls the target with each file; ends the process if the target fails
// fuzz-files targets                        prints their names

func fail(_ message: String) -> Never {
    fputs(message + "\n", stderr)
    exit(2)
}

func read(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "rb") else { fail("\(path) cannot be read") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        let count = fread(&piece, 1, piece.count, file)
        if count == 0 { return bytes }
        bytes += piece[..<count]
    }
}

func write(_ path: String, _ bytes: [UInt8]) {
    guard let file = fopen(path, "wb"), fwrite(bytes, 1, bytes.count, file) == bytes.count, fclose(file) == 0 else {
        fail("\(path) cannot be written")
    }
}

let arguments = Array(CommandLine.arguments.dropFirst())
switch arguments.first {
case "targets":
    for target in FuzzTarget.all { print(target.name) }
case "seeds" where arguments.count == 2:
    for target in FuzzTarget.all {
        let folder = arguments[1] + "/" + target.name
        mkdir(folder, 0o755)
        do { for seed in try target.seeds() { write(folder + "/" + seed.name, seed.bytes) } } catch {
            fail("The seeds of \(target.name): \(error)")
        }
    }
case "run" where arguments.count >= 2:
    guard let target = FuzzTarget.named(arguments[1]) else { fail("There is no target \(arguments[1])") }
    // Each line is written at once, since the process may end with the next file.
    setlinebuf(stdout)
    for path in arguments.dropFirst(2) {
        read(path).withUnsafeBytes { target.run($0) }
        print("ok \(path)")
    }
default:
    fail("fuzz-files targets | seeds <folder> | run <target> <file>...")
}
