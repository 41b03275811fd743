"""Shows the results of merging everyday edits of two devices: here, in git, and in two CRDTs. Prints the table of docs/merging.md.

    python Benchmarks/compare_merging.py           # with loro and pycrdt (requirements-merging.txt), as far as they are installed

Each situation has a base and the edits of either side, as a person makes them: one part replaces another. Values that are not text are
changed by member or by index. git merges lines: each member of an object and each element of a list is one line.
"""

import importlib
import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Situation:
    """`base` with the edits of the newer and of the older side: pairs of a part and its replacement, or of an index or name and a value."""

    name: str
    base: Any
    newer: list
    older: list
    rule: Any = "auto"

    def side(self, edits: list) -> Any:
        value = json.loads(json.dumps(self.base))
        for at, new in edits:
            if isinstance(value, str):
                assert value.count(at) == 1, (value, at)
                value = value.replace(at, new)
            elif new is None:
                del value[at]
            elif isinstance(value, list) and at == len(value):
                value.append(new)
            else:
                value[at] = new
        return value


SITUATIONS = [
    Situation("both append a line", "Buy:\n", [("Buy:\n", "Buy:\n* milk\n")], [("Buy:\n", "Buy:\n* two breads\n")], "text"),
    Situation("other words of a line", "The cat sat.", [("sat.", "sat down.")], [("The", "A")], "text"),
    Situation("the same word", "Meeting at 10", [("10", "11")], [("10", "9 in room 5")], "text"),
    Situation("the same correction", "Teh cat sat.\n", [("Teh", "The")], [("Teh", "The")], "text"),
    Situation("a line removed, and a word in it changed", "eggs\nmilk\nbread\n", [("milk\n", "")], [("milk", "oat milk")], "text"),
    Situation(
        "a word changed, and the sentence rewritten", "See you at noon.\n", [("noon", "one")],
        [("See you at noon.", "Let us meet.")], "text"
    ),
    Situation("two flags of a row", [False, False, False], [(0, True)], [(2, True)]),
    Situation("both append to a list", ["a"], [(1, "b")], [(1, "c")]),
    Situation("an element removed, and changed", ["a", "b", "c"], [(1, None)], [(1, "B")]),
    Situation("other members of an object", {"name": "Ann", "town": "Ulm"}, [("name", "Anna")], [("town", "Bern")]),
    Situation("the same member of an object", {"name": "Ann"}, [("name", "Anna")], [("name", "Anne")]),
    Situation("both count one more", {"visits": 5}, [("visits", 6)], [("visits", 6)], {"/visits": "counter"}),
]


def document(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def ours(situation: Situation) -> tuple[Any, bool]:
    """Returns the result here, and whether there is a conflict."""
    import llvs

    sides = [document(situation.side(edits)) for edits in ([], situation.newer, situation.older)]
    merged = llvs.merge.merge_values(*sides, situation.rule)
    assert merged.data is not None
    return merged.data.decode() if isinstance(situation.base, str) else json.loads(merged.data), bool(merged.records)


def lines(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1) + "\n"


def git(situation: Situation) -> tuple[Any, bool]:
    """As `ours`, with `git merge-file`; None for a conflict, which a person has to resolve."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("newer", "base", "older")]
        for file, edits in zip(files, (situation.newer, [], situation.older)):
            file.write_text(lines(situation.side(edits)), newline="")
        done = subprocess.run(["git", "merge-file", "-p", *map(str, files)], capture_output=True, text=True, check=False)
    if done.returncode:
        return None, True
    return done.stdout if isinstance(situation.base, str) else json.loads(done.stdout), False


def loro(module: Any, situation: Situation) -> Any:
    """Returns the result of Loro: text, movable list or map."""
    kind = {str: "get_text", list: "get_movable_list", dict: "get_map"}[type(situation.base)]
    first = module.LoroDoc()
    first.peer_id = 1
    root = getattr(first, kind)("d")
    if isinstance(situation.base, dict):
        for name, value in situation.base.items():
            root.insert(name, value)
    else:
        for at, part in enumerate(situation.base):
            root.insert(at, part)
    first.commit()
    devices = []
    for peer, edits in ((3, situation.newer), (2, situation.older)):
        device = first.fork()
        device.peer_id = peer
        root = getattr(device, kind)("d")
        for at, new in edits:
            if isinstance(situation.base, str):
                place, (start, end) = root.to_string().index(at), kept(at, new)
                root.delete(place + start, len(at) - start - end)
                root.insert(place + start, new[start : len(new) - end])
            elif isinstance(situation.base, dict):
                root.insert(at, new)
            elif new is None:
                root.delete(at, 1)
            elif at == len(root):
                root.insert(at, new)
            else:
                root.set(at, new)
        device.commit()
        devices.append(device)
    devices[0].import_(devices[1].export(module.ExportMode.Snapshot()))
    return devices[0].get_deep_value()["d"]


def kept(part: str, new: str) -> tuple[int, int]:
    """Returns how much of a part a person leaves unchanged, at its beginning and at its end."""
    most, start, end = min(len(part), len(new)), 0, 0
    while start < most and part[start] == new[start]:
        start += 1
    while end < most - start and part[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def yjs(module: Any, situation: Situation) -> Any:
    """Returns the result of Yjs, in its port Yrs: text, array or map."""
    kind = {str: module.Text, list: module.Array, dict: module.Map}[type(situation.base)]
    first = module.Doc(client_id=1)
    first["d"] = kind(situation.base)
    devices = []
    for client, edits in ((3, situation.newer), (2, situation.older)):
        device = module.Doc(client_id=client)
        root = device.get("d", type=kind)
        device.apply_update(first.get_update())
        for at, new in edits:
            if isinstance(situation.base, str):
                # (It counts bytes of UTF-8; in these texts each character is one byte.)
                place, (start, end) = str(root).index(at), kept(at, new)
                del root[place + start : place + len(at) - end]
                root.insert(place + start, new[start : len(new) - end])
            elif isinstance(situation.base, dict):
                root[at] = new
            elif new is None:
                del root[at]
            else:
                if at < len(root):
                    del root[at]
                root.insert(at, new)
        devices.append((device, root))
    devices[0][0].apply_update(devices[1][0].get_update())
    root = devices[0][1]
    return str(root) if isinstance(situation.base, str) else root.to_py()


def cell(value: Any, is_conflict: bool = False) -> str:
    if value is None:
        return "a person decides"
    # (Yrs has no integers.)
    text = value.replace("\n", "⏎") if isinstance(value, str) else json.dumps(value, ensure_ascii=False).replace(".0", "")
    return f"`{text}`" + (", told" if is_conflict else "")


def rows() -> list[list[str]]:
    """Returns the rows of the table: situation, base, both sides, and the results here, in git, and in each CRDT that is installed."""
    others = []
    for name, call in (("pycrdt", yjs), ("loro", loro)):
        try:
            others.append((importlib.import_module(name), call))
        except ImportError:
            others.append((None, call))
    made = []
    for one in SITUATIONS:
        sides = [cell(one.side(edits)) for edits in ([], one.newer, one.older)]
        found = [cell(call(module, one)) if module else "" for module, call in others]
        made.append([one.name, *sides, cell(*ours(one)), cell(*git(one)), *found])
    return made


if __name__ == "__main__":
    for row in [["", "base", "newer", "older", "LLVS", "git", "Yjs", "Loro"], ["---"] * 8, *rows()]:
        print(f"| {' | '.join(row)} |")
