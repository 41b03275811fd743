"""Random saves, merges, compactions and erasures beside a model: no file has what was erased, and everything else reads as before."""

from __future__ import annotations

import random
import re
import zlib
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from deep import IS_DEEP

ERASED = "erased"
State = dict[str, Any]
TOKEN = re.compile(rb"token-\d+-[0-9a-f]{32}")


def tokens(states: dict[str, State]) -> set[bytes]:
    """All tokens in values that are not erased."""
    return {token for state in states.values() for value in state.values() if value != ERASED for token in TOKEN.findall(value)}


def inflated(data: bytes) -> bytes:
    """What can be inflated from any offset of a file."""
    found = []
    for at in range(len(data)):
        if data[at] & 6 in (2, 4):
            try:
                found.append(zlib.decompressobj(-15).decompress(data[at : at + 60_000], 200_000))
            except zlib.error:
                pass
    return b"\0".join(found)


class History:
    """One store, and what each of its versions has to show."""

    def __init__(self, folder: Path, storage: str, seed: int) -> None:
        self.folder, self.storage, self.rng = folder, storage, random.Random(seed)
        self.words = [b"%08x " % self.rng.getrandbits(32) for _ in range(300)]
        self.ids = [f"n/{number}" for number in range(5)]
        self.states: dict[str, State] = {}
        self.made = 0
        self.erased: set[bytes] = set()
        self.store = self.opened()
        self.save(None)

    def opened(self) -> llvs.Store:
        path = self.folder / ("store.db" if self.storage == "sqlite" else "store")
        options = llvs.StoreOptions(differences=self.rng.choice(["on", "auto"]))
        return llvs.Store(path, storage=self.storage, options=options)  # type: ignore[arg-type]

    def token(self) -> bytes:
        self.made += 1
        return b"token-%d-%032x" % (self.made, self.rng.getrandbits(128))

    def fresh(self) -> bytes:
        return b"".join(self.rng.choices(self.words, k=self.rng.choice([5, 60, 400, 1_500]))) + self.token()

    def edited(self, value: Any) -> bytes:
        if value == ERASED or self.rng.random() < 0.1:
            return self.fresh()
        at = self.rng.randrange(len(value) + 1)
        put = self.token() if self.rng.random() < 0.7 else self.rng.choice(self.words)
        return bytes(value[:at] + put + value[at + self.rng.choice([0, 0, 5, 40]) :])

    def heads(self) -> list[str]:
        return [head.id for head in self.store.heads()]

    def read(self, version: str) -> State:
        state: State = {}
        for id in self.store.at(version):
            if id.startswith("__llvs_forget/"):
                continue
            try:
                value = self.store.value(id, at=version)
                assert value is not None
                state[id] = value.data
            except llvs.errors.ErasedError:
                state[id] = ERASED
        return state

    def check(self) -> None:
        for version, state in self.states.items():
            assert self.read(version) == state

    def save(self, base: str | None) -> None:
        old = self.states[base] if base else {}
        insert: State = {}
        update: State = {}
        remove: list[str] = []
        for id in self.rng.sample(self.ids, self.rng.randrange(1, 3) if base else 3):
            if id not in old:
                insert[id] = self.fresh()
            elif self.rng.random() < 0.12:
                remove.append(id)
            else:
                update[id] = self.edited(old[id])
        version = self.store.make_version(base, insert=insert, update=update, remove=remove).id
        self.states[version] = {id: value for id, value in (old | insert | update).items() if id not in remove}

    def merge(self) -> None:
        first, second = self.rng.sample(self.heads(), 2)
        try:
            version = self.store.merge(first, second).id
        except llvs.errors.ErasedError:
            return
        self.states[version] = self.read(version)

    def erase(self) -> None:
        """Erases by ids, by ids at a version, or by a token, and lets the model do the same."""
        ids: tuple[str, ...] = ()
        options: dict[str, Any] = {}
        how = self.rng.choice(("ids", "at", "containing"))
        if how == "containing":
            wanted = self.rng.choice(sorted(tokens(self.states)) or [b"token"])
            options["containing"] = wanted
            goes: Callable[[str, Any], bool] = lambda id, value: wanted in value
        else:
            ids = tuple(self.rng.sample(self.ids, self.rng.randrange(1, 3)))
            goes = lambda id, value: id in ids
        if how == "at":
            options["at"] = at = self.rng.choice(list(self.states))
            pairs = {(id, self.states[at].get(id)) for id in ids}
            goes = lambda id, value: (id, value) in pairs
        if self.rng.random() < 0.3:
            options["replacement"] = b"replaced"
        planned = self.store.erase(*ids, **options, dry_run=True)
        report = self.store.erase(*ids, **options)
        assert (planned.values, planned.bytes, report.waiting) == (report.values, report.bytes, ())
        before, shown = tokens(self.states), {head: dict(state) for head, state in self.states.items()}
        for state in self.states.values():
            for id, value in state.items():
                if value != ERASED and goes(id, value):
                    state[id] = ERASED
        self.erased |= before - tokens(self.states)
        for made in report.made:
            (head,) = self.store.version(made).predecessors
            expected = {}
            for id, value in self.states[head].items():
                if value == ERASED != shown[head][id]:
                    if "replacement" in options:
                        expected[id] = b"replaced"
                else:
                    expected[id] = value
            self.states[made] = self.read(made)
            assert self.states[made] == expected

    def search(self) -> None:
        """No file has an erased token, as it is or deflated."""
        for path in self.folder.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                assert not self.erased & set(TOKEN.findall(data)), path
                assert not self.erased & set(TOKEN.findall(inflated(data))), path

    def step(self) -> None:
        dice = self.rng.random()
        if dice < 0.55:
            self.save(self.rng.choice(self.heads()) if self.rng.random() < 0.85 else self.rng.choice(list(self.states)))
        elif dice < 0.65 and len(self.heads()) > 1:
            self.merge()
        elif dice < 0.75:
            self.store.close()
            self.store = self.opened()
        elif dice < 0.82:
            self.store.compact()
        else:
            self.erase()
        if self.rng.random() < 0.25:
            self.check()


@pytest.mark.parametrize("storage", ["file", "sqlite"])
@pytest.mark.parametrize("seed", range(300 if IS_DEEP else 10))
def test_random_erasures(tmp_path: Path, storage: str, seed: int) -> None:
    history = History(tmp_path, storage, seed)
    for _ in range(history.rng.randrange(10, 40)):
        history.step()
    history.check()
    report = history.store.verify()
    assert (report.damages, report.pending) == ((), 0)
    history.store.close()
    history.search()
    history.store = history.opened()
    history.check()
    history.store.close()
