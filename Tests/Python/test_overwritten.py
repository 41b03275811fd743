"""No edit loses in a merge to the value that it had overwritten: random criss-crosses, and the history that once showed it."""

from __future__ import annotations

import json

import pytest
from overwritten import Run, Step, differences, random_steps, told
from sampling import drawn, sample

#: Device 1 overwrites a number of device 0. Device 0 then edits another member, so that its whole object is the more recent one.
SHOWN = [Step(0, "p"), Step(1, other=0), Step(2, "p"), Step(1, "p"), Step(0, "q"), Step(0, other=2), Step(1, other=2), Step(0, other=1)]


@pytest.mark.parametrize("part", sample(range(2), range(10)))
def test_random_criss_crosses(part: int) -> None:
    for seed in drawn(range(300 * part, 300 * part + 100), range(300 * part, 300 * part + 300)):
        run = Run(random_steps(seed))
        assert not run.faults, told(run)
        assert not run.untold, told(run)
    for seed in drawn(range(5 * part, 5 * part + 5), range(20 * part, 20 * part + 20)):
        assert not differences(Run(random_steps(seed)))


@pytest.mark.parametrize("seed", [734, 1762, 2241, 2320, 2466, 2941, 2993])
def test_histories_that_showed_it(seed: int) -> None:
    run = Run(random_steps(seed))
    assert not run.faults and not differences(run)


def test_the_edit_stands() -> None:
    run = Run(SHOWN)
    last = run.told[-1][1]
    assert not run.faults and not differences(run)
    assert json.loads(run.graph.states[last]["a"].data) == {"p": 40, "q": 51}
