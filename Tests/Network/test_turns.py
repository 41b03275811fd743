"""Which tests of a matrix the usual run leaves out: Tests/Support/deep.py."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from deep import not_due

LISTS = {"layout": ["single", "packed"], "kind": ["a", "b", "c", "d"], "when": [min, max, len]}


def matrix(lists: dict[str, list[Any]], *turns: str) -> list[Any]:
    """A test for each combination, as pytest collects them."""
    function, mark = object(), SimpleNamespace(args=turns)
    return [Item(function, dict(zip(lists, values)), mark) for values in itertools.product(*lists.values())]


class Item:
    def __init__(self, function: object, params: dict[str, Any], mark: Any) -> None:
        self.function, self.callspec, self.mark = function, SimpleNamespace(params=params), mark

    def iter_markers(self, name: str) -> list[Any]:
        return [self.mark] if name == "in_turn" else []


@pytest.mark.parametrize("names", [["layout", "kind"], ["layout", "kind", "when"], ["layout", "when", "kind"], ["when", "kind"]])
def test_each_pair_of_values_is_tried(names: list[str]) -> None:
    lists = {name: LISTS[name] for name in names}
    items = matrix(lists, *names)
    left = [item.callspec.params for item in items if item not in not_due(items)]
    assert len(left) == len(items) // len(lists[names[0]])
    for name in names:
        assert {one[name] for one in left} == set(lists[name])
    for one, other in itertools.combinations(names, 2) if len(names) > 2 else []:
        assert {(each[one], each[other]) for each in left} == set(itertools.product(lists[one], lists[other]))
