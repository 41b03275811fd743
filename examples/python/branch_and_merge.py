"""Makes two versions of one note independently; an arbiter in Python merges them."""

from typing import Optional

import llvs


def join_lines(merge: llvs.merge.Merge, store: llvs.Store) -> list[llvs.Change]:
    """Keeps the lines of both sides, the older side's first.

    It does not compare with an ancestor. An arbiter that does must look at all of `fork.ancestors`: there are several if versions were
    merged with one another both ways (docs/python.md).
    """
    resolved = []
    for id, fork in merge.forks.conflicting.items():
        first, second = text(store, fork.first), text(store, fork.second)
        lines = dict.fromkeys(second.splitlines() + first.splitlines())
        resolved.append(llvs.Change.update(id, "\n".join(lines).encode()))
    return resolved


def text(store: llvs.Store, reference: Optional[llvs.store.Reference]) -> str:
    value = store.value_by_reference(reference) if reference else None
    return value.data.decode() if value else ""


with llvs.Store(storage="memory") as store:
    base = store.make_version(insert={"list": b"milk"})
    ann = store.make_version(base, update={"list": b"milk\nbread"}, branch="ann")
    bob = store.make_version(base, update={"list": b"milk\neggs"}, branch="bob")

    merged = store.merge(ann, bob, arbiter=join_lines, metadata={"why": "shopping"})
    print(store.at(merged)["list"].decode())
    assert store.at(merged)["list"] == b"milk\nbread\neggs"

    # Another arbiter lets the newer change win:
    assert store.at(store.merge(ann, bob, arbiter=llvs.MostRecentChange()))["list"] == b"milk\neggs"

    # Undo does not lose later changes: a value that was changed again stays. If nothing is left to undo, nothing is stored.
    nothing = store.revert(bob, at=merged)
    assert nothing.version is None and nothing.superseded == ("list",)
    undone = store.revert(merged, at=merged).version
    assert undone is not None and store.at(undone)["list"] == b"milk\neggs"
    print("heads:", [head.id for head in store.heads()], "undone:", undone.id)
