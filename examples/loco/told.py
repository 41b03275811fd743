"""What the page gets to show, as JSON."""

from __future__ import annotations

from typing import Any, Optional

import llvs

from book import Book, mark_of
from models import CONTACTS, WORDS, Contact, Phone

#: Why a merge had to decide, in words.
_WHY = {
    llvs.ConflictKind.PICK: "Both devices changed the {what} while they were apart. One had to stand.",
    llvs.ConflictKind.DELETE_EDIT: "One device deleted what the other one changed. The change stands.",
    llvs.ConflictKind.OVERLAP: "Both devices rewrote the same words of the {what}. One had to stand.",
}
_ELSE = "The two devices disagree about the {what}. One had to stand."


def book(book: Book, wanted: str, group: str, tag: str) -> dict[str, Any]:
    """The list of contacts that are wanted, and all that is around it."""
    at = book.notes.current_version.id
    people, unreadable = book.people.at(at).read_all()
    groups, _ = book.groups.at(at).read_all()
    conflicts = book.people.open_conflicts()
    place = {_id(found): number for number, found in enumerate(book.by_name.find(at=at))}
    tagged: dict[str, set[str]] = {}
    for entry in book.by_tag.find(at=at).entries():
        if _id(entry.id) in people:
            tagged.setdefault(str(entry.key[0]), set()).add(_id(entry.id))
    members = groups[group].members if group in groups else None
    words = wanted.casefold().split()
    shown = [
        (id, contact) for id, contact in people.items()
        if (not group or (members is not None and id in members)) and (not tag or id in tagged.get(tag, ())) and _has(contact, words)
    ]
    return {
        "device": book.device, "at": at, "count": len(people), "unreadable": len(unreadable),
        "contacts": [
            {"id": id, "name": contact.name, "about": _about(contact), "photo": contact.photo, "conflicts": len(conflicts.get(id, ()))}
            for id, contact in sorted(shown, key=lambda one: place.get(one[0], -1))
        ],
        "groups": [
            {"id": id, "name": one.name, "count": len(one.members & people.keys())}
            for id, one in sorted(groups.items(), key=lambda one: (one[1].name.casefold(), one[0]))
        ],
        "tags": [{"name": name, "count": len(tagged[name])} for name in sorted(tagged, key=str.casefold)],
        "conflicts": sum(map(len, conflicts.values())),
        "undo": _undo(book.notes.can_undo, book.notes.undo_description),
        "redo": _undo(book.notes.can_redo, book.notes.redo_description),
        "light": light(book),
    }


def _id(value_id: str) -> str:
    """The id of a contact, of that of its value."""
    return value_id.removeprefix(CONTACTS)


def _undo(is_there: bool, description: Optional[str]) -> Optional[str]:
    return (description or "the last change") if is_there else None


def _about(contact: Contact) -> str:
    return contact.company or contact.town or (contact.phones[0].number if contact.phones else contact.email)


def _has(contact: Contact, words: list[str]) -> bool:
    """Whether all words are somewhere in a contact."""
    parts = [contact.name, contact.company, contact.town, contact.email, contact.notes, *contact.tags]
    parts += [phone.number for phone in contact.phones] + [phone.number.replace(" ", "") for phone in contact.phones]
    text = "\n".join(parts).casefold()
    return all(word in text for word in words)


def card(contact: Contact) -> dict[str, Any]:
    """All that a contact says."""
    return {
        **{name: getattr(contact, name) for name in ("name", "company", "town", "email", "notes", "photo")},
        "phones": [{"id": phone.id, "label": phone.label, "number": phone.number} for phone in contact.phones],
        "tags": sorted(contact.tags, key=str.casefold),
    }


def contact(book: Book, id: str) -> dict[str, Any]:
    """One contact as it is now, with its groups and what merges had to decide. `card` is None where it was deleted."""
    at = book.notes.current_version.id
    try:
        found, problem = book.people.at(at).get(id), None
    except llvs.DecodeError as raised:
        found, problem = None, str(raised)
    groups, _ = book.groups.read_all()
    conflicts = book.people.open_conflicts().get(id, ())
    return {
        "id": id, "at": at, "card": None if found is None else card(found), "problem": problem,
        "groups": [
            {"id": group, "name": one.name, "isMember": id in one.members}
            for group, one in sorted(groups.items(), key=lambda one: one[1].name.casefold())
        ],
        "conflicts": [conflict(book, one) for one in conflicts],
    }


def conflicts(book: Book) -> list[dict[str, Any]]:
    """What merges had to decide, and nobody has looked at since."""
    people, _ = book.people.read_all()
    found = []
    for id, records in book.people.open_conflicts().items():
        name = people[id].name if id in people else "A contact that was deleted"
        found += [{"contact": id, "name": name, **conflict(book, one)} for one in records]
    return found


def conflict(book: Book, found: llvs.ObjectConflict) -> dict[str, Any]:
    """A conflict in words: what is at stake, what each side has, who wrote it and when, and which stands."""
    store = book.notes.store
    what = WORDS.get(str(found.path[0]), str(found.path[0])) if found.path else "contact"
    newer, older = store.sides(found.record.id, *store[found.version].predecessors)
    return {
        "version": found.version, "mark": mark_of(found), "path": list(found.path), "what": what,
        "why": _WHY.get(found.kind, _ELSE).format(what=what),
        "sides": [
            {"side": name, "value": _value(value), "by": who(side.by), "time": side.by.timestamp if side.by else None,
             "stands": value == found.result}
            for name, value, side in (("newer", found.newer, newer), ("older", found.older, older))
        ],
        "result": None if found.result in (found.newer, found.older) else _value(found.result),
        "base": _value(found.base),
    }


def _value(value: Any) -> Optional[str]:
    """What a side has, in words; None where it has nothing."""
    if value is None:
        return None
    if isinstance(value, Phone):
        return value.number or "something"
    if isinstance(value, Contact):
        return " · ".join(one for one in (value.name, value.town, ", ".join(sorted(value.tags))) if one) or "something"
    return ", ".join(sorted(map(str, value))) if isinstance(value, (list, set)) else str(value)


def who(version: Optional[llvs.Version]) -> str:
    """The device that made a version."""
    return (version.device if version else None) or "another program"


def history(book: Book, id: str) -> list[dict[str, Any]]:
    """What became of a contact, newest first: when, by whom, what it was then, and what changed."""
    store, past = book.notes.store, list(book.people.history(id))
    found = []
    for number, one in enumerate(past):
        was = next((older.object for older in past[number + 1 :] if older.object is not None), None)
        is_merge = len(one.version.predecessors) == 2
        devices = sorted({who(store[before]) for before in one.version.predecessors}) if is_merge else [who(one.version)]
        found.append({
            "version": one.version.id, "time": one.version.timestamp, "by": " and ".join(devices),
            "what": "Merged" if is_merge else one.version.description or str(one.kind),
            "card": None if one.object is None else card(one.object),
            "changed": [name for name in WORDS if one.object and was and getattr(one.object, name) != getattr(was, name)],
        })
    return found


def light(book: Book) -> dict[str, Any]:
    """What was synced, and when."""
    status = book.syncer.status
    error = next((place.error for place in status.places if place.error is not None), None) or status.merge_error
    return {
        "isOnline": book.is_online, "state": status.state.name.lower(), "reason": status.reason.name.lower(),
        "last": status.last_success, "next": status.next_round, "error": None if error is None else str(error),
        "problems": [f"{problem.name}: {problem.reason}" for place in status.places for problem in place.problems][:20],
        "places": [place.place for place in status.places], "came": status.retrieved, "went": status.sent, "rounds": book.rounds,
    }
