"""Compares the Python package with Python's sqlite3 on the yardstick's table, durability normal on both sides; and measures `import llvs`.

    python Benchmarks/bench_python.py [--quick] [--runs 5] [--n 100000] [--json figures.json] <folder>

With --json the rows are appended to the file. Each run loads both sides again, which then fetch several times in turn. Figures are medians.
"""

import argparse
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import llvs

BATCH = 1000
#: How often each side fetches in a run.
ROUNDS = 5
SIDES = ("ours", "yardstick")


def connect(path):
    """Returns a connection with the schema of yardstick.sql."""
    sections = {
        part.split("\n", 1)[0]: part.split("\n", 1)[1]
        for part in (Path(__file__).parent / "yardstick.sql").read_text().split("-- name: ")[1:]
    }
    database = sqlite3.connect(path, isolation_level=None, cached_statements=64)
    database.executescript(sections["connection"] + "PRAGMA synchronous = NORMAL;" + sections["schema"].split("-- One")[0])
    return database


def turn(number):
    """Returns the sides in the order of this turn."""
    return SIDES if number % 2 else SIDES[::-1]


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def load_ours(path, values):
    store = llvs.Store(path, durability="normal")
    seconds, version = timed(lambda: store.make_version(insert=values))
    return seconds, store, version


def load_yardstick(path, values):
    database = connect(path)

    def load():
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO versions (uuid, generation, time) VALUES (?, 0, ?)", (str(uuid.uuid4()), time.time()))
        database.executemany("INSERT INTO kv (key, version, data) VALUES (?, 1, ?)", sorted(values.items()))
        database.execute("COMMIT")

    return timed(load)[0], database, 1


def fetch_ours(store, version, ids):
    def one_at_a_time():
        return [store.value(id, at=version).data for id in ids]

    def in_batches():
        return [value.data for i in range(0, len(ids), BATCH) for value in store.values(ids[i : i + BATCH], at=version)]

    return one_at_a_time, in_batches


def fetch_yardstick(database, version, ids):
    one = "SELECT data FROM kv WHERE key = ? AND version <= ? ORDER BY version DESC LIMIT 1"
    # In a group with one max(), SQLite takes the other columns from the row of the maximum.
    many = f"SELECT key, data, max(version) FROM kv WHERE key IN ({','.join('?' * BATCH)}) AND version <= ? GROUP BY key"

    def one_at_a_time():
        return [database.execute(one, (id, version)).fetchone()[0] for id in ids]

    def in_batches():
        out = []
        for i in range(0, len(ids), BATCH):
            batch = ids[i : i + BATCH]
            found = {key: data for key, data, _ in database.execute(many, (*batch, version))}
            out += [found[id] for id in batch]
        return out

    return one_at_a_time, in_batches


def measure(folder, count, runs):
    draw = random.Random(1)
    values = {str(uuid.UUID(int=draw.getrandbits(128))).upper(): draw.randbytes(100) for _ in range(count)}
    ids = draw.choices(list(values), k=max(count // 5 // BATCH, 1) * BATCH)
    times = {(what, side): [] for what in ("load", "one", "batch") for side in SIDES}
    for run in range(runs):
        fetches, places = {}, []
        for side in turn(run):
            load, fetch = (load_ours, fetch_ours) if side == "ours" else (load_yardstick, fetch_yardstick)
            seconds, place, version = load(str(folder / f"python-{run}-{side}"), values)
            times["load", side].append(seconds)
            places.append(place)
            one, batch = fetch(place, version, ids)
            assert one() == batch() == [values[id] for id in ids]
            fetches["one", side], fetches["batch", side] = one, batch
        for round in range(ROUNDS):
            for what in ("one", "batch"):
                for side in turn(run + round):
                    times[what, side].append(timed(fetches[what, side])[0])
        for place in places:
            place.close()
    return {key: statistics.median(seconds) for key, seconds in times.items()}, len(ids)


def starts(code, times):
    """Returns the milliseconds that Python takes to start and run a program."""
    found = []
    for _ in range(times):
        seconds, _ = timed(lambda: subprocess.run([sys.executable, "-c", code], check=True))
        found.append(seconds * 1e3)
    return statistics.median(found)


def measure_import(times):
    """Measures by how many milliseconds `import llvs` delays the start of Python, alone and with a first store."""
    with tempfile.TemporaryDirectory() as compiled:
        # Compile modules once, as in an installed package.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = compiled
        codes = ("pass", "import llvs", "import llvs; llvs.Store(storage='memory').close()")
        nothing, *found = (starts(code, 1) and starts(code, times) for code in codes)
        del os.environ["PYTHONPYCACHEPREFIX"]
        return [one - nothing for one in found]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--n", type=int, default=100000)
    parser.add_argument("--json")
    parser.add_argument("folder")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.n = 1, 2000
    folder = Path(options.folder) / "bench_python"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    times, fetched = measure(folder, options.n, options.runs)
    shutil.rmtree(folder)

    def rate(what, side):
        return fetched / times[what, side]

    # Compared with the faster way to fetch many values from SQLite.
    best = max(rate("one", "yardstick"), rate("batch", "yardstick"))
    rows = [
        ("fetch-one", "Python: fetch, one at a time", "/s", "more", rate("one", "ours"), rate("one", "yardstick"), 1.0),
        ("fetch-batch", "Python: fetch, in batches of 1,000", "/s", "more", rate("batch", "ours"), best, 3.0),
        ("load", "Python: load from a dict", "ms", "less", times["load", "ours"] * 1e3, times["load", "yardstick"] * 1e3, 1.0),
    ]
    print(f"\n{options.n} values of 100 bytes, from Python, medians of {options.runs}")
    alone, with_store = measure_import(3 if options.quick else 15)
    verdict = "-" if options.quick else "reached" if alone <= 25 else "MISSED"
    print(f"  {'Python: import llvs':40} {alone:12.6g} {'':12} {'ms':6} {'':9}  <= 25 ms      {verdict}")
    print(f"  {'Python: import llvs, and a first store':40} {with_store:12.6g} {'':12} {'ms':6}")
    for metric, label, unit, better, ours, yardstick, goal in rows:
        ratio = ours / yardstick
        reached = ratio >= goal if better == "more" else ratio <= goal
        verdict = "-" if options.quick else "reached" if reached else "MISSED"
        print(
            f"  {label:40} {ours:12.6g} {yardstick:12.6g} {unit:6} {ratio:8.3f}x  {'>=' if better == 'more' else '<='} {goal:g}x{'':8}"
            f" {verdict}"
        )
        if options.json:
            row = {"workload": "python", "metric": metric, "label": label, "unit": unit, "n": options.n, "ids": "uuid", "value_size": 100,
                   "storage": "file", "runs": options.runs, "ours": ours, "yardstick": yardstick, "ratio": ratio, "goal": goal,
                   "goal_is": "ratio", "goal_at_this_n": options.n == 100000, "reached": reached, "better": better}
            with open(options.json, "a") as file:
                file.write(json.dumps(row) + "\n")
    print(f"  (sqlite3 with IN of 1,000 ids: {rate('batch', 'yardstick'):,.0f} /s)")


main()
