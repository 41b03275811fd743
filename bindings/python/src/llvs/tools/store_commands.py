"""`llvs init` and `llvs status`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

import click

import llvs

from . import describe, output
from .failures import MISUSED, STORE, Failure
from .session import session, storage_of
from .versions import SHOWN


@click.command("init")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--storage", type=click.Choice(["file", "sqlite"]), default="file", show_default=True, help="A folder, or one database file.")
def init_command(path: Optional[Path], storage: llvs.words.StorageKind) -> None:
    """Make a new, empty store at PATH, or at the path of -s."""
    given = path or (Path(session().given or "") if session().given else None)
    if given is None:
        raise Failure("say where the store is to be: llvs init PATH", MISUSED)
    if storage_of(given) is not None:
        raise Failure(f"{given} is a store already: nothing was changed", STORE)
    with llvs.Store(given, storage=storage):
        pass
    output.show([f"made an empty store at {given}"])


@click.command("status")
@click.option("--json", "is_json", is_flag=True, help="As one JSON document.")
def status_command(is_json: bool) -> None:
    """Show the state of the store: its size, current version, heads, and open conflicts."""
    path, storage = session().place()
    store = session().reading()
    counts, current, heads = store.statistics(), session().current(), store.heads()
    conflicts = store.open_conflicts(current).records if current is not None else ()
    values = len(store.at(current)) if current is not None else 0
    if is_json:
        output.show_json(
            {
                "path": str(path),
                "storage": storage,
                "versions": counts.versions,
                "bytes": counts.bytes,
                "current": describe.as_json(current) if current else None,
                "values": values,
                "heads": [describe.as_json(head) for head in heads],
                "open_conflicts": len(conflicts),
                "pending": counts.pending,
                "damaged": counts.damaged,
            }
        )
        return
    kind = {"file": "files", "sqlite": "SQLite"}[storage]
    rows = [["store", f"{path} ({kind}, {output.counted(counts.versions, 'version')}, {output.size_text(counts.bytes)})"]]
    rows.append(["current", describe.short(current) if current else 'none yet: save something with "llvs set ID=VALUE"'])
    rows.append(["values", f"{values:,}"])
    rows += _heads(heads)
    rows += _troubles(len(conflicts), counts)
    output.show(output.table(rows, is_cut=False))


def _heads(heads: tuple[llvs.Version, ...]) -> list[list[str]]:
    if not heads:
        return []
    named = [head.id[:SHOWN] + (f" (branch {head.branch})" if head.branch is not None else "") for head in heads[:5]]
    more = ["..."] if len(heads) > 5 else []
    return [["heads", f"{len(heads)}: {', '.join(named + more)}"]]


def _troubles(conflicts: int, counts: Any) -> list[list[str]]:
    rows = []
    if conflicts:
        rows.append(["conflicts", f'{conflicts} open: "llvs conflicts" shows them'])
    if counts.pending:
        rows.append(["pending", f"{output.counted(counts.pending, 'version')} of which ancestors are missing: an exchange may bring them"])
    if counts.damaged:
        rows.append(["damaged", f'{output.counted(counts.damaged, "place")}: "llvs verify" tells which'])
    return rows
