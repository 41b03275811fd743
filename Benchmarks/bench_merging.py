"""Compares merging inside values with the alternatives: `json` and a merge of dictionaries by hand, `git merge-file`, and the packages of
Benchmarks/requirements-merging.txt if they are installed (Loro, pycrdt).

    python Benchmarks/bench_merging.py [--quick] [--runs 5] [--json figures.json] <folder>

Three documents, with the same 200 edits on each side for all: an object of 1 MB, a list of 20,000 objects with ids, a text of 1 MB. Figures
are the least times of the runs, in milliseconds; the peak of memory of a merge, divided by the size of its three inputs (on Linux); and the
kilobytes that are stored after both edits are merged. For us these are the directory of a store with base, edits and merge; for the
packages, the document with its history. The packages receive the other side's edits as an update, and return the whole document. (pycrdt
does not return the list: reading an array of maps takes it time that grows with the square.)
"""

import argparse
import gc
import importlib
import json
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import llvs
import merging_memory

PROCESS = Path("/proc/self")
#: Prints how much the peak of memory of a merge exceeds the memory before it. (On Linux, writing 5 to clear_refs resets the peak.)
MEMORY = """
import pathlib, re, sys, llvs
def told(name): return int(re.search(name + r":\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024
rules, *values = [pathlib.Path(name).read_bytes() for name in sys.argv[1:]]
llvs.merge.merge_values(b"[1]", b"[2]", b"[3]")
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = told("VmRSS")
merged = llvs.merge.merge_values(*values, rules)
print(told("VmHWM") - before)
"""
#: The goals: milliseconds, and memory divided by the size of the inputs.
GOALS = {"object": 15, "list": 10, "text": 30, "conflicts": 150}
#: The goal for texts that defeat the comparison, and for JSON that takes long: as a multiple of the time of ordinary input of that size.
WORST_GOAL = 10
MEMORY_GOAL = 6


def spelled(value):
    return json.dumps(value, separators=(",", ":")).encode()


class Case:
    """A document, and the edits of two sides: (what, place, value), in order."""

    rules = "auto"

    def __init__(self, draw, size, edits):
        self.draw = draw
        self.base = self.document(size)
        self.edits = [self.edited(edits, side) for side in ("x", "y")]
        self.values = [self.encoded(value) for value in (self.base, *(self.applied(edits) for edits in self.edits))]

    def word(self):
        return "".join(self.draw.choices("etaoinshrdlu", k=self.draw.randrange(2, 9)))

    def encoded(self, value):
        return spelled(value)

    def by_hand(self):
        """A merge as a program could do it without a library."""
        base, newer, older = map(json.loads, self.values)
        return spelled(self.merged_by_hand(base, newer, older))


class Members(Case):
    name, label = "object", "an object of 1 MB"

    def document(self, size):
        return {f"member {i:06}": " ".join(self.word() for _ in range(8)) for i in range(size)}

    def edited(self, count, side):
        return [("set", self.draw.choice(list(self.base)), self.word()) for _ in range(count)]

    def applied(self, edits):
        return {**self.base, **{name: value for _, name, value in edits}}

    @staticmethod
    def merged_by_hand(base, newer, older):
        merged = {}
        for name in sorted({*base, *newer, *older}):
            o, x, y = base.get(name), newer.get(name), older.get(name)
            value = y if x == o else x
            if value is not None:
                merged[name] = value
        return merged


