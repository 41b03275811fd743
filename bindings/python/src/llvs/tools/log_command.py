"""`llvs log`: the history."""

from __future__ import annotations

import itertools
from typing import Any, Iterable, Iterator, Optional

import click

import llvs

from . import completion, describe, moments, output
from .escape import Styled
from .failures import MISUSED, Failure
from .graph import Graph
from .session import session
from .versions import SHOWN, VersionNames


@click.command("log")
@click.argument("versions", nargs=-1, metavar="[VERSION | A..B]...", shell_complete=completion.versions)
@click.option("--graph", is_flag=True, help="Draw how versions hang together.")
@click.option("--oneline", is_flag=True, help="One line for each version.")
@click.option("-n", "--number", type=click.IntRange(0), metavar="N", help="At most so many versions.")
@click.option(
    "--value", metavar="ID", help="Versions in which the value changed, with what became of it.", shell_complete=completion.ids
)
@click.option("--prefix", metavar="PREFIX", help="Versions that changed a value whose id begins so.")
@click.option("--since", metavar="TIME", help='Versions since then: "2026-11-20", "yesterday 18:00", "3 days ago".')
@click.option("--branch", metavar="NAME", help="Versions on this branch.")
@click.option("--stat", is_flag=True, help="The values that each version changed.")
@click.option("--json", "is_json", is_flag=True, help="One JSON text in each line.")
def log_command(
    versions: tuple[str, ...],
    graph: bool,
    oneline: bool,
    number: Optional[int],
    value: Optional[str],
    prefix: Optional[str],
    since: Optional[str],
    branch: Optional[str],
    stat: bool,
    is_json: bool,
) -> None:
    """Show the history from the heads back: all of it, or VERSIONs and their ancestors, or the versions that B has and A lacks (A..B).

    A version comes before its predecessors, whatever their times are.
    """
    if graph and (value or branch or prefix):
        raise Failure("--graph draws the whole history: leave out --value, --prefix and --branch", MISUSED)
    store, names = session().reading(), session().names()
    walk = _walk(store, names, versions, value, prefix, branch)
    if since is not None:
        try:
            seconds = moments.seconds_of(since)
        except ValueError as problem:
            raise Failure(str(problem), MISUSED) from None
        walk = ((version, kind) for version, kind in walk if version.made_at >= seconds)
    if number is not None:
        walk = itertools.islice(walk, number)
    if is_json:
        output.show_json_lines(_json(store, walk, stat))
        return
    first = next(walk, None)
    if first is None:
        if store.most_recent_head is None:
            output.say('no version yet: save something with "llvs set ID=VALUE"')
        elif number != 0:
            output.say("no version is as you asked")
        return
    output.show(_Log(store, session().current(), graph, oneline, stat).rows(itertools.chain([first], walk)))


_Walk = Iterator[tuple[llvs.Version, Optional[llvs.store.ChangeKind]]]


def _walk(
    store: llvs.Store, names: VersionNames, wanted: Iterable[str], value: Optional[str], prefix: Optional[str], branch: Optional[str]
) -> _Walk:
    starts, hiding = [], []
    for name in wanted:
        before, dots, after = name.partition("..")
        if dots and name not in store.branches():
            hiding.append(names.find(before or "@"))
            starts.append(names.find(after or "@"))
        else:
            starts.append(names.find(name))
    if value is not None:
        return iter(store.value_history(value, *starts, hiding=hiding, branch=branch))
    return ((version, None) for version in store.history(*starts, hiding=hiding, branch=branch, prefix=prefix or ""))


def _json(store: llvs.Store, walk: _Walk, stat: bool) -> Iterator[dict[str, Any]]:
    for version, kind in walk:
        shape = describe.as_json(version)
        if kind is not None:
            shape["change"] = str(kind)
        if stat:
            shape["changes"] = [
                {"id": change.id, "change": str(change.kind)} for change in store.changes(version, with_data=False)
            ]
        yield shape


