"""The classes of the contact book. Their types define how they are merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Optional

from llvs.models import Text, model


@dataclass
class Phone:
    """A number. Its id identifies it when both devices edit phones."""

    id: str
    label: str = ""
    number: str = ""


#: The prefix of the ids of contacts in the store.
CONTACTS = "contact/"


@model(CONTACTS)
@dataclass
class Contact:
    """A contact. Devices that change different members lose nothing; the notes are merged word by word."""

    name: str = ""
    company: str = ""
    town: str = ""
    email: str = ""
    phones: list[Phone] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    notes: Annotated[str, Text()] = ""
    #: The id of a `Photo`. A photo never changes: a new one has another id, so the history of a contact includes its photos.
    photo: Optional[str] = None


@model("group/")
@dataclass
class Group:
    """A name, and the ids of its members."""

    name: str = ""
    members: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Photo:
    """A picture in its original bytes."""

    data: bytes


model("photo/", rules={"": "bytes"}, encode=lambda photo: bytes(photo.data), decode=Photo)(Photo)

#: How contacts are sorted and found: "Émile" is beside "emil". These indexes are not stored.
BY_NAME = {"prefix": CONTACTS, "on": ["/name"], "text": "fold"}
BY_TAG = {"prefix": CONTACTS, "on": ["/tags/*"]}

#: The names of a contact's members in sentences.
WORDS = {
    "name": "name", "company": "company", "town": "town", "email": "e-mail address", "phones": "phone numbers", "tags": "tags",
    "notes": "notes", "photo": "photo",
}
