"""Makes the vectors in this folder with the reference model in Tests/Python/reference.py. README.md describes them.

    python3 Tests/Vectors/generate.py         writes them
    python3 Tests/Vectors/generate.py check   fails if the files here differ
"""

from __future__ import annotations

import math
import struct
import sys
from pathlib import Path
from random import Random
from typing import Any, Callable, Optional

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Python")]

import layout  # noqa: E402
from reference import Change, History, Preserve, PreserveRemoval, Remove, Set, Version  # noqa: E402

ARBITERS = ["most_recent_change", "most_recent_branch", "ours", "theirs"]


class Vector:
    """One history, and the merges to test in it."""

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, about
        self.history = History()
        self.merges: list[tuple[str, str, str, dict[bytes, bytes]]] = []
        self.pairs: list[tuple[str, str]] = []

    def version(
        self, id: str, *predecessors: str, at: float, metadata: Optional[dict[bytes, bytes]] = None, **values: Any
    ) -> str:
        """Adds a version. A value is text to set, None to remove, or a `Change`."""
        changes: dict[bytes, Change] = {}
        for key, value in values.items():
            if isinstance(value, str):
                changes[key.encode()] = Set(value.encode())
            else:
                changes[key.encode()] = Remove() if value is None else value
        return self.add(Version(id, predecessors, at, dict(sorted(changes.items())), metadata or {}))

    def add(self, version: Version) -> str:
        self.history.add(version)
        return version.id

    def merge(self, ours: str, theirs: str, arbiter: str = "most_recent_change", metadata: Optional[dict[bytes, bytes]] = None) -> None:
        """Adds a merge to test. Its result is not added to the history."""
        self.merges.append((ours, theirs, arbiter, metadata or {}))

    def all_merges(self, ours: str, theirs: str) -> None:
        for arbiter in ARBITERS:
            self.merge(ours, theirs, arbiter)
            self.merge(theirs, ours, arbiter)

    # Writing

    def json(self) -> dict[str, Any]:
        history = self.history
        return {
            "name": self.name,
            "about": self.about,
            "versions": [self._version(version) for version in history.versions.values()],
            "states": [self._state(id) for id in history.versions],
            "heads": history.heads(history.versions),
            "bases": [{"a": a, "b": b, "bases": history.bases(a, b)} for a, b in self.pairs],
            "differences": [
                {
                    "from": a,
                    "to": b,
                    "changes": [
                        {"kind": kind, "id": key.hex(), "version": version} for key, (kind, version) in history.difference(a, b).items()
                    ],
                }
                for a, b in self.pairs
            ],
            "merges": [self._merge(*merge) for merge in self.merges],
        }

    def _version(self, version: Version) -> dict[str, Any]:
        state = self.history.state(version.predecessors[0]) if version.predecessors else {}
        return {
            "id": version.id,
            "predecessors": list(version.predecessors),
            "timestamp": version.timestamp,
            "timestampBits": bits(version.timestamp),
            "metadata": [{"key": key.hex(), "value": value.hex()} for key, value in sorted(version.metadata.items())],
            "changes": [change_json(key, change, key in state) for key, change in sorted(version.changes.items())],
        }

    def _state(self, id: str) -> dict[str, Any]:
        state = self.history.state(id)
        return {
            "version": id,
            "values": [
                {"id": key.hex(), "version": stored, "data": self.history.data(key, stored).hex()} for key, stored in sorted(state.items())
            ],
        }

    def _merge(self, ours: str, theirs: str, arbiter: str, metadata: dict[bytes, bytes]) -> dict[str, Any]:
        history = self.history
        result = history.merge(ours, theirs, arbiter, metadata)
        found: dict[str, Any] = {
            "ours": ours,
            "theirs": theirs,
            "arbiter": arbiter,
            "metadata": [{"key": key.hex(), "value": value.hex()} for key, value in sorted(metadata.items())],
            "bases": history.bases(ours, theirs),
            "fastForward": result.id in (ours, theirs),
            "asksArbiter": False,
            "forks": [],
        }
        if result.id not in (ours, theirs):
            first, second = result.predecessors
            bases = history.bases(first, second)
            settled = history.equal_states(first, second) or (bases and history.merges_only(bases, first, second))
            if not settled:
                found["asksArbiter"] = True
                forks, _ = history.forks(first, second, bases)
                found["forks"] = [
                    {
                        "id": key.hex(),
                        "kind": fork.kind,
                        "side": fork.side,
                        "first": fork.first,
                        "second": fork.second,
                        "ancestor": fork.ancestor,
                    }
                    for key, fork in forks.items()
                ]
        new = result.id not in history.versions
        history.add(result)
        found["result"] = self._version(result)
        found["state"] = self._state(result.id)["values"]
        if new:
            history.forget(result.id)
        return found


