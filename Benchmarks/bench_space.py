"""Measures the disk space and time of many versions of one value, and the effect of libdeflate.

    python Benchmarks/bench_space.py [--quick] [--runs 5] [--git PATH]... [--trace FILE.json.gz]... [--only PART] <folder>

First, the same histories with values as differences and without. Figures are the bytes on disk of the store, and of a git repository with
one commit for each version (`git repack -adfq`), if git is installed; microseconds of a save, of a read at the head from memory, of the
first read after opening, and of a read at a random version; and bytes at a packed place in a folder, with 33 exchanges spread over the
history, before packs are merged (all log packs) and afterwards (the packs that no other one replaces). All times are of the processor. With
--git, the files of a git repository are saved as values, one version for each commit among the first parents. With --trace, the text of an
editing trace (github.com/josephg/editing-traces) is saved every 100 transactions; in a concurrent trace, the text that the author of that
transaction saw.

Second, saves and reads of one value of 100 bytes to 1 MB, edited word by word: whole and compressed by zlib, as before there were
differences and libdeflate; as differences, with the system's libdeflate; and as differences, without it (LLVS_DEFLATE=zlib). Figures are
the least time of a save without syncs and of a read at the head from memory, the mean for four versions at the head of the least first
read after opening, and the bytes for each save.

Third, what reads many values, in the same three ways: opening, enumerating, comparing and merging. Once with small values, which
are never differences, and once with documents of 20 kB.

Fourth, the peak of memory of reading a value of 1 MB at the head, which four differences make, and of merging two edits of it.

In the end, the goals of values as differences, what was reached, and whether that is enough. A ratio of times counts as reached up to 0.02
above its goal: so much differs between two runs of the same.

Data is made with seeds. Each row of figures is measured in a process of its own, and the ways take turns. With --only, one of the parts
`histories`, `given` (those of --git and --trace), `sizes`, `many` and `memory`.
"""

import argparse
import base64
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Tests" / "Python"))

SIZES = (100, 1_000, 2_000, 4_000, 20_000, 100_000, 1_000_000)
#: How values are stored, and which library compresses them.
WAYS = {"before": ("off", "zlib"), "libdeflate": ("on", "libdeflate"), "zlib": ("on", "zlib")}
PARTS = ("histories", "given", "sizes", "many", "memory")
#: The default of the memory budget, in bytes.
BUDGET = 64 << 20
BEGINNINGS, MIDDLES, ENDS = ("ver", "con", "re", "de"), ("sion", "tain", "cord", "lay", "pend"), ("", "s", "ing", "ed", "er")
WORDS = [a + b + c for a in BEGINNINGS for b in MIDDLES for c in ENDS]


def text(draw, size):
    words = []
    while size > 0:
        words.append(draw.choice(WORDS) if draw.random() < 0.9 else str(draw.randrange(100_000)))
        size -= len(words[-1]) + 1
    return words


# Histories: each yields the changed values by id; None removes.


def note(quick):
    draw = random.Random(1)
    words = text(draw, 105_000)
    yield {"note": " ".join(words).encode()}
    for _ in range(20 if quick else 300):
        words.insert(draw.randrange(len(words)), draw.choice(WORDS))
        yield {"note": " ".join(words).encode()}


def typed(quick):
    """A text that is typed, mostly at one place, which sometimes moves; sometimes a part is deleted."""
    draw = random.Random(2)
    content, place = "", 0
    for _ in range(60 if quick else 2_600):
        if draw.random() < 0.05:
            place = draw.randrange(len(content) + 1)
        piece = " ".join(text(draw, 45)) + " "
        if draw.random() < 0.1:
            content = content[:place] + content[place + 40 :]
        content = content[:place] + piece + content[place:]
        place += len(piece)
        yield {"text": content.encode()}


def members(size):
    def history(quick):
        draw = random.Random(size)
        count = size // 100
        value = {f"member{i:04}": {"title": " ".join(text(draw, 50)), "count": draw.randrange(10_000)} for i in range(count)}
        for _ in range(30 if quick else 400):
            yield {"json": json.dumps(value).encode()}
            member = value[f"member{draw.randrange(count):04}"]
            member["title" if draw.random() < 0.5 else "count"] = draw.choice((" ".join(text(draw, 50)), draw.randrange(10_000)))

    return history


def pictures(quick):
    draw = random.Random(4)
    for i in range(5 if quick else 40):
        yield {f"picture{i % 4}": draw.randbytes(200_000)}


