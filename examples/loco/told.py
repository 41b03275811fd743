"""The data that the page shows, as JSON."""

from __future__ import annotations

import unicodedata
from typing import Any, Mapping, Optional, Sequence
from urllib.parse import urlsplit
from urllib.request import url2pathname

import llvs
from llvs.tools.differing import sentence, words

from book import Book, mark_of
from models import CONTACTS, WORDS, Contact, Phone

#: Why a merge had to decide, in a sentence.
_WHY = {
    llvs.merge.ConflictKind.PICK: "Both devices changed the {what} while they were apart.",
    llvs.merge.ConflictKind.DELETE_EDIT: "One device deleted this while the other one changed it.",
    llvs.merge.ConflictKind.OVERLAP: "Both devices rewrote the same words of the {what}.",
}
#: The prefix of the ids of the library's own values: rules and indexes.
LIBRARY = "__llvs_"
_ELSE = "The two devices disagree about the {what}."


def book(book: Book, wanted: str, group: str, tag: str, then: Optional[str] = None) -> dict[str, Any]:
    """Returns the contacts that match, and the data around the list. then: the version to show; the current one unless given."""
    at = then or book.notes.current_version.id
    people, unreadable = book.people.at(at).read_all()
    groups, _ = book.groups.at(at).read_all()
    conflicts = {} if then else book.conflicts()
    place = {_id(found): number for number, found in enumerate(book.by_name.find(at=at))}
    tagged: dict[str, set[str]] = {}
    for entry in book.by_tag.find(at=at).entries():
        if _id(entry.id) in people:
            tagged.setdefault(str(entry.key[0]), set()).add(_id(entry.id))
    members = groups[group].members if group in groups else None
    sought = folded(wanted).split()
    shown = [
        (id, contact) for id, contact in people.items()
        if (not group or (members is not None and id in members)) and (not tag or id in tagged.get(tag, ())) and _has(contact, sought)
    ]
    return {
        "device": book.device, "at": at, "count": len(people), "unreadable": sorted(unreadable),
        "deleted": 0 if then else len(_deleted(book, people)),
        "contacts": [
            {"id": id, "name": contact.name, "about": _about(contact), "photo": contact.photo,
             "conflicts": len(_questions(conflicts.get(id, ())))}
            for id, contact in sorted(shown, key=lambda one: place.get(one[0], -1))
        ],
        "groups": [
            {"id": id, "name": one.name, "count": len(one.members & people.keys())}
            for id, one in sorted(groups.items(), key=lambda one: (one[1].name.casefold(), one[0]))
        ],
        "tags": [{"name": name, "count": len(tagged[name])} for name in sorted(tagged, key=str.casefold)],
        "conflicts": sum(len(_questions(records)) for records in conflicts.values()),
        "undo": book.next_undo(),
        "redo": book.next_undo(again=True),
        "light": light(book),
    }


def _id(value_id: str) -> str:
    """Returns the id of a contact from the id of its value."""
    return value_id.removeprefix(CONTACTS)


def _about(contact: Contact) -> str:
    return contact.company or contact.town or (contact.phones[0].number if contact.phones else contact.email)


def _has(contact: Contact, sought: list[str]) -> bool:
    """Returns whether a contact contains all words."""
    parts = [contact.name, contact.company, contact.town, contact.email, contact.notes, *contact.tags]
    parts += [phone.number for phone in contact.phones] + [phone.number.replace(" ", "") for phone in contact.phones]
    text = folded("\n".join(parts))
    return all(word in text for word in sought)


def folded(text: str) -> str:
    """Returns a text in the form in which it is searched: without case and accents."""
    return "".join(one for one in unicodedata.normalize("NFKD", text).casefold() if not unicodedata.combining(one))


def _deleted(book: Book, people: Mapping[str, Contact]) -> list[str]:
    return [id for id in book.removed(CONTACTS) if id not in people]


def deleted(book: Book) -> list[dict[str, Any]]:
    """Returns the deleted contacts as they were last, with who deleted them and when; the last deleted one is first."""
    found = []
    for id in _deleted(book, {}):
        past = list(book.people.history(id))
        last = next((one.object for one in past if one.object is not None), None)
        removal = next((one for one in past if one.object is None and one.problem is None), None)
        if last is not None and removal is not None:
            found.append({
                "id": id, "name": last.name, "about": _about(last), "photo": last.photo, "by": who(removal.version),
                "time": removal.version.timestamp,
            })
    return sorted(found, key=lambda one: -one["time"])


