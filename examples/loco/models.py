"""What the contact book keeps: classes, and by their types how they are merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Optional

import llvs


@dataclass
class Phone:
    """A number. Its id tells it apart from the others, also when both devices edit them."""

    id: str
    label: str = ""
    number: str = ""


#: What the ids of contacts begin with in the store.
CONTACTS = "contact/"


@llvs.model(CONTACTS)
@dataclass
class Contact:
    """Somebody. Who changes another member on another device loses nothing; the notes are merged word by word."""

    name: str = ""
    company: str = ""
    town: str = ""
    email: str = ""
    phones: list[Phone] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    notes: Annotated[str, llvs.Text()] = ""
    #: The id of a `Photo`, which never changes: another photo is another id, so the history of a contact is that of its photo as well.
    photo: Optional[str] = None


@llvs.model("group/")
@dataclass
class Group:
    """A name, and the ids of its members."""

    name: str = ""
    members: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Photo:
    """A picture, as it came."""

    data: bytes


llvs.model("photo/", rules={"": "bytes"}, encode=lambda photo: bytes(photo.data), decode=Photo)(Photo)

#: How contacts are put in order, and found by what is in them: "Émile" stands beside "emil". Nothing of an index is stored.
BY_NAME = {"prefix": CONTACTS, "on": ["/name"], "text": "fold"}
BY_TAG = {"prefix": CONTACTS, "on": ["/tags/*"]}

#: What the members of a contact are called in sentences.
WORDS = {
    "name": "name", "company": "company", "town": "town", "email": "e-mail address", "phones": "phone numbers", "tags": "tags",
    "notes": "notes", "photo": "photo",
}
