"""Finds versions by name, in the same way for the command and the inspector.

    <id>            a whole id
    <beginning>     4 or more characters with which only one id begins; case is ignored
    <branch>        the newest head on a branch; branch:<branch> if something else has that name as well
    @               the current version of the coordinator, if there is one, otherwise the most recent head
    X~3  X~         three first predecessors back; one
    X^2  X^         the second predecessor; the first
    X@{yesterday}   the newest version at that time among X and its ancestors; without X, of @

Other devices choose names of branches and ids, so no name may hide another one. A name that ends in `~`, `^` or `@{}` means steps if the
part before them names a version. A name of hexadecimal digits is ambiguous if it is a branch, or an id, and also the beginning of other
ids. Other names of branches take precedence over beginnings of ids.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from typing import Optional, Sequence

import llvs

from . import escape, moments

#: The number of characters of an id that are shown, and the least number that names one.
SHOWN, LEAST = 8, 4
#: The empty root, from which coordinators start. It is the same everywhere.
EMPTY_ROOT = "00000000-0000-8000-8000-000000000000"

_suffix = re.compile(r"(?:~(?P<back>\d*)|\^(?P<parent>\d*)|@\{(?P<time>[^{}]*)\})\Z")
_beginning = re.compile(r"[A-Za-z0-9_-]+")
#: The form of a beginning of an id that the library made, and of a whole one.
_hexadecimal, _uuid = re.compile(r"[A-Fa-f0-9-]{4,}"), re.compile(r"[A-F0-9]{8}(?:-[A-F0-9]{4}){3}-[A-F0-9]{12}")


class VersionNameError(ValueError):
    """Raised for a name that is unknown, ambiguous or malformed. The text is a sentence for people, and harmless on a terminal."""

    #: The versions that the name could mean, the newest first, if there are any.
    candidates: tuple[llvs.Version, ...]

    def __init__(self, message: str, candidates: Sequence[llvs.Version] = ()) -> None:
        super().__init__(escape.line(message))
        self.candidates = tuple(candidates)


class _UnknownName(VersionNameError):
    """Raised if no version has the name."""


def coordinator_options(name: str) -> Optional[llvs.CoordinatorOptions]:
    """Returns the options of the coordinator with a name; None for the usual one, so that the command starts with one import less."""
    return llvs.CoordinatorOptions(name=name) if name else None


def current_version(
    path: "str | os.PathLike[str]", store: llvs.Store, *, storage: llvs.words.StorageKind = "file", name: str = ""
) -> Optional[llvs.Version]:
    """Returns the version that `@` names; None in a store without versions.

    It is the current version of the coordinator with that name. Without such a coordinator it is the most recent head without a branch,
    otherwise the most recent head. Works while a program has the coordinator open, and changes nothing. Raises what opening a store raises.
    """
    try:
        options = coordinator_options(name)
        with llvs.Coordinator(path, storage=storage, read_only=True, create=False, options=options) as coordinator:
            current = coordinator.current_version
    except llvs.BusyError:
        return store.most_recent_head
    # Before its first save a coordinator is at the empty root, which no history lists.
    return store.most_recent_head if current.id == EMPTY_ROOT else current


class VersionNames:
    """Finds the versions of a store by their names.

        names = VersionNames(store, current_version(path, store))
        names.find("draft~2")

    May be used by all threads that may use the store. Looking up a beginning of an id walks the whole history once.
    """

    def __init__(self, store: llvs.Store, current: Optional[llvs.store.AnyVersion] = None, *, now: Optional[datetime] = None) -> None:
        """current: the version that `@` names; None: the most recent head. now: the time from which times are counted; None: the
        clock's."""
        self._store, self._current, self._now = store, current, now

    def find(self, name: str) -> llvs.Version:
        """Returns the version with a name. Raises VersionNameError."""
        if name == "":
            raise VersionNameError('the name of a version is empty: write "@" for the current one')
        steps = _suffix.search(name)
        if steps is None:
            found = self._named(name)
            if found is None:
                raise self._unknown(name)
            return found
        start = name[: steps.start()]
        try:
            if start == "" and steps["time"] is None:
                raise VersionNameError(f'"{name}" says how far to go back, and not from where: write "@{name}"')
            version = self.find(start or "@")
        except _UnknownName:
            # The name may be that of a branch that looks like steps.
            found = self._named(name)
            if found is None:
                raise
            return found
        if steps["time"] is not None:
            return self._at_time(version, steps["time"], name)
        if steps["back"] is not None:
            for _ in range(_count(steps["back"], name)):
                version = self._predecessor(version, 1, name)
            return version
        number = _count(steps["parent"], name)
        return version if number == 0 else self._predecessor(version, number, name)

    def _named(self, name: str) -> Optional[llvs.Version]:
        """Returns the version with a name without steps; None if there is none."""
        try:
            return self._plain(name)
        except llvs.errors.InvalidArgumentError:
            return None

    def _plain(self, name: str) -> Optional[llvs.Version]:
        if name == "@":
            return self._at()
        if name.startswith("branch:"):
            on_branch = self._store.heads(branch=name[len("branch:") :])
            if on_branch:
                return on_branch[0]
        whole = self._whole(name)
        if whole is not None and _uuid.fullmatch(name):
            return whole
        on_branch = self._store.heads(branch=name)
        if _hexadecimal.fullmatch(name) and (whole is not None or on_branch):
            meant = {version.id: version for version in (*([whole] if whole else []), *on_branch[:1], *self.beginning(name))}
            if len(meant) > 1:
                raise VersionNameError(
                    f'"{name}" names {len(meant)} versions, as an id, a branch or the beginning of an id: write more of the id, as in '
                    f"{self._told(list(meant.values()))}" + (f', or "branch:{name}"' if on_branch else ""),
                    list(meant.values()),
                )
        if whole is not None:
            return whole
        if on_branch:
            return on_branch[0]
        found = self.beginning(name)
        if len(found) > 1:
            raise VersionNameError(
                f'"{name}" is the beginning of {len(found)} versions: write more of it, as in {self._told(found)}', found
            )
        return found[0] if found else None

    def _at(self) -> llvs.Version:
        found = self._store.most_recent_head if self._current is None else self._store[self._current]
        if found is None:
            raise VersionNameError('there is no version yet, so "@" is none: save something first, with "llvs set ID=VALUE"')
        return found

    def _whole(self, name: str) -> Optional[llvs.Version]:
        try:
            return self._store.version(name)
        except llvs.errors.InvalidArgumentError:
            return None

    def beginning(self, name: str) -> list[llvs.Version]:
        """Returns the versions whose ids begin with the text, the newest first: in this spelling, otherwise in any case. None for fewer
        than 4
        characters."""
        if len(name) < LEAST or not _beginning.fullmatch(name):
            return []
        folded = name.lower()
        found = [version for version in self._store.history() if version.id.lower().startswith(folded)]
        return [version for version in found if version.id.startswith(name)] or found

    def _at_time(self, head: llvs.Version, time: str, name: str) -> llvs.Version:
        try:
            seconds = moments.seconds_of(time, end_of_day=True, now=self._now)
        except ValueError as problem:
            raise VersionNameError(str(problem)) from None
        found = self._store.version_at(seconds, head)
        if found is None:
            raise VersionNameError(f'"{name}" is before the first version: all are later')
        return found

    def _predecessor(self, version: llvs.Version, number: int, name: str) -> llvs.Version:
        if number > len(version.predecessors):
            has = ("no predecessor", "one predecessor", "two predecessors")[len(version.predecessors)]
            raise VersionNameError(f'"{name}" goes too far back: the version {version.id[:SHOWN]} has {has}', [version])
        return self._store[version.predecessors[number - 1]]

    def _unknown(self, name: str) -> _UnknownName:
        """Returns the error for a name that no version has."""
        import difflib

        branches = self._store.branches()
        near = [branches[known] for known in difflib.get_close_matches(name, branches, 5, 0.6)]
        if not near and len(name) >= LEAST and _beginning.fullmatch(name):
            near = self.beginning(name[:LEAST])
            told = self._told(near)
        else:
            told = _listed([f"'{version.branch}'" for version in near])
        if near:
            return _UnknownName(f'there is no version "{name}"; did you mean {told}?', near)
        if _beginning.fullmatch(name) and len(name) < LEAST:
            return _UnknownName(
                f'there is no branch "{name}", and a beginning of an id has {LEAST} characters or more: "llvs log" shows ids'
            )
        return _UnknownName(f'there is no version "{name}": "llvs log" shows ids, and "llvs branch" the branches')

    @staticmethod
    def _told(versions: Sequence[llvs.Version]) -> str:
        return _listed([shortest(version, versions) for version in versions])


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - 5
    return ", ".join(names[:5]) + (f", or one of {rest} more" if rest > 0 else "")


def shortest(version: llvs.Version, others: Sequence[llvs.Version]) -> str:
    """Returns the shortest beginning that no other id has, but at least as many characters as are shown of an id."""
    for size in range(SHOWN, len(version.id)):
        if not any(other.id != version.id and other.id.startswith(version.id[:size]) for other in others):
            return version.id[:size]
    return version.id


def _count(digits: str, name: str) -> int:
    if len(digits) > 9:
        raise VersionNameError(f'"{name}" goes too far back')
    return int(digits) if digits else 1