def small(quick):
    draw = random.Random(5)
    for _ in range(100 if quick else 3_000):
        yield {f"value{draw.randrange(500)}": json.dumps({"name": " ".join(text(draw, 200)), "n": draw.randrange(9_999)}).encode()}


def git_history(path):
    def history(quick):
        def git(*words, **more):
            return subprocess.run(["git", "-C", path, *words], check=True, stdout=subprocess.PIPE, **more).stdout

        commits = git("rev-list", "--first-parent", "--reverse", "HEAD").decode().split()
        before = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        for commit in commits[: 50 if quick else None]:
            changed, blobs = {}, []
            fields = git("diff-tree", "-r", "-z", "--no-renames", before, commit).decode("utf-8", "surrogateescape").split("\0")
            for meta, name in zip(fields[0::2], fields[1::2]):
                mode, blob = meta.split()[1], meta.split()[3]
                if mode in ("100644", "100755"):
                    blobs.append((name, blob))
                elif mode == "000000":
                    changed[name] = None
            out = git("cat-file", "--batch", input="".join(f"{blob}\n" for _, blob in blobs).encode())
            at = 0
            for name, _ in blobs:
                end = out.index(b"\n", at)
                size = int(out[at:end].split()[2])
                changed[name] = out[end + 1 : end + 1 + size]
                at = end + size + 2
            before = commit
            yield {id: data for id, data in changed.items() if len(id.encode("utf-8", "surrogateescape")) < 4_000}

    return history


def trace_history(path):
    def history(quick):
        trace, content = json.loads(gzip.decompress(Path(path).read_bytes())), ""
        if trace.get("kind") == "concurrent":
            # The positions in a change are those in the text that its author saw.
            from editing_traces import Trace

            for number, content in Trace(trace).replay(every=100):
                if quick and number > 3_000:
                    return
                yield {"text": content.encode()}
            return
        steps = trace["txns"]
        for i, step in enumerate(steps[: 3_000 if quick else None]):
            for place, removed, inserted in step["patches"]:
                content = content[:place] + inserted + content[place + removed :]
            if i % 100 == 99:
                yield {"text": content.encode()}

    return history


HISTORIES = {
    "note of 105 kB, 300 words put in": note,
    "long text, 2,600 saves": typed,
    "JSON of 2 kB, 400 saves": members(2_000),
    "JSON of 20 kB, 400 saves": members(20_000),
    "JSON of 200 kB, 400 saves": members(200_000),
    "pictures, 40 saves": pictures,
    "small values, 3,000 saves": small,
}


def history_named(name):
    kind, _, path = name.partition(" ")
    return git_history(path) if kind == "git" else trace_history(path) if kind == "trace" else HISTORIES[name]


