"""Versions on branches. They do not affect the line without a branch on which they were made."""

from __future__ import annotations

from pathlib import Path

import llvs


def synced(*devices: llvs.Coordinator) -> None:
    for _ in range(3):
        for device in devices:
            device.sync()


def test_a_draft_does_not_hide_what_it_is_built_on(tmp_path: Path) -> None:
    """The version below a draft is still a head for devices that ignore drafts."""
    with (
        llvs.Coordinator(tmp_path / "one", exchange=tmp_path / "shared") as one,
        llvs.Coordinator(tmp_path / "other", exchange=tmp_path / "shared") as other,
    ):
        one.save(insert={"base": b"1"})
        synced(one, other)
        saved = one.save(insert={"mine": b"3"})
        assert saved is not None
        one.store.make_version(saved.id, insert={"draft": b"4"}, branch="draft")
        synced(one, other)
        assert dict(one) == dict(other) == {"base": b"1", "mine": b"3"}
        assert [head.branch for head in one.store.heads(branch="draft")] == ["draft"]


def test_a_peer_that_puts_branches_on_all_heads_stops_nothing(tmp_path: Path) -> None:
    """A version on a branch on top of each head: honest devices settle all the same, and a new one starts at the main line."""
    with (
        llvs.Coordinator(tmp_path / "one", exchange=tmp_path / "shared") as one,
        llvs.Coordinator(tmp_path / "other", exchange=tmp_path / "shared") as other,
        llvs.Store(storage="memory") as hostile,
        llvs.Exchange(hostile, tmp_path / "shared") as hostile_exchange,
    ):

        def attack() -> None:
            hostile_exchange.retrieve()
            for head in hostile.heads():
                if head.branch is None:
                    hostile.make_version(head.id, insert={"evil": b"x"}, branch="evil")
            hostile_exchange.send()

        one.save(insert={"a": b"1"})
        other.save(insert={"b": b"2"})
        for _ in range(4):
            one.sync()
            attack()
            other.sync()
            attack()
        assert dict(one) == dict(other) == {"a": b"1", "b": b"2"}
        with llvs.Coordinator(tmp_path / "new", exchange=tmp_path / "shared") as new:
            new.sync()
            assert dict(new) == {"a": b"1", "b": b"2"}


def test_merging_into_a_draft_brings_in_the_main_line(tmp_path: Path) -> None:
    """The version on which the draft was made is its ancestor, and is not merged again; later versions of the main line are."""
    with llvs.Store(storage="memory") as store:
        base = store.make_version(insert={"a": b"1"})
        draft = store.make_version(base, insert={"draft": b"2"}, branch="draft")
        assert store.merge_heads(draft) is None
        main = store.make_version(base, insert={"b": b"3"})
        merged = store.merge_heads(draft)
        assert merged is not None and set(merged.predecessors) == {draft.id, main.id}
        assert store.merge_heads(main) == merged
