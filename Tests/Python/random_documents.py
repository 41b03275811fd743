"""Random documents, edits of them, and rules for them. Alphabets are small, so that equal parts, moves and conflicts are frequent."""

from __future__ import annotations

import json
import random
from typing import Any, Optional

NAMES = ["a", "b", "id", "k", "n", "t", "\u00e9", "e\u0301", "*", "a/b", "~", ""]
NUMBERS = ["0", "1", "2", "-0", "1.0", "1e0", "10", "1e1", "0.1", "0.25", "-3", "9007199254740993", "1e400", "1e-30",
    "123456789012345678901234567890"]
WORDS = ["a", "b", "ab", "1", " ", "\n", "\r\n", "\r", ".", "_", "\u00e9", "e\u0301", "\u4e00", "\u3042", "\U0001f1e6", "\U0001f1e7",
    "\u200d", "\U0001f3fd", "\u0301", "\t"]
KINDS = ["auto", "register", "counter", "set", "list", "tuple", "text"]
POINTERS = ["", "/id", "/k", "/n", "/a", "/0", "/a~1b"]


class Spelled:
    """A number that is written in a given spelling."""

    def __init__(self, text: str) -> None:
        self.text = text


def dumps(value: Any, comma: str = ",", colon: str = ":", ascii_only: bool = False) -> str:
    """Returns JSON text; numbers keep their spelling."""
    if isinstance(value, Spelled):
        return value.text
    if isinstance(value, dict):
        return "{" + comma.join(dumps(name, ascii_only=ascii_only) + colon + dumps(item, comma, colon, ascii_only) for name,
            item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + comma.join(dumps(item, comma, colon, ascii_only) for item in value) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


class Generator:
    """Makes documents and rules from a source of random numbers, for instance hypothesis's."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def text(self) -> str:
        return "".join(self.rng.choice(WORDS[: self.rng.choice([4, 9, len(WORDS)])]) for _ in range(self.rng.choice([0, 1, 2, 3, 5, 9])))

    def scalar(self) -> Any:
        kind = self.rng.randrange(8)
        if kind < 4:
            return Spelled(self.rng.choice(NUMBERS[: self.rng.choice([3, 8, len(NUMBERS)])]))
        return [None, True, False][self.rng.randrange(3)] if kind == 4 else self.text()

    def value(self, depth: int) -> Any:
        kind = self.rng.randrange(6 if depth > 0 else 2)
        if kind < 2:
            return self.scalar()
        if kind < 4:
            return [self.value(depth - 1) for _ in range(self.rng.choice([0, 1, 2, 3, 4, 6]))]
        return {self.name(): self.value(depth - 1) for _ in range(self.rng.choice([0, 1, 2, 3, 4]))}

    def name(self) -> str:
        return self.rng.choice(NAMES[: self.rng.choice([3, 6, len(NAMES)])])

    def edited(self, value: Any, edits: int) -> Any:
        for _ in range(edits):
            value = self.edit(value)
        return value

    def edit(self, value: Any) -> Any:
        if isinstance(value, dict):
            changed = dict(value)
            what = self.rng.randrange(6)
            if what < 3 and changed:
                name = self.rng.choice(list(changed))
                changed[name] = self.edit(changed[name])
            elif what == 3 and changed:
                del changed[self.rng.choice(list(changed))]
            elif what == 4:
                changed[self.name()] = self.value(1)
            else:
                items = list(changed.items())
                self.rng.shuffle(items)
                changed = dict(items)
            return changed
        if isinstance(value, list):
            changed_list = list(value)
            what, place = self.rng.randrange(7), self.rng.randrange(len(value) + 1)
            if what < 2 and changed_list:
                place = self.rng.randrange(len(changed_list))
                changed_list[place] = self.edit(changed_list[place])
            elif what == 2 and changed_list:
                del changed_list[self.rng.randrange(len(changed_list))]
            elif what == 3 and changed_list:
                changed_list.insert(place, self.rng.choice(changed_list))
            elif what < 6 and changed_list:
                moved = changed_list.pop(self.rng.randrange(len(changed_list)))
                changed_list.insert(self.rng.randrange(len(changed_list) + 1), moved)
            else:
                changed_list.insert(place, self.value(1))
            return changed_list
        if isinstance(value, str) and self.rng.randrange(8):
            at = self.rng.randrange(len(value) + 1)
            return value[:at] + self.text() + value[min(len(value), at + self.rng.choice([0, 0, 1, 2])) :]
        return self.scalar() if self.rng.randrange(6) else self.value(1)

    # Rules

    def rule(self, top: bool) -> Any:
        kind = self.rng.choice(KINDS + (["bytes"] if top and self.rng.randrange(8) == 0 else []))
        if self.rng.randrange(2):
            return kind
        rule: dict[str, Any] = {"as": kind}
        if kind in ("list", "set") and self.rng.randrange(3):
            rule["key"] = [self.rng.choice(POINTERS) for _ in range(self.rng.choice([1, 1, 2]))]
        if self.rng.randrange(3) == 0:
            rule["pick"] = self.rng.choice(["newer", "older", "max", "min", "arbiter", {"max": self.rng.choice(POINTERS)},
                {"min": self.rng.choice(POINTERS)}])
        if self.rng.randrange(6) == 0:
            rule["delete"] = self.rng.choice(["edit", "delete"])
        if self.rng.randrange(8) == 0:
            rule["absent"] = self.value(1)
        if self.rng.randrange(8) == 0:
            rule["identity"] = [self.rng.choice(POINTERS)]
        if kind == "counter":
            for member in ("from", "min", "max"):
                if self.rng.randrange(4) == 0:
                    rule[member] = Spelled(self.rng.choice(NUMBERS[:9]))
        if kind == "text":
            rule["unit"] = self.rng.choice(["word", "line"])
        return rule

    def rules(self) -> Any:
        if self.rng.randrange(5) == 0:
            return "auto"
        patterns: dict[str, Any] = {}
        for _ in range(self.rng.choice([1, 1, 2, 3, 4])):
            depth = self.rng.choice([0, 1, 1, 2, 2, 3])
            pattern = "".join("/" + self.rng.choice(["*", "*", "a", "b", "n", "t", "k", "0", "~2", "a~1b"]) for _ in range(depth))
            patterns[pattern] = self.rule(not depth)
        if self.rng.randrange(6) == 0:
            patterns["schema"] = self.forms()
        return patterns

    def forms(self) -> Any:
        """Returns the member with the form number, and renames: sometimes such that the rules refuse them."""
        def pointer() -> str:
            return "".join("/" + self.rng.choice(["a", "b", "id", "k", "n", "t", "a~1b"]) for _ in range(self.rng.choice([1, 1, 1, 2])))

        forms: dict[str, Any] = {"at": self.rng.choice(["/n", "/k", "/id", "/a/n"])}
        if self.rng.randrange(5):
            forms["renames"] = [
                {"to": Spelled(self.rng.choice(NUMBERS[:9])), "from": pointer(), "path": pointer()} for _ in range(self.rng.randrange(4))
            ]
        return forms

    # A case

    def bytes_of(self, value: Any, whole_text: bool) -> Optional[bytes]:
        if self.rng.randrange(20) == 0:
            return None
        if whole_text and isinstance(value, str):
            return value.encode()
        if self.rng.randrange(40) == 0:
            return self.rng.choice([b"", b"no json", b'{"a":1,"a":2}', b'{"a":"\\ud800"}', b"\xff", b"1", b"[1", b"1e10000"])
        comma, colon = self.rng.choice([(",", ":"), (", ", ": ")])
        return dumps(value, comma, colon, self.rng.randrange(4) == 0).encode()

    def case(self) -> tuple[Any, list[Optional[bytes]]]:
        """Returns rules for any id, and the texts of base, newer and older."""
        rules = self.rules()
        top = rules if isinstance(rules, str) else rules.get("", "auto")
        kind = top if isinstance(top, str) else top.get("as", "auto")
        depth = self.rng.choice([1, 2, 2, 3])
        base = self.text() if kind == "text" else Spelled(self.rng.choice(NUMBERS)) if kind == "counter" else self.value(depth)
        if kind not in ("text", "counter") and not isinstance(base, (dict, list)):
            base = {"a": base}
        if kind in ("set", "list", "tuple") and not isinstance(base, list):
            base = [base]
        sides = [base, self.edited(base, self.rng.choice([0, 1, 1, 2, 3, 5])), self.edited(base, self.rng.choice([1, 1, 2, 3, 5]))]
        return rules, [self.bytes_of(side, kind == "text") for side in sides]
