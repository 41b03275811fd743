"""`llvs show`, `llvs history` and `llvs branch`: one version, one value through time, and the branches."""

from __future__ import annotations

from typing import Any, Iterator, Optional

import click

import llvs

from . import completion, describe, diff_command, output
from .escape import Styled
from .failures import NOT_SO, Failure
from .session import session
from .versions import SHOWN


@click.command("show")
@click.argument("version", default="@", shell_complete=completion.versions)
@click.option("--json", "is_json", is_flag=True, help="As one JSON document.")
def show_command(version: str, is_json: bool) -> None:
    """Show VERSION: its author, time, predecessors, metadata and changes."""
    store, found = session().reading(), session().find(version)
    # Compared with its first predecessor, so a merge shows what it added to that.
    before = found.predecessors[0] if found.predecessors else None
    changes = store.diff(before, found) if before is not None else store.changes(found)
    first = store[before] if before is not None else found
    if is_json:
        shape = describe.as_json(found)
        shape["successors"] = [one.id for one in store.successors(found)]
        shape["changes"] = list(diff_command.json_shapes(store, first, changes, with_data=True))
        output.show_json(shape)
        return
    output.show(_version_rows(store, found, first, changes))


def _version_rows(
    store: llvs.Store, version: llvs.Version, first: llvs.Version, changes: Iterator[llvs.Change]
) -> Iterator[str]:
    current = session().current()
    facts = [["version", version.id + (" (current)" if current == version else "")]]
    facts += [["predecessor", describe.short(one)] for one in store.versions(version.predecessors)]
    facts += [["successor", describe.short(one)] for one in store.successors(version)[:10]]
    facts.append(["made", describe.moment(version.made_at)])
    for key, value in version.metadata.items():
        facts.append([key, value if isinstance(value, str) else output.as_json(describe.jsonable(value))])
    yield from output.table(facts, is_cut=False)
    yield ""
    is_empty = True
    for row in diff_command.rows(store, first, changes):
        is_empty = False
        yield row
    if is_empty:
        yield "no changes"


@click.command("history")
@click.argument("id", shell_complete=completion.ids)
@click.option("--json", "is_json", is_flag=True, help="One JSON text in each line.")
def history_command(id: str, is_json: bool) -> None:
    """Show every version in which the value ID changed, newest first, with the kind of change."""
    store = session().reading()
    walk = store.value_history(id)
    first = next(walk, None)
    if first is None:
        raise Failure(f'no version ever held "{id}": "llvs ls" lists what there is', NOT_SO)
    if is_json:
        output.show_json_lines(_history_shape(store, id, version, kind) for version, kind in _again(first, walk))
    else:
        output.show(_history_row(store, id, version, kind) for version, kind in _again(first, walk))


def _again(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _size(store: llvs.Store, id: str, version: llvs.Version) -> Optional[int]:
    return store.value_size(id, at=version)


def _history_row(store: llvs.Store, id: str, version: llvs.Version, kind: llvs.store.ChangeKind) -> Styled:
    size = _size(store, id, version)
    told = "" if size is None else f" ({output.size_text(size)})"
    parts = [describe.who(version), describe.title(version)]
    when = f" {describe.minute(version.made_at)} {str(kind).replace('_', ' ')}{told}"
    return output.row(output.row(output.style(version.id[:SHOWN], "id"), when), *(part for part in parts if part), between="  ")


def _history_shape(store: llvs.Store, id: str, version: llvs.Version, kind: llvs.store.ChangeKind) -> dict[str, Any]:
    return {**describe.as_json(version), "change": str(kind), "value_size": _size(store, id, version)}


@click.command("branch")
@click.option("--json", "is_json", is_flag=True, help="One JSON text in each line.")
def branch_command(is_json: bool) -> None:
    """List the branches that heads are on, each with its newest head.

    A branch begins with the first save on it: llvs set --branch NAME ID=VALUE.
    """
    store = session().reading()
    branches = store.branches()
    if is_json:
        output.show_json_lines(
            {"branch": name, "heads": len(store.heads(branch=name)), "version": describe.as_json(head)}
            for name, head in branches.items()
        )
        return
    if not branches:
        output.say('no branches: "llvs set --branch NAME ID=VALUE" begins one')
    output.show(output.table([[name, describe.short(head)] for name, head in branches.items()]))