def folder_bytes(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


EXCHANGES = 33


class Place:
    """A packed place in a folder, and the bytes of its packs."""

    def __init__(self, store, folder):
        import llvs

        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        self.exchange = llvs.Exchange(store, llvs.Remote(folder.as_uri(), layout="packed"))

    def bytes(self):
        """Returns the bytes of all log packs, and of the packs that no other one replaces; both include large values."""
        logs = sum(file.stat().st_size for file in (self.folder / "pack1" / "log").iterdir())
        blobs = folder_bytes(self.folder / "pack1" / "blob") if (self.folder / "pack1" / "blob").exists() else 0
        left = {}
        for file in [*(self.folder / "pack1" / "log").iterdir(), *(self.folder / "pack1").glob("base/*")]:
            # The first 13 characters are the writer; one or two numbers follow.
            fields = file.name.split("-")
            first, last = number(fields[1]), number(fields[2 if len(fields) == 4 else 1])
            left[first, last] = max(left.get((first, last), 0), file.stat().st_size)
        ranges = list(left)
        kept = [a for a in ranges if not any(b != a and b[0] <= a[0] and a[1] <= b[1] for b in ranges)]
        return logs + blobs, sum(left[one] for one in kept) + blobs


def number(text):
    """Returns a number in the name of a pack."""
    return int.from_bytes(base64.b32decode(text.upper() + "="), "big")


def least(count, body, calls=1):
    """Returns the least processor time of a call in microseconds, each time of several calls together."""
    times = []
    for _ in range(count):
        begin = time.process_time()
        for _ in range(calls):
            body()
        times.append((time.process_time() - begin) / calls)
    return min(times) * 1e6


def measure_history(name, differences, folder, quick):
    import llvs

    history, draw = history_named(name), random.Random(9)
    shutil.rmtree(folder, ignore_errors=True)
    head, versions, known, used, raw = None, [], set(), 0.0, 0
    steps = list(history(quick))
    with llvs.Store(folder, options=llvs.StoreOptions(differences=differences)) as store:
        place = Place(store, folder.parent / "place")
        for step, changed in enumerate(steps):
            changed = {id: data for id, data in changed.items() if data is not None or id in known}
            insert = {id: data for id, data in changed.items() if data is not None and id not in known}
            update = {id: data for id, data in changed.items() if data is not None and id in known}
            remove = [id for id, data in changed.items() if data is None]
            begin = time.process_time()
            head = store.make_version(head, insert=insert, update=update, remove=remove)
            used += time.process_time() - begin
            raw += sum(map(len, insert.values())) + sum(map(len, update.values()))
            known = (known | set(insert)) - set(remove)
            versions.append((head.id, [id for id, data in changed.items() if data is not None]))
            if (step + 1) * EXCHANGES // len(steps) > step * EXCHANGES // len(steps):
                place.exchange.send()
        apart, merged = place.bytes()
        place.exchange.close()
    blobs = folder_bytes(folder / "blobs") if (folder / "blobs").exists() else 0
    size = folder_bytes(folder / "segments") + blobs
    ids = sorted(known)[:200]
    cold = []
    for _ in range(3 if quick else 10):
        with llvs.Store(folder, read_only=True) as store:
            # Do the work that opening defers to the first read, so that it does not count.
            store.value("no such value", at=head)
            id = draw.choice(ids)
            begin = time.process_time()
            store.value(id, at=head)
            cold.append(time.process_time() - begin)
    with llvs.Store(folder, read_only=True) as store:
        for id in ids[:3]:
            store.value(id, at=head)
        memory = least(30, lambda: store.value(ids[0], at=head), calls=10)
        wanted = [(id, version) for version, ids in versions for id in ids]
        wanted = [draw.choice(wanted) for _ in range(50 if quick else 500)]
        begin = time.process_time()
        for id, version in wanted:
            store.value(id, at=version)
        past = (time.process_time() - begin) / len(wanted) * 1e6
    first = sorted(cold)[len(cold) // 2] * 1e6
    times = {"save": used / len(versions) * 1e6, "memory": memory, "cold": first, "past": past}
    return {"bytes": size, "blobs": blobs, "apart": apart, "merged": merged, **times, "raw": raw}


def git_bytes(name, folder, quick):
    """Returns the bytes of the git pack with one commit for each version; None if git is not installed."""
    if not shutil.which("git"):
        return None
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["git", "init", "-q", "--bare", folder], check=True)
    importing = subprocess.Popen(["git", "-C", folder, "fast-import", "--quiet"], stdin=subprocess.PIPE)
    out = importing.stdin
    for i, changed in enumerate(history_named(name)(quick)):
        out.write(b"commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 1\nv\n" % (1_000_000_000 + i))
        for id, data in changed.items():
            path = b'"' + id.encode("utf-8", "surrogateescape").replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
            out.write(b"D %s\n" % path if data is None else b"M 100644 inline %s\ndata %d\n%s\n" % (path, len(data), data))
    out.close()
    if importing.wait():
        return None
    # Without -f git keeps the deltas of the import, which searches for none beyond the version before.
    subprocess.run(["git", "-C", folder, "repack", "-adfq"], check=True)
    return folder_bytes(folder / "objects")


def measure_sizes(folder, differences, quick, runs):
    """Measures for each size: microseconds of a save, of a read from memory and of a first read, and bytes for each save."""
    import llvs

    found = {}
    for size in SIZES:
        shutil.rmtree(folder, ignore_errors=True)
        draw = random.Random(size)
        words = text(draw, size)
        count = 3 if quick else max(12, min(300, 10_000_000 // size)) * runs // 5
        with llvs.Store(folder, durability="normal", options=llvs.StoreOptions(differences=differences)) as store:
            versions = [store.make_version(None, insert={"text": " ".join(words).encode()})]

            def save():
                words[draw.randrange(len(words))] = draw.choice(WORDS)
                versions.append(store.make_version(versions[-1], update={"text": " ".join(words).encode()}))

            saved = least(count, save)
            read = least(count, lambda: store.value("text", at=versions[-1]), calls=10)
        # Several versions near the head: the last one may be whole by chance.
        heads = versions[-4:]
        cold = [[] for _ in heads]
        for at in range(len(heads) if quick else 10 * len(heads)):
            with llvs.Store(folder, read_only=True) as store:
                head = heads[at % len(heads)]
                # Work that opening leaves to the first read does not count.
                store.value("no such value", at=head)
                begin = time.process_time()
                store.value("text", at=head)
                cold[at % len(heads)].append(time.process_time() - begin)
        first = sum(map(min, cold)) / len(cold) * 1e6
        found[size] = (saved, read, first, folder_bytes(folder / "segments") / len(versions))
    return found


def made_many(store, size, quick):
    """Saves documents, edits them in turn, and makes two branches. Returns the base, a version far back, and the two heads."""
    draw, count = random.Random(size), 100 if quick else 20_000_000 // (size + 1_000)
    count = min(count, 20_000)
    values = {f"document{i:05}": text(draw, size) for i in range(count)}

    def data(ids):
        return {id: " ".join(values[id]).encode() for id in ids}

    def edited(ids):
        for id in ids:
            values[id][draw.randrange(len(values[id]))] = draw.choice(WORDS)
        return data(ids)

    ids = list(values)
    head = store.make_version(None, insert=data(ids))
    far = head
    for number in range(6):
        for at in range(0, count, max(1, count // 20)):
            head = store.make_version(head, update=edited(ids[at : at + max(1, count // 20)]))
    half = min(100, count // 2)
    ours = store.make_version(head, update=edited(ids[:half]))
    theirs = store.make_version(head, update=edited(ids[half : 2 * half]))
    return far, head, ours, theirs


def measure_many(folder, size, differences, quick):
    import llvs

    shutil.rmtree(folder, ignore_errors=True)
    with llvs.Store(folder, options=llvs.StoreOptions(differences=differences)) as store:
        far, head, ours, theirs = made_many(store, size, quick)
    stored = folder_bytes(folder / "segments")
    opened = []
    for _ in range(3 if quick else 15):
        begin = time.process_time()
        store = llvs.Store(folder)
        opened.append(time.process_time() - begin)
        store.close()
    with llvs.Store(folder) as store:

        def enumerate_all():
            for _ in store.at(ours).items():
                pass

        enumerated = least(2 if quick else 5, enumerate_all)
        compared = least(3 if quick else 30, lambda: list(store.diff(head, ours)))
        begin = time.process_time()
        store.merge(ours, theirs, arbiter=llvs.MostRecentChange())
        merged = (time.process_time() - begin) * 1e6
    return {
        "open": sorted(opened)[len(opened) // 2] * 1e6, "enumerate": enumerated, "differences of 100": compared,
        "merge of 100 + 100": merged, "bytes on disk": stored,
    }


def make_large(folder):
    """Makes a store with a text of 1 MB, and writes down its head and two edits of that."""
    import llvs

    shutil.rmtree(folder, ignore_errors=True)
    draw = random.Random(6)
    words = text(draw, 1_000_000)
    rules = json.dumps({"merge": 1, "ids": {"text": "text"}}).encode()

    def save(version):
        words[draw.randrange(len(words))] = draw.choice(WORDS)
        return store.make_version(version, update={"text": " ".join(words).encode()})

    with llvs.Store(folder, durability="normal", options=llvs.StoreOptions(differences="on")) as store:
        head = store.make_version(None, insert={"text": " ".join(words).encode(), "__llvs_schema": rules})
        # The place 11 is 5 + 4 + 1 + 1: four differences.
        for _ in range(11):
            head = save(head)
        versions = [str(version.id) for version in (head, save(head), save(head))]
    (folder.parent / "versions.json").write_text(json.dumps(versions))


def measure_memory(folder, what):
    """Returns the peak of memory of a first read at the head, or of a merge, in bytes above what was in use before."""
    import llvs

    def told(name):
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name)) * 1024

    head, ours, theirs = json.loads((folder.parent / "versions.json").read_text())
    with llvs.Store(folder) as store:
        store.value("no such value", at=head)
        # On Linux, writing 5 to clear_refs resets the peak of memory.
        Path("/proc/self/clear_refs").write_text("5")
        before = told("VmRSS")
        if what == "read":
            store.value("text", at=head)
        else:
            store.merge(ours, theirs)
        return told("VmHWM") - before


def run(given, *arguments, **environment):
    words = [sys.executable, __file__, "--runs", str(given.runs), *(["--quick"] if given.quick else []), *arguments, given.folder]
    done = subprocess.run(words, env={**os.environ, **environment}, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--quick", action="store_true", help="whether it runs")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--git", action="append", default=[], help="a repository")
    options.add_argument("--trace", action="append", default=[], help="an editing trace")
    options.add_argument("--only", choices=PARTS, help="a part")
    options.add_argument("--measure", help=argparse.SUPPRESS)
    options.add_argument("--differences", default="off", help=argparse.SUPPRESS)
    options.add_argument("folder", type=Path)
    given = options.parse_args()
    folder = given.folder / "space"
    if given.measure:
        kind, _, size = given.measure.partition(" of ")
        if kind == "sizes":
            found = measure_sizes(folder, given.differences, given.quick, given.runs)
        elif kind == "many":
            found = measure_many(folder, int(size), given.differences, given.quick)
        elif kind == "memory":
            found = measure_memory(folder, size) if size != "nothing" else make_large(folder)
        else:
            found = measure_history(given.measure, given.differences, folder, given.quick)
        print(json.dumps(found))
        return

    goals = Goals()
    names = [*HISTORIES] if given.only in (None, "histories") else []
    if given.only in (None, "given"):
        names += [*(f"git {path}" for path in given.git), *(f"trace {path}" for path in given.trace)]
    if names:
        show_histories(given, names, goals)
    if given.only in (None, "sizes"):
        show_sizes(given, goals)
    if given.only in (None, "many"):
        show_many(given, goals)
    if given.only in (None, "memory") and Path("/proc/self/clear_refs").exists():
        show_memory(given, goals)
    goals.show()


class Goals:
    """What is wanted and what was reached, line by line."""

    #: How much two runs of the same differ, as a ratio of times.
    NOISE = 0.02

    def __init__(self):
        self.rows = []

    def add(self, what, most, reached, unit="", noise=0.0):
        self.rows.append((what, f"{most:g}{unit}", f"{reached:.3g}{unit}", reached <= most + noise))

    def worst(self, what, most, ratios):
        """Adds the largest of some ratios of times, by name."""
        if ratios:
            name = max(ratios, key=ratios.get)
            self.rows.append((what, f"{most:g} x", f"{ratios[name]:.2f} x ({name})", ratios[name] <= most + Goals.NOISE))

    def show(self):
        if self.rows:
            print(f"\n  {'the goals (of times, 0.02 more is within what two runs differ)':66}{'at most':>10}   {'reached':34}")
        for what, wanted, reached, is_met in self.rows:
            print(f"  {what:66}{wanted:>10}   {reached:34}{'yes' if is_met else 'NO'}")


def size_shown(size):
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1_000} kB" if size >= 1_000 else f"{size} B"


def show_histories(given, names, goals):
    past = {}
    print(f"  {'':34}{'bytes on disk':>34}{'packed place':>20}{'save':>18}{'head':>18}{'first read':>18}{'past':>18}")
    print(f"  {'':34}{'whole':>12}{'differences':>13}{'git':>9}{'before':>11}{'merged':>9}" + f"{'whole':>10}{'diff.':>8}" * 4)
    for name in names:
        whole, ours = (run(given, "--measure", name, "--differences", choice) for choice in ("off", "on"))
        git = git_bytes(name, given.folder / "git", given.quick)
        mega = "".join(f"{size / 1e6:{width}.3f}" for size, width in ((whole["bytes"], 12), (ours["bytes"], 13)))
        times = "".join(f"{whole[what]:10.1f}{ours[what]:8.1f}" for what in ("save", "memory", "cold", "past"))
        shown = name if len(name) <= 34 else "..." + name[-31:]
        mega += f"{git / 1e6 if git else 0:9.3f}{ours['apart'] / 1e6:11.3f}{ours['merged'] / 1e6:9.3f}"
        more = f"   {ours['bytes'] / whole['bytes']:.4f} x" + (f", git {ours['bytes'] / git:.2f} x" if git else "")
        print(f"  {shown:34}{mega}{times}{more}", flush=True)
        past[shown] = ours["past"] / whole["past"]
        percent = 100 * ours["bytes"] / whole["bytes"]
        if name.startswith("note"):
            goals.add("note of 105 kB, 300 words put in: on disk", 0.25, ours["bytes"] / 1e6, " MB")
            goals.add("  at a packed place after merging", 0.25, ours["merged"] / 1e6, " MB")
            goals.add("  at a packed place before merging", 1, ours["apart"] / 1e6, " MB")
        elif name in PERCENT:
            goals.add(f"{name}: of whole values", PERCENT[name], percent, " %")
        elif name.startswith("git ") and git:
            goals.add(f"{shown}: beside `git repack -adfq`", 1.5, ours["bytes"] / git, " x")
            if ours["blobs"]:
                # Values above 1 MiB that are whole are not compressed.
                goals.add("  without those in files of their own", 1.5, (ours["bytes"] - ours["blobs"]) / git, " x")
    print("  (megabytes; microseconds)\n")
    goals.worst("a random past version", 2, past)


#: What some histories may take, in percent of what whole values take.
PERCENT = {"long text, 2,600 saves": 3, "JSON of 20 kB, 400 saves": 8, "JSON of 200 kB, 400 saves": 2}


def show_sizes(given, goals):
    found = {way: [] for way in WAYS}
    for _ in range(1 if given.quick else 3):
        for way, (differences, library) in WAYS.items():
            found[way].append(run(given, "--measure", "sizes", "--differences", differences, LLVS_DEFLATE=library))
    least = {way: {size: [min(one[str(size)][i] for one in found[way]) for i in range(4)] for size in SIZES} for way in WAYS}
    print(f"  {'one value, one word changed':28}{'save':>30}{'head, from memory':>30}{'head, first read':>30}{'bytes a save':>30}")
    print(f"  {'':28}" + "".join(f"{way:>10}" for _ in range(4) for way in WAYS))
    for size in SIZES:
        print(f"  {size:>24,} B  " + "".join(f"{least[way][size][i]:10,.1f}" for i in range(4) for way in WAYS))
    print("  (microseconds; before: whole values and zlib)\n")

    def ratios(way, i, sizes):
        return {size_shown(size): least[way][size][i] / least["before"][size][i] for size in sizes}

    for way in ("libdeflate", "zlib"):
        goals.worst(f"save of a large text, with {way}", 0.1, ratios(way, 0, [size for size in SIZES if size >= 100_000]))
    for way in ("libdeflate", "zlib"):
        goals.worst(f"save below 1 KiB, with {way}", 1.02, ratios(way, 0, [size for size in SIZES if size < 1_024]))
    for i, what in ((1, "from memory"), (2, "cold")):
        goals.worst(f"fetch at the head, {what}, with libdeflate", 1, ratios("libdeflate", i, SIZES))
        goals.worst(f"fetch at the head, {what}, with zlib", 1.3, ratios("zlib", i, [size for size in SIZES if size >= 2_000]))


def show_many(given, goals):
    ratios = {"libdeflate": {}, "zlib": {}}
    for size in (300, 20_000):
        found = {way: [] for way in WAYS}
        for _ in range(1 if given.quick else 3):
            for way, (differences, library) in WAYS.items():
                found[way].append(run(given, "--measure", f"many of {size}", "--differences", differences, LLVS_DEFLATE=library))
        print(f"  {f'documents of {size:,} bytes':34}" + "".join(f"{way:>14}" for way in WAYS))
        for what in found["before"][0]:
            figures = [min(one[what] for one in those) for those in found.values()]
            shown = "".join(f"{figure / max(figures[0], 1e-9):7.2f} x" for figure in figures[1:])
            print(f"  {what:34}" + "".join(f"{figure:14,.1f}" for figure in figures) + shown, flush=True)
            for way, figure in zip(ratios, figures[1:]):
                if what != "bytes on disk":
                    ratios[way][f"{what.split()[0]}, {size:,} B"] = figure / max(figures[0], 1e-9)
    print("  (microseconds if not said otherwise)")
    for way, those in ratios.items():
        goals.worst(f"open, enumerate, compare, merge, with {way}", 1.03, those)


def show_memory(given, goals):
    run(given, "--measure", "memory of nothing")
    found = {what: run(given, "--measure", f"memory of {what}") for what in ("read", "merge")}
    shown = ", ".join(f"{what} {found[what] / (1 << 20):.1f} MiB" for what in found)
    print(f"\n  peak of memory with a value of 1 MB: {shown}")
    for what in found:
        goals.add(f"peak of memory: {what}, of the budget", BUDGET / (1 << 20), found[what] / (1 << 20), " MiB")


if __name__ == "__main__":
    main()
