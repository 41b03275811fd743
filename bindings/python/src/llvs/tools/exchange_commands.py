"""`llvs exchange`, `sync`, `pull`, `push` and `watch`: move versions between a store and places."""

from __future__ import annotations

import threading
from typing import Any, Callable, Iterator, Optional

import click

import llvs

from . import completion, describe, output, progress, remotes
from .failures import DONE, NOT_SO, explain, stop_if_interrupted
from .session import session

_json_option = click.option("--json", "is_json", is_flag=True, help="One JSON text for each place.")
_place_argument = click.argument("place", required=False, metavar="[URL | FOLDER | REMOTE]", shell_complete=completion.places)
_Step = Callable[..., llvs.exchange.ExchangeResult]


@click.command("exchange")
@_place_argument
@click.option(
    "--join",
    "joins",
    is_flag=True,
    help="Exchange with the place even if it was emptied or belongs to another store. Joins the versions of both stores, for good.",
)
@_json_option
def exchange_command(place: Optional[str], joins: bool, is_json: bool) -> int:
    """Retrieve the versions that the store lacks from a place, and send those that the place lacks. Merges nothing.

    Without a place: with all remotes. Exits with 1 if something could not be exchanged.
    """
    if joins and place is None:
        raise click.UsageError("--join needs the place.")
    return _each(place, is_json, lambda exchange: [exchange.retrieve, exchange.send], b"new" if joins else b"")


@click.command("pull")
@_place_argument
@_json_option
def pull_command(place: Optional[str], is_json: bool) -> int:
    """Retrieve the versions that the store lacks from a place. Merges nothing."""
    return _each(place, is_json, lambda exchange: [exchange.retrieve])


@click.command("push")
@_place_argument
@_json_option
def push_command(place: Optional[str], is_json: bool) -> int:
    """Send the versions that a place lacks."""
    return _each(place, is_json, lambda exchange: [exchange.send])


def _each(given: Optional[str], is_json: bool, steps: Callable[[llvs.Exchange], list[_Step]], state: bytes = b"") -> int:
    """Runs steps with each place in turn. Works while another program has the store open.

    state: the restoration state of the exchanges.
    """
    path, storage = session().place()
    wanted = remotes.Remotes(path, storage).wanted(given)
    code = DONE
    with llvs.Store(path, storage=storage, create=False) as store:
        for name, place in wanted.items():
            with remotes.reaching([place]), llvs.Exchange(store, remotes.place_of(place), restoration_state=state) as exchange:
                code = max(code, _one(store, name, is_json, steps(exchange)))
    return code


def _one(store: llvs.Store, name: str, is_json: bool, steps: list[_Step]) -> int:
    done: list[llvs.exchange.ExchangeResult] = []
    before = store.statistics().versions
    try:
        for step in steps:
            with progress.shown() as hear:
                done.append(step(progress=hear))
    except BaseException as problem:
        partial = getattr(problem, "result", None)
        if isinstance(partial, llvs.exchange.ExchangeResult):
            done.append(partial)
        came = store.statistics().versions - before
        if any(result.retrieved or result.sent or result.repaired or result.problems for result in done):
            _tell(name, done, is_json)
        elif came and not is_json:
            # The result of an interrupted step does not list what it did.
            output.show([f"{name}: {output.counted(came, 'version')} received before that"])
        raise
    return _tell(name, done, is_json)


def _tell(name: str, done: list[llvs.exchange.ExchangeResult], is_json: bool) -> int:
    """Prints what was done with a place; returns 1 if something could not be exchanged."""
    retrieved, sent, repaired, problems = (
        [one for result in done for one in getattr(result, kind)] for kind in ("retrieved", "sent", "repaired", "problems")
    )
    if is_json:
        shape = {"place": name, "retrieved": retrieved, "sent": sent, "repaired": repaired}
        output.show_json_lines([{**shape, "problems": [_problem(one) for one in problems]}])
    else:
        told = [f"{output.counted(len(retrieved), 'version')} received", f"{len(sent):,} sent"]
        told += [f"{len(repaired):,} repaired"] if repaired else []
        output.show([f"{name}: {', '.join(told)}"])
        for problem in problems:
            output.say(f"llvs: not exchanged: {problem.name}: {problem.reason}")
    return NOT_SO if problems else DONE


def _problem(problem: llvs.exchange.Problem) -> dict[str, Any]:
    return {"name": problem.name, "reason": problem.reason, "code": int(problem.code)}


@click.command("sync")
@_place_argument
@_json_option
def sync_command(place: Optional[str], is_json: bool) -> int:
    """Exchange, merge what arrived into the current version, and exchange again if the merge changed something.

    Without a place: with all remotes.
    """
    wanted = _wanted(place)
    with remotes.reaching(wanted):
        return _sync(_attached(wanted), is_json)


def _wanted(given: Optional[str]) -> list[dict[str, Any]]:
    return list(remotes.Remotes(*session().place()).wanted(given).values())


def _attached(wanted: list[dict[str, Any]]) -> llvs.Coordinator:
    coordinator = session().writing()
    for place in wanted:
        coordinator.attach(remotes.place_of(place))
    return coordinator


def _sync(coordinator: llvs.Coordinator, is_json: bool, *, is_quiet: bool = False) -> int:
    try:
        with progress.shown() as hear:
            found = coordinator.sync(progress=hear)
    except BaseException as problem:
        partial = getattr(problem, "result", None)
        if isinstance(partial, llvs.coordinator.SyncResult):
            _tell_sync(coordinator, partial, is_json, is_quiet)
        raise
    return _tell_sync(coordinator, found, is_json, is_quiet)


def _rounds(found: llvs.coordinator.SyncResult) -> Iterator[llvs.exchange.ExchangeResult]:
    yield found.before
    if found.after is not None:
        yield found.after


def _tell_sync(coordinator: llvs.Coordinator, found: llvs.coordinator.SyncResult, is_json: bool, is_quiet: bool) -> int:
    results = list(_rounds(found))
    received, sent = ([id for result in results for id in getattr(result, kind)] for kind in ("retrieved", "sent"))
    problems = [problem for result in results for problem in result.problems]
    if is_json:
        shape = {"retrieved": received, "sent": sent, "problems": [_problem(problem) for problem in problems]}
        output.show_json_lines([{**shape, "merged": found.merged, "from_version": found.from_version, "to_version": found.to_version}])
    elif not is_quiet or received or sent or found.moved:
        told = f"{output.counted(len(received), 'version')} received, {len(sent):,} sent" + (", merged" if found.merged else "")
        output.show([told, *([f"now at {describe.short(coordinator.store[found.to_version])}"] if found.moved else [])])
    for problem in problems if not is_json else ():
        output.say(f"llvs: not exchanged: {problem.name}: {problem.reason}")
    return NOT_SO if problems else DONE


@click.command("watch")
@_place_argument
@click.option("--every", type=click.FloatRange(1), default=30.0, show_default=True, metavar="SECONDS", help="Also look so often.")
@_json_option
def watch_command(place: Optional[str], every: float, is_json: bool) -> int:
    """Sync at once, and again whenever something is new in the store or at a place, until Ctrl-C."""
    coordinator = _attached(_wanted(place))
    due = threading.Event()
    with coordinator.observe_exchanges(due.set), coordinator.store.observe(due.set):
        output.say("watching; Ctrl-C ends it")
        while True:
            due.clear()
            try:
                _sync(coordinator, is_json, is_quiet=True)
            except llvs.CancelledError:
                raise
            except llvs.Error as problem:
                stop_if_interrupted()
                output.say(f"llvs: {explain(problem)[0]} (tried again soon)")
            due.wait(every)
