"""Decides how many random cases a run tries, and reports how to run a failed test alone.

The usual run tries a fixed sample, the same each time. If LLVS_DEEP is set (scripts/test --deep), a run tries all cases.
LLVS_SEED=<number> gives only this seed to every test that draws from seeds. LLVS_HYPOTHESIS=explore lets Hypothesis search for new cases in
each run.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any, Generator, Iterable, Iterator, TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEEP = bool(os.environ.get("LLVS_DEEP"))
T = TypeVar("T")

#: The title of the section of a report that says how to run the test alone.
_ALONE = "run alone"
_seed: list[int] = []


def sample(usual: T, deep: T) -> T:
    """Returns the first value for the usual run, the second for the deep run."""
    return deep if DEEP else usual


def seeds(usual: Iterable[int], deep: Iterable[int]) -> list[int]:
    """Returns the seeds of this run, for parameters of tests. LLVS_SEED replaces them."""
    given = os.environ.get("LLVS_SEED")
    return [int(given)] if given else [*sample(usual, deep)]


def drawn(usual: Iterable[int], deep: Iterable[int]) -> Iterator[int]:
    """Yields the seeds of this run one after another. If the test fails, its report names the seed that was last yielded."""
    for seed in seeds(usual, deep):
        _seed[:] = [seed]
        yield seed
    _seed.clear()


def load_profile() -> None:
    """Registers the profiles of Hypothesis, and loads the one of this run."""
    from hypothesis import HealthCheck, settings

    common: dict[str, Any] = {"deadline": None, "print_blob": True, "suppress_health_check": list(HealthCheck)}
    settings.register_profile("usual", max_examples=25, derandomize=True, **common)
    settings.register_profile("deep", max_examples=400, derandomize=True, **common)
    settings.register_profile("explore", max_examples=1000, **common)
    settings.load_profile(os.environ.get("LLVS_HYPOTHESIS") or sample("usual", "deep"))


# Hooks of pytest. A conftest.py imports them by name.


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Adds to the report of a failure how to run the test alone."""
    outcome = yield
    report = outcome.get_result()
    if call.when == "setup":
        _seed.clear()
    if report.failed:
        given = {name: os.environ[name] for name in ("LLVS_DEEP", "LLVS_HYPOTHESIS", "LLVS_SEED") if os.environ.get(name)}
        given |= {"LLVS_SEED": str(_seed[0])} if _seed else {}
        words = [f"{name}={shlex.quote(value)}" for name, value in given.items()]
        test = f"{os.path.relpath(item.config.rootpath, ROOT)}/{item.nodeid}"
        text = " ".join([*words, "scripts/test --one", shlex.quote(test)])
        report.sections.append((_ALONE, f"seed {_seed[0]}: {text}" if _seed else text))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Repeats at the end of the output how to run each failed test alone."""
    failed = [report for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, [])]
    lines = [text for report in failed for title, text in getattr(report, "sections", []) if title == _ALONE]
    if lines:
        terminalreporter.section("how to run alone what failed")
        for line in dict.fromkeys(lines):
            terminalreporter.write_line(line)
