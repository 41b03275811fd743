"""Keeps exceptions of callbacks while the library passes on their user codes, to raise them from the call that failed."""

from __future__ import annotations

import itertools

from . import signals as _signals

#: By user code. Some are never raised (for instance if the library continues without a cache), so only the newest are kept.
exceptions: dict[int, BaseException] = {}
_KEPT = 256
_numbers = itertools.count(1)


def keep(problem: BaseException) -> int:
    """Keeps an exception, and returns its user code. Any thread. O(1)."""
    number = next(_numbers)
    exceptions[number] = problem
    if not isinstance(problem, Exception):
        _signals.hear_later(problem)
    while len(exceptions) > _KEPT:
        try:
            del exceptions[next(iter(exceptions))]
        except (KeyError, RuntimeError, StopIteration):  # Another thread removed it first.
            break
    return number


def take(number: int) -> BaseException | None:
    """Returns and removes the exception with a user code; None for a code that is not from here. Any thread. O(1)."""
    problem = exceptions.pop(number, None) if number else None
    if problem in _signals.unheard:
        _signals.unheard.remove(problem)
    return problem