def bits(timestamp: float) -> str:
    return struct.pack(">d", timestamp).hex()


def change_json(key: bytes, change: Change, present: bool) -> dict[str, Any]:
    if isinstance(change, Set):
        return {"kind": "update" if present else "insert", "id": key.hex(), "data": change.data.hex()}
    if isinstance(change, Preserve):
        return {"kind": "preserve", "id": key.hex(), "version": change.version}
    return {"kind": "remove" if isinstance(change, Remove) else "preserveRemoval", "id": key.hex()}


# The vectors


def table() -> list[Vector]:
    """Returns vectors for each row of the table of forks, and for the rules on bases, equal bytes and settled steps."""
    vectors = []

    def vector(name: str, about: str) -> Vector:
        vectors.append(Vector(name, about))
        return vectors[-1]

    v = vector("forks", "Every line of the table of forks, each under a value id of its name.")
    v.version("base", at=100.0, updated_first="o", updated_second="o", twice_updated="o", removed_first="o", removed_second="o",
              twice_removed="o", removed_and_updated_first="o", removed_and_updated_second="o", same="o", equal_bytes="o")  # fmt: skip
    v.version("older", "base", at=101.0, inserted_second="y", twice_inserted="y", updated_second="y", twice_updated="y",
     removed_second=None,
              twice_removed=None, removed_and_updated_first="y", removed_and_updated_second=None, equal_bytes="z")  # fmt: skip
    v.version("newer", "base", at=102.0, inserted_first="x", twice_inserted="x", updated_first="x", twice_updated="x", removed_first=None,
              twice_removed=None, removed_and_updated_first=None, removed_and_updated_second="x", equal_bytes="z")  # fmt: skip
    v.all_merges("older", "newer")
    v.merge("older", "newer", metadata={b"author": b'"ann"', b"\xc3\xa9": b""})

    v = vector("fast-forward", "One an ancestor of the other, and both the same.")
    v.version("a", at=1.0, k="1")
    v.version("b", "a", at=2.0, k="2")
    v.version("c", "b", at=3.0, k="3")
    for pair in (("a", "c"), ("c", "a"), ("b", "b")):
        v.merge(*pair)

    v = vector("unrelated", "No common ancestor: two-way, as if the ancestor were empty.")
    v.version("one", at=1.0, only_one="1", both="1", same="s")
    v.version("two", at=2.0, only_two="2", both="2", same="s")
    v.all_merges("one", "two")

    v = vector("equal-times", "Equal timestamps: the larger id is the newer.")
    v.version("base", at=5.0, k="o")
    v.version("B", "base", at=6.0, k="x")
    v.version("a", "base", at=6.0, k="y")
    v.all_merges("a", "B")

    v = vector("stored-later", "Most recent change compares the versions that stored the bytes, not the heads.")
    v.version("base", at=1.0, k="o")
    v.version("early", "base", at=2.0, k="early")
    v.version("late", "base", at=3.0, k="late")
    v.version("early-head", "early", at=10.0, other="1")
    v.version("late-head", "late", at=4.0, other="2")
    v.all_merges("early-head", "late-head")

    v = vector("equal-bytes", "Different references with identical bytes are no fork; the one stored later is preserved.")
    v.version("base", at=1.0, k="o")
    v.version("one", "base", at=2.0, k="same", left="1")
    v.version("two", "base", at=3.0, k="same", right="2")
    v.version("one-head", "one", at=9.0, left="3")
    v.all_merges("one-head", "two")

    v = vector(
        "equal-states", "Versions with equal states that were saved merge without asking, into an empty version with empty metadata."
    )
    v.version("base", at=1.0, k="o")
    v.version("one", "base", at=2.0, metadata={b"a": b"1"})
    v.version("two", "base", at=3.0, metadata={b"a": b"2"})
    v.merge("one", "two", "ours", {b"author": b'"ann"'})
    v.merge("two", "one", "theirs")

    v = vector(
        "answered-twice", "Both sides hold merges only since their common ancestors: the larger answer stands, which has the later value."
    )
    v.version("base", at=1.0, k="o")
    v.version("one", "base", at=2.0, k="x")
    v.version("two", "base", at=3.0, k="y")
    v.add(v.history.merge("one", "two", "ours", {b"by": b'"ann"'}))
    v.add(v.history.merge("one", "two", "theirs", {b"by": b'"bob"'}))
    heads = v.history.heads(v.history.versions)
    v.all_merges(*heads)

    def answer(x: str, y: str, arbiter: str, metadata: Optional[dict[bytes, bytes]] = None) -> str:
        return v.add(v.history.merge(x, y, arbiter, metadata))

    v = vector("answered-differently", "The first id at which two answers differ tells which is the larger, and all of that one stands.")
    v.version("base", at=1.0, k="o", l="o", m="o", n="o", only="o")
    v.version("one", "base", at=2.0, k="1", l="1", m="1", n="1", only=None)
    v.version("two", "base", at=3.0, k="2", l="2", m="2", n="2", only="2")
    answers = [answer("one", "two", arbiter, {b"by": arbiter.encode()}) for arbiter in ARBITERS[1:3]]
    # Like resolutions by hand: an earlier value for one id, a removal, the same bytes stored again, and an id that no other answer has.
    for by, change in enumerate(({b"l": Preserve("one")}, {b"k": Remove()}, {b"k": Set(b"2")}, {b"only": Remove(), b"a": Set(b"new")})):
        answers.append(
            v.add(
                v.history.merge("one", "two", lambda forks: {**{key: Preserve("two") for key in forks}, **change}, {b"hand": b'"%d"' % by})
            )
        )
    for i, one in enumerate(answers):
        for other in answers[:i]:
            v.merge(one, other)

    v = vector("answers-in-turns", "Two answers of which each device made its own the newer again and again, when the newer stood.")
    v.version("base", at=1.0, title="draft")
    v.version("one", "base", at=2.0, title="one")
    v.version("two", "base", at=3.0, title="two")
    v.version("three", "base", at=3.0 + 5e-7, title="three")
    mine, theirs = answer("one", "two", "theirs"), answer("one", "three", "ours")
    mine = answer(*(answer(mine, "three", "ours", {b"try": try_}) for try_ in (b"1", b"2")), "ours")
    sent, kept = (answer(theirs, "two", "ours", {b"try": try_}) for try_ in (b"1", b"2"))
    theirs = answer(sent, kept, "ours")
    for arbiter in ARBITERS[:2]:
        v.merge(mine, sent, arbiter)
        v.merge(theirs, mine, arbiter, {b"by": b'"ann"'})
        mine, sent, theirs = answer(mine, sent, "ours"), theirs, answer(mine, theirs, "ours")

    v = vector("criss-cross", "Two best common ancestors, folded into a virtual base.")
    v.version("base", at=1.0, k="o", l="o", m="o", gone="o")
    v.version("a", "base", at=2.0, k="a", l="a", gone=None)
    v.version("b", "base", at=3.0, k="b", m="b", gone="b")
    x = v.add(v.history.merge("a", "b", "most_recent_change", {b"x": b"1"}))
    y = v.add(v.history.merge("a", "b", "most_recent_branch", {b"y": b"1"}))
    v.version("x-head", x, at=10.0, k="xx", gone=None)
    v.version("y-head", y, at=11.0, m="yy")
    v.all_merges("x-head", "y-head")
    v.version("x-other", x, at=12.0, n="1", k="b")
    v.all_merges("x-other", "y-head")

    v = vector("ladder", "A ladder of criss-crosses: recursive virtual bases.")
    left, right = v.version("root", at=1.0, k="0", j="0"), "root"
    left, right = v.version("l0", "root", at=2.0, k="l0"), v.version("r0", "root", at=3.0, k="r0", j="r0")
    for rung in range(1, 7):
        one = v.history.merge(left, right, "ours", {b"rung": str(rung).encode()})
        other = v.history.merge(right, left, "ours", {b"rung": b"-" + str(rung).encode()})
        v.add(one), v.add(other)
        left = v.version(f"l{rung}", one.id, at=10.0 * rung + 1, **({"k": f"l{rung}"} if rung % 2 else {"j": f"l{rung}"}))
        right = v.version(f"r{rung}", other.id, at=10.0 * rung + 2, **({"k": f"r{rung}"} if rung % 3 else {"n": f"r{rung}"}))
        v.all_merges(left, right)

    v = vector("ids-are-bytes", "Ids that Unicode takes for equal, that hold NUL, that sort otherwise as UTF-16.")
    ids = ["é", "e\u0301", "\0", "\U0001f600", "\uffff", "A", "a", "..", "x" * 4096]
    for name, at, value in (("base", 1.0, b"o"), ("one", 2.0, b"x"), ("two", 3.0, b"y")):
        v.add(Version(name, () if name == "base" else ("base",), at, {id.encode(): Set(value) for id in sorted(ids, key=str.encode)}))
    v.merge("one", "two")

    v = vector("times", "The timestamp of a merge is the newer's plus a microsecond, or the next double.")
    v.version("base", at=-1.5, k="o")
    v.version("a", "base", at=1e300, k="a")
    v.version("b", "base", at=0.1, k="b")
    v.version("c", "base", at=816922943.5697973, k="c")
    v.version("d", "base", at=math.nextafter(816922943.5697973, math.inf), k="d")
    for pair in (("a", "b"), ("b", "c"), ("c", "d")):
        v.merge(*pair)
    return vectors


