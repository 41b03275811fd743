"""The contact book of one device: everything that a user can do with it, independent of the page."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from contextlib import ExitStack
from datetime import datetime
from itertools import islice
from typing import Any, Callable, Optional

import llvs

from models import BY_NAME, BY_TAG, CONTACTS, WORDS, Contact, Group, Phone, Photo

#: The largest photo, in bytes. The page scales photos down before it sends them.
LARGEST_PHOTO = 4_000_000
#: Exceptions from reading a value that another program wrote.
NOT_OURS = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


class Refused(Exception):
    """Raised for an action that is not possible. The text is a sentence for people."""

    def __init__(self, message: str, confirm: Optional[str] = None) -> None:
        """confirm: the value of `confirmed` with which the request can be repeated to do it nevertheless."""
        super().__init__(message)
        self.confirm = confirm


#: The value of `confirmed` in a save that may bring back a deleted contact.
BRING_BACK = "bring-back"
#: The prefixes of the ids of a book's values.
BOOK = (CONTACTS, "group/", "photo/")
#: The largest number of versions that the slider of the book shows.
MOMENTS = 500
#: The prefix of the ids of decisions in the store. A decision's value exists until the decision is undone.
DECISIONS = "decision/"


class Book:
    """The contacts of one device, synced with the other devices. Safe from all threads."""

    def __init__(self, path: str, shared: str, device: str, changed: Callable[[], None]) -> None:
        """path: of the store. shared: a folder that all devices reach, or a URL. changed: called when the page has to be updated."""
        self.device, self._changed = device, changed
        #: What syncs received and sent, the newest first.
        self.rounds: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        #: The versions whose changes were read, and the ids that they removed.
        self._read: set[str] = set()
        self._removed: set[str] = set()
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
        """Closes the book. Versions that were not sent yet are sent after the next start."""
        self._opened.close()

    # Changing

    def save(
        self, id: Optional[str], given: Contact, at: Optional[str], photo: Optional[bytes] = None, confirmed: Optional[str] = None
    ) -> str:
        """Saves the form of a contact, or of a new one; returns its id.

        at: the version with which the form was filled in: later changes of other devices stay. confirmed: `BRING_BACK` if a contact that
        was deleted since may be restored. Raises Refused.
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
        if key not in self.people and confirmed != BRING_BACK:
            raise Refused(f"{past.name} was deleted while this form was open.", BRING_BACK)
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
            # In the same group as the save of the contact, so that one undo reverts both.
            self.photos.save({id: Photo(photo)}, group=group, description="Add a photo")
        return id

    def remove(self, id: str) -> None:
        """Removes a contact. It can be restored from its history."""
        try:
            found = self.people.get(id)
        except llvs.models.DecodeError:
            found = None
        self.people.save(remove=[id], description=f"Delete {found.name if found else 'a contact'}")

    def restore(self, id: str, version: str) -> None:
        """Restores a contact as it was at a version."""
        past = self.people.at(version).get(id)
        if past is None:
            raise Refused("The contact was not there at that time.")
        named: dict[str, Any] = {"description": f"Restore {past.name}", "group": uuid.uuid4().hex}
        try:
            self.people.save({id: past}, **named)
        except llvs.models.DecodeError:
            # A collection does not overwrite a value that it cannot read, unless that is removed first.
            self.people.save(remove=[id], **named)
            self.people.save({id: past}, **named)

    def removed(self, prefix: str) -> list[str]:
        """Returns the ids of values that were removed and are absent now, without the prefix. Reads each version once."""
        store, at = self.notes.store, self.notes.current_version.id
        with self._lock:
            left = store.statistics().versions - len(self._read)
            for version in store.history():
                if left <= 0:
                    break
                if version.id not in self._read:
                    left -= 1
                    self._read.add(version.id)
                    self._removed |= {one.id for one in store.changes(version, with_data=False) if one.kind is llvs.store.ChangeKind.REMOVE}
            found = sorted(id for id in self._removed if id.startswith(prefix))
        return [id.removeprefix(prefix) for id in found if store.reference(id, at=at) is None]

    def undelete(self, id: str) -> str:
        """Restores a deleted contact as it was last; returns its name."""
        if id in self.people:
            raise Refused("This contact is there already.")
        last = next((one for one in self.people.history(id) if one.object is not None), None)
        if last is None or last.object is None:
            raise Refused("There is no such contact.")
        self.restore(id, last.version.id)
        return last.object.name

    def save_group(self, id: Optional[str], name: str) -> str:
        """Renames a group, or makes one."""
        name = name.strip()
        if not name:
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
        """Adds a contact to a group, or removes it from there."""
        name, into = self.people[contact].name, self.groups[group].name
        about = f"Add {name} to {into}" if is_member else f"Take {name} out of {into}"
        with self.groups.edit(group, description=about) as found:
            (found.members.add if is_member else found.members.discard)(contact)

    def undo(self, again: bool = False) -> str:
        """Reverts what this device did last, or redoes it; returns the message for the user."""
        word = "redo" if again else "undo"
        done = self.notes.redo() if again else self.notes.undo()
        if done is None:
            raise Refused(f"There is nothing to {word}.")
        about = done.description or "the last change"
        if done.version is None:
            return f"There is nothing to {word} of this: {about}. It was changed again since."
        return f"Done again: {about}." if again else f"Taken back: {about}."

    def next_undo(self, again: bool = False) -> Optional[str]:
        """Returns what `undo` would revert, in words that can follow "Undo"; None if there is nothing."""
        next = self.notes.next_redo() if again else self.notes.next_undo()
        if next is None:
            return None
        about = next.description or "the last change"
        return about if any(self._stands(version) for version in next.versions) else f"what is left of: {about}"

    def _stands(self, version: str) -> bool:
        """Returns whether a change of a version still prevails, so that an undo of the version has something to revert."""
        store, now = self.notes.store, self.notes.current_version.id
        before = store[version].predecessors[:1]
        for change in store.changes(version, with_data=False):
            was, made, found = (
                _members(store.at(at).get(change.id) if at else None) for at in (*(before or [None]), version, now)
            )
            if any(made.get(name) != was.get(name) and found.get(name) == made.get(name) for name in {*made, *was}):
                return True
        return False

    def photo(self, id: str) -> bytes:
        """Returns a photo, also one that only older versions have. Raises KeyError."""
        found = self.photos.get(id) or next((one.object for one in self.photos.history(id) if one.object is not None), None)
        if found is None:
            raise KeyError(id)
        return found.data

    # The book at another time

    def moments(self) -> list[llvs.Version]:
        """Returns the newest `MOMENTS` versions of the book, the oldest of them first."""
        return list(islice(self.notes.store.history(self.notes.current_version), MOMENTS))[::-1]

    def restore_all(self, version: str) -> None:
        """Restores the whole book as it was at a version. One undo reverts that."""
        store, now = self.notes.store, self.notes.current_version
        differ = (change for prefix in BOOK for change in store.diff(now, version, prefix=prefix))
        # A value that was restored before differs only in the version that stored it.
        changes = [change for change in differ if change.data is None or change.data != store.at(now).get(change.id)]
        if not changes:
            raise Refused("The book is already as it was then.")
        update = {change.id: change.data for change in changes if change.data is not None}
        remove = [change.id for change in changes if change.data is None]
        try:
            then = f"the book of {datetime.fromtimestamp(store[version].made_at):%d %B %Y, %H:%M}"
        except (OverflowError, ValueError, OSError):
            then = "an earlier book"  # another device may write any time
        try:
            self.notes.save(update=update, remove=remove, expected=now, description=f"Restore {then}")
        except llvs.MovedError:
            raise Refused("The book was changed meanwhile: press Restore again.") from None

    def conflicts(self) -> dict[str, list[llvs.models.ObjectConflict]]:
        """Returns the open conflicts by contact, and also those whose decision was undone."""
        found = {id: list(records) for id, records in self.people.open_conflicts().items()}
        for name in self.removed(DECISIONS):
            conflict = self._undone(name)
            if conflict is not None and mark_of(conflict) not in map(mark_of, found.get(conflict.id, ())):
                found.setdefault(conflict.id, []).append(conflict)
        for records in found.values():
            records.sort(key=lambda one: (one.version, repr(one.path)))
        return found

    def _undone(self, name: str) -> Optional[llvs.models.ObjectConflict]:
        """Returns the conflict of a decision that was undone; None if its place in the value has changed since."""
        store, id = self.notes.store, DECISIONS + name
        for version, kind in store.value_history(id):
            if kind is llvs.store.ChangeKind.REMOVE:
                continue
            try:
                told = json.loads(store.at(version)[id])
                merge, contact = str(told["merge"]), str(told["contact"])
                records = store.explain(merge, id=self.people.prefix + contact).records
            except (*NOT_OURS, llvs.Error):
                return None
            record = next((one for one in records if _name_of(one._replace(version=merge)) == name), None)
            if record is None:
                return None
            try:
                store.choices(record._replace(version=merge), "result", at=self.notes.current_version)
            except llvs.Error:
                return None
            return self.people.conflict(record._replace(version=merge))
        return None

    def choose(self, id: str, version: str, marks: list[str], choice: llvs.words.Choice) -> None:
        """Decides the conflicts with these marks: "newer", "older", or "result" for the merge's result. One undo reverts the decision."""
        group, name = uuid.uuid4().hex, self._name(id)
        for mark in marks:
            conflict = next((one for one in self.conflicts().get(id, ()) if one.version == version and mark_of(one) == mark), None)
            if conflict is None:
                raise Refused("This was decided already, perhaps on another device.")
            member = str(conflict.path[0]) if conflict.path else ""
            what = "phone" if member == "phones" and len(conflict.path) > 1 else WORDS.get(member, member)
            about = f"Decide the {what} of {name}" if what else f"Decide whether to delete {name}"
            self._decide(conflict, choice, description=about, group=group)

    def _decide(self, conflict: llvs.models.ObjectConflict, choice: llvs.words.Choice, **about: Any) -> None:
        decision = {"merge": conflict.version, "contact": conflict.id, "choice": choice}
        while True:
            at = self.notes.current_version
            try:
                changes = self.notes.store.choices(conflict, choice, at=at)
            except llvs.MovedError:
                raise Refused("Somebody changed this meanwhile, so there is nothing left to decide.") from None
            # Saved with the choice: an undo removes this value, and then the conflict is open again.
            update = {DECISIONS + _name_of(conflict.record): json.dumps(decision).encode()}
            try:
                self.notes.save(update=update, changes=changes, expected=at, **about)
                return
            except llvs.MovedError:
                continue

    def _name(self, id: str) -> str:
        past = (one.object.name for one in self.people.history(id) if one.object is not None)
        return next(past, "a contact")

    # Syncing

    @property
    def is_online(self) -> bool:
        """Whether the device may connect to other devices."""
        return not self.syncer.conditions & llvs.syncer.SyncConditions.OFFLINE

    def set_online(self, is_online: bool) -> None:
        """Sets whether it may."""
        if is_online:
            self.syncer.conditions &= ~llvs.syncer.SyncConditions.OFFLINE
            self.syncer.came_to_front()
        else:
            self.syncer.conditions |= llvs.syncer.SyncConditions.OFFLINE
        self._changed()

    def _heard(self, event: llvs.syncer.SyncEvent) -> None:
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
        """Returns the names of the contacts that a sync changed."""
        found = []
        for change in self.notes.store.diff(before, after, prefix=self.people.prefix, with_data=False):
            at = before if change.kind is llvs.store.ChangeKind.REMOVE else after
            try:
                found.append(self.people.at(at)[change.id.removeprefix(self.people.prefix)].name)
            except llvs.models.DecodeError:
                continue
        return found