def card(contact: Contact) -> dict[str, Any]:
    """Returns all members of a contact."""
    return {
        **{name: getattr(contact, name) for name in ("name", "company", "town", "email", "notes", "photo")},
        "phones": [{"id": phone.id, "label": phone.label, "number": phone.number} for phone in contact.phones],
        "tags": sorted(contact.tags, key=str.casefold),
    }


def contact(book: Book, id: str, then: Optional[str] = None) -> dict[str, Any]:
    """Returns one contact with its groups and conflicts. `card` is None if it was deleted or cannot be read.

    then: the version to show; the current one unless given.
    `problem` is None unless the contact cannot be read; then it is the reason, for a programmer.
    """
    at = then or book.notes.current_version.id
    found, problem = None, None
    try:
        found = book.people.at(at).get(id)
    except llvs.models.DecodeError as raised:
        problem = str(raised)
    groups, _ = book.groups.at(at).read_all()
    return {
        "id": id, "at": at, "isPast": then is not None, "card": None if found is None else card(found), "problem": problem,
        "groups": [
            {"id": group, "name": one.name, "isMember": id in one.members}
            for group, one in sorted(groups.items(), key=lambda one: one[1].name.casefold())
        ],
        "conflicts": [] if then else [conflict(book, one) for one in _questions(book.conflicts().get(id, ()))],
    }


def moments(book: Book) -> list[dict[str, Any]]:
    """Returns the versions of the book, the oldest first: when, by whom, and what they did."""
    return [{"version": one.id, "time": one.made_at, "by": by(book.notes.store, one), "what": what(book.notes.store, one)}
            for one in book.moments()]


def by(store: llvs.Store, version: llvs.Version) -> str:
    """Returns the device that made a version; both devices for a merge."""
    if len(version.predecessors) < 2:
        return who(version)
    return " and ".join(sorted({who(store[before]) for before in version.predecessors}))


def what(store: llvs.Store, version: llvs.Version, kind: Optional[llvs.store.ChangeKind] = None) -> str:
    """Returns what a version did. kind: what it did to the contact in question."""
    if len(version.predecessors) == 2:
        return "Merged"
    if version.description:
        return version.description
    if not version.predecessors:
        return "The empty book"
    if kind is None and all(change.id.startswith(LIBRARY) for change in store.changes(version, with_data=False)):
        return "Set up the book"
    return (None if kind is None else _KINDS.get(kind)) or "Changed by another program"


def conflicts(book: Book) -> list[dict[str, Any]]:
    """Returns the open conflicts of all contacts."""
    people, unreadable = book.people.read_all()
    found = []
    for id, records in book.conflicts().items():
        gone = "A contact that cannot be read" if id in unreadable else "A contact that was deleted"
        name = people[id].name if id in people else gone
        found += [{"contact": id, "name": name, **conflict(book, one)} for one in _questions(records)]
    return found


_Question = Sequence[llvs.models.ObjectConflict]


def _questions(records: Sequence[llvs.models.ObjectConflict]) -> list[_Question]:
    """Groups conflicts into questions: a phone is one question, whether its number, its label or both are in conflict."""
    found: dict[Any, list[llvs.models.ObjectConflict]] = {}
    for one in records:
        is_phone = len(one.path) == 3 and one.path[0] == "phones" and one.kind is llvs.merge.ConflictKind.PICK
        found.setdefault((one.version, repr(one.path[:2])) if is_phone else (one.version, mark_of(one)), []).append(one)
    return list(found.values())


def conflict(book: Book, question: _Question) -> dict[str, Any]:
    """Returns a question for people: its subject, the content of each side with author and time, and which side prevails."""
    found, store = question[0], book.notes.store
    member = str(found.path[0]) if found.path else ""
    what = "phone" if member == "phones" and len(found.path) > 1 else WORDS.get(member, member) if member else "contact"
    sides = store.sides(found.record.id, *store[found.version].predecessors)
    newer, older = (_side(book, question, side.at, value) for side, value in zip(sides, (found.newer, found.older)))
    if found.kind is llvs.merge.ConflictKind.OVERLAP and isinstance(newer["value"], str) and isinstance(older["value"], str):
        pieces = words(older["value"], newer["value"])
        older["words"] = [piece for piece in pieces if piece[0] != "+"]
        newer["words"] = [piece for piece in pieces if piece[0] != "-"]
    if not found.path:
        base = found.base if isinstance(found.base, Contact) else None
        for side in (newer, older):
            side["changed"] = _changed(base, side.pop("contact"))
    return {
        "version": found.version, "marks": [mark_of(one) for one in question], "path": list(found.path), "member": member, "what": what,
        "isDeletion": found.kind is llvs.merge.ConflictKind.DELETE_EDIT, "why": _WHY.get(found.kind, _ELSE).format(what=what),
        "sides": [
            {"side": name, **told, "by": who(side.by), "time": side.by.timestamp if side.by else None, "stands": value == found.result}
            for name, told, value, side in (("newer", newer, found.newer, sides.newer), ("older", older, found.older, sides.older))
        ],
        "result": None if found.result in (found.newer, found.older) else _value(found.result),
        "base": None if member == "photo" or not member or len(question) > 1 else _value(found.base),
    }


