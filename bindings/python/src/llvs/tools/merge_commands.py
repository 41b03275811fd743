"""`llvs merge`, `llvs explain` and `llvs conflicts`."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Optional

import click

import llvs

from . import completion, describe, exact_json, output
from .failures import DONE, NOT_SO
from .save_commands import metadata_of
from .session import session
from .versions import SHOWN

ARBITERS = {
    "rules": llvs.Rules,
    "most-recent-change": llvs.MostRecentChange,
    "most-recent-branch": llvs.MostRecentBranch,
    "ours": llvs.Ours,
    "theirs": llvs.Theirs,
}
_SIDES = ("base", "newer", "older", "result")


@click.command("merge")
@click.argument("a", metavar="A", shell_complete=completion.versions)
@click.argument("b", metavar="[B]", default="@", shell_complete=completion.versions)
@click.option("--arbiter", type=click.Choice(list(ARBITERS)), default="rules", show_default=True, help="Who decides conflicts.")
@click.option("--dry-run", is_flag=True, help="Only show what would have to be decided; make nothing.")
@click.option("--meta", "pairs", multiple=True, metavar="KEY=VALUE", help="Metadata of the merge; it is then not the same on all devices.")
@click.option("--json", "is_json", is_flag=True, help="As one JSON document.")
def merge_command(a: str, b: str, arbiter: str, dry_run: bool, pairs: tuple[str, ...], is_json: bool) -> int:
    """Merge version A with version B (by default the current one).

    If the current version is one of the two, it moves to the merge. With --dry-run, exits with 1 if the merge would have conflicts.
    """
    if dry_run:
        store, ours, theirs = session().reading(), session().find(b), session().find(a)
        records = store.conflicts(ours, theirs).records if arbiter == "rules" else _foreseen(store, ours, theirs, arbiter)
        _show(records, is_json, "nothing to decide")
        return NOT_SO if records else DONE
    theirs, ours = session().find(a), session().find(b)
    coordinator = session().writing()
    store, current = coordinator.store, coordinator.current_version
    merged = store.merge(ours, theirs, ARBITERS[arbiter](), metadata=metadata_of(pairs) or None)
    if current in (ours, theirs):
        coordinator.current_version = merged
    records = store.explain(merged).records if arbiter == "rules" else ()
    if is_json:
        output.show_json({**describe.as_json(merged), "conflicts": [shape(record) for record in records]})
        return DONE
    is_new = merged.id not in (ours.id, theirs.id)
    rows = [describe.short(merged) if is_new else f"nothing to merge: {merged.id[:SHOWN]} has the other among its ancestors"]
    if records:
        rows.append(f'{output.counted(len(records), "conflict")} decided: "llvs explain {merged.id[:SHOWN]}" tells how')
    output.show(rows)
    return DONE


def _foreseen(store: llvs.Store, ours: llvs.Version, theirs: llvs.Version, arbiter: str) -> tuple[llvs.merge.Conflict, ...]:
    """Returns the decisions of a merge by an arbiter that takes one side or the other. Such arbiters merge values as wholes."""
    found = []
    for record in store.conflicts(ours, theirs, rules={"merge": 1, "ids": {"": "bytes"}}).records:
        newer, older = store.sides(record.id, ours, theirs)
        values = {side.at: _told(store, record.id, side.at, data) for side, data in ((newer, record.newer), (older, record.older))}
        bases = store.merge_bases(ours, theirs)
        base = _told(store, record.id, bases[0].id, record.base) if len(bases) == 1 else record.base
        result = values[_taken(store, arbiter, ours, theirs, (newer, older))]
        found.append(record._replace(base=base, newer=values[newer.at], older=values[older.at], result=result))
    return tuple(found)


def _taken(store: llvs.Store, arbiter: str, ours: llvs.Version, theirs: llvs.Version, sides: tuple[llvs.merge.MergeSide, ...]) -> str:
    """Returns the id of the version whose side an arbiter takes."""
    if arbiter in ("ours", "theirs"):
        return (ours if arbiter == "ours" else theirs).id
    if arbiter == "most-recent-branch":
        return max(ours, theirs, key=lambda version: (version.timestamp, version.id)).id
    stored = [(store[side.reference.stored_version], side.at) for side in sides if side.reference is not None]
    return max(stored, key=lambda one: (one[0].timestamp, one[0].id))[1]


def _told(store: llvs.Store, id: str, at: str, record: Optional[bytes]) -> Optional[bytes]:
    """Returns a value as JSON text, in the form of conflicts: if it is not JSON, by its hash and size."""
    value = store.value(id, at=at)
    try:
        return record if value is None else output.as_json(exact_json.parsed(value.data.decode())).encode()
    except (ValueError, RecursionError):
        return record


@click.command("explain")
@click.argument("merge", default="@", shell_complete=completion.versions)
@click.option("--json", "is_json", is_flag=True, help="As one JSON document.")
def explain_command(merge: str, is_json: bool) -> None:
    """Show the conflicts of the merge version MERGE and their decisions: the base, the two sides, and the result."""
    store, version = session().reading(), session().find(merge)
    found = store.explain(version)
    if not found.recorded:
        output.say("llvs: other rules, or a program, decided this merge; shown is how the rules of the store would")
    nothing = "nothing had to be decided" if len(version.predecessors) == 2 else "this version is no merge"
    if is_json:
        bases = store.merge_bases(*version.predecessors) if len(version.predecessors) == 2 else ()
        output.show_json(
            {
                "version": describe.as_json(version),
                "bases": [base.id for base in bases],
                "recorded": found.recorded,
                "conflicts": [shape(record) for record in found.records],
            }
        )
        return
    _show(found.records, False, nothing)


@click.command("conflicts")
@click.argument("a", required=False, shell_complete=completion.versions)
@click.argument("b", required=False, default="@", shell_complete=completion.versions)
@click.option("--choose", type=(int, click.Choice(["newer", "older", "result"])), metavar="N SIDE", help="Close the Nth by a save.")
@click.option("--json", "is_json", is_flag=True, help="One JSON text in each line.")
def conflicts_command(a: Optional[str], b: str, choose: Optional[tuple[int, llvs.words.Choice]], is_json: bool) -> int:
    """Show the open conflicts: decided by merges, and not edited or chosen since; with A, those of a merge of A and B that is not made yet.

    Exits with 1 if there are any.
    """
    if choose is not None:
        return _choose(*choose)
    store = session().reading()
    if a is not None:
        records: tuple[llvs.merge.Conflict, ...] = store.conflicts(session().find(b), session().find(a)).records
    else:
        current = session().current()
        records = () if current is None else store.open_conflicts(current).records
    _show(records, is_json, "no conflicts", is_lines=True)
    return NOT_SO if records else DONE


def _choose(number: int, side: llvs.words.Choice) -> int:
    coordinator = session().writing()
    records = coordinator.open_conflicts().records
    if not 1 <= number <= len(records):
        output.say(f'llvs: there is no conflict {number}: "llvs conflicts" numbers those that are open')
        return NOT_SO
    output.show([describe.short(coordinator.choose(records[number - 1], side))])
    return DONE


def _show(records: tuple[llvs.merge.Conflict, ...], is_json: bool, nothing: str, *, is_lines: bool = False) -> None:
    if is_json and is_lines:
        output.show_json_lines(map(shape, records))
    elif is_json:
        output.show_json({"conflicts": [shape(record) for record in records]})
    elif records:
        output.show(rows(records))
    else:
        output.show([nothing])


def place(record: llvs.merge.Conflict) -> str:
    """Returns the path of a place in a value, for people: "/phones[2]/label"."""
    parts = []
    for step in record.path:
        if isinstance(step, dict):
            parts.append(f"[{step['index']}]" if "index" in step else f"[{output.as_json(step.get('key'))}]")
        else:
            parts.append(f"/{step}")
    return "".join(parts)


def rows(records: Iterable[llvs.merge.Conflict]) -> Iterator[str]:
    """Yields conflicts for people, numbered."""
    for number, record in enumerate(records, 1):
        where = output.style(f"{record.id}{place(record)}", "name")
        about = f", merged in {record.version[:SHOWN]}" if record.version else ""
        rule = f', rule "{record.rule[0]}{record.rule[1]}"' if record.rule else ""
        yield output.row(f"{number}. ", where, f" ({record.kind.value}{rule}{about})")
        for side in _SIDES:
            data: Optional[bytes] = getattr(record, side)
            text = "(absent)" if data is None else data.decode("utf-8", "replace")
            yield output.row(f"   {side + ':':8}", output.style(text, "added") if side == "result" else text)


def shape(record: llvs.merge.Conflict) -> dict[str, Any]:
    """Returns a conflict as JSON; docs/command.md describes its members."""
    made: dict[str, Any] = {"id": record.id, "path": list(record.path), "kind": record.kind.value}
    made["rule"] = list(record.rule) if record.rule else None
    made["version"] = record.version or None
    made.update({side: exact_json.parsed(data.decode()) for side in _SIDES if (data := getattr(record, side)) is not None})
    return made
