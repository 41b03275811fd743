"""`llvs demo-store`: an example store with a month of work on four devices. It is the same wherever it is made, ids included.

A hiking club keeps its contacts, trips, notes and pictures. Each device saves on its own line of history. A device that is online first
merges what the others saved. The phone was offline twice, once in the hills and once at the end. Two cards are designed on branches: one
branch was merged, the other was not.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Iterator, Optional

import click

import llvs

from . import demo_pictures, demo_words as words, output
from .failures import STORE, Failure

#: The month begins at this time, in UTC.
BEGIN = datetime(2026, 10, 1, 6, tzinfo=timezone.utc).timestamp()
DAY = 86_400
DEVICES = {"laptop": "ada", "phone": "ben", "tablet": "eva", "office": "greta"}
#: Days on which a device is offline, and so saves on a line of its own.
AWAY = {"phone": (*range(8, 12), 29, 30, 31), "tablet": (17, 18, 19), "office": (4, 5)}


class _Numbers:
    """Pseudo-random numbers that are the same on every machine and in every version of Python."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._state >> 33) % limit

    def one(self, choices: Any) -> Any:
        return choices[self.below(len(choices))]


class _Month:
    """Writes the month into a store."""

    def __init__(self, store: llvs.Store) -> None:
        self.store, self.numbers = store, _Numbers(20261001)
        self.time = BEGIN
        metadata = {"author": "ada", "device": "laptop", "__llvs_device": "laptop", "__llvs_description": "Begin the club's book"}
        first = store.make_version(
            insert={"__llvs_schema": _json(words.SCHEMA), "note/welcome": b"Welcome to the club.\nEverybody may write here.\n"},
            metadata=metadata, timestamp=BEGIN,
        )
        #: The version of the devices that are online.
        self.shared = first
        self.lines = dict.fromkeys(DEVICES, first)
        self.was_away: set[str] = set()

    def save(
        self, device: str, said: str, *, branch: Optional[str] = None, on: Optional[llvs.Version] = None, **changes: Any
    ) -> llvs.Version:
        """Makes a version by a device, on its line or on a branch."""
        metadata = {"author": DEVICES[device], "device": device, "__llvs_device": device, "__llvs_description": said}
        before = on or self.lines[device]
        self.time = max(self.time, float(int(before.timestamp) + 7))
        made = self.store.make_version(before, metadata=metadata, timestamp=self.time, branch=branch, **changes)
        if branch is None:
            self.lines[device] = made
        return made

    def run(self) -> None:
        """Makes all days, one after another."""
        for day in range(1, 32):
            self._sync(day)
            for device in DEVICES:
                for _ in range(2 + self.numbers.below(3)):
                    # Devices write between about eight in the morning and eight in the evening.
                    self.time = max(self.time + 60 + self.numbers.below(3600), BEGIN + (day - 1) * DAY)
                    self._online(device, day)
                    self._something(device, day)
                    if day not in AWAY.get(device, ()):
                        self.shared = self.lines[device]
            self._special(day)

    def _sync(self, day: int) -> None:
        """A device that is online again merges what was saved on the two lines."""
        for device in DEVICES:
            if device in self.was_away and day not in AWAY[device]:
                self.was_away.discard(device)
                self.lines[device] = self.shared = self.store.merge(self.lines[device], self.shared)
            elif day in AWAY.get(device, ()):
                self.was_away.add(device)

    def _online(self, device: str, day: int) -> None:
        if day in AWAY.get(device, ()):
            return
        # Sometimes two devices save at the same time: the second one merges.
        if self.numbers.below(6) == 0 and self.lines[device] != self.shared:
            self._something(device, day)
            self.lines[device] = self.shared = self.store.merge(self.lines[device], self.shared)
        else:
            self.lines[device] = self.shared

    def _something(self, device: str, day: int) -> None:
        # The later in the month, the more often existing values are edited.
        kind = self.numbers.below(10)
        if kind < 4:
            self._contact(device)
        elif kind < 7:
            self._note(device)
        elif kind < 9:
            self._trip(device, day)
        else:
            self._picture(device)

    def _now(self, device: str, id: str) -> Optional[bytes]:
        return self.store.at(self.lines[device]).get(id)

    def _contact(self, device: str) -> None:
        name = self.numbers.one(words.NAMES)
        id = f"contact/{name.split()[0].lower()}"
        data = self._now(device, id)
        if data is None:
            town, tag = self.numbers.one(words.TOWNS), self.numbers.one(words.TAGS)
            phone = f"+41 79 {self.numbers.below(900) + 100} {self.numbers.below(90) + 10} {self.numbers.below(90) + 10}"
            made = {"name": name, "phone": phone, "town": town, "tags": [tag], "visits": 0}
            self.save(device, f"Add {name}", insert={id: _json(made)})
            return
        contact = json.loads(data)
        change = self.numbers.below(4)
        if change == 0:
            contact["visits"] += 1
            said = f"{name} came along"
        elif change == 1:
            contact["tags"] = sorted({*contact["tags"], self.numbers.one(words.TAGS)})
            said = f"Tags of {name}"
        elif change == 2:
            contact["phone"] = f"+41 79 {self.numbers.below(900) + 100} {self.numbers.below(90) + 10} {self.numbers.below(90) + 10}"
            said = f"New phone of {name}"
        else:
            contact["street"] = self.numbers.one(words.STREETS)
            contact["town"] = self.numbers.one(words.TOWNS)
            said = f"{name} moved"
        self.save(device, said, update={id: _json(contact)})

    def _note(self, device: str) -> None:
        paper = self.numbers.one(words.PAPERS)
        id = f"note/{paper}"
        data = self._now(device, id)
        lines = data.decode().splitlines() if data else []
        at = self.numbers.below(len(lines)) if lines else 0
        if lines and lines[at] in words.BETTER:
            lines[at] = words.BETTER[lines[at]]
        elif len(lines) > 7:
            del lines[at]
        else:
            lines.insert(at, self.numbers.one(words.LINES))
        self.save(device, f"Write in {paper}", update={id: ("\n".join(lines) + "\n").encode()})

    def _trip(self, device: str, day: int) -> None:
        place = self.numbers.one(words.PLACES)
        id = f"trip/{place.lower().replace(' ', '-')}"
        data = self._now(device, id)
        if data is None:
            made = {"place": place, "date": f"2026-10-{min(day + 3, 31):02d}", "guests": [DEVICES[device]], "done": False}
            self.save(device, f"Plan {place}", insert={id: _json(made)})
            return
        trip = json.loads(data)
        if self.numbers.below(3) == 0:
            trip["date"] = f"2026-10-{min(day + 1 + self.numbers.below(5), 31):02d}"
            said = f"Move {place} to {int(trip['date'][-2:])} October"
        else:
            trip["guests"] = sorted({*trip["guests"], self.numbers.one(words.NAMES).split()[0].lower()})
            said = f"Guests for {place}"
        self.save(device, said, update={id: _json(trip)})

    def _picture(self, device: str) -> None:
        number = self.numbers.below(6)
        is_evening = self.numbers.below(2) == 1
        data = demo_pictures.hills(number, is_evening=is_evening)
        self.save(device, "Picture in the evening" if is_evening else "Picture by day", update={f"picture/hills-{number}.png": data})

    def _special(self, day: int) -> None:
        """Makes the events that happen once in the month."""
        self.time += 600
        if day == 13:
            # A card on a branch, which is merged two days later.
            card = self.save("laptop", "Begin the card", branch="card", on=self.shared, insert={"note/card": b"Dear friends,\n"})
            self.time += 900
            self.card = self.save(
                "laptop", "Finish the card", branch="card", on=card, update={"note/card": b"Dear friends,\nthe hut is open again.\n"}
            )
        elif day == 15:
            self.lines["laptop"] = self.shared = self.store.merge(self.shared, self.card)
        elif day == 21:
            # A mistake, and its undo.
            gone = [id for id in self.store.at(self.shared).prefix("trip/")]
            mistake = self.save("office", "Clean up", on=self.shared, remove=gone)
            self.time += 300
            took_back = {"author": "greta", "device": "office", "__llvs_device": "office", "__llvs_description": "Undo: clean up"}
            state = self.store.at(mistake.predecessors[0])
            back = self.store.make_version(mistake, insert={id: state[id] for id in gone}, metadata=took_back, timestamp=self.time)
            self.lines["office"] = self.shared = back
        elif day == 26:
            poster = {"title": "Winter", "colours": ["white", "blue"], "size": {"width": 420, "height": 594}}
            self.poster = self.save("tablet", "Try a poster", branch="poster", on=self.shared, insert={"note/poster": _json(poster)})
        elif day == 28:
            poster = {"title": "Winter days", "colours": ["white", "blue", "orange"], "size": {"width": 420, "height": 594}}
            self.save("tablet", "Another title", branch="poster", on=self.poster, update={"note/poster": _json(poster)})
        elif day == 31:
            # Two devices on separate lines change the same values: the merge has conflicts.
            for device, ada_town, greta_street, greta_town, hour in (
                ("phone", "Annecy", "Church Square 1", "Innsbruck", "eight"), ("laptop", "Bern", "Garden Way 22", "Aosta", "nine"),
            ):  # fmt: skip
                state = self.store.at(self.lines[device])
                ada, greta = (json.loads(state[id]) for id in ("contact/ada", "contact/greta"))
                ada["town"], greta["street"], greta["town"] = ada_town, greta_street, greta_town
                changes = {
                    "contact/ada": _json(ada), "contact/greta": _json(greta), "note/plan": f"Meet at {hour}.\nBring the map.\n".encode(),
                }  # fmt: skip
                if device == "laptop":
                    self.lines[device] = self.shared
                self.time += 300
                self.save(device, f"Ada moved to {ada_town}", update=changes)
            self.shared = self.lines["laptop"]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def make_demo_store(path: Path, storage: llvs.words.StorageKind = "file") -> llvs.Version:
    """Makes the store at a path that does not exist yet, and returns its current version."""
    with llvs.Store(path, storage=storage, durability="normal") as store:
        month = _Month(store)
        month.run()
    with llvs.Coordinator(path, storage=storage, device="laptop") as coordinator:
        coordinator.current_version = month.shared
    return month.shared


def _versions(path: Path, storage: llvs.words.StorageKind) -> Iterator[llvs.Version]:
    with llvs.Store(path, storage=storage, read_only=True) as store:
        yield from store.history()


@click.command("demo-store")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--storage", type=click.Choice(["file", "sqlite"]), default="file", show_default=True, help="A folder, or one database file.")
def demo_store_command(path: Path, storage: llvs.words.StorageKind) -> None:
    """Make an example store at PATH: a month of four devices, with branches, merges, conflicts and pictures.

    It is the same each time, ids included.
    """
    if path.exists() or path.is_symlink():
        raise Failure(f"there is something at {path} already: nothing was changed; name another place", STORE)
    make_demo_store(path, storage)
    count = sum(1 for _ in _versions(path, storage))
    output.show([f"made a store with {output.counted(count, 'version')} at {path}"])
