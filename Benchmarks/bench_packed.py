"""Measures the cost of encryption in the packed layout: sends the same versions to a folder that is not encrypted and to one that is, and
retrieves them from both.

    python Benchmarks/bench_packed.py [--quick] [--runs 5] <folder>

Versions of one value of 300 bytes. The two sides take turns. Figures are the least times, in milliseconds, the factor between the two, and
the goal. Making the keys of a place, which is done once and waits for ten seconds, does not count. Deriving a key from a passphrase does
not count either: an identity is used.
"""

import argparse
import random
import shutil
import time
from pathlib import Path

import llvs

KINDS = ("clear", "encrypted")


class Times:
    """The least times by name."""

    def __init__(self):
        self.least = {}

    def take(self, name, body):
        begin = time.perf_counter()
        found = body()
        taken = (time.perf_counter() - begin) * 1000
        self.least[name] = min(taken, self.least.get(name, taken))
        return found

    def show(self, title, what, goal=None):
        clear, encrypted = (self.least[f"{what} {kind}"] for kind in KINDS)
        most = f"at most {goal} x" if goal else ""
        print(f"  {title:44}{encrypted:10.1f} ms{clear:10.1f} ms {encrypted / clear:6.3f} x   {most}")


def save(store, draw, count):
    head = store.most_recent_head
    changes = []
    for _ in range(count):
        head = store.make_version(head, insert={f"v/{draw.randrange(1_000):04}": draw.randbytes(150).hex().encode()})
        changes.append(head.id)
    return changes


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--quick", action="store_true", help="whether it runs")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("folder", type=Path)
    given = options.parse_args()
    count = 500 if given.quick else 20_000
    folder, draw, times = given.folder / "packed", random.Random(1), Times()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    identity = llvs.exchange.make_identity()
    options = {"clear": {"layout": "packed"}, "encrypted": {"identity": identity.secret}}
    places = {kind: llvs.Remote((folder / kind).as_uri(), **options[kind]) for kind in KINDS}
    with llvs.Store(folder / "store") as store:
        ways = {kind: llvs.Exchange(store, places[kind]) for kind in KINDS}
        save(store, draw, 1)
        for way in ways.values():
            way.retrieve()
            way.send()
        for _ in range(1 if given.quick else given.runs):
            made = save(store, draw, count)
            for kind in KINDS:
                sent = times.take(f"send {kind}", ways[kind].send).sent
                assert len(sent) == len(made), kind
        for way in ways.values():
            way.close()
    for turn in range(1 if given.quick else given.runs):
        for kind in KINDS:
            with llvs.Store("", storage="memory") as other, llvs.Exchange(other, places[kind]) as way:
                assert len(times.take(f"retrieve {kind}", way.retrieve).retrieved) > count
    print(f"packed: {count} versions; encrypted, in clear")
    times.show("they are sent", "send", goal=1.1)
    times.show("a new device retrieves all", "retrieve")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
