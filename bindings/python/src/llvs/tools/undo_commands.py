"""`llvs revert`, `llvs undo` and `llvs redo`."""

from __future__ import annotations

from typing import Any, Literal, Optional

import click

import llvs

from . import completion, describe, output
from .failures import DONE, NOT_SO
from .session import session

_json_option = click.option("--json", "is_json", is_flag=True, help="As one JSON document.")


@click.command("revert")
@click.argument("version", shell_complete=completion.versions)
@click.option("--parent", type=click.IntRange(1, 2), default=1, show_default=True, help="Of a merge: against which predecessor.")
@_json_option
def revert_command(version: str, parent: Literal[1, 2], is_json: bool) -> int:
    """Take back what VERSION changed, in a new version on the current one. What came since stays."""
    found = session().find(version)
    return _tell(session().writing().revert(found, parent=parent), is_json, "nothing is left of it to take back")


@click.command("undo")
@_json_option
def undo_command(is_json: bool) -> int:
    """Take back the last save of this device that was not undone yet."""
    return _tell(session().writing().undo(), is_json, f'no save of "{session().device}" is left to undo', "undo")


@click.command("redo")
@_json_option
def redo_command(is_json: bool) -> int:
    """Take back the last undo of this device, when it saved nothing since."""
    return _tell(session().writing().redo(), is_json, f'no undo of "{session().device}" is left to take back', "redo")


def _tell(found: Optional[llvs.merge.Reverted], is_json: bool, nothing: str, again: str = "") -> int:
    """Prints the result. again: the command that reverts the save before, if nothing of this one is left."""
    if is_json:
        output.show_json(None if found is None else _shape(found))
    elif again and found is not None and found.version is None:
        what = found.description or found.versions[0][:8]
        for id in found.superseded:
            output.say(f"  {id} was changed since: that stays")
        output.say(f'llvs: nothing of "{what}" is left to take back; "llvs {again}" again goes on with what was before it')
    elif found is None or found.version is None:
        output.say(f"llvs: {nothing}")
    else:
        rows = [describe.short(found.version)]
        if found.description:
            rows.append(f"took back: {found.description}")
        rows += [f"  {id}" for id in found.undone]
        rows += [f"  {id} was changed since: that stays" for id in found.superseded]
        output.show(rows)
    return NOT_SO if found is None or found.version is None else DONE


def _shape(found: llvs.merge.Reverted) -> dict[str, Any]:
    return {
        "version": describe.as_json(found.version) if found.version else None,
        "undone": list(found.undone),
        "superseded": list(found.superseded),
        "versions": list(found.versions),
        "description": found.description,
    }
