"""`llvs set` and `llvs rm`: new versions."""

from __future__ import annotations

import contextlib
import math
import sys
from typing import Any, BinaryIO, Optional, Union

import click

import llvs

from . import completion, describe, output
from .failures import MISUSED, NOT_SO, Failure
from .session import session

_Content = Union[bytes, BinaryIO]


def saving_options(function: Any) -> Any:
    """The options of commands that make versions."""
    for option in (
        click.option("--json", "is_json", is_flag=True, help="The version that was made, as one JSON document."),
        click.option("--meta", "pairs", multiple=True, metavar="KEY=VALUE", help="Metadata; a VALUE that is JSON is taken as such."),
        click.option("--branch", metavar="NAME", help="On this branch, which begins here if it is not there."),
        click.option("-m", "--message", metavar="TEXT", help="What this does, for whoever reads the history."),
    ):
        function = option(function)
    return function


@click.command("set")
@click.argument("items", nargs=-1, required=True, metavar="ID=VALUE | ID @FILE...", shell_complete=completion.ids)
@saving_options
def set_command(items: tuple[str, ...], message: Optional[str], branch: Optional[str], pairs: tuple[str, ...], is_json: bool) -> None:
    """Set values, all in one new version: ID=VALUE for text, ID @FILE for the contents of a file ("@-": standard input).

    The id ends at the first "=". For an id that contains one, use a file.
    """
    with contextlib.ExitStack() as files:
        given = list(_read(items, files))
        if sum(content is sys.stdin.buffer for _, content in given) > 1:
            raise Failure('"@-" is given twice: what comes in is the value of one id', MISUSED)
        ids = [id for id, _ in given]
        for id in ids:
            if ids.count(id) > 1:
                raise Failure(f'"{id}" is given twice: a version sets each value once', MISUSED)
        _save(message, branch, pairs, is_json, update=dict(given))


def _read(items: tuple[str, ...], files: contextlib.ExitStack) -> Any:
    waiting = list(items)
    while waiting:
        item = waiting.pop(0)
        if waiting and waiting[0].startswith("@"):
            yield item, _file(waiting.pop(0)[1:], files)
            continue
        id, equals, value = item.partition("=")
        if not equals:
            raise Failure(f'"{item}" has no value: write {item}=VALUE, or {item} @FILE', MISUSED)
        yield id, value.encode("utf-8", "surrogateescape")


def _file(name: str, files: contextlib.ExitStack) -> _Content:
    if not name:
        raise Failure('"@" names no file: write @FILE, or "@-" for what comes in', MISUSED)
    return sys.stdin.buffer if name == "-" else files.enter_context(open(name, "rb"))


@click.command("rm")
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=completion.ids)
@saving_options
def rm_command(ids: tuple[str, ...], message: Optional[str], branch: Optional[str], pairs: tuple[str, ...], is_json: bool) -> None:
    """Remove values, all in one new version. Their earlier contents stay in the history."""
    _save(message, branch, pairs, is_json, remove=list(dict.fromkeys(ids)))


def metadata_of(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Returns metadata from "key=value". Raises Failure."""
    import json

    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise Failure(f'"{pair}" is no metadata: write --meta KEY=VALUE', MISUSED)
        if key.startswith("__llvs_"):
            raise Failure(f'"{key}" is of the library: -m, --branch and --device say what such keys hold', MISUSED)
        try:
            found[key] = json.loads(text, parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError):
            found[key] = text
    return found


def _finite(text: str) -> float:
    """Returns a JSON number. Raises ValueError for one that metadata cannot represent; it is then stored as text."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _save(message: Optional[str], branch: Optional[str], pairs: tuple[str, ...], is_json: bool, **changes: Any) -> None:
    metadata = metadata_of(pairs)
    coordinator = session().writing()
    for id in changes.get("remove", ()):
        at = coordinator.branch_version(branch) if branch else None
        if id not in (coordinator.at() if at is None else coordinator.store.at(at)):
            raise Failure(f'there is no value "{id}" to remove: nothing was changed', NOT_SO)
    saved = coordinator.save(metadata=metadata or None, branch=branch, description=message, **changes)
    if saved is None:
        raise Failure("nothing changed, so nothing was saved", NOT_SO)
    tell(saved, is_json)


def tell(version: llvs.Version, is_json: bool) -> None:
    """Prints which version was made."""
    if is_json:
        output.show_json(describe.as_json(version))
    else:
        output.show([describe.short(version)])