class Elements(Case):
    name, label, rules = "list", "a list of 20,000 objects", {"as": "list", "key": ["/id"]}

    def document(self, size):
        return [{"id": f"i{i}", "name": f"{self.word()} {self.word()}", "done": i % 3 == 0} for i in range(size)]

    def edited(self, count, side):
        edits, length = [], len(self.base)
        for number in range(count):
            what = self.draw.choice(["set", "set", "insert", "delete"])
            value = self.word() if what == "set" else {"id": f"{side}{number}", "name": self.word(), "done": False}
            edits.append((what, self.draw.randrange(length), value))
            length += {"set": 0, "insert": 1, "delete": -1}[what]
        return edits

    def applied(self, edits):
        out = list(self.base)
        for what, at, value in edits:
            if what == "insert":
                out.insert(at, value)
            elif what == "delete":
                del out[at]
            else:
                out[at] = {**out[at], "name": value}
        return out

    @staticmethod
    def merged_by_hand(base, newer, older):
        """In the newer side's order, followed by elements that the older side added. (The library preserves more.)"""
        o, x, y = ({element["id"]: element for element in side} for side in (base, newer, older))
        merged = []
        for name in [*x, *(name for name in y if name not in x and name not in o)]:
            if name in o and name not in y:
                continue
            sides = [side.get(name, {}) for side in (o, x, y)]
            merged.append(Members.merged_by_hand(*sides))
        return merged


