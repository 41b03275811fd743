"""What may come next: versions, branches and ids, for shells and for the prompt of `llvs shell`; and the scripts for shells."""

from __future__ import annotations

import contextlib
from typing import Iterator

import click

import llvs

from . import escape, output
from .session import Session
from .versions import SHOWN

#: So many are offered at most.
_MOST = 200


@contextlib.contextmanager
def _store(context: click.Context) -> Iterator[llvs.Store | None]:
    """The store that a line which is not finished is about; None where there is none."""
    # The options before the command; while a line is being completed, the group was not run.
    options = context.find_root().params
    session = context.find_object(Session) or Session(options.get("store"), options.get("coordinator") or "", None, False)
    coordinator = None
    try:
        path, storage = session.place()
        coordinator = llvs.Coordinator(path, storage=storage, create=False, read_only=True, name=session.coordinator_name)
        yield coordinator.store
    except Exception:
        # Whatever is wrong, the command says once it is run.
        yield None
    finally:
        if coordinator is not None:
            coordinator.close()


def versions(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Branches, and the beginnings of the ids of the newest versions."""
    found: list[str] = []
    with _store(context) as store:
        if store is not None:
            found = [name for name in store.branches if name.startswith(incomplete) and escape.line(name) == name]
            if "@".startswith(incomplete):
                found.append("@")
            for version in store.history():
                if version.id.lower().startswith(incomplete.lower()):
                    found.append(version.id[: max(SHOWN, len(incomplete))])
                if len(found) >= _MOST:
                    break
    return found


def ids(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The ids of values at the current version: up to the next "/", as files are completed."""
    found: dict[str, None] = {}
    with _store(context) as store:
        head = store.most_recent_head if store is not None else None
        if store is not None and head is not None:
            for id in store.at(head).prefix(incomplete):
                if escape.line(id) == id:
                    step = id.find("/", len(incomplete))
                    found[id if step < 0 else id[: step + 1]] = None
                if len(found) >= _MOST:
                    break
            if len(found) == 1 and next(iter(found)).endswith("/"):
                return ids(context, _, next(iter(found)))
    return list(found)


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the script by which a shell completes commands, options, versions and ids.

    bash: eval "$(llvs completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: llvs completion fish >
    ~/.config/fish/completions/llvs.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(click.get_current_context().find_root().command, {}, "llvs", "_LLVS_COMPLETE")
    template: str = script.source_template
    output.show((template % script.source_vars()).strip("\n").split("\n"))
