"""Random histories in the library, compared with the reference model: several replicas over different storages save, branch, merge, revert,
exchange and are opened again. In the end they converge, and nothing is lost."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any, Callable, Optional, Sequence

import llvs
import pytest
from conftest import Places
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from interchange import DictTransport, read_version
from reference import Change, Fork, History, Remove, Set, Version
from sampling import sample

IDS = ["a", "b", "B", "a/b", "é", "e\u0301", "..", "z" * 40]
VALUES: list[Optional[bytes]] = [b"", b"0", b"1", b"2", b"\0\xff", b"same", b"x" * 300]
NAMES = ["most_recent_change", "most_recent_branch", "ours", "theirs", "callback"]
BRANCHES = [None, None, None, "draft", "dräft"]
SELECTIONS = ["unbranched", "all", "draft", "unbranched+draft"]
changes = st.dictionaries(st.sampled_from(IDS), st.sampled_from(VALUES + [None]), max_size=4)
arbiters = st.sampled_from(NAMES)
selections = st.sampled_from(SELECTIONS)
ARBITERS: dict[str, Any] = {
    "most_recent_change": llvs.MostRecentChange(),
    "most_recent_branch": llvs.MostRecentBranch(),
    "ours": llvs.Ours(),
    "theirs": llvs.Theirs(),
}
branches = st.sampled_from(BRANCHES)


def resolve_in_model(forks: dict[bytes, Fork]) -> dict[bytes, Change]:
    """A callback arbiter's rule, on the model's side: merged bytes, except that ids beyond "b" are removed."""
    return {id: Set(b"merged " + id) if id <= b"b" else Remove() for id, fork in forks.items() if fork.conflicting}


def resolve_in_library(merge: llvs.merge.Merge, store: llvs.Store) -> list[llvs.Change]:
    """Decides by the same rule as `resolve_in_model`, in the library."""
    return [
        llvs.Change.update(id, b"merged " + id.encode()) if id.encode() <= b"b" else llvs.Change.remove(id)
        for id, fork in merge.forks.items()
        if fork.conflicting
    ]


#: Chooses one of several, for a purpose that is printed.
Choose = Callable[[Sequence[Any], str], Any]


def drawn(data: st.DataObject) -> Choose:
    """Lets hypothesis choose: a number that does not depend on how many there are, since that may depend on the clock."""
    return lambda options, what: options[data.draw(st.integers(0, 719), label=what) % len(options)]


class Replica:
    """A store, the versions that it must know, and a recorder of the exact versions that it makes."""

    def __init__(self, number: int, kind: str, directory: Path) -> None:
        self.number = number
        self.place = Places(kind, directory / str(number))
        self.place.directory.mkdir()
        self.known: set[str] = set()
        self.recorder = DictTransport()
        self.open()

    def open(self) -> None:
        self.store = self.place.open()
        self.exchange = llvs.Exchange(self.store, self.recorder)

    def close(self) -> None:
        self.exchange.close()
        self.store.close()

    def new_versions(self) -> list[tuple[Version, dict[bytes, str]]]:
        """Returns the versions that were added since the last time, exactly as they would be sent."""
        self.recorder.sent.clear()
        result = self.exchange.send()
        assert not result.problems
        return [read_version(file.version, file.changes) for file in self.recorder.sent]


class Replicas(RuleBasedStateMachine):
    """The machine. All versions of all replicas are in one model; each replica knows some of them."""

    def __init__(self) -> None:
        super().__init__()
        self.model = History()
        self.directory = Path(tempfile.mkdtemp(prefix="llvs-histories-"))
        self.replicas: list[Replica] = []

    @initialize(kinds=st.permutations(["file", "sqlite", "memory", "dict"]), count=st.integers(2, 3))
    def begin(self, kinds: list[str], count: int) -> None:
        self.replicas = [Replica(number, kind, self.directory) for number, kind in enumerate(kinds[:count])]
        # A place in memory exists as long as it is open.
        self.holder = llvs.Exchange(self.replicas[0].store, f"memory:{self.directory.name}")

    def replica(self, choose: Choose) -> Replica:
        return self.replicas[choose(range(len(self.replicas)), "replica")]

    def version(self, choose: Choose, replica: Replica, what: str) -> str:
        """A version of the replica: mostly a head."""
        heads = self.model.heads(replica.known)
        if choose((True, True, False), "a head"):
            return choose(heads, what)
        return choose(sorted(replica.known, key=self.model.key), what)

    def adopt(self, replica: Replica, expected: Version) -> None:
        """Adds the one version that a replica has just made to the model, and compares it with the expected one."""
        ((version, labels),) = replica.new_versions()
        assert version.id == expected.id or not expected.id
        assert version.predecessors == expected.predecessors
        assert version.changes == expected.changes
        assert version.metadata == expected.metadata
        self.model.add(version)
        replica.known.add(version.id)
        self.check_labels(version, labels)
        self.check_version(replica, version.id)

    def check_labels(self, version: Version, labels: dict[bytes, str]) -> None:
        before = self.model.state(version.predecessors[0]) if version.predecessors else {}
        for id, change in version.changes.items():
            if isinstance(change, Set):
                assert labels[id] == ("update" if id in before else "insert")

    def check_version(self, replica: Replica, id: str) -> None:
        """A version as the library shows it."""
        store, expected = replica.store, self.model.versions[id]
        found = store.version(id)
        assert found is not None and found.predecessors == expected.predecessors
        state, stored = self.model.values(id), self.model.state(id)
        at = store.at(id)
        assert [(key.encode(), data) for key, data in at.items()] == list(state.items())
        assert len(at) == len(state)
        assert {key.encode(): value.stored_version for key, value in zip(IDS, store.values(IDS, at=id)) if value} == stored
        for prefix in ("a", "e"):
            assert [key.encode() for key in at.prefix(prefix)] == [key for key in state if key.startswith(prefix.encode())]
        assert [key.encode() for key in at.range("a", "c")] == [key for key in state if b"a" <= key < b"c"]

    # Steps

    def save(self, choose: Choose, changes: dict[str, Optional[bytes]], root: bool, branch: Optional[str], author: Optional[str]) -> None:
        replica = self.replica(choose)
        base = None if root or not replica.known else self.version(choose, replica, "base")
        self.save_on(replica, base, changes, branch, author)

    def save_on(
        self,
        replica: Replica,
        base: Optional[str],
        changes: dict[str, Optional[bytes]],
        branch: Optional[str] = None,
        author: Optional[str] = None,
    ) -> str:
        before = self.model.state(base) if base else {}
        made = replica.store.make_version(
            base,
            update={id: value for id, value in changes.items() if value is not None},
            root=base is None,
            remove=[id for id, value in changes.items() if value is None],
            branch=branch,
            metadata={"author": author} if author else None,
            id=f"V{len(self.model.versions)}",
        )
        expected: dict[bytes, Change] = {}
        for id, value in changes.items():
            if value is not None:
                expected[id.encode()] = Set(value)
            elif id.encode() in before:
                expected[id.encode()] = Remove()
        metadata = {}
        if author:
            metadata[b"author"] = b'"ann"'
        if branch:
            metadata[b"__llvs_branch"] = f'"{branch}"'.encode()
        assert made.branch == branch
        self.adopt(replica, Version(made.id, (base,) if base else (), 0.0, expected, metadata))
        if base:
            assert self.model.versions[made.id].timestamp > self.model.versions[base].timestamp
        return made.id

    def criss_cross(self, choose: Choose, changes: list[dict[str, Optional[bytes]]], arbiter: str) -> None:
        """All replicas have equal states and change them independently. Then each merges with what the others had: the next merge has
        several bases."""
        for replica in self.replicas:
            self.exchange_pair(replica, self.replicas[0], True)
        for replica in self.replicas[1:]:
            self.exchange_pair(self.replicas[0], replica, True)
        heads = []
        for replica, apart in zip(self.replicas, changes):
            base = self.version(choose, replica, "base") if replica.known else None
            heads.append(self.save_on(replica, base, apart))
        for replica in self.replicas:
            self.exchange_pair(replica, self.replicas[0], True)
        for replica in self.replicas[1:]:
            self.exchange_pair(self.replicas[0], replica, True)
        for replica, author in zip(self.replicas, ("ann", "bob", None)):
            self.merge_in(replica, heads[0], heads[1], arbiter, author)

    def merge(self, choose: Choose, arbiter: str, author: Optional[str]) -> None:
        replica = self.replica(choose)
        if not replica.known:
            return
        self.merge_in(replica, self.version(choose, replica, "ours"), self.version(choose, replica, "theirs"), arbiter, author)

    def merge_in(self, replica: Replica, ours: str, theirs: str, arbiter: str, author: Optional[str]) -> None:
        expected = self.model.merge(
            ours, theirs, resolve_in_model if arbiter == "callback" else arbiter, {b"author": f'"{author}"'.encode()} if author else {}
        )
        seen: list[llvs.merge.Merge] = []

        def callback(merge: llvs.merge.Merge, store: llvs.Store) -> Any:
            seen.append(merge)
            self.check_merge(merge, ours, theirs)
            return resolve_in_library(merge, store)

        found = replica.store.merge(
            ours, theirs, callback if arbiter == "callback" else ARBITERS[arbiter], metadata={"author": author} if author else None
        )
        assert found.id == expected.id
        if expected.id in replica.known:
            assert not replica.new_versions()
        else:
            self.adopt(replica, expected)

    def check_merge(self, merge: llvs.merge.Merge, ours: str, theirs: str) -> None:
        first, second = sorted((ours, theirs), key=self.model.key, reverse=True)
        assert (merge.first.id, merge.second.id, merge.ours.id, merge.theirs.id) == (first, second, ours, theirs)
        bases = self.model.bases(ours, theirs)
        assert [base.id for base in merge.bases] == bases
        forks, _ = self.model.forks(first, second, bases)
        assert list(merge.forks) == [id.decode() for id in forks]
        for id, fork in forks.items():
            found = merge.forks[id.decode()]
            assert (found.kind.value, found.branch.value if found.branch else None) == (fork.kind, fork.side), (id, fork)
            for reference, version in ((found.first, fork.first), (found.second, fork.second), (found.ancestor, fork.ancestor)):
                assert (reference.stored_version if reference else None) == version, (id, fork)
            assert found.conflicting == fork.conflicting

    def merge_heads(self, choose: Choose, arbiter: str, selection: str) -> None:
        replica = self.replica(choose)
        if not replica.known:
            return
        into = self.version(choose, replica, "into")

        def selected(version: Version) -> bool:
            branch = version.metadata.get(b"__llvs_branch")
            unbranched, draft = branch is None, branch == b'"draft"'
            return {"unbranched": unbranched, "all": True, "draft": draft, "unbranched+draft": unbranched or draft}[selection]

        heads = {
            "unbranched": "unbranched",
            "all": llvs.merge.Heads.ALL,
            "draft": llvs.merge.Heads.branches("draft"),
            "unbranched+draft": llvs.merge.Heads.unbranched_and("draft"),
        }[selection]
        callback = arbiter == "callback"
        if "draft" in selection and not any(self.model.versions[id].metadata.get(b"__llvs_branch") == b'"draft"' for id in replica.known):
            with pytest.raises(llvs.errors.UnknownVersionError, match='"draft"'):
                replica.store.merge_heads(into, resolve_in_library if callback else ARBITERS[arbiter], heads)  # type: ignore[arg-type]
            assert not replica.new_versions()
            return
        result, new = self.model.merge_heads(replica.known, into, resolve_in_model if callback else arbiter, selected)
        found = replica.store.merge_heads(into, resolve_in_library if callback else ARBITERS[arbiter], heads)  # type: ignore[arg-type]
        assert (found.id if found else into) == result
        # Heads of equal states are merged group by group, so that the versions may be made in another order than they are sent.
        made = {version.id: version for version, _ in replica.new_versions()}
        assert made == {version.id: version for version in new}
        replica.known.update(version.id for version in new)
        self.check_version(replica, result)

    def revert(self, choose: Choose) -> None:
        replica = self.replica(choose)
        if not replica.known:
            return
        undone, at = self.version(choose, replica, "undone"), self.version(choose, replica, "at")
        predecessors = self.model.versions[undone].predecessors
        old, new, now = (self.model.state(predecessors[0]) if predecessors else {}), self.model.state(undone), self.model.state(at)
        expected: dict[bytes, Change] = {}
        for id in sorted(old.keys() | new.keys()):
            # Values that later versions changed to other bytes stay: there the head's side prevails in the three-way merge with the version
            # as the ancestor.
            if old.get(id) == new.get(id) or self.bytes_of(id, now) != self.bytes_of(id, new):
                continue
            if id not in old:
                expected[id] = Remove()
            elif id not in new or self.model.data(id, old[id]) != self.model.data(id, new[id]):
                # Bytes, not a reference: a version with one predecessor stores them again.
                expected[id] = Set(self.model.data(id, old[id]))
        made = replica.store.revert(undone, at=at).version
        if not expected:
            assert made is None and not replica.new_versions()
            return
        assert made is not None
        self.adopt(replica, Version(made.id, (at,), 0.0, expected))

    def bytes_of(self, id: bytes, state: Any) -> Optional[bytes]:
        return self.model.data(id, state[id]) if id in state else None

    def exchange(self, choose: Choose, folder: bool, both: bool) -> None:
        one, other = self.replica(choose), self.replica(choose)
        self.exchange_pair(one, other, folder)
        if both:
            self.exchange_pair(other, one, folder)

    def exchange_pair(self, one: Replica, other: Replica, folder: bool) -> None:
        url = (self.directory / "folder").as_uri() if folder else f"memory:{self.directory.name}"
        with llvs.Exchange(one.store, url) as sending:
            assert not sending.send().problems
        self.shared(folder).update(one.known)
        with llvs.Exchange(other.store, url) as receiving:
            result = receiving.retrieve()
        assert not result.problems
        assert set(result.retrieved) == self.shared(folder) - other.known
        other.known |= self.shared(folder)
        assert {version.id for version, _ in other.new_versions()} == set(result.retrieved)
        for id in result.retrieved:
            self.check_version(other, id)

    def shared(self, folder: bool) -> set[str]:
        if not hasattr(self, "_shared"):
            self._shared: dict[bool, set[str]] = {True: set(), False: set()}
        return self._shared[folder]

    def open_again(self, choose: Choose) -> None:
        replica = self.replica(choose)
        if replica.place.lasts:
            if replica is self.replicas[0]:
                self.holder.close()
                self.shared(False).clear()
            replica.close()
            replica.open()
            if replica is self.replicas[0]:
                self.holder = llvs.Exchange(replica.store, f"memory:{self.directory.name}")
            assert {version.id for version in replica.store.history()} == replica.known
            for id in self.model.heads(replica.known):
                self.check_version(replica, id)

    def compare(self, choose: Choose) -> None:
        replica = self.replica(choose)
        if not replica.known:
            return
        a, b = self.version(choose, replica, "a"), self.version(choose, replica, "b")
        store = replica.store
        assert [version.id for version in store.merge_bases(a, b)] == self.model.bases(a, b)
        assert store.is_ancestor(a, b) == self.model.is_ancestor(a, b)
        found = {
            change.id.encode(): (change.kind.value, change.reference.stored_version if change.reference else None)
            for change in store.diff(a, b)
        }
        assert found == self.model.difference(a, b)
        assert {version.id for version in store.history(a)} == self.model.ancestors(a)

    # Rules of the state machine: one step, or many at once

    @rule(
        data=st.data(),
        changes=changes,
        root=st.sampled_from([False] * 15 + [True]),
        branch=branches,
        author=st.sampled_from([None, None, "ann"]),
    )
    def saves(
        self, data: st.DataObject, changes: dict[str, Optional[bytes]], root: bool, branch: Optional[str], author: Optional[str]
    ) -> None:
        self.save(drawn(data), changes, root, branch, author)

    @rule(data=st.data(), apart=st.lists(changes, min_size=3, max_size=3), arbiter=arbiters)
    def criss_crosses(self, data: st.DataObject, apart: list[dict[str, Optional[bytes]]], arbiter: str) -> None:
        self.criss_cross(drawn(data), apart, arbiter)

    @rule(data=st.data(), arbiter=arbiters, author=st.sampled_from([None, "bob"]))
    def merges(self, data: st.DataObject, arbiter: str, author: Optional[str]) -> None:
        self.merge(drawn(data), arbiter, author)

    @rule(data=st.data(), arbiter=arbiters, selection=selections)
    def merges_heads(self, data: st.DataObject, arbiter: str, selection: str) -> None:
        self.merge_heads(drawn(data), arbiter, selection)

    @rule(data=st.data(), what=st.sampled_from(["revert", "open_again", "compare"]))
    def others(self, data: st.DataObject, what: str) -> None:
        getattr(self, what)(drawn(data))

    @rule(data=st.data(), folder=st.booleans(), both=st.booleans())
    def exchanges(self, data: st.DataObject, folder: bool, both: bool) -> None:
        self.exchange(drawn(data), folder, both)

    @rule(seed=st.integers(0, 1 << 32))
    def storm(self, seed: int) -> None:
        """Many steps at once, chosen by a generator: histories deeper than hypothesis would draw."""
        random = Random(seed)

        def choose(options: Sequence[Any], what: str) -> Any:
            return random.choice(options)

        def some_changes() -> dict[str, Optional[bytes]]:
            return {random.choice(IDS): random.choice(VALUES + [None]) for _ in range(random.randint(1, 3))}

        for _ in range(12):
            dice = random.random()
            arbiter = random.choice(NAMES)
            if dice < 0.40:
                self.save(choose, some_changes(), random.random() < 0.02, random.choice(BRANCHES), random.choice((None, "ann")))
            elif dice < 0.60:
                self.criss_cross(choose, [some_changes() for _ in range(3)], arbiter)
            elif dice < 0.75:
                self.merge(choose, arbiter, random.choice((None, "bob")))
            elif dice < 0.80:
                self.merge_heads(choose, arbiter, random.choice(SELECTIONS))
            elif dice < 0.90:
                self.exchange(choose, random.random() < 0.5, random.random() < 0.5)
            else:
                getattr(self, random.choice(("revert", "open_again", "compare")))(choose)

    # Invariants

    @invariant()
    def heads_are_right(self) -> None:
        for replica in self.replicas:
            assert [head.id for head in replica.store.heads()] == self.model.heads(replica.known)
            head = replica.store.most_recent_head
            assert (head.id if head else None) == next(iter(self.model.heads(replica.known)), None)

    def teardown(self) -> None:
        try:
            if self.replicas:
                self.converge()
                for replica in self.replicas:
                    report = replica.store.verify()
                    assert not report.damages and report.pending == 0 and report.versions >= len(replica.known)
        finally:
            if self.replicas:
                self.holder.close()
            for replica in self.replicas:
                replica.close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def converge(self) -> None:
        """All replicas exchange with one another and merge, until all heads have equal states: heads with equal states are left alone.
        """
        before = set(self.model.versions)
        url = (self.directory / "folder").as_uri()
        mixed = ["most_recent_change", "most_recent_branch", "most_recent_change"]
        for round in range(4):
            for replica in self.replicas:
                with llvs.Exchange(replica.store, url) as exchange:
                    assert not exchange.retrieve().problems and not exchange.send().problems
            for replica in self.replicas:
                with llvs.Exchange(replica.store, url) as exchange:
                    assert not exchange.retrieve().problems
            everywhere = [tuple(head.id for head in replica.store.heads()) for replica in self.replicas]
            note(f"round {round}: {everywhere}")
            assert len(set(everywhere)) == 1, "everybody knows the same"
            states = [dict(replica.store.at(head).items()) for replica in self.replicas for head in everywhere[0]]
            if all(state == states[0] for state in states):
                break
            for replica, arbiter in zip(self.replicas, mixed):
                into = replica.store.most_recent_head
                if into is not None:
                    replica.store.merge_heads(into, ARBITERS[arbiter], "all")
        else:
            raise AssertionError(f"the replicas have not converged: {everywhere}")
        for replica in self.replicas:
            known = {version.id for version in replica.store.history()}
            assert before <= known, "versions were lost"
            for head in everywhere[0]:
                # No replica makes a version now: all must be at the newest.
                found = replica.store.merge_heads(head, ARBITERS["most_recent_change"], "all")
                assert (found.id if found else head) == everywhere[0][0]
            assert {version.id for version in replica.store.history()} == known
            assert tuple(version.id for version in replica.store.heads()) == everywhere[0]


Replicas.TestCase.settings = settings(max_examples=sample(4, 60), stateful_step_count=sample(8, 12))
TestReplicas = Replicas.TestCase
