"""The contact book of one device: what can be done with it, whoever shows it."""

from __future__ import annotations

import hashlib
import threading
import uuid
from contextlib import ExitStack
from typing import Any, Callable, Optional

import llvs

from models import BY_NAME, BY_TAG, WORDS, Contact, Group, Phone, Photo

#: Photos are no larger: the page makes them smaller before it sends them.
LARGEST_PHOTO = 4_000_000


class Refused(Exception):
    """What cannot be done. The text is a sentence for people."""


class Book:
    """One device's contacts, kept in step with the others'. Safe from all threads."""

    def __init__(self, path: str, shared: str, device: str, changed: Callable[[], None]) -> None:
        """path: of the store. shared: a folder that all devices reach, or a URL. changed: called when there is something to show."""
        self.device, self._changed = device, changed
        #: What exchanges brought or sent, the newest first.
        self.rounds: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        with ExitStack() as opened:
            self.notes = opened.enter_context(llvs.Coordinator(path, exchange=shared, device=device))
            self.people = self.notes.collection(Contact)
            self.groups = self.notes.collection(Group)
            self.photos = self.notes.collection(Photo)
            self.by_name = opened.enter_context(self.notes.index(definition=BY_NAME))
            self.by_tag = opened.enter_context(self.notes.index(definition=BY_TAG))
            opened.enter_context(self.notes.observe(lambda version: changed()))
            syncer = llvs.Syncer(self.notes, self._heard, after_save=0.5, after_saves=2, poll=10, longest_poll=60)
            self.syncer = opened.enter_context(syncer)
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Ends it. What was not sent yet is sent after the next start."""
        self._opened.close()

    # Changing

    def save(self, id: Optional[str], given: Contact, at: Optional[str], photo: Optional[bytes] = None) -> str:
        """Saves what a form says of a contact, or of a new one; returns its id.

        at: the version from which the form was filled in: what others changed since then stays.
        """
        if not given.name.strip():
            raise Refused("A contact needs a name.")
        key, group = id or uuid.uuid4().hex[:12], uuid.uuid4().hex
        if photo is not None:
            given.photo = self._keep(photo, group)
        if id is None:
            self.people.save({key: given}, description=f"Add {given.name}", group=group)
            return key
        past = self.people.at(at or self.notes.current_version).get(key)
        if past is None:
            raise Refused("This contact was not there yet when the form was opened.")
        if photo is None and given.photo is not None:
            given.photo = past.photo
        changed = [word for name, word in WORDS.items() if getattr(past, name) != getattr(given, name)]
        with self.people.edit(key, at=at, description=f"Change the {_listed(changed)} of {past.name}", group=group) as contact:
            for name in WORDS:
                setattr(contact, name, getattr(given, name))
        return key

    def _keep(self, photo: bytes, group: str) -> str:
        if not type_of(photo) or len(photo) > LARGEST_PHOTO:
            raise Refused("A photo is a PNG, JPEG, GIF or WebP of at most 4 MB.")
        id = hashlib.sha256(photo).hexdigest()[:32]
        if id not in self.photos:
            # Of the same group as the save of the contact, so that one undo takes back both.
            self.photos.save({id: Photo(photo)}, group=group, description="Add a photo")
        return id

    def remove(self, id: str) -> None:
        """Removes a contact. It can be restored from its history."""
        found = self.people.get(id)
        self.people.save(remove=[id], description=f"Delete {found.name if found else 'a contact'}")

    def restore(self, id: str, version: str) -> None:
        """Makes a contact what it was at a version."""
        past = self.people.at(version).get(id)
        if past is None:
            raise Refused("The contact was not there at that time.")
        self.people.save({id: past}, description=f"Restore {past.name}")

    def save_group(self, id: Optional[str], name: str) -> str:
        """Names a group, or makes one."""
        if not name.strip():
            raise Refused("A group needs a name.")
        key = id or uuid.uuid4().hex[:12]
        with self.groups.edit(key, default=Group(), description=f"{'Rename' if id else 'Add'} the group {name}") as group:
            group.name = name
        return key

    def remove_group(self, id: str) -> None:
        """Removes a group, not its members."""
        found = self.groups.get(id)
        self.groups.save(remove=[id], description=f"Delete the group {found.name if found else ''}".strip())

    def set_member(self, group: str, contact: str, is_member: bool) -> None:
        """Puts a contact into a group, or takes it out."""
        name, into = self.people[contact].name, self.groups[group].name
        about = f"Add {name} to {into}" if is_member else f"Take {name} out of {into}"
        with self.groups.edit(group, description=about) as found:
            (found.members.add if is_member else found.members.discard)(contact)

    def undo(self, again: bool = False) -> str:
        """Takes back what this device did last, or does it again; returns what to tell."""
        word = "redo" if again else "undo"
        done = self.notes.redo() if again else self.notes.undo()
        if done is None:
            raise Refused(f"There is nothing to {word}.")
        about = done.description or "the last change"
        if done.version is None:
            return f"Nothing of it is left: {about} was changed again since."
        return f"Done again: {about}." if again else f"Taken back: {about}."

    def choose(self, id: str, version: str, mark: str, choice: llvs.Choice) -> None:
        """Decides the conflict with a mark: "newer", "older", or "result" for what stands."""
        for conflict in self.people.open_conflicts().get(id, ()):
            if conflict.version == version and mark_of(conflict) == mark:
                try:
                    self.notes.choose(conflict, choice)
                except llvs.MovedError:
                    raise Refused("Somebody changed this meanwhile, so there is nothing left to decide.") from None
                return
        raise Refused("This was decided already, perhaps on another device.")

    # In step

    @property
    def is_online(self) -> bool:
        """Whether the device may talk to others."""
        return not self.syncer.conditions & llvs.SyncConditions.OFFLINE

    def set_online(self, is_online: bool) -> None:
        """The switch."""
        if is_online:
            self.syncer.conditions &= ~llvs.SyncConditions.OFFLINE
            self.syncer.came_to_front()
        else:
            self.syncer.conditions |= llvs.SyncConditions.OFFLINE
        self._changed()

    def _heard(self, event: llvs.SyncEvent) -> None:
        done = event.round
        if done is not None:
            results = [result for result in (done.before, done.after) if result is not None]
            came, went = (sum(len(getattr(result, name)) for result in results) for name in ("retrieved", "sent"))
            if came or went or done.moved:
                names = self._names_between(done.from_version, done.to_version) if done.moved else []
                told = {"time": event.status.last_success, "came": came, "went": went, "merged": done.merged, "changed": names}
                with self._lock:
                    self.rounds = [told, *self.rounds[:19]]
        self._changed()

    def _names_between(self, before: str, after: str) -> list[str]:
        """Whose contacts a round changed."""
        found = []
        for change in self.notes.store.diff(before, after, prefix=self.people.prefix, with_data=False):
            at = before if change.kind is llvs.ChangeKind.REMOVE else after
            try:
                found.append(self.people.at(at)[change.id.removeprefix(self.people.prefix)].name)
            except llvs.DecodeError:
                continue
        return found


def type_of(photo: bytes) -> Optional[str]:
    """The type of a picture that browsers show and that holds no scripts; None for all else."""
    for start, kind in ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF87a", "gif"), (b"GIF89a", "gif")):
        if photo.startswith(start):
            return f"image/{kind}"
    return "image/webp" if photo[:4] == b"RIFF" and photo[8:12] == b"WEBP" else None


def mark_of(conflict: llvs.ObjectConflict) -> str:
    """What tells a conflict from the others of a contact: several in one text have the same path."""
    return hashlib.sha256(repr(conflict.record).encode()).hexdigest()


def phones_of(given: list[Any]) -> list[Phone]:
    """The phones of a form: what is empty is left out, what is new gets an id."""
    found = [
        Phone(str(one.get("id") or uuid.uuid4().hex[:8]), str(one.get("label", "")), str(one.get("number", "")).strip()) for one in given
    ]
    return [phone for phone in found if phone.number]


def _listed(words: list[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else (words[0] if words else "card")
