"""Random histories beside a model that computes from the whole history what a policy keeps: exactly that can be read."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any, Optional

import llvs
import pytest
from deep import IS_DEEP
from retained import DAY, Kept, Made, pass_days

IDS = ("n/1", "n/2", "log/1", "log/a/2", "x")
Value = tuple[str, str]
#: The bytes at the end of each value, which no other value has.
TOKEN = 40


class History:
    """A store with a policy, one with the same versions that forgets nothing, and what the first must have."""

    def __init__(self, folder: Path, storage: str, seed: int) -> None:
        self.rng, self.storage = random.Random(seed), storage
        self.path = folder / ("store.db" if storage == "sqlite" else "store")
        self.folder = folder
        self.versions: dict[str, Made] = {}
        self.bytes: dict[Value, bytes] = {}
        self.gone: set[Value] = set()
        #: When lines about what had come were written, and the heads then.
        self.lines: list[tuple[float, list[str]]] = []
        self.days = 0.0
        self.made_at = time.time() - 800 * DAY
        self.words = [b"%08x " % self.rng.getrandbits(32) for _ in range(200)]
        self.whole = llvs.Store("", storage="memory")
        self.policy = self.any_policy()
        self.store = self.opened()
        self.store.set_forgetting({"keep": self.policy})
        self.note()
        self.save(None)

    def opened(self) -> llvs.Store:
        options = llvs.StoreOptions(differences=self.rng.choice(["on", "off"]))
        return llvs.Store(self.path, storage=self.storage, options=options)  # type: ignore[arg-type]

    def any_rule(self) -> dict[str, int]:
        rule = {"days": self.rng.choice([0, 0, 2, 10])}
        for name in ("daily", "weekly", "monthly", "count"):
            if self.rng.random() < 0.35:
                rule[name] = self.rng.randrange(1, 4)
        return rule

    def any_policy(self) -> dict[str, Any]:
        policy: dict[str, Any] = self.any_rule()
        if self.rng.random() < 0.4:
            policy["ids"] = {prefix: self.any_rule() for prefix in self.rng.sample(["log/", "log/a/", "n"], self.rng.randrange(1, 3))}
        if self.rng.random() < 0.3:
            policy["branches"] = self.rng.choice([[""], ["a*"], ["", "b"]])
        return policy

    def heads(self) -> list[str]:
        return [head.id for head in self.store.heads()]

    def note(self) -> None:
        """What the store does when it notes what has come."""
        if not self.lines or self.days - self.lines[-1][0] >= 1:
            self.lines.append((self.days, self.heads()))

    def come(self, days: int) -> set[str]:
        """The versions that came before so many days."""
        if days == 0:
            return set(self.versions)
        kept = Kept(self.versions, self.policy, lambda _: ())
        for at, heads in reversed(self.lines):
            if at <= self.days - days:
                return set().union(*(kept.behind[head] for head in heads))
        return set()

    def token(self) -> bytes:
        return b"token-%034x" % self.rng.getrandbits(136)

    def fresh(self) -> bytes:
        return b"".join(self.rng.choices(self.words, k=self.rng.choice([3, 60, 400]))) + self.token()

    def add(self, version: llvs.Version, branch: str, stored: set[str]) -> None:
        state = {}
        for id in self.whole.at(version.id):
            reference = self.whole.reference(id, at=version.id)
            assert reference is not None
            state[id] = reference.stored_version
        # The library gives times since 1970 as numbers that are not exact.
        self.versions[version.id] = Made(tuple(version.predecessors), self.made_at, branch, state, frozenset(stored))
        for id in stored:
            value = self.whole.value(id, at=version.id)
            assert value is not None
            self.bytes[version.id, id] = value.data

    def save(self, base: Optional[str]) -> None:
        old = self.versions[base].state if base else {}
        changed: dict[str, bytes] = {}
        remove = []
        for id in self.rng.sample(IDS, self.rng.randrange(1, 3) if base else 4):
            if id in old and self.rng.random() < 0.15:
                remove.append(id)
            elif id in old and self.rng.random() < 0.7:
                value = self.bytes[old[id], id][:-TOKEN]
                at = self.rng.randrange(len(value) + 1)
                changed[id] = value[:at] + self.rng.choice(self.words) + value[at:] + self.token()
            else:
                changed[id] = self.fresh()
        self.made_at += self.rng.choice([60.0, 3_600.0, 0.4 * DAY, DAY, 5 * DAY, 20 * DAY])
        branch = self.rng.choice(["a1", "b"]) if self.rng.random() < 0.15 else ""
        given: dict[str, Any] = {"update": changed, "remove": remove, "timestamp": self.made_at, "branch": branch or None}
        version = self.store.make_version(base, **given)
        assert self.whole.make_version(base, **given).id == version.id
        self.add(version, branch, set(changed))

    def merge(self) -> None:
        """A merge is made as if nothing had been forgotten, or not at all."""
        first, second = self.rng.sample(self.heads(), 2)
        try:
            version = self.store.merge(first, second)
        except llvs.errors.ForgottenError as error:
            assert (str(error.version_id), str(error.value_id)) in self.gone
            return
        assert self.whole.merge(first, second).id == version.id
        newest = max(version.predecessors, key=lambda id: (self.versions[id].time, id))
        before, self.made_at = self.made_at, self.versions[newest].time + 1e-6
        stored = {id for id in self.whole.at(version.id) if self.whole.reference(id, at=version.id) == (id, version.id)}
        self.add(version, version.branch or "", stored)
        self.made_at = max(before, self.made_at)

    def forget(self) -> None:
        expected = self.expected()
        planned = self.store.forget(dry_run=True)
        report = self.store.forget()
        assert (planned.values, planned.bytes, planned.rows) == (report.values, report.bytes, report.rows)
        assert report.waiting == () and report.values == len(expected)
        assert report.bytes == sum(len(self.bytes[value]) for value in expected)
        self.note()
        self.gone |= expected

    def expected(self) -> set[Value]:
        self.note()
        return set(self.bytes) - self.gone - Kept(self.versions, self.policy, self.come).values()

    def check(self) -> None:
        for version, made in self.versions.items():
            found = {id: self.store.reference(id, at=version) for id in self.store.at(version)}
            assert {id: reference and reference.stored_version for id, reference in found.items()} == made.state
            for id, stored in made.state.items():
                if (stored, id) in self.gone:
                    with pytest.raises(llvs.errors.ForgottenError):
                        self.store.value(id, at=version)
                else:
                    value = self.store.value(id, at=version)
                    assert value is not None and value.data == self.bytes[stored, id]

    def reopen(self) -> None:
        # Closing forgets as well, if it pays.
        self.forget()
        self.store.close()
        if self.rng.random() < 0.7:
            days = self.rng.choice([0.5, 1.5, 3.0, 15.0])
            pass_days(self.path, self.storage, days)
            self.days += days
        self.store = self.opened()

    def step(self) -> None:
        dice = self.rng.random()
        if dice < 0.6:
            self.save(self.rng.choice(self.heads()) if self.rng.random() < 0.85 else self.rng.choice(list(self.versions)))
        elif dice < 0.72 and len(self.heads()) > 1:
            self.merge()
        elif dice < 0.85:
            self.reopen()
        elif dice < 0.9:
            self.forget()
            self.store.compact()
        else:
            self.forget()
        if self.rng.random() < 0.2:
            self.check()

    def search(self) -> None:
        """No file has what was forgotten."""
        here = b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())
        for value in self.gone:
            assert self.bytes[value][-TOKEN:] not in here, value


@pytest.mark.parametrize("storage", ["file", "sqlite"])
@pytest.mark.parametrize("seed", range(300 if IS_DEEP else 12))
def test_random_histories(tmp_path: Path, storage: str, seed: int) -> None:
    history = History(tmp_path, storage, seed)
    for _ in range(history.rng.randrange(15, 60)):
        history.step()
    history.forget()
    history.check()
    report = history.store.verify()
    assert (report.damages, report.pending) == ((), 0)
    assert {version.id for version in history.store.history()} == {version.id for version in history.whole.history()}
    history.store.close()
    history.search()
    history.store = history.opened()
    history.check()
    history.store.close()
    history.whole.close()
