"""Exceptions of callbacks on their way through the library, as the user codes of its errors, to the call that they made fail."""

from __future__ import annotations

import itertools

from . import _signals

#: By user code. Some never arrive (the library may go on without a cache, say): only the newest are kept.
exceptions: dict[int, BaseException] = {}
_KEPT = 256
_numbers = itertools.count(1)


def keep(problem: BaseException) -> int:
    """Keeps an exception, and returns the number that stands for it. Any thread. O(1)."""
    number = next(_numbers)
    exceptions[number] = problem
    if not isinstance(problem, Exception):
        _signals.hear_later(problem)
    while len(exceptions) > _KEPT:
        try:
            del exceptions[next(iter(exceptions))]
        except (KeyError, RuntimeError, StopIteration):  # another thread was faster
            break
    return number


def take(number: int) -> BaseException | None:
    """The exception under a number, once; None for a number of somebody else. Any thread. O(1)."""
    problem = exceptions.pop(number, None) if number else None
    if problem in _signals.unheard:
        _signals.unheard.remove(problem)
    return problem
