"""Recognises what a value is by its bytes, and shows it."""

from __future__ import annotations

import base64
import re
import struct
from typing import Any, Iterator, NamedTuple, Optional

from . import exact_json, output
from .escape import Styled

#: How much of a value is shown; only the size of the rest is reported.
SHOWN_AT_MOST = 1 << 20

_control = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Kind(NamedTuple):
    """The kind of a value."""

    #: "json", "text", "image", "empty" or "data".
    name: str
    #: In words: "PNG image, 32 x 32".
    words: str
    #: The document, with `exact_json.Number` for its numbers, or the text; None for other data.
    content: Any = None


def kind_of(data: bytes, *, scalars: bool = False) -> Kind:
    """Returns the kind of bytes: a JSON object or list, text, an image, or data. O(size).

    scalars: whether JSON that is only a string, a number, true, false or null counts as JSON, and not as text. For people both look the
    same.
    """
    if not data:
        return Kind("empty", "empty")
    image = _image(data)
    if image is not None:
        return Kind("image", image)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Kind("data", "data")
    begin = text.lstrip()[:1]
    if begin and begin in ('{["-0123456789tfn' if scalars else "{["):
        try:
            return Kind("json", "JSON", exact_json.parsed(text))
        except (ValueError, RecursionError):
            pass
    return Kind("data", "data") if _control.search(text) else Kind("text", "text", text)


def is_cut_text(head: bytes) -> bool:
    """Returns whether bytes are text that ends within a character."""
    try:
        head.decode("utf-8")
        return True
    except UnicodeDecodeError as problem:
        return problem.start >= len(head) - 3 and problem.reason == "unexpected end of data"


def _image(data: bytes) -> Optional[str]:
    """Returns the kind and size of an image, from its first bytes."""
    sizes: Optional[tuple[int, int]] = None
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        name, sizes = "PNG", struct.unpack_from(">II", data, 16)
    elif data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        name, sizes = "GIF", struct.unpack_from("<HH", data, 6)
    elif data.startswith(b"\xff\xd8\xff"):
        name, sizes = "JPEG", _jpeg_size(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        name = "WebP"
    else:
        return None
    return f"{name} image, {sizes[0]} x {sizes[1]}" if sizes else f"{name} image"


def _jpeg_size(data: bytes) -> Optional[tuple[int, int]]:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        kind, size = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if kind in (0xC0, 0xC1, 0xC2):
            height, wide = struct.unpack_from(">HH", data, at + 5)
            return wide, height
        at += 2 + size
    return None


def shape(data: bytes) -> dict[str, Any]:
    """Returns a value as JSON: kind, size, content. docs/command.md describes the members."""
    kind = kind_of(data, scalars=True)
    made: dict[str, Any] = {"kind": kind.name, "size": len(data)}
    if kind.name in ("json", "text"):
        made[kind.name] = kind.content
    elif kind.name != "empty":
        made["base64"] = base64.b64encode(data).decode()
    return made


def rows(data: bytes, *, is_hex: bool = False) -> Iterator[str]:
    """Yields a value for people, in lines."""
    if is_hex:
        yield from hex_rows(data)
        return
    kind = kind_of(data[: SHOWN_AT_MOST + 1] if len(data) > SHOWN_AT_MOST else data)
    if kind.name == "json":
        yield from json_rows(kind.content)
    elif kind.name == "text":
        yield from output.text_rows(kind.content[:SHOWN_AT_MOST].removesuffix("\n"))
    else:
        yield words(data)
    if len(data) > SHOWN_AT_MOST and kind.name in ("json", "text"):
        yield output.style(f"... and more: {output.size_text(len(data))} in all; -o FILE writes all of it", "quiet")


def words(data: bytes) -> str:
    """Returns a value in a few words: "PNG image, 32 x 32, 3.1 kB"."""
    kind = kind_of(data)
    if kind.name == "empty":
        return "(empty)"
    hint = "; --hex shows it" if kind.name == "data" else ""
    return f"({kind.words}, {output.size_text(len(data))}{hint})"


def hex_rows(data: bytes) -> Iterator[str]:
    """Yields a hex dump: offset, sixteen bytes, and their ASCII characters."""
    for offset in range(0, len(data), 16):
        part = data[offset : offset + 16]
        digits = part[:8].hex(" ") + ("  " + part[8:].hex(" ") if len(part) > 8 else "")
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"{offset:08x}  {digits:<48}  {text}"


def json_rows(value: Any) -> Iterator[str]:
    """Yields a document, indented, and coloured if colours are used."""
    text = output.as_json(value, indent=2)
    return (_coloured(row) for row in text.split("\n")) if output.is_coloured() else iter(text.split("\n"))


_token = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*")(?=:)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>-?\d[-+.eE\d]*|true|false|null)')


def _coloured(row: str) -> Styled:
    parts, at = [], 0
    for match in _token.finditer(row):
        parts += [row[at : match.start()], output.style(match.group(), match.lastgroup or "string")]
        at = match.end()
    return output.row(*parts, row[at:])
