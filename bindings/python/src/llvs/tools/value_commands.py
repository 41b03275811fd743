"""`llvs ls` and `llvs get`: the values at a version."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, BinaryIO, Iterator, Optional

import click

import llvs

from . import completion, describe, output, terminal_pictures, values, whole_files
from .failures import NOT_SO, Failure
from .session import session
from .versions import SHOWN

at_option = click.option(
    "--at", metavar="VERSION", default="@", help="At this version; else the current one.", shell_complete=completion.versions
)


@click.command("ls")
@click.argument("prefix", default="", shell_complete=completion.ids)
@at_option
@click.option("-l", "--long", "is_long", is_flag=True, help="With size, kind, and the version that stored each.")
@click.option("--json", "is_json", is_flag=True, help="One JSON text in each line.")
def ls_command(prefix: str, at: str, is_long: bool, is_json: bool) -> None:
    """List the ids of values that begin with PREFIX."""
    store = session().reading()
    version = _version(at)
    if version is None:
        if not is_json:
            output.say('no version yet: save something with "llvs set ID=VALUE"')
        return
    state = store.at(version).prefix(prefix)
    if is_json:
        output.show_json_lines(_shape(store, version, reference) for reference in state.references())
    elif is_long:
        output.show(_long(store, version, state))
    else:
        output.show(id for id in state)
    if not is_json and not len(state):
        output.say(f'no value at {version.id[:SHOWN]}' + (f' has an id that begins with "{prefix}"' if prefix else ""))


def _version(name: str) -> Optional[llvs.Version]:
    """Returns the version with a name; None for the current one of an empty store, in which there is nothing to list."""
    return None if name == "@" and session().current() is None else session().find(name)


def _shape(store: llvs.Store, version: llvs.Version, reference: llvs.store.Reference) -> dict[str, Any]:
    return {"id": reference.id, "size": store.value_size(reference.id, at=version), "stored_version": reference.stored_version}


#: Terminals with fewer columns only show sizes and ids: a cut id would be of no use.
_NARROW = 72


def _long(store: llvs.Store, version: llvs.Version, state: llvs.store.State) -> Iterator[str]:
    rows = []
    for reference in state.references():
        with store.open_value(reference.id, at=version) as reader:
            size = store.value_size(reference.id, at=version) or 0
            try:
                head: Optional[bytes] = reader.read(4096)
            except llvs.errors.GoneError:
                head = None
        if output.width() < _NARROW:
            rows.append([output.size_text(size), reference.id])
            continue
        stored = store[reference.stored_version]
        kind = "gone" if head is None else values.kind_of(head).words if size <= len(head) else _kind_of_head(head)
        rows.append([output.size_text(size), kind, stored.id[:SHOWN], describe.minute(stored.made_at), reference.id])
    return output.table(rows, frozenset({0}), is_cut=False)


def _kind_of_head(head: bytes) -> str:
    """Returns the kind of a value from its first bytes, which may end within a character or a document."""
    kind = values.kind_of(head)
    if kind.name == "data":
        kind = values.kind_of(head.decode("utf-8", "ignore").encode()) if values.is_cut_text(head) else kind
    return "JSON" if kind.name == "text" and head.lstrip()[:1] in (b"{", b"[") else kind.words


@click.command("get")
@click.argument("id", shell_complete=completion.ids)
@at_option
@click.option("-o", "--output", "file", type=click.Path(path_type=Path), help="Write the bytes to this file.")
@click.option("--hex", "is_hex", is_flag=True, help="As a hex dump.")
@click.option("--json", "is_json", is_flag=True, help="As one JSON document, with what is known of the value.")
def get_command(id: str, at: str, file: Optional[Path], is_hex: bool, is_json: bool) -> None:
    """Show the value ID: by its kind on a terminal, byte by byte into a pipe or a file."""
    store = session().reading()
    version = _version(at)
    try:
        if version is None:
            raise KeyError
        reader = store.open_value(id, at=version)
    except KeyError as problem:
        if isinstance(problem, llvs.Error):
            raise
        raise Failure(_absent(store, id, version), NOT_SO) from None
    with reader:
        if file is not None:
            _write_file(reader, file)
        elif is_json:
            output.show_json({"id": id, "stored_version": reader.stored_version, **values.shape(reader.read())})
        elif is_hex or output.is_terminal():
            data = reader.read()
            if not is_hex and output.is_terminal() and values.kind_of(data).name == "image":
                # Not in a pager, which would show the protocol as text.
                sys.stdout.write(terminal_pictures.drawn(data) or "")
                sys.stdout.flush()
            output.show(values.rows(data, is_hex=is_hex))
        else:
            _copy(reader, sys.stdout.buffer)


def _absent(store: llvs.Store, id: str, version: Optional[llvs.Version]) -> str:
    where = f"at {version.id[:SHOWN]}" if version is not None else "in an empty store"
    once = "" if version is None else next(
        (f': "llvs history {id}" tells when there was one' for _ in store.value_history(id)), ': "llvs ls" lists what there is'
    )
    return f'there is no value "{id}" {where}{once}'


def _copy(reader: BinaryIO | llvs.store.ValueReader, into: BinaryIO) -> None:
    while part := reader.read(1 << 20):
        into.write(part)
    into.flush()


def _write_file(reader: llvs.store.ValueReader, file: Path) -> None:
    """Writes the whole value or nothing: into a file beside it, which then replaces it. A device or pipe is written to directly."""
    if file.exists() and not file.is_file():
        with file.open("wb") as into:
            _copy(reader, into)
        return
    with whole_files.whole(file) as partial, partial.open("xb") as into:
        _copy(reader, into)