def random_vector(seed: int) -> Vector:
    """Returns a random history of saves and merges."""
    dice = Random(seed)
    v = Vector(f"random-{seed}", "Made by chance.")
    keys = ["a", "b", "c", "é"]
    data = ["", "0", "1", "2", "same"]

    def some() -> dict[str, Any]:
        return {dice.choice(keys): dice.choice(data) for _ in range(dice.randint(1, 3))}

    ids = [v.version("v0", at=dice.choice((0.0, 1.5)), **some())]
    for index in range(1, 22):
        recent = ids[-5:]
        if dice.random() < 0.45 and len(recent) > 1:
            a, b = dice.sample(recent, 2)
            merged = v.history.merge(a, b, dice.choice(ARBITERS), dice.choice(({}, {}, {b"n": str(index).encode()})))
            if merged.id not in v.history.versions:
                ids.append(v.add(merged))
            continue
        base = () if dice.random() < 0.03 else (dice.choice(recent),)
        before = v.history.state(base[0]) if base else {}
        changes: dict[str, Any] = some()
        gone = dice.choice(keys)
        if dice.random() < 0.3 and gone.encode() in before:
            changes[gone] = None
        at = max((v.history.versions[id].timestamp for id in base), default=0.0) + dice.choice((0.5, 1.0, 1e-6))
        ids.append(v.version(f"v{index}", *base, at=at, **changes))
    tops = v.history.heads(v.history.versions)
    for _ in range(8):
        a, b = dice.choice(ids[-6:] + tops), dice.choice(ids[-6:] + tops)
        v.merge(a, b, dice.choice(ARBITERS), dice.choice(({}, {b"author": b'"ann"'})))
        v.pairs.append((a, b))
    return v


def files() -> dict[str, str]:
    """Returns the files that belong into this folder, by name."""
    groups: dict[str, Callable[[], list[Vector]]] = {
        "merging": table,
        "random": lambda: [random_vector(seed) for seed in range(1, 26)],
    }
    made = {}
    for name, make in groups.items():
        vectors = []
        for vector in make():
            vector.pairs += [(ours, theirs) for ours, theirs, arbiter, _ in vector.merges if arbiter == "most_recent_change"]
            vectors.append(vector.json())
        made[f"{name}.json"] = layout.text({"format": 1, "vectors": vectors})
    return made


def main() -> int:
    wrong = 0
    for name, content in files().items():
        if sys.argv[1:] == ["check"]:
            if (HERE / name).read_text() != content:
                print(f"{name} is not what the reference model makes; run {Path(__file__).name}")
                wrong = 1
        else:
            (HERE / name).write_text(content)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
