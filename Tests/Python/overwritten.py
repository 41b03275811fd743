"""Finds merges in which an edit loses to the value that it had overwritten.

    overwritten.py [--histories N] [--seed S] [--engine] [--show]

Two or three devices edit two members of one object and merge with one another. Each edit writes a number that no other edit writes. It is a
fault if a merge has a number that one of its sides had replaced, in one edit or several. The script counts the histories with a fault and
shows the first of them, shortened. The exit status is 1 if there is any.

It also counts the histories in which such an edit had lost to a third number before, on a side: recency is that of the whole object, so
three edits of one member can each win over the next one. The merges record those as conflicts.

The model in `documents` merges; with --engine also the library, which must give the same.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from typing import NamedTuple, Optional

from documents import rules as r
from documents.versions import Graph, Held

RULES = b'{"merge":1,"ids":{"a":"auto"}}'


class Step(NamedTuple):
    """A step of a device: it edits members of its object, or it merges a version of another device."""

    device: int
    #: The members that it edits; empty for a merge.
    members: str = ""
    #: The device with which it merges, and how many versions of that device have not arrived yet.
    other: int = 0
    late: int = 0

    def __str__(self) -> str:
        if self.members:
            return f"device {self.device} edits {' and '.join(self.members)}"
        return f"device {self.device} merges what device {self.other} had" + (f" {self.late} steps before" if self.late else "")


def random_steps(seed: int) -> list[Step]:
    """Returns the steps of one history of two or three devices."""
    chance = random.Random(seed)
    devices = chance.randrange(2, 4)
    steps = []
    for _ in range(chance.randrange(20, 60)):
        device = chance.randrange(devices)
        if chance.randrange(2):
            steps.append(Step(device, chance.choice(["p", "p", "q", "q", "pq"])))
        else:
            other = (device + chance.randrange(1, devices)) % devices
            steps.append(Step(device, other=other, late=chance.choice([0, 0, 1, 1, 2, 3])))
    return steps


class Run:
    """One history by the model. `faults` has for each fault the merge, the member, and the number in the result."""

    def __init__(self, steps: list[Step]) -> None:
        self.graph, self.rules = Graph(), r.parse_schema(RULES).rules("a")
        #: The numbers that each edit replaced.
        self.replaced: dict[str, dict[str, int]] = {}
        self.merges: dict[str, tuple[str, str]] = {}
        #: The step, the version that it made, and the predecessors of that.
        self.told: list[tuple[Step, str, tuple[str, ...]]] = []
        self.faults: list[tuple[str, str, int]] = []
        #: The faults whose edit had lost to a third number before.
        self.roundabout: list[tuple[str, str, int]] = []
        #: The merges in that list whose member neither their own records nor records of an earlier merge name.
        self.untold: list[str] = []
        self.recorded: dict[str, set[str]] = {}
        self.graph.add("o", 1.0, (), {"a": Held(b'{"p":0,"q":0}', (1.0, "o"), "o")})
        #: The versions of each device, in order of time.
        been = [["o"] for _ in range(3)]
        for number, step in enumerate(steps, 1):
            at = been[step.device][-1]
            made = self.edit(number, step, at) if step.members else self.merge(number, step, at, been[step.other][: -step.late or None])
            if made is not None:
                been[step.device].append(made)

    def value(self, version: str) -> dict[str, int]:
        """Returns the object at a version."""
        made: dict[str, int] = json.loads(self.graph.states[version]["a"].data)
        return made

    def edit(self, number: int, step: Step, at: str) -> str:
        """Writes a new number to each member, which no other edit writes."""
        value, name, time = self.value(at), f"e{number}", 1.0 + number
        self.replaced[name] = {member: value[member] for member in step.members}
        data = json.dumps({**value, **{member: 10 * number + "pq".index(member) for member in step.members}}, separators=(",", ":"))
        self.graph.add(name, time, (at,), {"a": Held(data.encode(), (time, name), name)})
        self.told.append((step, name, (at,)))
        return name

    def merge(self, number: int, step: Step, a: str, arrived: list[str]) -> Optional[str]:
        """Returns the merge that the device makes, or the version to which it fast-forwards; None if there is nothing to do."""
        above, b = self.graph.above, arrived[-1] if arrived else "o"
        if b in above[a]:
            return None
        if a in above[b]:
            return b
        if (above[a] ^ above[b]) <= self.merges.keys():
            return None  # two merges of the same two versions: not merged by rules
        name, time = f"m{number}", max(self.graph.times[a], self.graph.times[b]) + 1e-6
        outcome = self.graph.merge("a", a, b, self.rules)
        assert outcome.held is not None
        held = outcome.same_as or Held(outcome.held.data, outcome.held.recency, name)
        self.graph.add(name, time, (a, b), {"a": held})
        self.merges[name] = a, b
        self.recorded[name] = {str(record.path[0]) for record in outcome.records}
        self.told.append((step, name, (a, b)))
        for member, stands in self.value(name).items():
            if any(self.replaced.get(edit, {}).get(member) == stands for edit in above[a] | above[b]):
                lost = {self.value(side)[member] for side in (a, b)}
                found = self.faults if any(self.is_made_of(one, stands, member) for one in lost) else self.roundabout
                found.append((name, member, stands))
                if not any(member in self.recorded.get(version, ()) for version in above[name]):
                    self.untold.append(name)
        return name

    def is_made_of(self, number: int, other: int, member: str) -> bool:
        """Returns whether an edit, or several in a row, replaced one number by another."""
        while number != other and number:
            number = self.replaced[f"e{number // 10}"][member]
            if number == other:
                return True
        return False


def shortened(steps: list[Step]) -> list[Step]:
    """Returns as few of the steps as still show a fault."""
    index = 0
    while index < len(steps):
        fewer = steps[:index] + steps[index + 1 :]
        steps, index = (fewer, 0) if Run(fewer).faults else (steps, index + 1)
    for index, step in enumerate(steps):
        for members in "pq":
            fewer = [*steps[:index], step._replace(members=members), *steps[index + 1 :]]
            if len(steps[index].members) > 1 and Run(fewer).faults:
                steps = fewer
    return steps


def differences(run: Run) -> list[str]:
    """Returns the versions whose contents differ between the library and the model."""
    import llvs

    found = []
    with llvs.Store(storage="memory") as store:
        ids = {"o": store.make_version(insert={"a": b'{"p":0,"q":0}', "__llvs_schema": RULES}, timestamp=1e9).id}
        for number, (step, name, on) in enumerate(run.told, 1):
            data = run.graph.states[name]["a"].data
            if step.members:
                ids[name] = store.make_version(ids[on[0]], update={"a": data}, timestamp=1e9 + run.graph.times[name]).id
            else:
                ids[name] = store.merge(ids[on[0]], ids[on[1]], metadata={"by": number}).id
            if json.loads(store.at(ids[name])["a"]) != json.loads(data):
                found.append(name)
    return found


def told(run: Run) -> str:
    """Returns the history, step by step."""
    lines = [f"  {name} on {' and '.join(on)}: {step}: {run.graph.states[name]['a'].data.decode()}" for step, name, on in run.told]
    lines += [f"  In {name} {member} is {stands}, which an edit behind it replaced." for name, member, stands in run.faults]
    return "\n".join(lines)


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--histories", type=int, default=1500, help="how many (1500)")
    parser.add_argument("--seed", type=int, default=0, help="the first one's seed (0)")
    parser.add_argument("--engine", action="store_true", help="the library's merges, too")
    parser.add_argument("--show", action="store_true", help="shorten and show each history that fails, not only the first")
    given = parser.parse_args()
    failed, others, merges, roundabout = [], [], 0, 0
    for seed in range(given.seed, given.seed + given.histories):
        run = Run(random_steps(seed))
        merges += len(run.merges)
        roundabout += bool(run.roundabout)
        if run.faults:
            failed.append(seed)
        if given.engine and differences(run):
            others.append(seed)
    print(f"{len(failed)} of {given.histories} histories with {merges} merges: an edit lost to a value that it had overwritten")
    print(f"{roundabout} histories in which it had lost to a third value before")
    for seed in failed if given.show else failed[:1]:
        print(f"seed {seed}:\n{told(Run(shortened(random_steps(seed))))}")
    if others:
        print(f"the library differs from the model in the histories of the seeds {others}")
    return 1 if failed or others else 0


if __name__ == "__main__":
    sys.exit(main())
