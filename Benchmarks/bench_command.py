"""Measures the command `llvs` on a long history: the start of `llvs log -n 1`, and lines per second of `llvs log --graph` into a pipe.

    python Benchmarks/bench_command.py [--quick] [--runs 5] [--n 100000] <folder>

The history is that of four devices: each saves on its own line, and sometimes merges another one. Both wall-clock time and processor time
are shown; other programs on the machine hardly affect the latter. Figures are medians.
"""

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import llvs

#: The goals in docs/performance.md: seconds to the first byte, and lines per second.
SOONEST, FASTEST = 0.25, 50_000


def fill(store, count):
    """Makes `n` versions by four devices, with the same seed each time."""
    draw, begin = random.Random(1), 1_790_000_000.0
    root = store.make_version(insert={"note/0": b"begin"}, timestamp=begin, metadata={"author": "device0"})
    lines, made = [root] * 4, 1
    while made < count:
        device = draw.randrange(4)
        other = draw.randrange(4)
        if draw.random() < 0.05 and not any(store.is_ancestor(lines[one], lines[two]) for one, two in ((device, other), (other, device))):
            lines[device] = store.merge(lines[device], lines[other])
        else:
            about = {"author": f"device{device}", "message": f"edit {made}"}
            value = {f"note/{draw.randrange(200)}": b"%d" % made}
            lines[device] = store.make_version(lines[device], update=value, timestamp=begin + made * 20, metadata=about)
        made += 1


def first_byte(command, surroundings):
    """Returns the seconds to the first byte of output, and the processor time of the whole run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=surroundings) as running:
        assert running.stdout.read(1)
        seconds = time.perf_counter() - begun
        running.stdout.read()
    assert running.returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def lines_a_second(command, surroundings):
    """Returns lines per second into a pipe, start included; the same by processor time; and the number of lines."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun, count = time.perf_counter(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=surroundings) as running:
        while part := running.stdout.read(1 << 20):
            count += part.count(b"\n")
    seconds = time.perf_counter() - begun
    assert running.returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return count / seconds, count / busy, count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("folder")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.n = 1, 2000
    folder = Path(options.folder) / "bench_command"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = folder / "long.llvs"
    with llvs.Store(path, durability="normal") as store:
        fill(store, options.n)
    # Compile modules once, as in an installed package.
    surroundings = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    surroundings.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "llvs.tools", "-s", str(path), "log"]
    once = [*command, "-n", "1"]
    first_byte(once, surroundings)
    starts = [first_byte(once, surroundings) for _ in range(3 * options.runs)]
    bare = [first_byte([sys.executable, "-c", "print(1)"], surroundings) for _ in range(3 * options.runs)]
    seconds, busy = (statistics.median(column) for column in zip(*starts))
    print(f"\nThe command on {options.n:,} versions, medians of {options.runs}")

    def show(label, value, unit, goal, reached):
        verdict = "-" if options.quick or reached is None else "reached" if reached else "MISSED"
        print(f"  {label:62} {value:12,.6g} {unit:8} {goal:14} {verdict}")

    show("llvs log -n 1: first byte", seconds * 1e3, "ms", f"<= {SOONEST * 1e3:g} ms", seconds <= SOONEST)
    show("llvs log -n 1: processor", busy * 1e3, "ms", "", None)
    show("python3 -c 'print(1)': first byte, for comparison", statistics.median(one for one, _ in bare) * 1e3, "ms", "", None)
    for what in (["--graph", "--oneline"], ["--graph"]):
        runs = [lines_a_second([*command, *what], surroundings) for _ in range(options.runs)]
        rate, by_processor, count = (statistics.median(column) for column in zip(*runs))
        label = f"llvs log {' '.join(what)}: {count:,.0f} lines"
        show(label, rate, "lines/s", f">= {FASTEST:,}", rate >= FASTEST)
        show(f"{label}, by the processor's time", by_processor, "lines/s", "", None)
    shutil.rmtree(folder)


main()