def _members(data: Optional[bytes]) -> dict[str, Any]:
    """Returns the members of a JSON object; for any other value one member that is the value."""
    try:
        found = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        found = data
    return found if isinstance(found, dict) else {"": found}


def type_of(photo: bytes) -> Optional[str]:
    """Returns the type of a picture that browsers show and that cannot contain scripts; None for other data."""
    for start, kind in ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF87a", "gif"), (b"GIF89a", "gif")):
        if photo.startswith(start):
            return f"image/{kind}"
    return "image/webp" if photo[:4] == b"RIFF" and photo[8:12] == b"WEBP" else None


def mark_of(conflict: llvs.models.ObjectConflict) -> str:
    """Returns a text that identifies a conflict of a contact, since several conflicts in one text have the same path."""
    return _name_of(conflict.record)


def _name_of(record: llvs.merge.Conflict) -> str:
    return hashlib.sha256(repr(record).encode("utf-8", "surrogatepass")).hexdigest()


def phones_of(given: list[Any]) -> list[Phone]:
    """Returns the phones of a form: empty ones are left out, and new ones get an id."""
    found = [
        Phone(str(one.get("id") or uuid.uuid4().hex[:8]), str(one.get("label", "")), str(one.get("number", "")).strip()) for one in given
    ]
    return [phone for phone in found if phone.number]


def _listed(words: list[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else (words[0] if words else "card")
