#!/usr/bin/env python3
"""Measures what a Swift program pays for this package: the processor time of its clean builds, and the size of a static program.

    swift_costs.py <folder> <git repository of this package> [plain] [models] [static]

Makes packages in the folder that depend on the repository and builds them: in debug without models (`plain`) and with them (`models`), and
in release with a static standard library (`static`). Without the last arguments it does all of these. Prints the seconds of processor time
and the stripped size. Fails if a build fails, or if the stripped program has more than 20.6 MB (the goal is 16). Times are printed only,
since they depend on the machine.
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
    dependencies: [.package(url: "ADDRESS", branch: "main", traits: [])],
    targets: [.executableTarget(name: "Small", dependencies: [.product(name: "LLVS", package: "llvs")])]
)
"""
PROGRAM = """import LLVSAsync
import LLVS

@main struct Small {
    static func main() async throws {
        let notes = try await StoreCoordinator.open(path: "notes.llvs")
        try await notes.connect(to: "file:///tmp/small-notes")
        try await notes.save([.insert("note/1", text: "milk")])
        try await notes.sync()
        print(try await notes.value("note/1")?.text ?? "")
        try await notes.close()
    }
}
"""
MOST_BYTES = 20_600_000


def build(folder: Path, *options: str) -> float:
    """Builds a package, and returns the seconds of processor time that this took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["swift", "build", *options], cwd=folder, check=True, stdout=sys.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(folder: Path, address: str, parts: set[str]) -> int:
    small, failed = folder / "small", 0
    for path, text in {"Package.swift": PACKAGE.replace("ADDRESS", address), "Sources/Small/Small.swift": PROGRAM}.items():
        (small / path).parent.mkdir(parents=True, exist_ok=True)
        (small / path).write_text(text)
    # The build waits for all processes that it starts, so their time is in that of the children. Fetching is not a part of it.
    if "plain" in parts:
        subprocess.run(["swift", "package", "resolve"], cwd=small, check=True, stdout=sys.stderr)
        print(f"debug, without models: {build(small):.0f} s of processor time", flush=True)
    if "models" in parts:
        if swift_quickstart.main(folder / "contacts", address):
            return 1
        subprocess.run(["swift", "package", "resolve"], cwd=folder / "contacts", check=True, stdout=sys.stderr)
        print(f"debug, with models: {build(folder / 'contacts'):.0f} s of processor time", flush=True)
    if "static" in parts:
        seconds = build(small, "-c", "release", "--static-swift-stdlib")
        subprocess.run(["strip", "-o", folder / "stripped", small / ".build/release/Small"], check=True)
        size = (folder / "stripped").stat().st_size
        print(f"release, static: {seconds:.0f} s of processor time, {size / 1e6:.1f} MB stripped", flush=True)
        failed |= size > MOST_BYTES
    return failed


if __name__ == "__main__":
    known = {"plain", "models", "static"}
    if len(sys.argv) < 3 or not set(sys.argv[3:]) <= known:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2], set(sys.argv[3:]) or known))
