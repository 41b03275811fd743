"""What the command prints: colours and pages on a terminal, plain lines into a pipe, JSON for programs.

Others wrote much of what is printed. So `show`, `say` and `ask`, and nothing else, print text, and escape all of it that is not `Styled`.
Whoever calls them gives texts as they are.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
import sys
from typing import Any, Iterable, Iterator, Optional

import click

from . import escape, exact_json
from .escape import Styled

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


def style(text: str, name: str) -> Styled:
    """Text in one of `STYLES`, where there are colours."""
    harmless = escape.line(text)
    return Styled(click.style(harmless, **STYLES[name]) if is_coloured() and harmless else harmless)


def row(*parts: str, between: str = "") -> Styled:
    """Parts of a line, one behind the other: those that are styled as they are, the others escaped."""
    return Styled(between.join(map(escape.line, parts)))


def text(given: str) -> Styled:
    """A text of several lines: its ends of lines and tabs stay."""
    return Styled(escape.lines(given))


def text_rows(given: str) -> Iterator[Styled]:
    """The lines of a text, in which tabs stay."""
    return map(Styled, escape.lines(given).split("\n"))


def columns(given: str) -> int:
    """How many columns a text without styles takes when it is shown."""
    harmless = escape.line(given)
    if harmless.isascii():
        return len(harmless)
    from rich.cells import cell_len

    return cell_len(harmless)


def filled(given: str, to: int, *, is_right: bool = False) -> Styled:
    """A text without styles, with spaces behind it, or before it, up to a number of columns."""
    space = " " * (to - columns(given))
    return Styled(space + escape.line(given) if is_right else escape.line(given) + space)


def show(rows: Iterable[str]) -> None:
    """Prints lines, each without its end: by the page on a terminal, as they come into a pipe. What raises has printed the rows before."""
    harmless = map(escape.line, rows)
    if is_terminal():
        _show_pages(harmless)
        return
    write = sys.stdout.write
    waiting: list[str] = []
    # The first row goes at once, for whoever waits for the first byte; then by more and more.
    room = 1
    try:
        for line in harmless:
            waiting.append(line)
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


class _NotPlain(Exception):
    """A value that the writer of Python does not know: a number as it was written."""


def _not_plain(value: Any) -> Any:
    raise _NotPlain


def as_json(value: Any, *, indent: Optional[int] = None) -> Styled:
    """JSON text, in which what would do something to a terminal is escaped. Numbers of documents are as they were written."""
    try:
        # Python indents each level, however deep.
        made = json.dumps(value, ensure_ascii=False, default=_not_plain) if indent is None else exact_json.written(value, indent=indent)
    except (_NotPlain, RecursionError):
        made = exact_json.written(value)
    return Styled(escape.json(made))


def show_json_lines(values: Iterable[Any]) -> None:
    """Prints one JSON text in each line."""
    show(map(as_json, values))


def show_json(value: Any) -> None:
    """Prints one JSON document, indented."""
    show(as_json(value, indent=2).split("\n"))


#: What was said last on standard error.
last_said = ""


def say(message: str) -> None:
    """A remark on standard error, for people, in one line unless it is `text`."""
    global last_said
    last_said = message
    try:
        sys.stderr.write(f"{escape.line(message)}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody can be told; the exit code says it still


def ask(question: str, *, is_hidden: bool = True, again: Optional[str] = None, default: Optional[str] = None) -> str:
    """Asks whoever sits there, and gives the answer.

    is_hidden: whether it is not shown while it is typed. again: the question by which it is asked for once more. default: what an empty
    answer means; it is not shown. None: the question is asked until there is an answer.
    """
    found: str = click.prompt(
        escape.line(question), hide_input=is_hidden, confirmation_prompt=again or False, default=default, show_default=False, err=True
    )
    return found


def fitted(given: str, to: int) -> Styled:
    """A text without styles, cut to a number of columns, with an ellipsis where something is missing."""
    if to <= 0:
        return Styled("")
    harmless = escape.line(given)
    if harmless.isascii():
        return Styled(harmless if len(harmless) <= to else harmless[: max(to - 3, 0)] + "..."[:to])
    from rich.cells import cell_len, set_cell_size

    dots = "\u2026" if is_unicode() else "..."
    return Styled(harmless if cell_len(harmless) <= to else set_cell_size(harmless, max(to - len(dots), 0)) + dots)


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


def table(rows: list[list[str]], right: frozenset[int] = frozenset(), *, is_cut: bool = True) -> Iterator[Styled]:
    """Rows of cells without styles under one another, in columns of at most `WIDEST`; the columns in `right` end at one place.

    is_cut: the last column is cut to the width of the terminal.
    """
    if not rows:
        return
    widths = [min(max(columns(cells[at]) for cells in rows), WIDEST) for at in range(len(rows[0]))]
    for cells in rows:
        *before, last = (filled(cell, widths[at], is_right=at in right) for at, cell in enumerate(cells))
        line = "  ".join(before)
        if is_cut:
            last = fitted(cells[-1], max(width() - columns(line) - 2, 8))
        yield Styled((f"{line}  {last}" if line else escape.line(cells[-1])).rstrip())
