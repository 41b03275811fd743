"""Compares finding values with SQLite: indexes with indexes on expressions over the same JSON, and a projection with rows inserted by hand.

    python Benchmarks/bench_finding.py [--quick] [--runs 5] <folder>

Both sides are queried from Python, which takes most of the time of a small page: bench_index queries both from C. Figures are the least
times of the runs in milliseconds; for saves, in which other threads take part, they are medians. If both sides have a figure, the factor
between them follows, and the goal. After these come the same figures in processor time of all threads, for machines that are busy.
"""

import argparse
import json
import random
import shutil
import sqlite3
import statistics
import time
from pathlib import Path

import llvs

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def document(draw, number):
    """Returns a document of about 300 bytes."""
    return {
        "lastName": "".join(draw.choices(LETTERS, k=4)), "firstName": "".join(draw.choices(LETTERS, k=8)),
        "born": draw.randrange(1900, 2020), "number": number, "note": "".join(draw.choices(LETTERS, k=190)), "done": False,
    }  # fmt: skip


class Rows:
    """Times by name, and their output."""

    def __init__(self):
        self.times = {}

    def time(self, name, body):
        begin, worked = time.perf_counter(), time.process_time()
        found = body()
        self.times.setdefault(name, []).append(((time.perf_counter() - begin) * 1000, (time.process_time() - worked) * 1000))
        return found

    def show(self, title, ours, other=None, factor=None, most=None, which=min):
        shown = []
        for kind in range(2):
            took = which(times[kind] for times in self.times[ours])
            beside = which(times[kind] for times in self.times[other]) if other else None
            shown.append(f"{took:10.3f} ms" + (f"{beside:10.3f} ms {took / beside:6.2f} x" if beside else " " * 22))
        goal = f"at most {factor} x" if factor else f"at most {most} ms" if most else ""
        print(f"  {title:52}{shown[0]}   {goal:13}  processor{shown[1]}".rstrip())


def run(folder, rows, count, back):
    draw = random.Random(1)
    documents = [document(draw, i) for i in range(count)]
    texts = [json.dumps(one, separators=(",", ":")).encode() for one in documents]
    ids = [f"contact/{i:07}" for i in range(count)]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    definition = {"prefix": "contact/", "on": ["/lastName", "/firstName"]}
    hand = sqlite3.connect(folder / "hand.sqlite", isolation_level=None)
    hand.execute("PRAGMA journal_mode = WAL")
    hand.execute("PRAGMA synchronous = NORMAL")
    hand.execute("CREATE TABLE v(id TEXT PRIMARY KEY, data TEXT) WITHOUT ROWID")
    hand.execute("BEGIN")
    hand.executemany("INSERT INTO v VALUES (?, ?)", zip(ids, (text.decode() for text in texts)))
    hand.execute("COMMIT")
    rows.time("hand build", lambda: hand.execute("CREATE INDEX n ON v(data->>'$.lastName', data->>'$.firstName')").fetchall())
    with llvs.Store(folder / "store") as store:
        first = head = store.make_version(insert=dict(zip(ids, texts))).id
        for i in range(back):
            head = store.make_version(head, update={draw.choice(ids): json.dumps(document(draw, i)).encode()}).id
    # Evict everything that was built before from memory.
    shutil.rmtree(folder / "store" / "cache", ignore_errors=True)
    with llvs.Store(folder / "store") as store:
        index = store.index(definition=definition)
        rows.time("build", lambda: index.find(at=head).count())
        far = rows.time("far", lambda: list(index.range(low="m", high="n", at=first).page(100).entries))
        assert len(far) == 100 or count < 10_000
        for i in range(20):
            one = json.dumps(document(draw, i)).encode()
            head = store.make_version(head, update={draw.choice(ids): one}).id
            store.at(head).get(ids[0])
            rows.time("changed", lambda: index.find("zz", at=head).page(1))
        name = documents[7]["lastName"]
        equal = "SELECT id FROM v WHERE data->>'$.lastName' = ? LIMIT 100"
        between = "SELECT id FROM v WHERE data->>'$.lastName' BETWEEN ? AND ? ORDER BY data->>'$.lastName', data->>'$.firstName' LIMIT 100"
        for _ in range(50):
            rows.time("equal", lambda: index.find(name, at=head).page(100))
            rows.time("hand equal", lambda: hand.execute(equal, [name]).fetchall())
            rows.time("range", lambda: index.range(low="m", high="n", at=head).page(100))
            rows.time("hand range", lambda: hand.execute(between, ["m", "n"]).fetchall())
        with llvs.Store(folder / "store") as again:
            rows.time("opened", lambda: again.index(definition=definition).find(at=head).count())

        columns = [{"name": name, "pointer": "/" + name, "type": type} for name, type in
                   (("lastName", "text"), ("firstName", "text"), ("born", "integer"))]  # fmt: skip
        people = {"prefix": "contact/", "columns": columns}
        with llvs.sqlite.Projection(store, folder / "view.sqlite", {"tables": {"people": people}}) as view:
            rows.time("project", lambda: view.update(head))
            for i in range(20):
                head = store.make_version(head, update={draw.choice(ids): json.dumps(document(draw, i)).encode()}).id
                rows.time("update", lambda: view.update(head))
    hand.execute("CREATE TABLE people(id TEXT PRIMARY KEY, lastName TEXT, firstName TEXT, born INTEGER) WITHOUT ROWID")
    values = [(id, one["lastName"], one["firstName"], one["born"]) for id, one in zip(ids, documents)]

    def insert():
        hand.execute("BEGIN")
        hand.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", values)
        hand.execute("COMMIT")

    rows.time("hand project", insert)
    hand.execute("DROP TABLE people")
    hand.execute("CREATE TABLE people(id TEXT PRIMARY KEY, lastName TEXT, firstName TEXT, born INTEGER) WITHOUT ROWID")

    def parse_and_insert():
        hand.execute("BEGIN")
        parsed = ((id, json.loads(text)) for id, text in zip(ids, texts))
        hand.executemany(
            "INSERT INTO people VALUES (?, ?, ?, ?)", ((id, one["lastName"], one["firstName"], one["born"]) for id, one in parsed)
        )
        hand.execute("COMMIT")

    rows.time("hand parse", parse_and_insert)
    hand.close()
    shutil.rmtree(folder)


