"""What a policy keeps, computed from the whole history as docs/format.md says ("Retention"), and with nothing of the library."""

from __future__ import annotations

import sqlite3
import struct
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Callable, Iterable, NamedTuple, Optional

from format_reader import checksum

DAY = 86_400


class Made(NamedTuple):
    """A version: what it builds on, when it was made (seconds since 1970), its branch, the version that stored each of its values, and the
    ids under which it stored one itself."""

    predecessors: tuple[str, ...]
    time: float
    branch: str
    state: dict[str, str]
    stored: frozenset[str]


class Kept:
    """The values that a policy keeps."""

    def __init__(self, versions: dict[str, Made], policy: dict[str, Any], come: Callable[[int], Iterable[str]]) -> None:
        """come: the versions that came before so many days."""
        self.versions, self.policy, self.come = versions, policy, come
        self.behind: dict[str, set[str]] = {}
        for id, version in versions.items():
            self.behind[id] = {id}.union(*(self.behind[before] for before in version.predecessors))
        built_on = {before for version in versions.values() for before in version.predecessors}
        self.heads = [id for id in versions if id not in built_on]

    def without_branch(self) -> list[str]:
        """The versions without a branch that no other such version builds on, over others as well."""
        plain = [id for id, version in self.versions.items() if not version.branch]
        return [id for id in plain if not any(id in self.behind[other] for other in plain if other != id)]

    def keeps_branch(self, name: str) -> bool:
        patterns = self.policy.get("branches", ["*"])
        return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)

    def kept_heads(self) -> set[str]:
        found = {id for id in self.heads if self.keeps_branch(self.versions[id].branch)}
        return found | set(self.without_branch() if self.keeps_branch("") else ())

    def bases(self) -> set[str]:
        """What merges of heads need: common ancestors, if no version that builds on one is behind the same heads."""
        found: set[str] = set()
        tips = set(self.heads)
        for _ in range(2):
            above = {id: frozenset(tip for tip in tips if id in self.behind[tip]) for id in self.versions}
            covered = {
                before for id, version in self.versions.items() for before in version.predecessors if above[before] == above[id]
            }
            tips = {id for id, over in above.items() if len(over) > 1 and id not in covered}
            found |= tips
        return found

    def chain(self, id: Optional[str]) -> Iterable[str]:
        """A version, its first predecessor, and so on."""
        while id is not None:
            yield id
            before = self.versions[id].predecessors
            id = before[0] if before else None

    def newest(self, start: str, period: Callable[[float], Any], most: int) -> set[str]:
        """The newest version of each period on the chain of a version, for the last periods."""
        found: dict[Any, str] = {}
        for id in self.chain(start):
            if found.setdefault(period(self.versions[id].time), id) == id and len(found) > most:
                found.popitem()
                break
        return set(found.values())

    def kept_versions(self, rule: dict[str, int]) -> set[str]:
        recent = set(self.versions).difference(self.come(rule["days"]))
        starts = self.kept_heads() | recent
        kept = set(starts)
        for name, period in PERIODS.items():
            for start in starts if rule.get(name) else ():
                kept |= self.newest(start, period, rule[name])
        return kept | self.bases()

    def rule(self, id: str) -> dict[str, int]:
        groups = [prefix for prefix in self.policy.get("ids", {}) if id.startswith(prefix)]
        rule: dict[str, int] = self.policy["ids"][max(groups, key=len)] if groups else self.policy
        return rule

    def values(self) -> set[tuple[str, str]]:
        """The values that are kept: the version that stored each, and its id."""
        found: set[tuple[str, str]] = set()
        ids = {id for version in self.versions.values() for id in version.state}
        kept: dict[str, set[str]] = {}
        for id in ids:
            rule = self.rule(id)
            versions = kept.setdefault(str(sorted(rule.items())), set()) or self.kept_versions(rule)
            kept[str(sorted(rule.items()))] = versions
            found |= {(self.versions[version].state[id], id) for version in versions if id in self.versions[version].state}
            stored = [version for version, made in self.versions.items() if id in made.stored]
            stored.sort(key=lambda version: (self.versions[version].time, version), reverse=True)
            found |= {(version, id) for version in stored[: rule.get("count", 0)]}
        return found


def _date(time: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=time)


PERIODS: dict[str, Callable[[float], Any]] = {
    "daily": lambda time: _date(time).date(),
    "weekly": lambda time: _date(time).isocalendar()[:2],
    "monthly": lambda time: (_date(time).year, _date(time).month),
}


# What a device knows of the past, made older


def cache(path: Path, storage: str, name: str, change: Optional[Callable[[bytes], bytes]] = None) -> bytes:
    """The bytes of a cache of a closed store, empty if it has none; replaces them if told how."""
    file = path / "cache" / f"{name}.cache"
    if storage == "file":
        data = file.read_bytes()[32:] if file.exists() else b""
    else:
        with sqlite3.connect(path) as database:
            rows = database.execute("SELECT data FROM caches WHERE name = ?", (name,)).fetchall()
        database.close()
        data = bytes(rows[0][0]) if rows else b""
    if change is None:
        return data
    data = change(data)
    if storage == "file":
        head = struct.pack("<8sIIQI", b"LLVScch\n", 1, checksum(name.encode()), len(data), checksum(data))
        file.write_bytes(head + struct.pack("<I", checksum(head)) + data)
    else:
        with sqlite3.connect(path) as database:
            database.execute("UPDATE caches SET checksum = ?, data = ? WHERE name = ?", (checksum(data), data, name))
        database.close()
    return data


def pass_days(path: Path, storage: str, days: float) -> None:
    """Lets days pass for what a closed store noted of the past."""

    def older(data: bytes) -> bytes:
        lines = []
        for line in data.decode().splitlines():
            words = line.split(" ")
            if words[0] in ("seen", "thinned"):
                words[1] = str(int(words[1]) - int(days * DAY))
            lines.append(" ".join(words) + "\n")
        return "".join(lines).encode()

    cache(path, storage, "retention", older)