def _side(book: Book, question: _Question, at: str, value: Any) -> dict[str, Any]:
    """Returns the content of a side of a question: the whole part in question, and not only where it differs."""
    found, member = question[0], question[0].path[0] if question[0].path else None
    try:
        contact = book.people.at(at).get(found.id)
    except llvs.models.DecodeError:
        contact = None
    if member is None:
        return {"value": _value(value), "contact": contact if isinstance(value, Contact) else None}
    if member == "photo":
        return {"value": _value(value), "photo": value}
    if contact is not None and member == "phones" and len(found.path) == 3 and isinstance(found.path[1], dict):
        phone = next((one for one in contact.phones if one.id == found.path[1].get("key")), None)
        return {"value": _value(phone)}
    if contact is not None and found.kind is llvs.merge.ConflictKind.OVERLAP and isinstance(value, str):
        return {"value": sentence(str(getattr(contact, str(member), "")), value)}
    return {"value": _value(value)}


def _changed(base: Optional[Contact], now: Optional[Contact]) -> Optional[dict[str, Any]]:
    """Returns how an edit changed a contact that the other side deleted: the card, and the members that it changed."""
    if now is None:
        return None
    return {"card": card(now), "members": [name for name in WORDS if base is None or getattr(base, name) != getattr(now, name)]}


def _value(value: Any) -> Optional[str]:
    """Returns a value in words; None if it is absent."""
    if value is None:
        return None
    if isinstance(value, Phone):
        return f"{value.label}: {value.number}" if value.label else value.number or "something"
    if isinstance(value, Contact):
        return " · ".join(one for one in (value.name, value.town, ", ".join(sorted(value.tags))) if one) or "something"
    return ", ".join(sorted(map(str, value))) if isinstance(value, (list, set)) else str(value)


def who(version: Optional[llvs.Version]) -> str:
    """Returns the device that made a version."""
    return (version.device if version else None) or "another program"


#: What a version without a description did to a contact.
_KINDS = {llvs.store.ChangeKind.INSERT: "Added by another program", llvs.store.ChangeKind.REMOVE: "Deleted by another program"}


def history(book: Book, id: str) -> list[dict[str, Any]]:
    """Returns the history of a contact, newest first: when, by whom, the contact at that version, and what changed."""
    found, was = [], None
    for one in reversed(list(book.people.history(id))):
        found.append({
            "version": one.version.id, "time": one.version.timestamp,
            "by": by(book.notes.store, one.version), "what": what(book.notes.store, one.version, one.kind),
            "card": None if one.object is None else card(one.object), "isUnreadable": one.problem is not None,
            "changed": [name for name in WORDS if one.object and was and getattr(one.object, name) != getattr(was, name)],
        })
        was = one.object or was
    return found[::-1]


def _place(url: str) -> str:
    """Returns a place for people: the path of a folder, the URL of a server."""
    parts = urlsplit(url)
    return url2pathname(parts.path) if parts.scheme == "file" else url


def light(book: Book) -> dict[str, Any]:
    """Returns what was synced, and when."""
    status = book.syncer.status
    error = next((place.error for place in status.places if place.error is not None), None) or status.merge_error
    return {
        "isOnline": book.is_online, "state": status.state.name.lower(), "reason": status.reason.name.lower(),
        "last": status.last_success, "next": status.next_round, "error": None if error is None else str(error),
        "problems": [f"{problem.name}: {problem.reason}" for place in status.places for problem in place.problems][:20],
        "places": [_place(place.place) for place in status.places], "came": status.retrieved, "went": status.sent, "rounds": book.rounds,
    }
