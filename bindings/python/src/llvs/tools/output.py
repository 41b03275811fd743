"""Prints the results of the command: in colours and pages on a terminal, as plain lines into a pipe, as JSON for programs.

Much of the text was written on other devices. Only `show`, `say` and `ask` print text, and they escape everything that is not `Styled`.
So callers pass text without escaping it.
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

#: The palette of Okabe and Ito, as far as sixteen colours allow: readers who do not see red or green can distinguish them.
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
    """Returns whether standard output is a terminal."""
    return sys.stdout.isatty()


@functools.lru_cache(maxsize=None)
def is_coloured() -> bool:
    """Returns whether to use colours: on a terminal, unless NO_COLOR is set."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


@functools.lru_cache(maxsize=None)
def is_unicode() -> bool:
    """Returns whether lines and dots beyond ASCII can be shown, according to the locale."""
    named = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    return "utf" in named.lower() and "utf" in (sys.stdout.encoding or "").lower()


@functools.lru_cache(maxsize=None)
def width() -> int:
    """Returns the columns of the terminal. Without a terminal, lines are not cut."""
    return shutil.get_terminal_size((100, 24)).columns if is_terminal() else 1_000_000


def prepare() -> None:
    """Makes standard output and error write characters that they cannot encode as escapes, instead of raising."""
    for cached in (is_terminal, is_coloured, is_unicode, width):
        cached.cache_clear()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # In the C locale Python writes UTF-8, too, and the terminal might show anything for it.
            is_plain = stream.isatty() and not is_unicode()
            stream.reconfigure(errors="backslashreplace", **({"encoding": "ascii"} if is_plain else {}))


def style(text: str, name: str) -> Styled:
    """Returns text in one of `STYLES`, if colours are used."""
    harmless = escape.line(text)
    return Styled(click.style(harmless, **STYLES[name]) if is_coloured() and harmless else harmless)


def row(*parts: str, between: str = "") -> Styled:
    """Joins the parts of a line: styled parts are unchanged, the others are escaped."""
    return Styled(between.join(map(escape.line, parts)))


def text(given: str) -> Styled:
    """Returns a text of several lines: its line ends and tabs remain."""
    return Styled(escape.lines(given))


def text_rows(given: str) -> Iterator[Styled]:
    """Returns the lines of a text, in which tabs remain."""
    return map(Styled, escape.lines(given).split("\n"))


def columns(given: str) -> int:
    """Returns how many columns a text without styles occupies."""
    harmless = escape.line(given)
    if harmless.isascii():
        return len(harmless)
    from rich.cells import cell_len

    return cell_len(harmless)


def filled(given: str, to: int, *, is_right: bool = False) -> Styled:
    """Returns a text without styles, filled up with spaces, at its end or its beginning, to a number of columns."""
    space = " " * (to - columns(given))
    return Styled(space + escape.line(given) if is_right else escape.line(given) + space)


def show(rows: Iterable[str]) -> None:
    """Prints lines, which are given without line ends: in a pager on a terminal, at once into a pipe. If `rows` raises, the rows before are
    printed."""
    harmless = map(escape.line, rows)
    if is_terminal():
        _show_pages(harmless)
        return
    write = sys.stdout.write
    waiting: list[str] = []
    # The first row is written at once, for readers that wait for the first byte; then in growing batches.
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
    # The same setting as git's: quits if everything fits on the screen, and passes colours.
    os.environ.setdefault("LESS", "FRX")
    lines = iter(rows) if is_unicode() else (row.encode("ascii", "backslashreplace").decode() for row in rows)
    first = next(lines, None)
    if first is not None:
        # click writes the last line end itself.
        click.echo_via_pager(itertools.chain([first], (f"\n{line}" for line in lines)), color=is_coloured())


class _NotPlain(Exception):
    """Raised for a value that Python's JSON encoder does not know: a number in its original spelling."""


def _not_plain(value: Any) -> Any:
    raise _NotPlain


def as_json(value: Any, *, indent: Optional[int] = None) -> Styled:
    """Returns JSON text in which characters that affect a terminal are escaped. Numbers of documents keep their spelling."""
    try:
        # Python's encoder indents every level.
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


#: The last message on standard error.
last_said = ""


def say(message: str) -> None:
    """Prints a message for people on standard error, in one line unless it is `text`."""
    global last_said
    last_said = message
    try:
        sys.stderr.write(f"{escape.line(message)}\n")
        sys.stderr.flush()
    except OSError:
        pass  # the message cannot be printed; the exit code still reports the failure


def ask(question: str, *, is_hidden: bool = True, again: Optional[str] = None, default: Optional[str] = None) -> str:
    """Asks the user a question, and returns the answer.

    is_hidden: whether the input is not shown. again: the question that asks for the same input once more. default: the result for an empty
    answer; it is not shown. None: the question is repeated until there is an answer.
    """
    found: str = click.prompt(
        escape.line(question), hide_input=is_hidden, confirmation_prompt=again or False, default=default, show_default=False, err=True
    )
    return found


def fitted(given: str, to: int) -> Styled:
    """Returns a text without styles, cut to a number of columns, with an ellipsis if something is left out."""
    if to <= 0:
        return Styled("")
    harmless = escape.line(given)
    if harmless.isascii():
        return Styled(harmless if len(harmless) <= to else harmless[: max(to - 3, 0)] + "..."[:to])
    from rich.cells import cell_len, set_cell_size

    dots = "\u2026" if is_unicode() else "..."
    return Styled(harmless if cell_len(harmless) <= to else set_cell_size(harmless, max(to - len(dots), 0)) + dots)


def size_text(count: int) -> str:
    """Returns a number of bytes for people: "120 B", "3.1 MB"."""
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


#: Columns are filled up to this width. A longer cell takes its own width in its row only.
WIDEST = 120


def table(rows: list[list[str]], right: frozenset[int] = frozenset(), *, is_cut: bool = True) -> Iterator[Styled]:
    """Yields rows of cells without styles in columns of at most `WIDEST` characters; the columns in `right` are aligned to the right.

    is_cut: whether the last column is cut to the width of the terminal.
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
