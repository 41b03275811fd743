"""What a value takes, in time and on disk, with the system's libdeflate and without it, in one run.

    python Benchmarks/bench_space.py [--quick] [--runs 5] <folder>

Each size is saved and read in a store of its own, by a process that uses libdeflate and by one that does not (LLVS_DEFLATE=zlib): a text
that deflates to about a third, with one word changed before each save. Reads are of the value at the head, which is inflated each time.
Shown are the least times of a save and of a read in microseconds, and the bytes of the segments for each save.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

SIZES = (1_000, 4_000, 20_000, 100_000, 1_000_000)
WAYS = ("libdeflate", "zlib")
BEGINNINGS, MIDDLES, ENDS = ("ver", "con", "re", "de"), ("sion", "tain", "cord", "lay", "pend"), ("", "s", "ing", "ed", "er")
WORDS = [a + b + c for a in BEGINNINGS for b in MIDDLES for c in ENDS]


def text(draw: random.Random, size: int) -> list[str]:
    words: list[str] = []
    while size > 0:
        words.append(draw.choice(WORDS) if draw.random() < 0.9 else str(draw.randrange(100_000)))
        size -= len(words[-1]) + 1
    return words


def segment_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "segments").iterdir())


def least(count: int, body) -> float:
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        body()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e6


def measure(folder: Path, quick: bool, runs: int) -> dict[int, tuple[float, float, float]]:
    """For each size: microseconds of a save and of a read, and bytes for each save."""
    import llvs

    found = {}
    for size in SIZES:
        shutil.rmtree(folder, ignore_errors=True)
        draw = random.Random(size)
        words = text(draw, size)
        count = 3 if quick else max(10, min(300, 10_000_000 // size)) * runs // 5
        with llvs.Store(folder) as store:
            versions = [store.make_version(None, insert={"text": " ".join(words).encode()})]

            def save() -> None:
                words[draw.randrange(len(words))] = draw.choice(WORDS)
                versions.append(store.make_version(versions[-1], update={"text": " ".join(words).encode()}))

            saved = least(count, save)
            read = least(count * 3, lambda: store.value("text", at=versions[-1]))
        found[size] = (saved, read, segment_bytes(folder) / len(versions))
    return found


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--quick", action="store_true", help="whether it runs")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("folder", type=Path)
    given = options.parse_args()
    folder = given.folder / "space"
    if given.measure:
        print(json.dumps(measure(folder, given.quick, given.runs)))
        return
    found = {}
    for way in WAYS:
        environment = {**os.environ, "LLVS_DEFLATE": way}
        arguments = [sys.executable, __file__, "--measure", "--runs", str(given.runs), *(["--quick"] if given.quick else []), given.folder]
        found[way] = json.loads(subprocess.run(arguments, env=environment, check=True, stdout=subprocess.PIPE).stdout)
    print(f"  {'one value, one word changed':30}{'save':>26}{'read':>32}{'bytes a save':>24}")
    print(f"  {'':30}" + "".join(f"{way:>13}" for _ in range(3) for way in WAYS))
    for size in SIZES:
        rows = [found[way][str(size)] for way in WAYS]
        times = "".join(f"{row[i]:10.1f} us" for i in (0, 1) for row in rows)
        print(f"  {size:>26,} B  {times}" + "".join(f"{row[2]:13,.0f}" for row in rows))


if __name__ == "__main__":
    main()
