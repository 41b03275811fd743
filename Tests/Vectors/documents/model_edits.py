"""Writes model_edits.json: random edits of one object on two devices, in two rounds, and the value after each exchange.

    model_edits.py           rewrites the file
    model_edits.py --check   checks that the model gives it

Here each edit is made to the JSON, as a person would make it, and the model in Tests/Python/documents merges both sides. Python
(Tests/Python/test_model_shared.py) and Swift (bindings/swift/Tests/LLVSModelTests/RandomEditTests.swift) make it to an object. The rules
and the model are those of ../models.json.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any, Callable

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "Python"))

from documents import merge as m  # noqa: E402
from documents import rules as r  # noqa: E402

MODELS = json.loads((HERE.parent / "models.json").read_text())
BASE = (
    '{"active":false,"bio":"one\\ntwo\\nthree\\n","home_town":"Ulm","level":"high","more":{"a":1,"b":2},"name":"Ann",'
    '"phones":[{"id":"home","number":"030 1","calls":2,"ring":1.50},{"id":"work","number":"","calls":0}],'
    '"place":{"x":1.5,"y":-2},"ratio":0.25,"settings":{"k":"v"},"shelf":"B","stock":7,"tags":["a","b"],"unknown":{"z":1.50}}'
)
RULES = r.parse_schema(json.dumps({"merge": 1, "ids": {MODELS["prefix"]: MODELS["rules"]}}).encode()).rules(MODELS["prefix"] + "1")
Tree = dict[str, Any]


def write_line(tree: Tree, number: int) -> None:
    lines = tree["bio"].split("\n")
    lines[number % len(lines)] = f"line {number}"
    tree["bio"] = "\n".join(lines)


def phone_of(tree: Tree, number: int) -> Tree:
    """Returns the phone with a number; one that is in no list if there is none."""
    return tree["phones"][number % len(tree["phones"])] if tree["phones"] else {"calls": 0}


def call(tree: Tree, number: int) -> None:
    phone_of(tree, number)["calls"] += number


def add_phone(tree: Tree, number: int) -> None:
    if all(phone["id"] != f"p{number}" for phone in tree["phones"]):
        tree["phones"].append({"id": f"p{number}", "number": str(number), "calls": number})


def drop_phone(tree: Tree, number: int) -> None:
    if tree["phones"]:
        del tree["phones"][number % len(tree["phones"])]


def move_phone(tree: Tree, number: int) -> None:
    if tree["phones"]:
        tree["phones"].insert(0, tree["phones"].pop(number % len(tree["phones"])))


#: The edits of the JSON, by name; the numbers are 1 to 9.
EDITS: dict[str, Callable[[Tree, int], Any]] = {
    "rename": lambda tree, n: tree.update(name=f"N{n}"),
    "tag": lambda tree, n: tree.update(tags=sorted({*tree["tags"]} ^ {"abcdef"[n % 6]})),
    "sell": lambda tree, n: tree.update(stock=tree["stock"] - n),
    "write_line": write_line,
    "add_line": lambda tree, n: tree.update(bio=tree["bio"] + f"more {n}\n"),
    "call": call,
    "dial": lambda tree, n: phone_of(tree, n).update(number=str(n)),
    "add_phone": add_phone,
    "drop_phone": drop_phone,
    "move_phone": move_phone,
    "see": lambda tree, n: tree.update(seen=f"2027-01-01T00:00:0{n // 4}.{n % 4 * 250000:06}Z"),
    "shelve": lambda tree, n: tree.update(shelf=f"S{n}"),
    "set": lambda tree, n: tree["settings"].update({f"k{n % 3}": str(n)}),
    "unset": lambda tree, n: tree["settings"].pop(f"k{n % 3}", None),
    "relocate": lambda tree, n: tree.update(home_town=f"T{n}"),
    "forget_town": lambda tree, n: tree.pop("home_town", None),
    "level": lambda tree, n: tree.update(level="low" if n % 2 else "high"),
    "count": lambda tree, n: tree["more"].update({f"m{n % 3}": n}),
    "discount": lambda tree, n: tree["more"].pop(f"m{n % 3}", None),
    "place": lambda tree, n: tree.update(place={"x": float(n), "y": -n / 2}),
    "forget_place": lambda tree, n: tree.pop("place", None),
    "weigh": lambda tree, n: tree.update(ratio=n / 4),
    "activate": lambda tree, n: tree.update(active=n % 2 == 0),
}


def edited(text: str, edits: list[tuple[str, int]]) -> str:
    """Returns the value after edits; the same text if they change nothing."""
    tree = json.loads(text)
    for name, number in edits:
        EDITS[name](tree, number)
    return text if tree == json.loads(text) else json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def cases(count: int) -> list[dict[str, Any]]:
    """Returns random cases: for each of two rounds the edits of the device that saves first, those of the other one, and the value
    afterwards."""
    draw, found = random.Random(14), []
    for _ in range(count):
        text, rounds = BASE, []
        for _ in range(2):
            edits = [[(draw.choice(list(EDITS)), draw.randrange(1, 10)) for _ in range(draw.choice([0, 1, 2, 4, 8]))] for _ in range(2)]
            first, second = (edited(text, one) for one in edits)
            merged = m.merge_values(text.encode(), second.encode(), first.encode(), RULES).data
            assert merged is not None
            text = merged.decode()
            rounds.append({"first": edits[0], "second": edits[1], "value": text})
        found.append({"rounds": rounds})
    return found


def text() -> str:
    """Returns the file's text."""
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases(150))
    return '{"format": 1, "base": ' + json.dumps(BASE) + ', "cases": [\n' + lines + "\n]}\n"


if __name__ == "__main__":
    path = HERE / "model_edits.json"
    if "--check" in sys.argv[1:]:
        sys.exit(path.read_text() != text())
    path.write_text(text())