class Words(Case):
    name, label, rules = "text", "a text of 1 MB, by words", "text"

    def document(self, size):
        words = [self.word() for _ in range(5000)]
        return "\n".join(" ".join(self.draw.choices(words, k=9)) for _ in range(size))

    def edited(self, count, side):
        starts = sorted((found.start(), len(found[0])) for found in self.draw.sample(list(re.finditer(r"\w+", self.base)), count))
        # Apply edits from the end, so that earlier positions stay valid.
        return [("replace", start, (length, self.word() + side)) for start, length in reversed(starts)]

    def applied(self, edits):
        text = self.base
        for _, at, (length, value) in edits:
            text = text[:at] + value + text[at + length :]
        return text

    def encoded(self, value):
        return value.encode()

    def by_hand(self):
        files = [self.folder / name for name in ("newer", "base", "older")]
        for file, value in zip(files, (self.values[1], self.values[0], self.values[2])):
            file.write_bytes(value)
        start = time.perf_counter()
        done = subprocess.run(["git", "merge-file", "-p", "--ours", *map(str, files)], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return time.perf_counter() - start


class Loro:
    """A case in Loro."""

    def __init__(self, module, case):
        self.module, self.case = module, case
        self.document = module.LoroDoc()
        self.fill(self.document, case)
        self.document.commit()
        self.other = self.document.fork()
        before = self.other.oplog_vv
        for document, edits in zip((self.document, self.other), case.edits):
            self.edit(document, edits)
            document.commit()
        self.update = self.other.export(module.ExportMode.Updates(before))

    def fill(self, document, case):
        if case.name == "text":
            document.get_text("d").insert(0, case.base)
        elif case.name == "object":
            for name, value in case.base.items():
                document.get_map("d").insert(name, value)
        else:
            for at, element in enumerate(case.base):
                self.insert(document.get_movable_list("d"), at, element)

    def insert(self, elements, at, element):
        members = elements.insert_container(at, self.module.LoroMap())
        for name, value in element.items():
            members.insert(name, value)

    def edit(self, document, edits):
        for what, at, value in edits:
            if self.case.name == "object":
                document.get_map("d").insert(at, value)
            elif what == "replace":
                document.get_text("d").splice(at, value[0], value[1])
            elif what == "set":
                document.get_movable_list("d").get(at).container.insert("name", value)
            elif what == "insert":
                self.insert(document.get_movable_list("d"), at, value)
            else:
                document.get_movable_list("d").delete(at, 1)

    def merge(self):
        document = self.document.fork()
        start = time.perf_counter()
        document.import_(self.update)
        if self.case.name == "text":
            document.get_text("d").to_string()
        else:
            document.get_deep_value()
        return time.perf_counter() - start, len(document.export(self.module.ExportMode.Snapshot()))


class Pycrdt:
    """A case in pycrdt (Yrs)."""

    def __init__(self, module, case):
        self.module, self.case = module, case
        self.document = module.Doc()
        self.document["d"] = self.value(case.base)
        before, whole = self.document.get_state(), self.document.get_update()
        other = module.Doc()
        self.typed(other)
        other.apply_update(whole)
        for document, edits in zip((self.document, other), case.edits):
            with document.transaction():
                self.edit(self.typed(document), edits)
        self.mine, self.update = self.document.get_update(), other.get_update(before)

    def typed(self, document):
        kind = {"text": self.module.Text, "object": self.module.Map, "list": self.module.Array}[self.case.name]
        return document.get("d", type=kind)

    def value(self, base):
        if self.case.name == "text":
            return self.module.Text(base)
        return self.module.Map(base) if self.case.name == "object" else self.module.Array([self.module.Map(one) for one in base])

    def edit(self, value, edits):
        for what, at, new in edits:
            if self.case.name == "object":
                value[at] = new
            elif what == "replace":
                del value[at : at + new[0]]
                value.insert(at, new[1])
            elif what == "set":
                value[at]["name"] = new
            elif what == "insert":
                value.insert(at, self.module.Map(new))
            else:
                del value[at]

    def merge(self):
        document = self.module.Doc()
        value = self.typed(document)
        document.apply_update(self.mine)
        start = time.perf_counter()
        document.apply_update(self.update)
        if self.case.name == "object":
            value.to_py()
        elif self.case.name == "text":
            str(value)
        return time.perf_counter() - start, len(document.get_update())


def timed(call, clock=time.perf_counter):
    gc.collect()
    start = clock()
    result = call()
    return clock() - start, result


def ours(case, folder, runs):
    """Returns the least time, and the peak of memory divided by the size of the inputs, measured in a process that does nothing else."""
    rules = spelled({"merge": 1, "ids": {"": case.rules}})
    times = []
    for _ in range(runs):
        seconds, merged = timed(lambda: llvs.merge.merge_values(*case.values, rules))
        assert merged.data
        times.append(seconds)
    if not PROCESS.exists():
        return min(times), None
    files = [folder / name for name in ("rules", "base", "newer", "older")]
    for file, data in zip(files, (rules, *case.values)):
        file.write_bytes(data)
    told = subprocess.run([sys.executable, "-c", MEMORY, *map(str, files)], capture_output=True, check=True, text=True).stdout
    return min(times), int(told) / sum(map(len, case.values))


def in_a_store(case, folder, runs):
    """Returns the time of a merge in a store on disk, and the bytes of its directory afterwards."""
    times = []
    for run in range(runs):
        place = folder / f"store-{case.name}-{run}"
        with llvs.Store(str(place), durability="normal") as store:
            rules = spelled({"merge": 1, "ids": {"": case.rules}})
            base = store.make_version(insert={"d": case.values[0], "__llvs_schema": rules})
            sides = [store.make_version(base, update={"d": value}) for value in case.values[1:]]
            times.append(timed(lambda: store.merge(*sides))[0])
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        shutil.rmtree(place)
    return min(times), size


def conflicts(count, runs):
    """Returns the time of a merge with conflicts in many values of 300 bytes."""
    def value(number, side):
        return spelled({"side": side, "number": number, "text": "x" * 270})

    times = []
    for _ in range(runs):
        with llvs.Store(storage="memory") as store:
            values = {str(i): value(i, 0) for i in range(count)}
            base = store.make_version(insert={"__llvs_schema": b'{"merge":1,"ids":{"":"auto"}}', **values})
            sides = [store.make_version(base, update={str(i): value(i, side) for i in range(count)}) for side in (1, 2)]
            times.append(timed(lambda: store.merge(*sides))[0])
    return min(times)


def texts_that_defeat_comparing(draw, size):
    """Yields an ordinary text with edits on both sides, and texts that defeat the comparison; base, newer and older of `size` bytes
    each."""
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randrange(2, 9))) for _ in range(5000)]
    lines = [" ".join(draw.choices(words, k=9)) for _ in range(size // 50)]
    numbered, line = [f"{i:011}\n" for i in range(size // 12)], "the same line\n"
    many = size // len(line)

    def edited(side):
        out = list(lines)
        for number in range(len(lines) // 100):
            out[draw.randrange(len(out))] = f"line {number} of {side}"
        return "\n".join(out)

    def sparse():
        text = bytearray(b"." * size)
        for _ in range(600):
            text[draw.randrange(size)] = ord(",")
        return text.decode()

    yield "ordinary", ["\n".join(lines), edited("x"), edited("y")]
    yield "all lines equal", [line * many, line * (many - 7) + "end\n", "start\n" + line * (many + 5)]
    yield "alternating", ["a\nb\n" * (size // 4), "b\na\n" * (size // 4), "a\na\nb\nb\n" * (size // 8)]
    half = len(numbered) // 2
    yield "reversed", ["".join(numbered), "".join(reversed(numbered)), "".join(numbered[half:] + numbered[:half])]
    yield "on one line", [text.replace("\n", " ") for text in ("\n".join(lines), edited("x"), edited("y"))]
    yield "of unique words", [" ".join(f"{side}{number}" for number in range(size // 8)) for side in "oxy"]
    yield "shuffled", ["".join(draw.sample(numbered, len(numbered))) for _ in range(3)]
    yield "of three characters", ["".join(draw.choices("ab ", k=size)) for _ in range(3)]
    yield "of equal words with few others", [sparse() for _ in range(3)]


def worst_texts(size):
    """Returns the names of the texts with their processor time as a multiple of the ordinary one's, the worst first."""
    rules, times = spelled({"merge": 1, "ids": {"": "text"}}), {}
    for name, texts in texts_that_defeat_comparing(random.Random(2), size):
        values = [text.encode() for text in texts]
        times[name] = timed(lambda: llvs.merge.merge_values(*values, rules), time.process_time)[0]
    return by_the_ordinary(times)


def by_the_ordinary(times):
    ordinary = times.pop("ordinary")
    return sorted(((seconds / ordinary, name) for name, seconds in times.items()), reverse=True)


OTHER_ORDINARY = "ordinary, by name"


def documents_that_take_long(draw, size):
    """Yields ordinary documents with edits on both sides, and others: name, rule, and three values of `size` bytes each.

    There are two ordinary documents. In the first, a list of objects, each side edited one object in a hundred. Most objects are equal on
    all sides, so the merge takes little longer than reading the texts. The second is an object with many small members, most of which have
    to be compared one by one.
    """

    def drawn(count, among, element="%s"):
        """Returns for each side a list of random elements, independent of the other sides."""
        return [("[" + ",".join([element % one for one in draw.choices(among, k=count)]) + "]").encode() for _ in "oxy"]

    digits, numbers = range(10), range(10**8, 10**9)

    def contacts(side):
        out = [{"id": i, "name": f"Name {i}", "mail": f"name{i}@example.org", "tags": ["a", "b"]} for i in range(size // 64)]
        for _ in range(len(out) // 100 if side else 0):
            out[draw.randrange(len(out))]["name"] = f"another of {side}"
        return spelled(out)

    def members(names, value):
        return [spelled({name: value(i, side) for i, name in enumerate(names)}) for side in "oxy"]

    def by_name(side):
        out = {f"{name}{i}": {"n": i % 100, "t": name, "d": i % 2 == 0} for i, name in enumerate(words)}
        for _ in range(len(out) // 100 if side else 0):
            at = draw.randrange(len(words))
            out[f"{words[at]}{at}"] = {"n": at % 100, "t": f"another of {side}", "d": True}
        return spelled(out)

    words = ["".join(draw.choices("etaoinshrdlu", k=6)) for _ in range(size // 45)]
    yield "ordinary", "auto", [contacts(side) for side in ("", "x", "y")]
    yield OTHER_ORDINARY, "auto", [by_name(side) for side in ("", "x", "y")]
    yield "digits", "auto", drawn(size // 2, digits)
    yield "a set of digits", "set", drawn(size // 2, digits)
    yield "numbers with nothing in common", "auto", drawn(size // 10, numbers)
    yield "a set of numbers with nothing in common", "set", drawn(size // 10, numbers)
    following = list(range(10**7, 10**7 + size // 9))
    half = len(following) // 2
    yield "reversed", "auto", [spelled(following), spelled(following[::-1]), spelled(following[half:] + following[:half])]
    yield "shuffled", "auto", [spelled(draw.sample(following, len(following))) for _ in range(3)]
    yield "equal elements", "auto", [spelled([7] * (size // 2 - 5 * i)) for i in range(3)]
    yield "empty lists", "auto", [spelled([[]] * (size // 3 - 5 * i)) for i in range(3)]
    yield "keyed, of one key", {"as": "list", "key": ["/k"]}, drawn(size // 14, digits, '{"k":1,"n":%s}')
    yield "keyed, with nothing in common", {"as": "list", "key": ["/k"]}, drawn(size // 16, numbers, '{"k":%s}')
    yield "one number in several spellings", "auto", drawn(size // 5, ["1e0", "1.0", "10e-1", "0.1e1"])
    long = [("[" + ",".join(f"1{draw.randrange(10**398)}e{i % 99}" for i in range(size // 405)) + "]").encode() for _ in range(3)]
    yield "numbers of 400 digits", "set", long
    yield "escapes", "auto", drawn(size // 11, range(16, 127), '"\\u00%02x\\n"')
    yield "members that all conflict", "auto", members([f"m{i}" for i in range(size // 24)], lambda i, side: f"{side} {i}")
    names = [f"{i:07}" for i in range(size // 12)]
    yield "members out of order", "auto", members(draw.sample(names, len(names)), lambda i, side: draw.randrange(2))
    yield "members in other orders", "auto", [spelled(dict.fromkeys(draw.sample(names, len(names)), draw.randrange(9))) for _ in range(3)]
    alike = ["a", *("b" * 1000 + f"{i:07}" for i in range(size // 1020))]
    yield "names that begin alike", "auto", [spelled(dict.fromkeys(draw.sample(alike, len(alike)), i)) for i in range(3)]
    yield "counters", {"/*": "counter"}, members([f"m{i}" for i in range(size // 16)], lambda i, side: draw.randrange(10**4))
    deep = [("[" + ",".join("[" * 120 + str(draw.randrange(10)) + "]" * 120 for _ in range(size // 242)) + "]").encode() for _ in range(3)]
    yield "deep", "auto", deep
    towers = [["[" * 120 + str(i + side * size) + "]" * 120 for i in range(size // 248)] for side in range(3)]
    yield "deep, that differ", "auto", [("[" + ",".join(one) + "]").encode() for one in towers]
    objects = ['{"id":%d,"v":' % i + '{"a":' * 118 for i in range(size // 716)]
    yield "deep objects", "auto", [("[" + ",".join(f"{one}{side}" + "}" * 119 for one in objects) + "]").encode() for side in range(3)]
    keyed = '[{"id":1,"v":' * 60
    yield "deep lists of one key", "auto", [("[" + ",".join([f"{keyed}{i}" + "}]" * 60] * (size // 902)) + "]").encode() for i in range(3)]
    for name, other in (("levels of two children", lambda side: "7"), ("levels of two children that differ", str)):
        towers = [["[" * 120 + f"{i}.{side}" + f",{other(side)}]" * 120 for i in range(size // 370)] for side in range(3)]
        yield name, "auto", [("[" + ",".join(one) + "]").encode() for one in towers]
    # Only the end of the innermost list shows that it differs.
    count = 1 << 15
    leaves = [["[" * 120 + "1," * count + f"{i}.{side}" + ",7]" * 120 for i in range(size // (2 * count + 482) + 1)] for side in range(3)]
    yield "levels of two children around many", "auto", [("[" + ",".join(one) + "]").encode() for one in leaves]
    yield "spaces", "auto", [b"[" + b" " * (size - 3) + str(i).encode() + b"]" for i in range(3)]


def worst_documents(size):
    """As `worst_texts`."""
    times = {}
    for name, rule, values in documents_that_take_long(random.Random(3), size):
        rules = spelled({"merge": 1, "ids": {"": rule}})
        seconds = min(timed(lambda: llvs.merge.merge_values(*values, rules), time.process_time)[0] for _ in range(2))
        times[name] = seconds / sum(map(len, values))
    return by_the_ordinary(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("folder")
    options = parser.parse_args()
    runs = 1 if options.quick else options.runs
    size, edits = (500, 10) if options.quick else (20000, 200)
    folder = Path(options.folder) / "bench_merging"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = []

    def row(case, metric, label, unit, found, other, goal):
        reached = goal is None or found <= goal
        verdict = "" if goal is None else f"<= {goal:g} {unit:8} {'-' if options.quick else 'reached' if reached else 'MISSED'}"
        print(f"  {label:58} {found:10.4g} {'' if other is None else format(other, '10.4g'):>10} {unit:4} {verdict}")
        if other is not None and goal is not None:
            rows.append({"workload": "merging", "metric": f"{case}-{metric}", "label": label, "unit": unit, "n": size, "ids": "document",
                         "value_size": 0, "storage": "memory", "runs": runs, "ours": found, "yardstick": other, "ratio": found / other,
                         "goal": goal, "goal_is": "absolute", "goal_at_this_n": not options.quick, "reached": reached, "better": "less"})

    print(f"\nMerging inside values: {edits} edits on each side, least of {runs}; beside it the yardstick")
    draw = random.Random(1)
    for case in (Members(draw, size, edits), Elements(draw, size, edits), Words(draw, size, edits)):
        case.folder = folder
        if case.name == "text":
            name, other = "git merge-file", min(case.by_hand() for _ in range(runs))
        else:
            name, other = "json and a dict", min(timed(case.by_hand)[0] for _ in range(runs))
        seconds, most = ours(case, folder, runs)
        row(case.name, "ms", f"{case.label} ({name})", "ms", seconds * 1e3, other * 1e3, GOALS[case.name])
        if most:
            row(case.name, "memory", "  memory, by the inputs", "x", most, None, MEMORY_GOAL)
        seconds, kept = in_a_store(case, folder, runs)
        row(case.name, "sync", "  merged in a store on disk", "ms", seconds * 1e3, None, None)
        row(case.name, "kept", "  kept by the store", "kB", kept / 1e3, None, None)
        for package, kind in (("loro", Loro), ("pycrdt", Pycrdt)):
            try:
                module = importlib.import_module(package)
            except ImportError:
                print(f"  {package} is not installed (Benchmarks/requirements-merging.txt)")
                continue
            made = kind(module, case)
            merges = [made.merge() for _ in range(runs)]
            row(case.name, package, f"  {package}: an update taken in and read", "ms", min(merges)[0] * 1e3, None, None)
            row(case.name, package, f"  {package}: kept", "kB", merges[0][1] / 1e3, None, None)
    taken = conflicts(size // 2, runs) * 1e3
    row("conflicts", "ms", f"{size // 2} values of 300 bytes that conflict", "ms", taken, None, GOALS["conflicts"])
    times, name = worst_texts((1 << 16 if options.quick else 16 << 20) // 3)[0]
    row("text", "worst", f"the worst text of 16 MiB by an ordinary one: {name}", "x", times, None, WORST_GOAL)
    documents = worst_documents((1 << 16 if options.quick else 16 << 20) // 3)
    other = next(times for times, name in documents if name == OTHER_ORDINARY)
    documents = [one for one in documents if one[1] != OTHER_ORDINARY]
    times, name = documents[0]
    row("document", "worst", f"the worst JSON of 16 MiB by an ordinary list: {name}", "x", times, None, WORST_GOAL)
    for times, name in documents[1:]:
        row("document", "bad", f"  {name}", "x", times, None, None)
    row("document", "other", "  (an ordinary object of objects by name", "x", other, None, None)
    row("document", "worst-by-other", f"   and the worst by that: {documents[0][1]})", "x", documents[0][0] / other, None, None)
    if PROCESS.exists():
        kinds = merging_memory.KINDS[:1] if options.quick else merging_memory.KINDS
        times, name = max((merging_memory.of_process(kind), kind) for kind in kinds)
        row("kinds", "memory", f"the most memory of all kinds, by the inputs: {name}", "x", times, None, MEMORY_GOAL)
    shutil.rmtree(folder)
    if options.json:
        with open(options.json, "a") as file:
            file.writelines(json.dumps(one) + "\n" for one in rows)


main()
