"""A device that exchanges with a remote as docs/pack-format.md says, over a model of a store.

Each method that makes requests is a generator, which stops before and after each request: a device may die there. State in `self` is
synced; local state of a generator is lost with it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from random import Random
from typing import Generator, Iterable, Optional, TypeVar, Callable

from . import reader, writer
from .names import BASE, LOG, parse
from .records import Made
from .remote import STALE, Lost, Remote

FAN = 3
MINUTES, HOURS, DAY = STALE // 4, STALE, 2 * STALE

T = TypeVar("T")
Steps = Generator[None, None, T]


@dataclass
class Attempt:
    """A file that this device began to upload."""

    base: bool
    first: int
    last: int
    size: int
    ids: frozenset[str]
    level: int = 0
    replaces: frozenset[str] = frozenset()
    covers: tuple[tuple[bytes, int, int], ...] = ()
    state: str = "trying"  # then "done", "replaced" or "failed"


@dataclass
class Known:
    """A pack that was read, or written."""

    owner: bytes
    base: bool
    first: int
    last: int
    ids: frozenset[str]
    replaces: frozenset[str]
    covers: tuple[tuple[bytes, int, int], ...]
    size: int


@dataclass
class Device:
    """One store, and its state for one remote."""

    remote: Remote
    random: Random
    #: All versions that exist, as packs contain them.
    world: dict[str, Made]
    stores: list[bytes]
    #: Called with the versions that are now known to be at the remote.
    told: Callable[[Iterable[str]], None] = lambda ids: None
    mutant: str = ""
    versions: set[str] = field(default_factory=set)
    writer: bytes = b""
    next: int = 1
    attempts: dict[str, Attempt] = field(default_factory=dict)
    #: Numbers whose pack turned out to be missing.
    holes: set[int] = field(default_factory=set)
    #: Inputs of an adoption that is under way, which has the next number.
    adopting: tuple[str, ...] = ()
    there: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    known: dict[str, Known] = field(default_factory=dict)
    covered: dict[bytes, set[int]] = field(default_factory=dict)
    based: Optional[int] = None
    #: The contents of base/ at the last listing; those that are not read yet are tried again.
    wanted: dict[str, int] = field(default_factory=dict)
    doomed: dict[str, tuple[int, int]] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    exchanges: int = 0
    problems: set[str] = field(default_factory=set)
    writers: int = 1

    def __post_init__(self) -> None:
        self.writer = self.writer or self.random.randbytes(8)

    # The store

    def here(self) -> set[str]:
        """Returns the versions with complete ancestry."""
        done: set[str] = set()
        left = set(self.versions)
        while True:
            more = {id for id in left if done.issuperset(self.world[id].predecessors)}
            if not more:
                return done
            done |= more
            left -= more

    def heads(self) -> list[str]:
        """Returns the heads among `here`."""
        here = self.here()
        return sorted(here - {predecessor for id in here for predecessor in self.world[id].predecessors})

    # Requests

    def _ask(self, request: Callable[[], T]) -> Steps[T]:
        yield
        result = request()
        yield
        return result

    # One exchange

    def exchange(self) -> Steps[None]:
        """Retrieves, deletes files that are due, sends, and merges packs."""
        self.exchanges += 1
        logs = yield from self._ask(lambda: self.remote.list("log/"))
        self._look_at_own(logs)
        bases: Optional[dict[str, int]] = None
        if self.based is None or self.remote.clock - self.based > DAY or self._gap(logs):
            bases = yield from self._ask(lambda: self.remote.list("base/"))
            self._look_at_own(bases)
        if bases is not None:
            self.based = self.remote.clock
            self.wanted = bases
        yield from self._receive({**logs, **self.wanted})
        if bases is not None:
            self._heal({**logs, **bases})
        yield from self._delete()
        yield from self._adopt(self.adopting)
        yield from self._publish()
        yield from self._merge_packs()
        if self.random.random() < 0.15:
            yield from self._adopt(self._adoptable({**logs, **(bases or {})}))

    def _gap(self, logs: dict[str, int]) -> bool:
        largest: dict[bytes, int] = {}
        listed: dict[bytes, set[int]] = {}
        for text in logs:
            name = parse(text)
            assert name is not None
            if name.owner != self.writer:
                largest[name.owner] = max(name.last, largest.get(name.owner, 0))
                listed.setdefault(name.owner, set()).add(name.last)
        return any(set(range(1, last)) - listed[owner] - self.covered.get(owner, set()) for owner, last in largest.items())

    def _look_at_own(self, listing: dict[str, int]) -> None:
        for text, size in listing.items():
            name = parse(text)
            assert name is not None
            if name.owner != self.writer:
                if text in self.known and self.known[text].size != size:  # It was sent under an earlier writer number, and was cut short.
                    self.there -= self.known.pop(text).ids
                    self.read.discard(text)
                continue
            attempt = self.attempts.get(text)
            if attempt is None:
                if text not in self.read:
                    self._new_writer()
                    return
            elif size != attempt.size:
                if attempt.state == "done":
                    self._failed(text, attempt)
                elif attempt.state == "trying":
                    attempt.state = "failed"
            elif attempt.state == "trying" and not attempt.base and attempt.first == self.next:
                self._settle(text, attempt)

    def _new_writer(self) -> None:
        self.writer = self.random.randbytes(8)
        self.next = 1
        self.attempts, self.holes, self.adopting = {}, set(), ()
        self.writers += 1

    def _failed(self, text: str, attempt: Attempt) -> None:
        attempt.state = "failed"
        self.known.pop(text, None)
        self.read.discard(text)
        self.there -= attempt.ids
        self.holes.add(attempt.first)

    def _settle(self, text: str, attempt: Attempt) -> None:
        attempt.state = "done"
        self.there |= attempt.ids
        self.read.add(text)
        self.known[text] = Known(
            self.writer, attempt.base, attempt.first, attempt.last, attempt.ids, attempt.replaces, attempt.covers, attempt.size
        )
        if attempt.first in self.holes:
            self.holes.discard(attempt.first)
        elif attempt.first == self.next:
            self.next += 1
        if self.remote.files.get(text, b"") and len(self.remote.files[text]) == attempt.size:
            self.told(attempt.ids)

    # Reading

    def _receive(self, listing: dict[str, int]) -> Steps[None]:
        for text in sorted(set(listing) - self.read, key=lambda text: (getattr(parse(text), "last", 0), text)):
            if text in self.read or text in self.attempts:
                continue
            data = yield from self._ask(lambda: self.remote.get(text))
            try:
                if data is None:
                    raise reader.NotThere("404")
                pack = reader.read_pack(text, data, self.stores, listing[text])
            except reader.NotThere:
                continue
            except (reader.Damaged, reader.Newer, reader.TooLarge, reader.OtherStore) as error:
                self.problems.add(f"{text}: {error}")
                continue
            self._take(text, pack, len(data))

    def _take(self, text: str, pack: reader.Pack, size: int) -> None:
        for id, version in pack.versions.items():
            assert self.world[id].identity8 == version.identity8
        ids = frozenset(pack.versions)
        self.versions |= ids
        self.there |= ids
        self.told(ids)
        name = pack.index.name
        replaces = frozenset(pack.replaces)
        self.known[text] = Known(name.owner, name.kind == BASE, name.first, name.last, ids, replaces, pack.covers, size)
        self.read |= {text, *pack.replaces}
        for owner, first, last in [(name.owner, name.first, name.last), *pack.covers, *map(_range, pack.replaces)]:
            self.covered.setdefault(owner, set()).update(range(first, last + 1))

    def _heal(self, listing: dict[str, int]) -> None:
        explained = {name for known in self.known.values() for name in known.replaces}
        live = {id for text, known in self.known.items() if text in listing for id in known.ids}
        for text in [text for text in self.known if text not in listing and text not in explained]:
            lost = self.known[text].ids - live
            since = self.missing.setdefault(text, self.remote.clock)
            if self.remote.clock - since > 2 * STALE:
                del self.missing[text]
                known = self.known.pop(text)
                self.read.discard(text)
                self.there -= lost
                attempt = self.attempts.get(text)
                if attempt is not None and attempt.state == "done" and not known.base:
                    self._failed(text, attempt)
        for text in [text for text in self.missing if text in listing or text not in self.known]:
            del self.missing[text]

    # Sending

    def _upload(self, base: bool, first: int, last: int, ids: frozenset[str], level: int, replaces: frozenset[str],
                covers: tuple[tuple[bytes, int, int], ...]) -> Steps[Optional[str]]:
        salt = bytes(16) if self.mutant == "no salt" else self.random.randbytes(16)
        text, data = writer.pack(
            min(self.stores), salt, self.writer, first, last, [self.world[id] for id in sorted(ids)], base=base, replaces=replaces,
            covers=covers, deflate=False,
        )
        attempt = self.attempts[text] = Attempt(base, first, last, len(data), ids, level, replaces, covers)
        try:
            yield from self._ask(lambda: self.remote.put(text, data))
        except Lost:
            listing = yield from self._ask(lambda: self.remote.list("base/" if base else "log/"))
            if listing.get(text) != attempt.size:
                raise
        if base and self.mutant != "no verification":
            back = yield from self._ask(lambda: self.remote.get(text))
            if back is None or hashlib.sha256(back).digest() != hashlib.sha256(data).digest():
                attempt.state = "failed"
                return None
        return text

    def _publish(self, anyway: bool = False) -> Steps[None]:
        ids = frozenset(self.versions - self.there)
        number = min(self.holes, default=self.next)
        if not (ids or self.holes or anyway):
            return
        text = yield from self._upload(False, number, number, ids, 0, frozenset(), ())
        if text is not None and self.attempts[text].state == "trying":
            self._settle(text, self.attempts[text])

    def _merge_packs(self) -> Steps[None]:
        done = sorted(((attempt.first, text) for text, attempt in self.attempts.items() if attempt.state == "done"))
        newest = max((attempt.last for attempt in self.attempts.values() if attempt.state == "done" and not attempt.base), default=0)
        run: list[str] = []
        for _, text in done:
            attempt = self.attempts[text]
            last = self.attempts[run[-1]] if run else None
            if last is None or last.last + 1 != attempt.first or last.level != attempt.level:
                run = []
            if attempt.base or attempt.last != newest:
                run.append(text)
            if len(run) == FAN:
                break
        if len(run) < FAN:
            return
        first, last_number = self.attempts[run[0]].first, self.attempts[run[-1]].last
        inside = {
            text: attempt for text, attempt in self.attempts.items() if first <= attempt.first and attempt.last <= last_number
            and attempt.state != "replaced"
        }
        yield from self._replace(inside, first, last_number, max(self.attempts[text].level for text in run) + 1)

    def _replace(self, inputs: dict[str, Attempt] | dict[str, Known], first: int, last: int, level: int) -> Steps[bool]:
        ids = frozenset(id for one in inputs.values() for id in one.ids)
        names = frozenset(inputs) | frozenset(name for one in inputs.values() for name in one.replaces if name in self.doomed)
        covers = [item for one in inputs.values() for item in one.covers]
        covers += [(one.owner, one.first, one.last) for one in inputs.values() if isinstance(one, Known)]
        text = yield from self._upload(True, first, last, ids, level, names, tuple(writer.joined(covers)))
        if text is None:
            return False
        attempt = self.attempts[text]
        number = self.next
        self._settle(text, attempt)
        self.next = max(self.next, number, last + 1)
        for name in sorted(names):
            if name in self.attempts:
                self.attempts[name].state = "replaced"
            wait = HOURS if "/base/" in name else MINUTES
            self.doomed[name] = (self.remote.clock + wait, self.exchanges)
        if self.mutant == "ranges":
            mine = [one for one in self.known.items() if one[0] != text and one[1].owner == self.writer]
            for name in [name for name, one in mine if first <= one.first and one.last <= last]:
                self.doomed[name] = (0, 0)
            for name in self.remote.files:
                parsed = parse(name)
                if parsed and name != text and parsed.owner == self.writer and first <= parsed.first and parsed.last <= last:
                    self.doomed[name] = (0, 0)
        return True

    def _adoptable(self, listing: dict[str, int]) -> tuple[str, ...]:
        owners = sorted({known.owner for text, known in self.known.items() if text in listing and known.owner != self.writer})
        if not owners or self.holes or self.adopting:
            return ()
        victim = self.random.choice(owners)
        packs = {text: known for text, known in self.known.items() if text in listing and known.owner == victim}
        newest = max((known.last for known in packs.values() if not known.base), default=0)
        chosen = [text for text, known in packs.items() if known.base or known.last != newest or self.random.random() < 0.2]
        return tuple(sorted(chosen)) if len(chosen) > 1 else ()

    def _adopt(self, inputs: tuple[str, ...]) -> Steps[None]:
        if not inputs:
            return
        self.adopting = inputs
        packs = {text: self.known[text] for text in inputs if text in self.known}
        if not packs:
            return
        done = yield from self._replace(packs, self.next, self.next, 1)
        if done:
            self.adopting = ()
            yield from self._publish(anyway=True)

    def _delete(self) -> Steps[None]:
        for name, (due, exchange) in list(self.doomed.items()):
            if self.remote.clock >= due and self.exchanges > exchange:
                yield from self._ask(lambda: self.remote.delete(name))
                del self.doomed[name]
        if self.mutant == "delete what failed":
            failed = [name for name, attempt in self.attempts.items() if attempt.state == "failed" and attempt.first < self.next]
            for name in [name for name in failed if self.attempts[name].first not in self.holes]:
                yield from self._ask(lambda: self.remote.delete(name))
                self.attempts[name].state = "replaced"


def _range(text: str) -> tuple[bytes, int, int]:
    name = parse(text)
    assert name is not None and name.kind in (LOG, BASE)
    return name.owner, name.first, name.last
