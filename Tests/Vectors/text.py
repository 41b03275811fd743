"""Makes the text form of vectors: the contents of their JSON, for programs without a JSON parser.

    python3 Tests/Vectors/text.py NAME          prints the text form of merging, random, index-keys or documents/vectors
    python3 Tests/Vectors/text.py --in FOLDER   writes all of them into FOLDER: merging.txt, random.txt, ...

One item a line, words separated by one space, lines of at most 64 KiB. README.md describes the lines of merging and random,
docs/index-keys.md those of index-keys. In documents/vectors, which is made of vectors.json and histories.json, names, rules, values and
metadata are hexadecimal; `-` is absent, `.` empty:

    merge <saving> <rules> <base> <newer> <older> <result> <digest> <name>     for a value with the id "a"
    history <rules> <name>                                                     then its versions, on one that holds the rules:
    save <version> <time> <predecessor> <value> <storing version>
    join <version> <ours> <theirs> <arbiter> <metadata "device"> <value> <storing version> <kinds of conflicts, or ?>
    end
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

HERE = Path(__file__).resolve().parent
LONGEST = 1 << 16


def read(name: str) -> Any:
    """Returns what a file of vectors holds."""
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def text(name: str) -> str:
    """Returns the text form of the vectors of that name."""
    lines = list(FORMS[name]())
    assert all(len(line) < LONGEST for line in lines), f"{name} has a line that is too long"
    return "\n".join(lines) + "\n"


# Histories of versions: README.md says what the lines mean.


def histories(name: str) -> Iterator[str]:
    """Yields the lines of merging or random."""
    for vector in read(name)["vectors"]:
        yield from history(vector)


def word(value: Optional[str]) -> str:
    return value if value else "-"


def history(vector: dict[str, Any]) -> Iterator[str]:
    yield f"vector {vector['name']}"
    for version in vector["versions"]:
        yield f"version {version['id']} {version['timestampBits']} {' '.join(version['predecessors']) or '-'}"
        yield f"versionfile {version_file(version)}"
        yield f"changesfile {changes_file(version)}"
    for state in vector["states"]:
        yield f"state {state['version']} {len(state['values'])}"
        yield from values(state["values"])
    yield from (f"head {id}" for id in vector["heads"])
    for pair in vector["bases"]:
        yield " ".join(["bases", pair["a"], pair["b"], *pair["bases"]])
    for pair in vector["differences"]:
        yield f"difference {pair['from']} {pair['to']} {len(pair['changes'])}"
        yield from (f"change {change['kind']} {change['id']} {word(change['version'])}" for change in pair["changes"])
    for merge in vector["merges"]:
        yield f"merge {merge['ours']} {merge['theirs']} {merge['arbiter']}"
        yield from (f"metadata {entry['key']} {word(entry['value'])}" for entry in merge["metadata"])
        for fork in merge["forks"]:
            yield " ".join(["fork", fork["id"], fork["kind"], *(word(fork[name]) for name in ("side", "first", "second", "ancestor"))])
        yield f"result {merge['result']['id']} {merge['result']['timestampBits']} {len(merge['state'])}"
        yield from values(merge["state"])
    yield "end"


def values(found: list[dict[str, str]]) -> Iterator[str]:
    return (f"value {value['id']} {value['version']} {word(value['data'])}" for value in found)


def version_file(version: dict[str, Any]) -> str:
    """Returns the version's file in the interchange layout, in hexadecimal."""
    content: dict[str, Any] = {"identifier": version["id"]}
    if version["predecessors"]:
        content["predecessors"] = dict(zip(("idOfFirst", "idOfSecond"), version["predecessors"]))
    content["timestamp"] = version["timestamp"]
    content["metadata"] = [
        part for entry in version["metadata"] for part in (bytes.fromhex(entry["key"]).decode(), {"data": in_base64(entry["value"])})
    ]
    return json.dumps({"version": content}).encode().hex()


