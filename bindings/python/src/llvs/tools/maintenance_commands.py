"""`llvs verify`, `salvage`, `compact`, `snapshot` and `import`: the store as a whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Iterator, Optional

import click

import llvs

from . import describe, output, progress
from .failures import DONE, NOT_SO, STORE, Failure
from .session import session, storage_of

_json_option = click.option("--json", "is_json", is_flag=True, help="As one JSON document.")
_folder = click.Path(path_type=Path)


def _writable() -> llvs.Store:
    """Opens the store for writing until the command ends; other programs may have it open."""
    path, storage = session().place()
    store = llvs.Store(path, storage=storage, create=False)
    click.get_current_context().call_on_close(store.close)
    return store


def _damage_shape(damage: llvs.store.Damage) -> dict[str, Any]:
    return {
        "file": damage.file, "offset": damage.offset, "message": damage.message, "version": damage.version, "lost": damage.lost.value,
        "value_id": damage.value_id, "caused_by": damage.caused_by,
    }


def _damage_rows(damages: tuple[llvs.store.Damage, ...]) -> Iterator[str]:
    caused: Counter[tuple[Optional[str], Optional[str]]] = Counter(
        (damage.caused_by, damage.value_id) for damage in damages if damage.caused_by)
    for damage in damages:
        if damage.caused_by:
            continue
        about = [f"version {damage.version}"] if damage.version else []
        about += [f"value {damage.value_id}"] if damage.value_id else []
        standing = caused.pop((damage.version, damage.value_id), 0)
        about += [f"with it {output.counted(standing, 'later value')} of the id, stored as differences"] if standing else []
        lost = "nothing is lost" if damage.lost is llvs.store.Loss.NOTHING else f"lost: {damage.lost.value}"
        where = f"{damage.file} at byte {damage.offset:,}"
        yield output.style(f"{where}: {damage.message} ({', '.join([lost, *about])})", "warning")
    for (version, value), standing in caused.items():
        values = output.counted(standing, "value")
        yield output.style(f"{values} of {value} cannot be read: stored as differences from that of version {version}", "warning")


@click.command("verify")
@_json_option
def verify_command(is_json: bool) -> int:
    """Read everything again and compare it with its checksums. Exits with 1 if damage is found."""
    with progress.shown() as hear:
        report = session().reading().verify(progress=hear)
    is_bad = bool(report.damages or report.unfinished)
    if is_json:
        shape = {name: getattr(report, name) for name in ("versions", "values", "forgotten", "pending", "vouched", "unvouched")}
        shape["damages"] = [_damage_shape(damage) for damage in report.damages]
        shape["unfinished"] = [_damage_shape(damage) for damage in report.unfinished]
        output.show_json(shape)
        return NOT_SO if is_bad else DONE
    rows = [f"{output.counted(report.versions, 'version')}, {output.counted(report.values, 'value')} read"]
    if report.forgotten:
        rows.append(f"{output.counted(report.forgotten, 'value')} whose bytes are gone by intent")
    rows += _damage_rows(report.damages + report.unfinished)
    if report.pending:
        rows.append(f"{output.counted(report.pending, 'version')} of which ancestors are missing: an exchange may bring them")
    rows.append('damage found: an exchange repairs what others have; else "llvs salvage OUT" keeps the rest' if is_bad else "all is whole")
    output.show(rows)
    return NOT_SO if is_bad else DONE


@click.command("salvage")
@click.argument("out", type=_folder)
@_json_option
def salvage_command(out: Path, is_json: bool) -> int:
    """Write everything that is whole in the store into a new one at OUT, which must not exist. The store is only read.

    Works also if the store cannot be opened. Exits with 1 if something is lost.
    """
    if out.exists() or out.is_symlink():
        raise Failure(f"there is something at {out} already: name another place", STORE)
    path, storage = session().place()
    with progress.shown() as hear:
        report = llvs.Store.salvage(path, out, storage=storage, progress=hear)
    lost = [damage for damage in report.damages if damage.lost is not llvs.store.Loss.NOTHING]
    if is_json:
        output.show_json(
            {
                "versions": report.versions,
                "waiting": report.waiting,
                "made": [one._asdict() for one in report.made],
                "damages": [_damage_shape(damage) for damage in report.damages],
            }
        )
        return NOT_SO if lost else DONE
    rows = [f"{output.counted(report.versions, 'version')} written to {out}"]
    rows += [f"{output.counted(report.waiting, 'version')} wait there for lost ones"] if report.waiting else []
    rows += [f"{one.version[:8]} made of what is left up to {one.original[:8]}" for one in report.made]
    rows += _damage_rows(report.damages)
    output.show(rows)
    return NOT_SO if lost else DONE


@click.command("compact")
@_json_option
def compact_command(is_json: bool) -> None:
    """Compact small files of the store into large ones, and delete files that were compacted some time ago."""
    store = _writable()
    with progress.shown() as hear:
        report = store.compact(progress=hear)
    if is_json:
        output.show_json(report._asdict())
    elif report.sync_marker is not None:
        output.say(f"llvs: nothing was done: {report.sync_marker} shows that a syncing program carries the store")
    else:
        made = f"{output.counted(report.folded, 'file')} put together into {report.made:,} ({output.size_text(report.bytes_written)})"
        output.show([f"{made}, {report.deleted:,} deleted ({output.size_text(report.bytes_deleted)})"])


@click.group("snapshot")
def snapshot_command() -> None:
    """Write a copy of the whole store, with its history, into a folder, or restore one."""


@snapshot_command.command("write")
@click.argument("folder", type=_folder)
@_json_option
def write_command(folder: Path, is_json: bool) -> None:
    """Write a snapshot into FOLDER. An older one there is replaced."""
    with progress.shown() as hear:
        made = session().reading().write_snapshot(folder, progress=hear)
    _tell_snapshot(made, is_json, f"written to {folder}")


@snapshot_command.command("restore")
@click.argument("folder", type=_folder)
@_json_option
def restore_command(folder: Path, is_json: bool) -> int:
    """Restore the snapshot in FOLDER into the store, which must be empty: make it with "llvs init"."""
    store = _writable()
    with progress.shown() as hear:
        found = store.restore_snapshot(folder, progress=hear)
    _tell_snapshot(found, is_json, "restored")
    for problem in found.problems:
        output.say(f"llvs: left out: {problem.name}: {problem.reason}")
    return NOT_SO if found.problems else DONE


def _tell_snapshot(found: llvs.store.Snapshot, is_json: bool, done: str) -> None:
    if is_json:
        shape = {**found._asdict(), "created_at": describe.iso(found.created_at)}
        output.show_json({**shape, "problems": [{"name": one.name, "reason": one.reason, "code": int(one.code)} for one in found.problems]})
    else:
        output.show([f"{output.counted(found.version_count, 'version')} ({output.size_text(found.total_size)}) {done}"])


@click.command("import")
@click.argument("directory", type=_folder)
@_json_option
def import_command(directory: Path, is_json: bool) -> int:
    """Add the versions of DIRECTORY, a store of another implementation of this design, which is only read.

    For a store of this implementation, exchange with it, or restore a snapshot of it.
    """
    if storage_of(directory) is not None:
        raise Failure(f"{directory} is a store of this implementation: exchange with it through a folder", STORE)
    store = _writable()
    with progress.shown() as hear:
        found = store.import_store(directory, progress=hear)
    if is_json:
        problems = [{"name": one.name, "reason": one.reason, "code": int(one.code)} for one in found.problems]
        output.show_json({"retrieved": list(found.retrieved), "problems": problems})
    else:
        output.show([f"{output.counted(len(found.retrieved), 'version')} added"])
        for problem in found.problems:
            output.say(f"llvs: not added: {problem.name}: {problem.reason}")
    return NOT_SO if found.problems else DONE
