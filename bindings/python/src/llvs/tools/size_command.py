"""`llvs size`: what takes space."""

from __future__ import annotations

from typing import Optional

import click

import llvs

from . import output, progress
from .session import session

#: A kind of bytes, in words.
KINDS = {
    "record": "versions, without their values",
    "value": "values",
    "blob": "values in files of their own",
    "cache": "caches, which can be built again",
    "hollow": "values whose bytes are gone",
    "other": "all else: frames, reserved room, second copies",
}


@click.command("size")
@click.argument("prefix", default="")
@click.option("--depth", type=click.IntRange(1), default=1, show_default=True, help="Parts of an id, up to a \"/\", that a group has.")
@click.option("--each-id", is_flag=True, help="Make a group of each id.")
@click.option("-n", "--limit", type=click.IntRange(1), default=None, help="How many groups to show.  [default: 10; with --json 1,000]")
@click.option("--json", "is_json", is_flag=True, help="As one JSON document.")
def size_command(prefix: str, depth: int, each_id: bool, limit: Optional[int], is_json: bool) -> None:
    """Show what takes space: by kind, by prefix of ids, by month and by version, and what only the past holds.

    With PREFIX only the bytes of values whose ids begin with it. No value is read.
    """
    most = limit or (1_000 if is_json else 10)
    with progress.shown() as hear:
        report = session().reading().size(prefix, depth=None if each_id else depth, limit=most, progress=hear)
    if is_json:
        groups = ("by_kind", "by_prefix", "by_month", "by_version")
        shape = {name: value for name, value in report._asdict().items() if name not in groups}
        output.show_json({**shape, **{group: [row._asdict() for row in getattr(report, group)] for group in groups}})
        return
    size = output.size_text
    now, past = size(report.current_bytes), size(report.past_bytes)
    rows: list[str] = [f"{size(report.bytes)}: {now} of values now, {past} of values only the past holds"]
    if not prefix:
        rows += _table("kind", tuple(row._replace(name=KINDS.get(row.name, row.name)) for row in report.by_kind if row.bytes or row.values))
    rows += _table("id" if each_id else "prefix", report.by_prefix)
    rows += _table("month", report.by_month[-most:])
    rows += _table("version", report.by_version)
    if report.unread:
        rows.append(output.style(f"{output.counted(report.unread, 'version')} damaged: \"llvs verify\" tells which", "warning"))
    output.show(rows)


def _table(title: str, found: tuple[llvs.store.SizeRow, ...]) -> list[str]:
    if not found:
        return []
    rows = [["bytes", "now", "past", "values", title]]
    for row in found:
        name = f"({row.combined:,} others)" if row.combined else row.name or "(none)"
        numbers = [output.size_text(count) for count in (row.bytes, row.current_bytes, row.past_bytes)]
        rows.append([*numbers, f"{row.values:,}", name])
    return ["", *output.table(rows, right=frozenset(range(4)))]
