#!/usr/bin/env python3
"""Reads an exchange folder as strictly as the other implementation does: what this refuses stops its whole retrieve.

Given by the people of that implementation; run over every folder that a test writes (conftest.py, scripts/lib/strict.sh).

    strict_reader.py FOLDER        prints "N versions" and exits 0, or says what it refuses and exits 1

A version file is decoded as a mapping from strings to Version, so every member beside "version" must be a whole
Version as well: in practice there is none. Unknown members inside objects are ignored. A change is an object with exactly one member.
A branch in metadata must be a JSON string. A version with one predecessor is read as differences: a preserve in it
does not survive a relay through that implementation, which sends the bytes as its own.
"""
import base64
import json
import math
import os
import sys


class Refused(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Refused(what)


def decode_base64(text, what):
    need(isinstance(text, str), f"{what} is no string")
    try:
        return base64.b64decode(text, validate=True)
    except Exception:
        raise Refused(f"{what} is no base64") from None


def version(value, where):
    need(isinstance(value, dict), f"{where}: a Version is an object, not {type(value).__name__}")
    need(isinstance(value.get("identifier"), str), f"{where}: identifier")
    stamp = value.get("timestamp")
    need(isinstance(stamp, (int, float)) and not isinstance(stamp, bool) and math.isfinite(stamp), f"{where}: timestamp")
    size = value.get("valueDataSize")
    need(size is None or isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 1 << 63, f"{where}: valueDataSize")
    predecessors = value.get("predecessors")
    if predecessors is not None:
        need(isinstance(predecessors, dict) and isinstance(predecessors.get("idOfFirst"), str), f"{where}: predecessors")
        need(predecessors.get("idOfSecond") is None or isinstance(predecessors["idOfSecond"], str), f"{where}: idOfSecond")
    metadata = value.get("metadata")
    need(isinstance(metadata, list) and len(metadata) % 2 == 0, f"{where}: metadata is a flat list of keys and values")
    for key, entry in zip(metadata[::2], metadata[1::2]):
        need(isinstance(key, str) and isinstance(entry, dict), f"{where}: metadata entry {key!r}")
        data = decode_base64(entry.get("data"), f"{where}: metadata {key!r}")
        if key == "__llvs_branch":
            try:
                branch = json.loads(data)
            except ValueError:
                branch = None
            need(isinstance(branch, str), f"{where}: the branch is no JSON string")
    return value


def changes(value, of, where):
    need(isinstance(value, list), f"{where}: changes are a list")
    merge = (of.get("predecessors") or {}).get("idOfSecond") is not None
    for change in value:
        need(isinstance(change, dict) and len(change) == 1, f"{where}: a change has one member")
        (kind, what), = change.items()
        if kind in ("insert", "update"):
            need(isinstance(what, dict) and isinstance(what.get("id"), str), f"{where}: {kind} without an id")
            decode_base64(what.get("data"), f"{where}: {kind} of {what['id']!r}")
            need(what.get("storedVersionId") is None or isinstance(what["storedVersionId"], str), f"{where}: storedVersionId")
        elif kind in ("remove", "preserveRemoval"):
            need(isinstance(what, str), f"{where}: {kind}")
        elif kind == "preserve":
            need(
                isinstance(what, dict) and isinstance(what.get("valueId"), str) and isinstance(what.get("storedVersionId"), str),
                f"{where}: preserve",
            )
        else:
            raise Refused(f"{where}: unknown change {kind!r}")
        need(merge or kind not in ("preserve", "preserveRemoval"), f"{where}: {kind} in a version with fewer than two predecessors")


def read(folder):
    count = 0
    for name in sorted(os.listdir(os.path.join(folder, "versions"))):
        with open(os.path.join(folder, "versions", name), "rb") as file:
            document = json.loads(file.read())
        need(isinstance(document, dict), f"versions/{name}: no object")
        need("version" in document, f"versions/{name}: no member version")
        for member, value in document.items():
            version(value, f"versions/{name}, member {member!r}")
        need(document["version"]["identifier"] == name, f"versions/{name}: identifier")
        with open(os.path.join(folder, "changes", name), "rb") as file:
            changes(json.loads(file.read()), document["version"], f"changes/{name}")
        count += 1
    return count


if __name__ == "__main__":
    try:
        print(f"{read(sys.argv[1])} versions")
    except (Refused, ValueError, OSError) as problem:
        sys.exit(f"refused: {problem}")
