"""`llvs diff`: what differs between two versions, and inside their values."""

from __future__ import annotations

from typing import Any, Iterator, Optional

import click

import llvs

from . import completion, inner_differences, output
from .session import session
from .values import kind_of

SIGNS = {llvs.store.ChangeKind.INSERT: "+", llvs.store.ChangeKind.UPDATE: "~", llvs.store.ChangeKind.REMOVE: "-"}
WORDS = {llvs.store.ChangeKind.INSERT: "inserted", llvs.store.ChangeKind.UPDATE: "updated", llvs.store.ChangeKind.REMOVE: "removed"}
STYLES = {"+": "added", "-": "removed", "~": "strong"}


@click.command("diff")
@click.argument("a", metavar="A", default="@~1", shell_complete=completion.versions)
@click.argument("b", metavar="[B]", default="@", shell_complete=completion.versions)
@click.argument("prefix", metavar="[PREFIX]", default="", shell_complete=completion.ids)
@click.option("--stat", is_flag=True, help="The ids and sizes only.")
@click.option("--names", is_flag=True, help="The ids only.")
@click.option("--json", "is_json", is_flag=True, help="One JSON text in each line.")
def diff_command(a: str, b: str, prefix: str, stat: bool, names: bool, is_json: bool) -> None:
    """Show what changed from version A to version B (by default the current one), in values whose ids begin with PREFIX.

    Inside values: by member for JSON, by line and word for text.
    """
    store = session().reading()
    first, last = session().find(a), session().find(b)
    changes = store.diff(first, last, prefix=prefix, with_data=not names)
    if is_json:
        output.show_json_lines(json_shapes(store, first, changes, with_data=not (stat or names)))
    elif names:
        output.show(change.id for change in changes)
    elif stat:
        output.show(_stat(store, first, changes))
    else:
        output.show(rows(store, first, changes))


def _sides(store: llvs.Store, first: llvs.Version, change: llvs.Change) -> tuple[Optional[bytes], Optional[bytes], bool]:
    """Returns the bytes before and after a change, and whether one of the two has no bytes any more."""
    is_gone = change.kind != llvs.store.ChangeKind.REMOVE and change.data is None
    old = None
    if change.kind != llvs.store.ChangeKind.INSERT:
        try:
            old = store.at(first).get(change.id)
        except llvs.errors.GoneError:
            is_gone = True
    return old, change.data, is_gone


def rows(store: llvs.Store, first: llvs.Version, changes: Iterator[llvs.Change]) -> Iterator[str]:
    """Yields the changes, and the differences inside values, for people."""
    for change in changes:
        sign = SIGNS[change.kind]
        old, new, is_gone = _sides(store, first, change)
        kind = "bytes gone" if is_gone else kind_of(new if new is not None else old or b"").words
        yield output.row(f"{sign} ", output.style(change.id, STYLES[sign]), f" ({WORDS[change.kind]}, {kind})")
        if change.kind != llvs.store.ChangeKind.REMOVE and not is_gone:
            yield from inner_differences.rows(old, new)


def _stat(store: llvs.Store, first: llvs.Version, changes: Iterator[llvs.Change]) -> Iterator[str]:
    counts = dict.fromkeys(WORDS, 0)
    listed = []
    for change in changes:
        counts[change.kind] += 1
        old, new, is_gone = _sides(store, first, change)
        sizes = " -> ".join(output.size_text(len(data)) for data in (old, new) if data is not None)
        listed.append([SIGNS[change.kind], change.id, "bytes gone" if is_gone else sizes])
    yield from output.table(listed)
    told = ", ".join(f"{count} {WORDS[kind]}" for kind, count in counts.items() if count)
    yield told or "no differences"


def json_shapes(
    store: llvs.Store, first: llvs.Version, changes: Iterator[llvs.Change], *, with_data: bool
) -> Iterator[dict[str, Any]]:
    """Yields the changes as JSON; docs/command.md describes their members."""
    for change in changes:
        made: dict[str, Any] = {"id": change.id, "change": str(change.kind)}
        if with_data:
            old, new, is_gone = _sides(store, first, change)
            if is_gone:
                made["gone"] = True
            made["old_size"] = None if old is None else len(old)
            made["new_size"] = None if new is None else len(new)
            made.update(inner_differences.shape(old, new) if change.kind == llvs.store.ChangeKind.UPDATE and not is_gone else {})
        yield made
