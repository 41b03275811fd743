"""Versions by time, and playback between two versions."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import Iterator

import llvs
import pytest
from sampling import seeds


@pytest.fixture
def store() -> Iterator[llvs.Store]:
    with llvs.Store(storage="memory") as store:
        yield store


def test_the_version_at_a_time(store: llvs.Store) -> None:
    assert store.version_at(0.0) is None
    a = store.make_version(insert={"x": b"1"}, timestamp=1000)
    b = store.make_version(a, update={"x": b"2"}, timestamp=2000)
    c = store.make_version(a, update={"y": b"3"}, timestamp=3000)
    merged = store.merge(b, c)
    table = [(999.0, None), (1000, a), (1999.9, a), (2000, b), (2999, b), (3000, c), (5000, merged), (1e300, merged), (-1e300, None)]
    for time, expected in table:
        assert store.version_at(time) == store.version_at(time, merged) == expected, time
    assert store.version_at(2500, c) == a and store.version_at(datetime.fromtimestamp(2000, timezone.utc)) == b
    with pytest.raises(llvs.errors.InvalidArgumentError):
        store.version_at(float("nan"))
    with pytest.raises(llvs.errors.UnknownVersionError):
        store.version_at(0, "nothing")
    with llvs.Coordinator(storage="memory") as notes:
        assert notes.version_at(1e10) is None
        saved = notes.save(insert={"x": b"1"}, timestamp=1e9)
        assert notes.version_at(1e9 + 10) == saved


@pytest.mark.parametrize("seed", seeds(range(1), range(5)))
def test_applying_all_steps_gives_the_result(store: llvs.Store, seed: int) -> None:
    chance = random.Random(seed)
    versions = [store.make_version(insert={"p/0": b"0", "q/0": b"0"})]
    for step in range(40):
        at = chance.choice(versions[-4:])
        if chance.random() < 0.3:
            versions.append(store.merge(at, chance.choice(versions), metadata={"by": step}))
        else:
            remove = [id for id in store.at(at) if chance.random() < 0.2]
            versions.append(store.make_version(at, update={f"{chance.choice('pq')}/{step}": b"%d" % step}, remove=remove))
    for _ in range(30):
        a, b = chance.choice(versions), chance.choice(versions)
        state = dict(store.at(a).prefix("p/"))
        for step_to in store.replay("p/", a, b):
            assert step_to.changes and all(change.id.startswith("p/") for change in step_to.changes)
            for change in step_to.changes:
                if change.data is None:
                    del state[change.id]
                else:
                    state[change.id] = change.data
            assert state == dict(store.at(step_to.version).prefix("p/"))
        assert state == dict(store.at(b).prefix("p/"))


def test_a_replay_goes_version_by_version(store: llvs.Store) -> None:
    line = [store.make_version(insert={"p": b"0"})]
    for number in range(1, 5):
        line.append(store.make_version(line[-1], update={"p" if number != 2 else "q": b"%d" % number}))
    steps = list(store.replay("p", line[0], line[4]))
    assert [(step.version.id, step.changes[0].data) for step in steps] == [(line[i].id, b"%d" % i) for i in (1, 3, 4)]
    back = list(store.replay("p", line[4], line[0]))
    assert [(step.version.id, step.changes[0].data) for step in back] == [(line[3].id, b"3"), (line[2].id, b"1"), (line[0].id, b"0")]
    assert list(store.replay("p", line[1], line[1])) == []
