"""Conflicts about lines of a text: their location after edits, and choosing other lines."""

from __future__ import annotations

import json
from typing import Any, Optional

import llvs
import pytest
from test_conflicts import fork_of, memory_store, stores_are_closed as stores_are_closed


def value(wrapped: bool, text: str) -> Any:
    """A text that is a member, or the value as a whole."""
    return {"t": text} if wrapped else text.encode()


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    "rule, base, older, newer, edited",
    [
        # The line became longer at its end, its beginning, or both. The text before or after the part is unchanged.
        ("text", "Meet at 5 today", "Meet at 8 today", "Meet at 1 today", "Meet at 12 today"),
        ("text", "Meet at 5 today", "Meet at 8 today", "Meet at 1 today", "Meet at 21 today"),
        ("text", "The cat sat.", "The fox sat.", "The dog sat.", "My dogma is wrong!"),
        ("text", "I like cats", "I like foxes", "I like a", "Shopping: bread"),
        ("text", "cat", "fox", "dog", "dogma"),
        ("text", "cat", "fox", "dog", "underdog"),
        ("text", "A cat.", "A fox.", "A e.", "A e\u0301."),
        ({"as": "text", "unit": "line"}, "a\ncat\nb\n", "a\nfox\nb\n", "a\ndog\nb\n", "a\na dog\nb\n"),
    ],
)
def test_a_part_of_a_text_is_of_whole_lines(rule: Any, base: str, older: str, newer: str, edited: str, wrapped: bool) -> None:
    """A line that merely contains the bytes of another line is not that line, which is gone."""
    fork = fork_of(value(wrapped, base), value(wrapped, older), value(wrapped, newer), {"/t": rule} if wrapped else {"": rule})
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    assert conflict.kind is llvs.merge.ConflictKind.OVERLAP
    since = fork.make(merged, {"e/1": value(wrapped, edited)})
    assert not fork.store.open_conflicts(since).records
    for choice in ("older", "newer", "result"):
        with pytest.raises(llvs.MovedError):
            fork.store.choose(conflict, choice, at=since)
    # A part that was edited back is closed, too.
    assert not fork.store.open_conflicts(fork.make(since, {"e/1": value(wrapped, newer)})).records


def test_a_line_is_found_beside_others_that_hold_its_bytes() -> None:
    fork = fork_of(b"cats\na cat\ntoo\n", b"cats\na fox\ntoo\n", b"cats\na at\ntoo\n", "text")
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    since = fork.make(merged, {"e/1": b"All cats\nlike a at\na at\ntoo!\n"})
    assert fork.store.open_conflicts(since).records == (conflict,)
    assert fork.store.at(fork.store.choose(conflict, "older", at=since))["e/1"] == b"All cats\nlike a at\na fox\ntoo!\n"


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_choice_that_holds_what_stood_there_closes_the_conflict(wrapped: bool) -> None:
    rules = {"/t": "text"} if wrapped else "text"
    fork = fork_of(value(wrapped, "The cat sat."), value(wrapped, "The big dog sat."), value(wrapped, "The dog sat."), rules)
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    chosen = fork.store.choose(conflict, "older", at=merged)
    text = fork.store.at(chosen)["e/1"]
    assert (json.loads(text)["t"] if wrapped else text.decode()) == "The big dog sat."
    assert not fork.store.open_conflicts(chosen) and fork.store.open_conflicts(merged)
    for choice in ("older", "newer"):
        with pytest.raises(llvs.MovedError):
            fork.store.choose(conflict, choice, at=chosen)
    # A device that edited concurrently with the choice gets an error.
    beside = fork.make(merged, {"e/1": value(wrapped, "The dog sat. It barked.")})
    both = fork.store.merge(chosen, beside)
    assert not fork.store.open_conflicts(both)
    with pytest.raises(llvs.MovedError):
        fork.store.choose(conflict, "older", at=both)
    # If the place has no such text, nothing else is stored.
    fork = fork_of(value(wrapped, "The cat sat."), value(wrapped, "The fox sat."), value(wrapped, "The dog sat."), rules)
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    assert [change.id for change in fork.store.choices(conflict, "older", at=merged)] == ["e/1"]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("side", [None, b"1", b"{}", b"null", b"[", b""])
def test_the_sides_of_lines_are_strings(wrapped: bool, side: Optional[bytes]) -> None:
    base, older, newer = (value(wrapped, f"one\n{word}\nthree\n") for word in ("two", "x", "y"))
    fork = fork_of(base, older, newer, {"/t": "text"} if wrapped else "text")
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    for given in (conflict._replace(older=side), conflict._replace(older=side, version=merged.id, base=side)):
        with pytest.raises(llvs.errors.InvalidArgumentError):
            fork.store.choose(given, "older", at=merged)
    text = fork.store.at(fork.store.choose(conflict._replace(older=b'""'), "older", at=merged))["e/1"]
    assert (json.loads(text)["t"] if wrapped else text.decode()) == "one\nthree\n"


def test_two_lines_with_one_record_are_chosen_one_after_the_other() -> None:
    fork = fork_of(b"a\ncat\nb\ncat\nc\n", b"a\ndog\nb\ndog\nc\n", b"a\nfox\nb\nfox\nc\n", "text")
    at = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(at).records
    for text in (b"a\ndog\nb\nfox\nc\n", b"a\ndog\nb\ndog\nc\n"):
        assert fork.store.open_conflicts(at).records == (conflict,)
        at = fork.store.choose(conflict, "older", at=at)
        assert fork.store.at(at)["e/1"] == text
    assert not fork.store.open_conflicts(at)
    with pytest.raises(llvs.MovedError):
        fork.store.choose(conflict, "older", at=at)


def test_a_choice_about_one_of_two_parts_with_one_name_does_not_close_the_other() -> None:
    """The value that records a choice would be about both."""
    part, longer = b"b\nc\nd\n", b"b\nc\nnew\nd\n"
    fork = fork_of(b"a\n" + part + b"e\n" + part + b"f\n", b"a\n" + longer + b"e\n" + longer + b"f\n", b"a\ne\nf\n", "text")
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = set(fork.store.open_conflicts(merged).records)
    with pytest.raises(llvs.errors.InvalidArgumentError):
        fork.store.choose(conflict, "older", at=merged)
    assert not fork.store.open_conflicts(fork.store.choose(conflict, "result", at=merged))


def test_parts_by_rules_that_the_store_has_not() -> None:
    store, rules = memory_store(), {"/t": {"as": "text", "unit": "line"}}

    def make(at: Optional[llvs.Version], text: str) -> llvs.Version:
        return store.make_version(at, update={"e/1": json.dumps({"t": text}).encode()})

    base = make(None, "x\nc\ny\n")
    merged = store.merge(make(base, "x\nf\ny\n"), make(base, "x\ne\ny\n"), llvs.Rules(rules))
    (conflict,) = store.open_conflicts(merged, rules=rules).records
    assert conflict.kind is llvs.merge.ConflictKind.OVERLAP
    assert json.loads(store.at(store.choose(conflict, "older", at=merged))["e/1"]) == {"t": "x\nf\ny\n"}
    assert store.open_conflicts(make(merged, "x\ne\ny\nz\n"), rules=rules).records == (conflict,)
