"""Measures the peak of memory of a merge inside a value, divided by the size of its three inputs (on Linux).

    python Benchmarks/merging_memory.py                   # each kind, in a process of its own
    python Benchmarks/merging_memory.py "list of digits"

Long lists, sets and texts of which 200 parts were replaced, removed and moved on each side; and some that have nothing in common, or
conflict everywhere. The memory of the result and the conflicts in Python is included.
"""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

GOAL = 6
COUNT = 60_000
KINDS = [
    "list of numbers", "list of words", "list of objects", "set of numbers", "set of words", "set of objects", "list of other numbers",
    "list of other keys", "list of digits", "set of other numbers", "set of other keys", "text of unique words", "text of other words",
    "text of characters", "auto conflicts", "deep lists", "empty lists", "list of one key", "deep objects",
    "levels of one key", "levels of two children",
]  # fmt: skip
#: Kinds that take more memory: they have very many conflicts for the size of the values.
MORE = ["members in other orders"]
STATUS = Path("/proc/self/status")


def told(name):
    return int(re.search(name + r":\s*(\d+)", STATUS.read_text())[1]) * 1024


def spelled(value):
    return json.dumps(value, separators=(",", ":")).encode()


def edited(kind, draw):
    """Returns a list of words, numbers or objects, and the lists of two sides that edited it."""

    def element(number):
        return {"objects": {"id": number, "n": f"name {number}"}, "numbers": number}.get(kind.split()[-1], f"word {number}")

    base = [element(i + 10**6) for i in range(COUNT)]
    sides = [base]
    for side in (1, 2):
        other = list(base)
        for number in range(200):
            other[draw.randrange(COUNT - 200)] = element(side * 10**7 + number)
            del other[draw.randrange(COUNT - 200)]
            other.insert(draw.randrange(COUNT - 200), other.pop(draw.randrange(COUNT - 200)))
        sides.append(other)
    return sides


def nested(value, kind, levels):
    """Returns a value inside a number of nested lists, or objects."""
    for _ in range(levels):
        value = [value] if kind == "[]" else {"a": value}
    return value


def inputs(kind):
    """Returns base, newer and older, and the rules."""
    draw, rules = random.Random(1), {"": kind.split()[0]}

    def word():
        return "".join(draw.choices("etaoinshrdlu", k=draw.randrange(2, 9)))

    if kind == "text of characters":
        return [bytes(draw.choice(b"ab") for _ in range(1_500_000)) for _ in range(3)], {"": {"as": "text", "unit": "char"}}
    if kind == "text of other words":
        return [" ".join(word() for _ in range(3 * COUNT)).encode() for _ in range(3)], rules
    if kind == "text of unique words":
        return [" ".join(element.replace(" ", "") for element in value).encode() for value in edited(kind, draw)], rules
    if kind == "list of digits":
        return [spelled([draw.randrange(10) for _ in range(4 * COUNT)]) for _ in range(3)], rules
    if kind.endswith("other numbers"):
        return [spelled([draw.randrange(10**8, 10**9) for _ in range(COUNT)]) for _ in range(3)], rules
    if kind.endswith("other keys"):
        rules = {"": {"as": kind.split()[0], "key": ["/id"]}}
        return [spelled([{"id": draw.randrange(10**8, 10**9)} for _ in range(COUNT)]) for _ in range(3)], rules
    if kind == "deep lists":
        return [spelled([nested(draw.randrange(10), "[]", 120) for _ in range(COUNT // 60)]) for _ in range(3)], {"": "auto"}
    if kind == "deep objects":
        return [spelled([{"id": i, "v": nested(side, "{}", 118)} for i in range(COUNT // 120)]) for side in range(3)], {"": "auto"}
    if kind == "empty lists":
        return [spelled([[]] * (4 * COUNT - 5 * i)) for i in range(3)], {"": "auto"}
    if kind == "list of one key":
        values = [spelled([{"k": 1, "n": draw.randrange(10)} for _ in range(COUNT)]) for _ in range(3)]
        return values, {"": {"as": "list", "key": ["/k"]}}
    if kind == "levels of one key":
        return [spelled([json.loads('[{"id":1,"v":' * 60 + str(side) + "}]" * 60)] * (COUNT // 40)) for side in range(3)], {"": "auto"}
    if kind == "levels of two children":
        towers = [["[" * 120 + f"{i}.{side}" + f",{side}]" * 120 for i in range(COUNT // 16)] for side in range(3)]
        return [("[" + ",".join(one) + "]").encode() for one in towers], {"": "auto"}
    if kind == "members in other orders":
        names = [f"{i:07}" for i in range(4 * COUNT)]
        return [spelled(dict.fromkeys(draw.sample(names, len(names)), side)) for side in range(3)], {"": "auto"}
    if kind == "auto conflicts":
        return [spelled({f"member {i}": f"{side} {i}" for i in range(100_000)}) for side in "oxy"], rules
    return [spelled(value) for value in edited(kind, draw)], rules


def most(kind):
    """Returns the peak of memory divided by the size of the inputs."""
    import llvs

    values, rules = inputs(kind)
    llvs.merge.merge_values(b"[1]", b"[2]", b"[3]", rules)
    # On Linux, writing 5 to clear_refs resets the peak of memory.
    Path("/proc/self/clear_refs").write_text("5")
    before = told("VmRSS")
    merged = llvs.merge.merge_values(*values, rules)
    taken = told("VmHWM") - before
    assert merged.data
    return taken / sum(map(len, values))


def of_process(kind):
    """Returns the same, measured in a process that does nothing else."""
    done = subprocess.run([sys.executable, __file__, kind], capture_output=True, check=True, text=True)
    return float(done.stdout)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(most(sys.argv[1]))
    else:
        for kind in KINDS + MORE:
            print(f"{kind:30} {of_process(kind):6.2f} x")