class _Log:
    """Writes versions in one line or several."""

    def __init__(self, store: llvs.Store, current: Optional[llvs.Version], graph: bool, oneline: bool, stat: bool) -> None:
        self._store, self._oneline, self._stat = store, oneline, stat
        self._current = current.id if current else ""
        self._heads = {head.id for head in store.heads()}
        self._graph = Graph(is_unicode=output.is_unicode()) if graph else None
        self._is_coloured, self._width = output.is_coloured(), output.width()

    def rows(self, walk: _Walk) -> Iterator[str]:
        graph, is_first = self._graph, True
        for version, kind in walk:
            lane = "" if graph is None else graph.node(version.id, version.predecessors, is_current=version.id == self._current) + " "
            block = [self._line(version, kind, len(lane))] if self._oneline else self._block(version, kind)
            if self._stat:
                block += self._changes(version)
            if graph is None:
                if not self._oneline and not is_first:
                    yield ""
                yield from block
            else:
                yield from self._drawn(graph, lane, block)
            is_first = False

    def _drawn(self, graph: Graph, lane: str, block: list[Styled]) -> Iterator[str]:
        yield output.row(lane, block[0])
        links = graph.links()
        beside = graph.beside()
        if links:
            yield output.row(f"{links[0]} ", block[1]) if len(block) > 1 else links[0].rstrip()
        for text in block[2 if links else 1 :]:
            yield output.row(f"{beside} ", text)
        if not self._oneline:
            yield beside.rstrip()

    def _marks(self, version: llvs.Version) -> str:
        """Returns the marks of a version: current version, head, branch."""
        marks = []
        if version.id == self._current and self._graph is None:
            marks.append("@")
        if version.id in self._heads:
            marks.append("head")
        if version.branch is not None:
            marks.append(f"branch {version.branch}")
        return output.style(f"({', '.join(marks)})", "name") if marks else output.row()

    def _line(self, version: llvs.Version, kind: Optional[llvs.store.ChangeKind], used: int) -> Styled:
        id, when, author, said = version.id[:SHOWN], describe.minute(version.made_at), describe.who(version), describe.title(version)
        if kind is not None:
            said = f"{kind}: {said}" if said else str(kind)
        elif not said and not self._stat:
            said = describe.changed(self._store, version)
        marks = self._marks(version) if version.branch is not None or version.id in self._heads or version.id == self._current else ""
        rest = output.row(*(part for part in (author, said, marks) if part), between=" ")
        if self._width < 1_000_000:
            plain, room = click.unstyle(rest), self._width - used - len(id) - len(when) - 2
            rest = rest if output.fitted(plain, room) == plain else output.fitted(plain, room)
        if self._is_coloured:
            id, when = output.style(id, "id"), output.style(when, "quiet")
        return output.row(id, when, *([rest] if rest else []), between=" ")

    def _block(self, version: llvs.Version, kind: Optional[llvs.store.ChangeKind]) -> list[Styled]:
        marks, author = self._marks(version), describe.who(version)
        rows = [output.row(*(part for part in (output.style(version.id, "id"), marks) if part), between=" ")]
        facts = [describe.moment(version.made_at), author, output.size_text(version.value_data_size)]
        if len(version.predecessors) == 2:
            facts.append("merge of " + " and ".join(id[:SHOWN] for id in version.predecessors))
        rows.append(output.row(*(fact for fact in facts if fact), between="  "))
        if kind is not None:
            rows.append(output.row(f"the value: {kind}"))
        lines = [line for line in output.text_rows(describe.full_text(version).strip()) if line]
        if not lines and kind is None and not self._stat and len(version.predecessors) < 2:
            lines = [output.row(line) for line in [describe.changed(self._store, version)] if line]
        return rows + [output.row("    ", line) for line in lines]

    def _changes(self, version: llvs.Version) -> list[Styled]:
        styles = {"+": "added", "-": "removed"}
        rows = []
        for change in self._store.changes(version, with_data=False):
            sign = describe.SIGNS.get(change.kind, "=")
            shown = output.style(change.id, styles[sign]) if sign in styles else change.id
            rows.append(output.row(f"    {sign} ", shown))
        return rows
