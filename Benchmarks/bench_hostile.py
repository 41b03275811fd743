"""Measures the work that a hostile writer to an exchange folder can cause on a device: it must grow with the size of the files, and not
with its square.

    scripts/bench --only hostile
    python Benchmarks/bench_hostile.py [--quick] [--only CASE ...] [--strict] <folder>

Each case is measured at half its size and at its size. Figures are the seconds; the longest time between two polls of the control, which is
how long a cancellation waits; the most processor time between two polls, which does not depend on a busy machine or disk; and the peak of
memory in MiB (on Linux). Calls have to poll at least every 100 ms: the last line reports whether all did, and with `--strict` so does the
exit status. (`HostileCostTests` compares counts of steps in every run of the tests.)
"""

import argparse
import base64
import functools
import json
import re
import shutil
import sys
import time
from pathlib import Path

import llvs

# Seconds.
MOST = 0.1


def write(folder, versions):
    """Writes files of versions (id, predecessors, changes) in the interchange layout; timestamps follow the order."""
    for name in ("versions", "changes"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number, (id, predecessors, changes) in enumerate(versions):
        content = {
            "identifier": id,
            "predecessors": dict(zip(("idOfFirst", "idOfSecond"), predecessors)),
            "timestamp": number,
            "metadata": [],
        }
        (folder / "changes" / id).write_text(json.dumps(changes))
        (folder / "versions" / id).write_text(json.dumps({"version": content}))


def update(id, text):
    return {"update": {"id": id, "data": base64.b64encode(text.encode()).decode()}}


class Spent:
    """The cost of a call that accepts `progress`."""

    process = Path("/proc/self")

    def __init__(self, call):
        # On Linux, writing 5 to clear_refs resets the peak of memory.
        if self.process.exists():
            (self.process / "clear_refs").write_text("5")
        memory = self.memory("VmRSS")
        self.longest = self.computed = 0.0
        self.processor = time.process_time()
        start = self.last = time.perf_counter()
        self.result = call(progress=self.look)
        self.look()
        self.seconds = self.last - start
        self.mebibytes = max(0, self.memory("VmHWM") - memory) / 1024

    def look(self, *_):
        now, processor = time.perf_counter(), time.process_time()
        self.longest = max(self.longest, now - self.last)
        self.computed = max(self.computed, processor - self.processor)
        self.last, self.processor = now, processor
        return True

    def memory(self, name):
        status = self.process / "status"
        return int(re.search(rf"{name}:\s*(\d+)", status.read_text())[1]) if status.exists() else 0


def retrieved(folder, versions):
    """Retrieves versions; returns the cost, the store, and its exchange."""
    write(folder, versions)
    store = llvs.Store(storage="memory")
    exchange = llvs.Exchange(store, folder.as_uri())
    spent = Spent(exchange.retrieve)
    assert not spent.result.problems, spent.result.problems[:3]
    return spent, store, exchange


def preserves_against_a_ladder(folder, size):
    """Two lines that are merged with one another at each step, then a version that preserves `size` values of the root."""
    ids = [f"id {i}" for i in range(size)]
    ladder = [("root", (), [update(id, "1") for id in ids]), ("a0", ("root",), []), ("b0", ("root",), [])]
    for i in range(1, size + 1):
        ladder += [(f"{own}{i}", (f"{own}{i - 1}", f"{other}{i - 1}"), []) for own, other in ("ab", "ba")]
    _, store, exchange = retrieved(folder, ladder)
    top = ("top", (f"a{size}", f"b{size}"), [{"preserve": {"valueId": id, "storedVersionId": "root"}} for id in ids])
    write(folder, [top])
    spent = Spent(exchange.retrieve)
    assert list(spent.result.versions) == ["top"]
    return spent


def common_bases(folder, size):
    """Merges two versions with `size` best common ancestors."""
    versions = [("root", (), [update("x", "0")])]
    versions += [(f"base{i}", ("root",), [update("x" if i == size - 1 else f"id {i}", str(i))]) for i in range(size)]
    for side, order in (("a", range(size)), ("b", range(size - 1, -1, -1))):
        for i in range(1, size):
            below = f"base{order[0]}" if i == 1 else f"{side}{i - 1}"
            versions.append((f"{side}{i}", (below, f"base{order[i]}"), [update("x", side)] if i == size - 1 else []))
    _, store, _ = retrieved(folder, versions)
    return Spent(functools.partial(store.merge, f"a{size - 1}", f"b{size - 1}"))


def heads_on_a_line(folder, size):
    """Merges `size` heads, each of which is a merge of a version of a line and its root."""
    versions = [("line0", (), [update("x", "0")])]
    versions += [(f"line{i}", (f"line{i - 1}",), [update("x", str(i))]) for i in range(1, size + 1)]
    versions += [(f"head{i}", (f"line{i}", "line0"), [update(f"head {i}", "1")]) for i in range(2, size)]
    _, store, _ = retrieved(folder, versions)
    return Spent(functools.partial(store.merge_heads, f"line{size}"))


def heads_on_a_foreign_root(folder, size):
    """Merges heads on a root that has nothing in common with the versions here."""
    versions = [("root", (), [update("x", "0")])] + [(f"head{i}", ("root",), [update(f"head {i}", "1")]) for i in range(size)]
    _, store, _ = retrieved(folder, versions)
    return Spent(functools.partial(store.merge_heads, store.make_version(insert={"mine": b"1"}, root=True).id))


def heads_that_look_alike(folder, size):
    """Merges heads with `size` different states whose last changes are equal."""
    versions = [(f"head{i}", (), [update("a", "same"), update("b", str(i))]) for i in range(size)]
    _, store, _ = retrieved(folder, versions)
    return Spent(functools.partial(store.merge_heads, "head0"))


def heads_that_are_merges(folder, size):
    """Merges `size` merges of the same two versions."""
    versions = [("root", (), [update("x", "0")])] + [(side, ("root",), [update("x", side)]) for side in "ab"]
    versions += [(f"head{i}", ("a", "b"), [update("x", f"answer {i}")]) for i in range(size)]
    _, store, _ = retrieved(folder, versions)
    return Spent(functools.partial(store.merge_heads, "head0"))


def merged_texts(folder, texts):
    """Merges texts of a base and two sides."""
    folder.mkdir(parents=True)
    return Spent(functools.partial(llvs.merge.merge_values, *(text.encode() for text in texts), "text"))


def lines_of_which_few_are_unique(folder, size):
    """Lines with one unique line between the two ends of each part, so that the comparison shortens a part by one line at a time."""
    def lines(tag):
        return tag + "\n" + "".join(f"{tag}\n{number + 1:x}\n{number:x}\n" for number in range(size // 3)) + tag + "\n"
    return merged_texts(folder, [lines(tag) for tag in "oxy"])


def words_of_which_few_are_unique(folder, size):
    """The same for words in one line."""
    def words(tag):
        return " ".join(f"{tag} {number + 1:x} {number:x}" for number in range(size // 3))
    return merged_texts(folder, [words(tag) for tag in "oxy"])


def equal_lines_between_unlike_ends(folder, size):
    """Many equal lines between ends that differ by more edits than the comparison tries."""
    return merged_texts(folder, [f"{side}\n" * 1500 + "a\n" * size + f"{side}\n" for side in "oxy"])


def foreign_names(folder, size):
    """Names in the folder that are not those of versions, listed again."""
    _, _, exchange = retrieved(folder, [("root", (), [update("x", "0")])])
    for i in range(size):
        (folder / "versions" / f"no version {i}").touch()
    exchange.retrieve()
    return Spent(exchange.retrieve)


def changes_without_versions(folder, size):
    """Files of changes whose versions never arrive, listed again."""
    _, _, exchange = retrieved(folder, [("root", (), [update("x", "0")])])
    for i in range(size):
        (folder / "changes" / f"nobody-{i}").touch()
    exchange.retrieve()
    return Spent(exchange.retrieve)


def empty_version_files(folder, size):
    """Empty files with names of versions, retrieved for the first time."""
    _, _, exchange = retrieved(folder, [("root", (), [update("x", "0")])])
    for i in range(size):
        (folder / "versions" / f"nobody-{i}").touch()
    return Spent(exchange.retrieve)


def empty_version_files_again(folder, size):
    """The same, if no name was added or removed since a retrieve. (The time of a folder is trusted when it is two seconds old.)"""
    _, _, exchange = retrieved(folder, [("root", (), [update("x", "0")])])
    for i in range(size):
        (folder / "versions" / f"nobody-{i}").touch()
    time.sleep(2.5)
    exchange.retrieve()
    return Spent(exchange.retrieve)


def empty_version_files_sent(folder, size):
    """Sends a version to that folder, which lists all its files again."""
    _, store, exchange = retrieved(folder, [("root", (), [update("x", "0")])])
    for i in range(size):
        (folder / "versions" / f"nobody-{i}").touch()
    exchange.retrieve()
    store.make_version("root", update={"x": b"1"})
    return Spent(exchange.send)


def empty_version_files_sent_again(folder, size):
    """The same, if nothing changed there or here since."""
    _, store, exchange = retrieved(folder, [("root", (), [update("x", "0")])])
    for i in range(size):
        (folder / "versions" / f"nobody-{i}").touch()
    exchange.retrieve()
    exchange.send()
    return Spent(exchange.send)


def whole_versions_that_wait(folder, size):
    """Whole versions whose predecessor never arrives."""
    _, _, exchange = retrieved(folder, [("root", (), [update("x", "0")])])
    write(folder, [(f"waits-{i}", ("never",), []) for i in range(size)])
    return Spent(exchange.retrieve)


def names_of_packs(folder, size):
    """Empty files with names of packs, retrieved for the first time."""
    store = llvs.Store(storage="memory")
    store.make_version(insert={"x": b"1"})
    exchange = llvs.Exchange(store, folder.as_uri() + "?layout=packed")
    exchange.send()
    name = next((folder / "pack1" / "log").iterdir()).name
    for i in range(size):
        letters = "".join("abcdefghijklmnopqrstuvwxyz234567"[i >> shift & 31] for shift in (15, 10, 5, 0))
        (folder / "pack1" / "log" / (letters + name[4:])).touch()
    return Spent(exchange.retrieve)


def files_that_wait_to_be_sent(folder, size):
    """Files that interrupted senders left, which the next send checks."""
    (folder / "tmp").mkdir(parents=True)
    for i in range(size):
        (folder / "tmp" / f"left {i}").touch()
    store = llvs.Store(storage="memory")
    store.make_version(insert={"x": b"1"})
    return Spent(llvs.Exchange(store, folder.as_uri()).send)


CASES = {
    preserves_against_a_ladder: 16_000,
    common_bases: 8_000,
    heads_on_a_line: 4_000,
    heads_on_a_foreign_root: 4_000,
    heads_that_look_alike: 4_000,
    heads_that_are_merges: 4_000,
    lines_of_which_few_are_unique: 1_200_000,
    words_of_which_few_are_unique: 1_200_000,
    equal_lines_between_unlike_ends: 4_000_000,
    foreign_names: 1_000_000,
    changes_without_versions: 1_000_000,
    empty_version_files: 1_000_000,
    empty_version_files_again: 1_000_000,
    empty_version_files_sent: 1_000_000,
    empty_version_files_sent_again: 1_000_000,
    whole_versions_that_wait: 300_000,
    names_of_packs: 100_000,
    files_that_wait_to_be_sent: 1_000_000,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", choices=[case.__name__ for case in CASES], action="append", help="a case; several times for several")
    parser.add_argument("--strict", action="store_true", help=f"fails where more than {MOST:g} s were computed between two looks")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    print(f"{'':34}{'half the size':>16}{'the size':>16}{'looks apart':>16}{'computed':>14}{'memory':>16}")
    over = []
    for case, size in CASES.items():
        if arguments.only and case.__name__ not in arguments.only:
            continue
        size = max(20, size // 1_000) if arguments.quick else size
        spent = []
        for part in (size // 2, size):
            folder = arguments.folder / f"{case.__name__}-{part}"
            spent.append(case(folder, part))
            shutil.rmtree(folder)
        half, whole = spent
        print(
            f"{case.__name__.replace('_', ' '):34}{half.seconds:14.3f} s{whole.seconds:14.3f} s"
            f"{1000 * whole.longest:13.0f} ms{1000 * whole.computed:11.0f} ms{whole.mebibytes:12.0f} MiB   of {size:,}",
            flush=True,
        )
        if max(half.computed, whole.computed) > MOST:
            over.append(case.__name__.replace("_", " "))
    print(f"More than {MOST:g} s were computed between two looks at the control by: {', '.join(over) or 'none'}.")
    return 1 if over and arguments.strict else 0


if __name__ == "__main__":
    sys.exit(main())