def changes_file(version: dict[str, Any]) -> str:
    """Returns the file of the version's changes in the interchange layout, in hexadecimal."""
    content: list[dict[str, Any]] = []
    for change in version["changes"]:
        id = bytes.fromhex(change["id"]).decode()
        if change["kind"] in ("insert", "update"):
            content.append({change["kind"]: {"id": id, "data": in_base64(change["data"])}})
        elif change["kind"] == "preserve":
            content.append({"preserve": {"valueId": id, "storedVersionId": change["version"]}})
        else:
            content.append({change["kind"]: id})
    return json.dumps(content).encode().hex()


def in_base64(hexadecimal: str) -> str:
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


# Merging inside values, and keys of indexes.


def hexed(value: Optional[str]) -> str:
    return "-" if value is None else value.encode().hex() or "."


def documents() -> Iterator[str]:
    """Yields the lines of documents/vectors."""
    for vector in read("documents/vectors")["vectors"]:
        if vector.get("swapped"):  # The C API merges values in no such roles.
            continue
        inputs = [hexed(vector[name]) for name in ("schema", "base", "newer", "older", "result")]
        yield " ".join(["merge", str(int(vector.get("saving", False))), *inputs, vector["digest"], hexed(vector["name"])])
    for found in read("documents/histories")["histories"]:
        yield f"history {hexed(found['schema'])} {hexed(found['name'])}"
        yield from (" ".join(step(version)) for version in found["versions"])
        yield "end"


def step(version: dict[str, Any]) -> list[str]:
    """Returns the words of a version of a history of documents."""
    above, ends = version["predecessors"], [hexed(version["value"]), version["stored"] or "-"]
    if "arbiter" not in version:
        return ["save", version["name"], str(version["time"]), *(above or ["-"]), *ends]
    device = (version["metadata"] or {}).get("device")
    kinds = "?" if version["records"] is None else ",".join(version["records"]) or "-"
    return ["join", version["name"], *above, version["arbiter"], hexed(device and json.dumps(device)), *ends, kinds]


def index_keys() -> Iterator[str]:
    """Yields the lines of index-keys."""
    found = read("index-keys")
    for group in found["orders"]:
        yield f"order {int(group['fold'])} {len(group['tuples'])}"
        yield from (f"tuple {hexed(row['tuple'])} {row['key']}" for row in group["tuples"])
    for row in found["equal"]:
        yield f"order 0 {len(row['tuples'])}"
        yield from (f"tuple {hexed(tuple)} {row['key']}" for tuple in row["tuples"])
    for row in found["noKeys"]:
        yield f"nokey {int(row['fold'])} {row['parts']} {row['key'] or '.'}"
    for row in found["values"]:
        yield f"value {hexed(row['id'])} {hexed(row['data'])}"
    for definition in found["definitions"]:
        yield f"definition {hexed(definition['definition'])} {definition['digest']}"
        for row in definition["values"]:
            yield " ".join(["keys", hexed(row["id"]), row.get("why", "-"), *row["keys"]])
        for asked in (asked for asked in found["questions"] if asked["definition"] == definition["name"]):
            tuples = " ".join(hexed(asked.get(name)) for name in ("equal", "begin", "low", "high"))
            yield f"question {tuples} {int(asked.get('low_open', False))} {int(asked.get('high_open', False))} {len(asked['found'])}"
            yield from (f"found {hexed(row['id'])} {row['key']}" for row in asked["found"])
    yield "end"


FORMS: dict[str, Callable[[], Iterator[str]]] = {
    "merging": lambda: histories("merging"),
    "random": lambda: histories("random"),
    "index-keys": index_keys,
    "documents/vectors": documents,
}


def main(arguments: list[str]) -> int:
    if len(arguments) == 2 and arguments[0] == "--in":
        for name in FORMS:
            path = Path(arguments[1], f"{name}.txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(name), encoding="ascii")
    elif len(arguments) == 1 and arguments[0] in FORMS:
        sys.stdout.write(text(arguments[0]))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
