"""Completion of versions, branches and ids, in shells and at the prompt of `llvs shell`; and the scripts for shells."""

from __future__ import annotations

import contextlib
import re
from typing import Iterator, Optional, Union

import click
from click.shell_completion import CompletionItem

import llvs

from . import output
from .session import Session
from .versions import EMPTY_ROOT, SHOWN, VersionNameError, VersionNames, coordinator_options

#: The largest number of completions that are offered.
_MOST = 200
#: Characters that bash inserts unchanged and reads as one word. Other devices choose names, so "x;reboot" is not offered.
_plain = re.compile(r"[\w./:@%+,=^][\w./:@%+,=^~#-]*")


def _session(context: click.Context) -> Session:
    # During completion the group was not run, so its options are read here.
    options = context.find_root().params
    return context.find_object(Session) or Session(options.get("store"), options.get("coordinator") or "", None, False)


@contextlib.contextmanager
def _store(context: click.Context) -> Iterator[llvs.Coordinator | None]:
    """Opens the store that an unfinished line refers to, for reading; None if there is none."""
    session = _session(context)
    coordinator = None
    try:
        path, storage = session.place()
        options = coordinator_options(session.coordinator_name)
        coordinator = llvs.Coordinator(path, storage=storage, create=False, read_only=True, options=options)
        yield coordinator
    except Exception:
        # The command itself reports the error when it is run.
        yield None
    finally:
        if coordinator is not None:
            coordinator.close()


def versions(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Returns branches, and prefixes of the ids of the newest versions."""
    found: list[str] = []
    with _store(context) as coordinator:
        if coordinator is not None:
            store = coordinator.store
            found = [name for name in store.branches() if name.startswith(incomplete) and _plain.fullmatch(name)]
            if "@".startswith(incomplete):
                found.append("@")
            for version in store.history():
                if version.id.lower().startswith(incomplete.lower()) and _plain.fullmatch(version.id):
                    found.append(version.id[: max(SHOWN, len(incomplete))])
                if len(found) >= _MOST:
                    break
    return found


def ids(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Returns ids of values at the version that the line names (`--at`, or B of `diff`), otherwise at `@`: up to the next "/", like
    paths."""
    found: dict[str, None] = {}
    with _store(context) as coordinator:
        version = _version(context, coordinator) if coordinator is not None else None
        if coordinator is not None and version is not None:
            for id in coordinator.store.at(version).prefix(incomplete):
                step = id.find("/", len(incomplete))
                offered = id if step < 0 else id[: step + 1]
                if _plain.fullmatch(offered):
                    found[offered] = None
                if len(found) >= _MOST:
                    break
            if len(found) == 1 and next(iter(found)).endswith("/"):
                return ids(context, _, next(iter(found)))
    return list(found)


def places(context: click.Context, _: click.Parameter, incomplete: str) -> list[Union[str, CompletionItem]]:
    """Returns the names of remotes; if none fits, folders."""
    return [*remotes(context, _, incomplete)] or [CompletionItem(incomplete, type="dir")]


def remotes(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Returns the names of remotes."""
    from .remotes import Remotes

    try:
        known = Remotes(*_session(context).place()).places
    except Exception:
        # As in `_store`.
        return []
    return [name for name in sorted(known) if name.startswith(incomplete) and _plain.fullmatch(name)]


def _version(context: click.Context, coordinator: llvs.Coordinator) -> Optional[llvs.Version]:
    """Returns the version whose ids are completed: `@` unless the line names a version that exists."""
    store, at = coordinator.store, coordinator.current_version
    current = store.most_recent_head if at.id == EMPTY_ROOT else at
    named = context.params.get("at") or context.params.get("b") or "@"
    try:
        return VersionNames(store, current).find(str(named))
    except (VersionNameError, llvs.Error):
        return current


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the script with which a shell completes commands, options, versions and ids.

    bash: eval "$(llvs completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: llvs completion fish >
    ~/.config/fish/completions/llvs.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(click.get_current_context().find_root().command, {}, "llvs", "_LLVS_COMPLETE")
    template: str = script.source_template
    output.show(output.text_rows((template % script.source_vars()).strip("\n")))
