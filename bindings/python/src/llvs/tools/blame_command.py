"""`llvs blame`: which version set each member of a document, or each line of a text."""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

import click

import llvs

from . import completion, describe, differing, exact_json, output, values
from .failures import NOT_SO, Failure
from .session import session
from .value_commands import at_option
from .versions import SHOWN


class Part(NamedTuple):
    """A part of a value, and the version that set it."""

    #: A JSON pointer, or the number of a line.
    where: str
    #: The member as JSON text, or the line.
    text: str
    version: llvs.Version


@click.command("blame")
@click.argument("id", shell_complete=completion.ids)
@at_option
@click.option("--json", "is_json", is_flag=True, help="One JSON text in each line.")
def blame_command(id: str, at: str, is_json: bool) -> None:
    """Show which version set each member (of JSON), or each line (of text), of the value ID.

    After a merge, a part is traced to the side that had it.
    """
    store, version = session().reading(), session().find(at)
    value = store.value(id, at=version)
    if value is None:
        raise Failure(f'there is no value "{id}" at {version.id[:SHOWN]}: "llvs ls" lists what there is', NOT_SO)
    found = parts(store, id, version)
    if is_json:
        output.show_json_lines({"at": part.where, "text": part.text, "version": describe.as_json(part.version)} for part in found)
    else:
        output.show(_rows(list(found)))


def _rows(found: list[Part]) -> Iterator[str]:
    names = [describe.who(part.version) for part in found]
    wide = min(max(map(output.columns, names), default=0), output.WIDEST)
    places = min(max((output.columns(part.where) for part in found), default=0), output.WIDEST)
    for part, name in zip(found, names):
        facts = [output.style(part.version.id[:SHOWN], "id"), describe.minute(part.version.made_at), output.filled(name, wide)]
        where = output.filled(part.where, places, is_right=part.where.isdigit())
        yield output.row(output.row(*facts, between=" "), where, part.text.rstrip(), between="  ")


def parts(store: llvs.Store, id: str, version: llvs.Version) -> Iterator[Part]:
    """Yields the parts of a value at a version, each with the version that set it. Reads every version that stored the value."""
    value = store.value(id, at=version)
    assert value is not None
    kind = values.kind_of(value.data)
    if kind.name not in ("json", "text"):
        yield Part("", values.words(value.data), store[value.stored_version])
        return
    setters = _Setters(store, id, kind.name)
    for where, part in _pieces(value.data, kind.name):
        yield Part(where, part, store[setters.of(where, part, value.stored_version)])


def _pieces(data: bytes, kind: str) -> list[tuple[str, str]]:
    """Returns the members of a document or the lines of a text, each with its position; nothing for other data."""
    found = values.kind_of(data)
    if kind == "json":
        return list(_members(found.content, "")) if found.name == "json" else []
    text = found.content if found.name == "text" else data.decode("utf-8", "replace")
    return [(str(number), line) for number, line in enumerate(text.removesuffix("\n").split("\n"), 1)]


def _members(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from _members(member, f"{path}/{differing.pointer_step(key)}")
    else:
        # A list is one part, because its elements move.
        yield path, exact_json.written(value, sort_keys=True)


class _Setters:
    """Finds for each part of a value the version that set it: goes back through the versions that stored the value while they have the
    part."""

    def __init__(self, store: llvs.Store, id: str, kind: str) -> None:
        self._store, self._id, self._kind = store, id, kind
        self._lines: dict[str, dict[tuple[str, str], int]] = {}
        self._before: dict[str, list[str]] = {}
        self._found: dict[tuple[str, str, str], str] = {}

    def _parts_of(self, stored: str) -> dict[tuple[str, str], int]:
        """Returns the parts that a version stored, counted. A line is identified by its text alone, because lines move."""
        if stored not in self._lines:
            try:
                value = self._store.value(self._id, at=stored)
            except llvs.errors.GoneError:
                value = None  # What it had is not known: the part is traced no further back.
            pieces = _pieces(value.data, self._kind) if value else []
            counts: dict[tuple[str, str], int] = {}
            for where, text in pieces:
                key = ("" if self._kind == "text" else where, text)
                counts[key] = counts.get(key, 0) + 1
            self._lines[stored] = counts
        return self._lines[stored]

    def _stored_before(self, stored: str) -> list[str]:
        """Returns the versions that stored the value as the predecessors of a version had it."""
        if stored not in self._before:
            references = [self._store.reference(self._id, at=one) for one in self._store[stored].predecessors]
            self._before[stored] = [reference.stored_version for reference in references if reference is not None]
        return self._before[stored]

    def of(self, where: str, text: str, stored: str) -> str:
        """Returns the version that set a part which version `stored` has."""
        part = ("" if self._kind == "text" else where, text)
        way = []
        while True:
            known = self._found.get((*part, stored))
            if known is not None:
                break
            way.append(stored)
            holders = [before for before in self._stored_before(stored) if part in self._parts_of(before)]
            if not holders:
                known = stored
                break
            stored = holders[0]
        for passed in way:
            place = (*part, passed)
            self._found[place] = known
        return known
