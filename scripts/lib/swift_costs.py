#!/usr/bin/env python3
"""Measures what a Swift program pays for this package: the processor time of its clean builds, and the size of a static program.

    swift_costs.py <folder> <git repository of this package> [local] [plain] [models] [static-local] [static]

Makes packages in the folder that depend on the repository, builds them and runs the program: in debug without the network and models
(`local`), with the network (`plain`), and with both (`models`); in release with a static standard library without the network
(`static-local`) and with it (`static`; the goal is 16 MB). Without the last arguments it does all of these. Prints the seconds of
processor time and the stripped size. Fails if a build or the program fails, or if a stripped program has more bytes than its bound. Times
are printed only, since they depend on the machine.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import swift_quickstart  # noqa: E402

PACKAGE = """// swift-tools-version: 6.1
import PackageDescription

let package = Package(
    name: "Small", platforms: [.macOS(.v15), .iOS(.v18)],
    dependencies: [.package(url: "ADDRESS", branch: "main", traits: [TRAITS])],
    targets: [.executableTarget(name: "Small", dependencies: [.product(name: "LLVS", package: "llvs")])]
)
"""
PROGRAM = """import LLVSAsync
import LLVS

@main struct Small {
    static func main() async throws {
        let notes = try await StoreCoordinator.open(path: "FOLDER/notes.llvs")
        try await notes.connect(to: "file://FOLDER/shared")
        try await notes.save([.insert("note/1", text: "milk")])
        try await notes.sync()
        print(try await notes.value("note/1")?.text ?? "")
        try await notes.close()
    }
}
"""
#: The names of the parts that build this program: the traits, whether in release, and the most bytes.
PARTS = {
    "local": ("", False, 0),
    "plain": ('"Network"', False, 0),
    "static-local": ("", True, 19_900_000),
    "static": ('"Network"', True, 19_900_000),
}
#: For the linker: the program exports nothing, and equal functions are there once. The guide recommends it.
RELEASE = ["-c", "release", "--static-swift-stdlib", "-Xlinker", "--no-export-dynamic", "-Xlinker", "--icf=safe"]


def build(folder: Path, *options: str) -> float:
    """Builds a package, and returns the seconds of processor time that this took."""
    # The build waits for all processes that it starts, so their time is in that of the children. Fetching is not a part of it.
    subprocess.run(["swift", "package", "resolve"], cwd=folder, check=True, stdout=sys.stderr)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["swift", "build", *options], cwd=folder, check=True, stdout=sys.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def make(folder: Path, address: str, part: str) -> bool:
    """Builds and runs the program in one of the ways, and prints what it costs. Returns whether it works and is small enough."""
    traits, is_release, most = PARTS[part]
    small, work = folder / part, folder / part / "work"
    work.mkdir(parents=True)
    files = {
        "Package.swift": PACKAGE.replace("ADDRESS", address).replace("TRAITS", traits),
        "Sources/Small/Small.swift": PROGRAM.replace("FOLDER", str(work)),
    }
    for path, text in files.items():
        (small / path).parent.mkdir(parents=True, exist_ok=True)
        (small / path).write_text(text)
    seconds = build(small, *(RELEASE if is_release else []))
    program = small / ".build" / ("release" if is_release else "debug") / "Small"
    works = subprocess.run([program], capture_output=True, text=True, check=True).stdout == "milk\n"
    size, stripped = 0, folder / f"{part}.stripped"
    if is_release:
        subprocess.run(["strip", "-o", stripped, program], check=True)
        size = stripped.stat().st_size
    print(f"{part}: {seconds:.0f} s of processor time" + (f", {size / 1e6:.2f} MB stripped" if size else ""), flush=True)
    return works and size <= most


def main(folder: Path, address: str, parts: set[str]) -> int:
    failed = any([not make(folder, address, part) for part in PARTS if part in parts])
    if "models" in parts:
        if swift_quickstart.main(folder / "contacts", address):
            return 1
        print(f"models: {build(folder / 'contacts'):.0f} s of processor time", flush=True)
    return int(failed)


if __name__ == "__main__":
    known = {*PARTS, "models"}
    if len(sys.argv) < 3 or not set(sys.argv[3:]) <= known:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2], set(sys.argv[3:]) or known))