def save(folder, rows, saves):
    """Saves of one value through a coordinator: of a store without indexes, with five, and with five that are built at each version."""
    draw = random.Random(2)
    fields = ("lastName", "firstName", "born", "number", "done")
    rules = {"merge": 1, "indexes": {name: {"prefix": "contact/", "on": ["/" + name]} for name in fields}}
    kinds = {"save": (False, False), "save declared": (True, False), "save warm": (True, True)}
    opened, warm = {}, []
    for kind, (is_declared, is_warm) in kinds.items():
        opened[kind] = notes = llvs.Coordinator(folder / kind)
        notes.save(insert={f"contact/{i:07}": json.dumps(document(draw, i)).encode() for i in range(1_000)})
        if is_declared:
            notes.register_schema(rules)
        for name in fields if is_warm else ():
            warm.append(notes.index(name, warm=True))
            warm[-1].find().count()
    # Measure in turns, so that other work of the machine affects all alike.
    for turn in range(20):
        texts = [(f"contact/{draw.randrange(1_000):07}", json.dumps(document(draw, i)).encode()) for i in range(saves // 20)]
        for kind, notes in opened.items():

            def work():
                for id, text in texts:
                    notes.save(update={id: text})

            rows.time(kind, work)
    for notes in opened.values():
        notes.close()
    shutil.rmtree(folder)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--quick", action="store_true", help="whether it runs")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("folder", type=Path)
    given = options.parse_args()
    count, back = (2_000, 50) if given.quick else (100_000, 1_000)
    rows = Rows()
    for _ in range(1 if given.quick else given.runs):
        run(given.folder / "finding", rows, count, back)
        save(given.folder / "finding", rows, 200 if given.quick else 4_000)
    print(f"finding: {count} documents of about 300 bytes; ours, SQLite {sqlite3.sqlite_version} by hand")
    rows.show("an index is made", "build", "hand build")
    rows.show("it is read from the cache by another handle", "opened")
    rows.show("one value changed, and asked again", "changed", most=0.3)
    rows.show("a page of 100 by equality", "equal", "hand equal")
    rows.show("a page of 100 by range", "range", "hand range")
    rows.show(f"the same {back} versions back, the first time", "far", most=5)
    rows.show("a projection is made, beside inserting the rows", "project", "hand project", factor=1.5)
    rows.show("the same beside parsing the documents and inserting", "project", "hand parse")
    rows.show("its update after one changed value", "update", most=1)
    rows.show("saves with five indexes declared, beside none", "save declared", "save", factor=1.1, which=statistics.median)
    rows.show("saves with five that are prepared, beside none", "save warm", "save", factor=2.0, which=statistics.median)


if __name__ == "__main__":
    main()
