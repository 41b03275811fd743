"""`llvs export`: the values of a version, in one file for other programs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import click

import llvs

from . import completion, describe, output, values, whole_files
from .failures import MISUSED, STORE, Failure
from .session import session
from .value_commands import at_option

_Export = Callable[[llvs.Store, llvs.Version, llvs.store.State, Path], None]


@click.command("export")
@click.argument("prefix", default="", shell_complete=completion.ids)
@at_option
@click.option("-o", "--output", "file", type=click.Path(path_type=Path), help="x.jsonl, x.tar, x.zip or x.sqlite; else JSON lines.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
def export_command(prefix: str, at: str, file: Optional[Path], force: bool) -> None:
    """Write the values of a version whose ids begin with PREFIX: as JSON lines, or into a file, whose suffix decides its format.

    In archives each value is a file; ids that cannot be names of files are written with %XX.
    """
    store, version = session().reading(), session().find(at)
    state = store.at(version).prefix(prefix)
    if file is None:
        output.show_json_lines(_shapes(state))
        return
    writer = _WRITERS.get(file.suffix)
    if writer is None:
        raise Failure(f'"{file.name}" does not say how to write it: let it end in {", ".join(_WRITERS)}', MISUSED)
    if file.exists() and not force:
        raise Failure(f"there is something at {file} already: --force replaces it", STORE)
    with whole_files.whole(file) as partial:
        writer(store, version, state, partial)
    output.say(f"{output.counted(len(state), 'value')} of {version.id[:8]} written to {file}")


def _shapes(state: llvs.store.State) -> Iterator[dict[str, Any]]:
    for id, data in state.items():
        yield {"id": id, **values.shape(data)}


def _write_json_lines(_: llvs.Store, __: llvs.Version, state: llvs.store.State, file: Path) -> None:
    with file.open("x", encoding="utf-8") as into:
        for shape in _shapes(state):
            into.write(output.as_json(shape) + "\n")


def file_name(id: str) -> str:
    """Returns a name in an archive for a value id. It unpacks to one file below the folder, and differs for different ids."""
    made = []
    for step in id.split("/"):
        plain = "".join(one if one.isprintable() and one not in '%\\:*?"<>|' else _hexadecimal(one) for one in step)
        if step in ("", ".", "..") or plain.endswith((".", " ")):
            plain = "%" if step == "" else plain[:-1] + f"%{ord(plain[-1]):02X}"
        made.append(plain)
    return "/".join(made)


def _hexadecimal(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _names(state: llvs.store.State) -> Callable[[str], str]:
    """Returns names for all ids. If a file would have the name of a folder, its name ends in "%"."""
    folders = set()
    for id in state:
        name = file_name(id)
        while "/" in name:
            name = name.rpartition("/")[0]
            folders.add(name)
    return lambda id: file_name(id) + "%" * (file_name(id) in folders)


def _write_tar(_: llvs.Store, version: llvs.Version, state: llvs.store.State, file: Path) -> None:
    import tarfile

    name_of = _names(state)
    with tarfile.open(file, "x", format=tarfile.PAX_FORMAT) as archive:
        for id, data in state.items():
            member = tarfile.TarInfo(name_of(id))
            member.size, member.mtime, member.mode = len(data), max(int(version.made_at), 0), 0o644
            archive.addfile(member, io.BytesIO(data))


def _write_zip(_: llvs.Store, version: llvs.Version, state: llvs.store.State, file: Path) -> None:
    import time
    import zipfile

    name_of = _names(state)
    try:
        date = time.gmtime(version.made_at)[:6]
    except (OverflowError, ValueError, OSError):
        date = (1980, 1, 1, 0, 0, 0)
    # The range of times that zip can represent.
    date = min(max(date, (1980, 1, 1, 0, 0, 0)), (2107, 12, 31, 23, 59, 58))
    with zipfile.ZipFile(file, "x", zipfile.ZIP_DEFLATED) as archive:
        for id, data in state.items():
            member = zipfile.ZipInfo(name_of(id), date)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(member, data)


def _write_sqlite(store: llvs.Store, version: llvs.Version, state: llvs.store.State, file: Path) -> None:
    """Writes the tables "value" (id, data, json if the data is JSON, stored_version) and "version" (the versions that stored the
    values)."""
    import json
    import sqlite3

    file.touch(exist_ok=False)
    database = sqlite3.connect(file)
    try:
        database.execute("create table version (id text primary key, time text, timestamp real, branch text, metadata text)")
        database.execute("create table value (id text primary key, data blob, json text, stored_version text references version)")
        stored = set()
        for reference in state.references():
            data = state[reference.id]
            kind = values.kind_of(data, scalars=True)
            text = output.as_json(kind.content) if kind.name == "json" else None
            database.execute("insert into value values (?, ?, ?, ?)", (reference.id, data, text, reference.stored_version))
            stored.add(reference.stored_version)
        for one in store.versions(sorted(stored)):
            shape = describe.as_json(one)
            row = (one.id, shape["time"], one.timestamp, one.branch, json.dumps(shape["metadata"]))
            database.execute("insert into version values (?, ?, ?, ?, ?)", row)
        database.commit()
    except sqlite3.Error as problem:
        raise Failure(f"writing the database failed: {problem}; make room and run it again", STORE) from None
    finally:
        database.close()


_WRITERS: dict[str, _Export] = {".jsonl": _write_json_lines, ".tar": _write_tar, ".zip": _write_zip, ".sqlite": _write_sqlite}
