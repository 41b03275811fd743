"""What the command prints: colours and pages on a terminal, plain lines into a pipe, JSON for programs."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import shutil
import sys
from typing import Any, Iterable, Iterator, Optional

import click

from . import escape, exact_json

#: Okabe and Ito's palette as far as sixteen colours go: told apart by those who see no red or no green.
STYLES: dict[str, dict[str, Any]] = {
    "id": {"fg": "yellow"},
    "name": {"fg": "cyan", "bold": True},
    "quiet": {"dim": True},
    "added": {"fg": "blue"},
    "removed": {"fg": "red", "strikethrough": True},
    "key": {"fg": "cyan"},
    "string": {"fg": "green"},
    "number": {"fg": "magenta"},
    "warning": {"fg": "yellow", "bold": True},
    "strong": {"bold": True},
}
_harmful_in_json = re.compile("[^\n -~]")


@functools.lru_cache(maxsize=None)
def is_terminal() -> bool:
    """Whether standard output is one."""
    return sys.stdout.isatty()


@functools.lru_cache(maxsize=None)
def is_coloured() -> bool:
    """Whether to colour: on a terminal, unless NO_COLOR says otherwise."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


@functools.lru_cache(maxsize=None)
def is_unicode() -> bool:
    """Whether the locale says that lines and dots beyond ASCII can be shown."""
    named = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    return "utf" in named.lower() and "utf" in (sys.stdout.encoding or "").lower()


@functools.lru_cache(maxsize=None)
def width() -> int:
    """Columns of the terminal; without one, lines are as long as they are."""
    return shutil.get_terminal_size((100, 24)).columns if is_terminal() else 1_000_000


def prepare() -> None:
    """Standard output and error show what they cannot encode as escapes, and never fail at it."""
    for cached in (is_terminal, is_coloured, is_unicode, width):
        cached.cache_clear()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # The C locale: Python writes UTF-8 all the same, and the terminal may show anything for it.
            is_plain = stream.isatty() and not is_unicode()
            stream.reconfigure(errors="backslashreplace", **({"encoding": "ascii"} if is_plain else {}))


def style(text: str, name: str) -> str:
    """Text in one of `STYLES`, where there are colours. The text must be harmless already."""
    return click.style(text, **STYLES[name]) if is_coloured() and text else text


def show(rows: Iterable[str]) -> None:
    """Prints lines, each without its end: by the page on a terminal, as they come into a pipe. What raises has printed the rows before."""
    if is_terminal():
        _show_pages(rows)
        return
    write = sys.stdout.write
    waiting: list[str] = []
    # The first row goes at once, for whoever waits for the first byte; then by more and more.
    room = 1
    try:
        for row in rows:
            waiting.append(row)
            if len(waiting) >= room:
                write("\n".join(waiting) + "\n")
                waiting.clear()
                if room == 1:
                    sys.stdout.flush()
                room = min(room * 4, 1024)
    finally:
        if waiting:
            write("\n".join(waiting) + "\n")


def _show_pages(rows: Iterable[str]) -> None:
    # As git sets it: leaves when all fits on the screen, and lets colours through.
    os.environ.setdefault("LESS", "FRX")
    lines = iter(rows) if is_unicode() else (row.encode("ascii", "backslashreplace").decode() for row in rows)
    first = next(lines, None)
    if first is not None:
        # click ends the last line itself.
        click.echo_via_pager(itertools.chain([first], (f"\n{line}" for line in lines)), color=is_coloured())


def _escape_in_json(match: re.Match[str]) -> str:
    character = match.group()
    if not escape.is_harmful(character):
        return character
    number = ord(character)
    if number < 0x10000:
        return f"\\u{number:04x}"
    return "\\u{:04x}\\u{:04x}".format(0xD800 + ((number - 0x10000) >> 10), 0xDC00 + ((number - 0x10000) & 0x3FF))


class _NotPlain(Exception):
    """A value that the writer of Python does not know: a number as it was written."""


def _not_plain(value: Any) -> Any:
    raise _NotPlain


def as_json(value: Any, *, indent: Optional[int] = None) -> str:
    """JSON text, in which what would do something to a terminal is escaped. Numbers of documents are as they were written."""
    try:
        # Python indents each level, however deep.
        text = json.dumps(value, ensure_ascii=False, default=_not_plain) if indent is None else exact_json.written(value, indent=indent)
    except (_NotPlain, RecursionError):
        text = exact_json.written(value)
    return text if text.isascii() and "\x7f" not in text else _harmful_in_json.sub(_escape_in_json, text)


def show_json_lines(values: Iterable[Any]) -> None:
    """Prints one JSON text in each line."""
    show(map(as_json, values))


def show_json(value: Any) -> None:
    """Prints one JSON document, indented."""
    show(as_json(value, indent=2).split("\n"))


#: What was said last on standard error.
last_said = ""


def say(message: str) -> None:
    """A remark on standard error, for people."""
    global last_said
    last_said = message
    try:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody can be told; the exit code says it still


def fitted(text: str, columns: int) -> str:
    """The text cut to a number of columns, with an ellipsis where something is missing."""
    if columns <= 0:
        return ""
    if text.isascii():
        return text if len(text) <= columns else text[: max(columns - 3, 0)] + "..."[:columns]
    from rich.cells import cell_len, set_cell_size

    dots = "\u2026" if is_unicode() else "..."
    return text if cell_len(text) <= columns else set_cell_size(text, max(columns - len(dots), 0)) + dots


def size_text(count: int) -> str:
    """A number of bytes for people: "120 B", "3.1 MB"."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            break
    return f"{value:.1f} {unit}"


def counted(count: int, noun: str) -> str:
    """"1 version", "1,204 versions"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


#: Characters to which a column is filled up. A longer cell takes its own room, and not that much in every row.
WIDEST = 120


def table(rows: list[list[str]], right: frozenset[int] = frozenset(), *, is_cut: bool = True) -> Iterator[str]:
    """Rows of harmless, unstyled cells under one another, in columns of at most `WIDEST`; the columns in `right` end at one place.

    is_cut: the last column is cut to the width of the terminal.
    """
    from rich.cells import cell_len

    if not rows:
        return
    widths = [min(max(cell_len(row[at]) for row in rows), WIDEST) for at in range(len(rows[0]))]
    for row in rows:
        cells = []
        for at, cell in enumerate(row):
            space = " " * (widths[at] - cell_len(cell))
            cells.append(space + cell if at in right else cell + space)
        line = "  ".join(cells[:-1])
        last = fitted(row[-1], max(width() - cell_len(line) - 2, 8)) if is_cut else row[-1]
        yield (f"{line}  {last}" if line else row[-1]).rstrip()
