"""The values at a version: as a tree by "/", and each by its kind."""

from __future__ import annotations

import codecs
import json
from typing import Any, Optional

import llvs

from ..store.versions import ChangeKind
from .inspected import NotFound, shown

#: The number of bytes from which the kind of a value is recognised.
HEAD = 64 * 1024
#: The number of bytes of a text that are sent with the value; the rest is fetched on demand.
TEXT = 256 * 1024
#: The largest JSON that is shown as a document.
LARGEST_JSON = 4 * 1024 * 1024
#: The largest part of a value in one answer, in bytes.
PIECE = 4 * 1024 * 1024
#: The number of ids that are checked for one page of a search.
SCANNED = 50_000
#: The number of ids of a group that are skipped one by one, before the rest is skipped at once.
PATIENCE = 64

#: Pictures that a browser decodes without running anything. SVG may contain scripts, so it is shown as text.
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)
_CONTROL = set(range(32)) - {9, 10, 12, 13, 27}


def picture_type(head: bytes) -> Optional[str]:
    """Returns the type of a picture from its first bytes; None if it is not a picture that is shown."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _PICTURES if head.startswith(magic) and len(head) > 16), None)


def text_of(head: bytes, is_whole: bool) -> Optional[str]:
    """Returns bytes as text; None if they are not text. A character that is cut at the end is left out unless the bytes are whole."""
    try:
        text = codecs.getincrementaldecoder("utf-8")("strict").decode(head, final=is_whole)
    except UnicodeDecodeError:
        return None
    return None if any(byte in _CONTROL for byte in head[:4096]) else text


def kind_of(head: bytes, size: int) -> str:
    """Returns "json", "text", "image" or "binary" for the first bytes of a value."""
    if picture_type(head) is not None:
        return "image"
    text = text_of(head, len(head) == size)
    if text is None:
        return "binary"
    begin = text.lstrip(" \t\r\n")[:1]
    return "json" if begin and begin in '{["-0123456789tfn' and size <= LARGEST_JSON else "text"


def is_json(text: str) -> bool:
    """Returns whether a text is JSON that is not nested too deeply to be shown."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def describe(store: llvs.Store, id: str, version: str) -> dict[str, Any]:
    """Returns what the page first receives of a value: kind, size, the version that stored it, and the beginning of a text. The kind is
    "gone" if the bytes are gone. Raises NotFound."""
    try:
        reader = store.open_value(id, at=version)
    except KeyError as problem:
        if isinstance(problem, llvs.Error):
            raise
        raise NotFound(f"There is no value {shown(id)} at this version.") from None
    with reader:
        size = reader.size
        try:
            head = reader.read_range(0, HEAD)
        except llvs.errors.GoneError:
            return {"id": id, "at": version, "size": size, "storedBy": reader.stored_version, "kind": "gone"}
        kind = kind_of(head, size)
        found: dict[str, Any] = {"id": id, "at": version, "size": size, "storedBy": reader.stored_version, "kind": kind}
        if kind in ("json", "text"):
            wanted = LARGEST_JSON if kind == "json" else TEXT
            data = head + reader.read_range(HEAD, wanted - HEAD) if size > HEAD else head
            text = text_of(data, len(data) == size)
            if text is None:
                found["kind"] = "binary"
            else:
                found["kind"] = kind = "json" if kind == "json" and is_json(text) else "text"
                found["text"] = text if kind == "json" else text[:TEXT]
                found["isWhole"] = kind == "json" or (len(data) == size and len(text) <= TEXT)
        elif kind == "image":
            found["type"] = picture_type(head)
        return found


def tree(store: llvs.Store, version: str, prefix: str, after: str, limit: int) -> dict[str, Any]:
    """Returns the entries directly below a prefix, in byte order: ids, and groups of ids that continue with "/". Cost: the page."""
    state = store.at(version).prefix(prefix)
    entries: list[dict[str, Any]] = []
    start = after
    more: Optional[str] = None
    while True:
        jump: Optional[str] = None
        group, passed = "", 0
        for id in state.range(start=start):
            if group and id.startswith(group):
                passed += 1
                if passed > PATIENCE:
                    jump = group[:-1] + "0"  # "0" follows "/": the first id after the group
                    break
                continue
            rest = id[len(prefix):]
            cut = rest.find("/")
            if len(entries) == limit:
                more = id
                break
            if cut >= 0 and cut + 1 < len(rest):
                group, passed = prefix + rest[: cut + 1], 0
                entries.append({"name": rest[: cut + 1], "prefix": group})
            else:
                group = ""
                entries.append({"name": rest, "id": id})
        if jump is None:
            break
        start = jump
    for entry in entries:
        if "prefix" in entry:
            entry["count"] = len(state.prefix(entry["prefix"]))
        else:
            entry["size"] = store.value_size(entry["id"], at=version)
    return {"entries": entries, "next": more, "count": len(state)}


def matching(store: llvs.Store, version: str, text: str, after: str, limit: int) -> dict[str, Any]:
    """Returns ids that contain a text, in any case, in pages. Cost: at most `SCANNED` ids."""
    entries: list[dict[str, Any]] = []
    wanted, more = text.casefold(), None
    for scanned, id in enumerate(store.at(version).range(start=after)):
        if len(entries) == limit or scanned == SCANNED:
            more = id
            break
        if wanted in id.casefold():
            entries.append({"name": id, "id": id, "size": store.value_size(id, at=version)})
    return {"entries": entries, "next": more, "count": None}


def steps(store: llvs.Store, id: str, head: str, limit: int) -> dict[str, Any]:
    """Returns the versions that changed a value, among a version and its ancestors, the oldest first: at most `limit`, the newest ones."""
    found: list[tuple[llvs.Version, ChangeKind]] = []
    cut = False
    for version, kind in store.value_history(id, head):
        if len(found) == limit:
            cut = True
            break
        found.append((version, kind))
    return {"steps": list(reversed(found)), "cut": cut}
