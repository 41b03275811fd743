"""Example contacts for an empty book. They have the same ids on every device, so two devices that add them get each contact once."""

from __future__ import annotations

from typing import Optional

from book import Book
from faces import Colour, portrait
from models import Contact, Group, Phone, Photo

_LIGHT, _FAIR, _BROWN, _DARK = (244, 208, 177), (226, 176, 139), (172, 116, 80), (112, 74, 54)
#: Name, company, town, phone, tags, notes, the colours of background, clothes, skin and hair, and whether the hair is long.
_PEOPLE: list[tuple[str, str, str, str, str, str, Optional[tuple[Colour, Colour, Colour, Colour, bool]]]] = [
    ("Ada Ruiz", "Ruiz Architects", "Bern", "+41 79 296 85 38", "choir friend", "Sings alto. Her studio is open on Saturdays.",
     ((215, 232, 243), (0, 98, 155), _FAIR, (66, 44, 34), True)),
    ("Ben Okoro", "Okoro Bikes", "Chur", "+41 79 811 20 46", "hiking work", "Mends any bicycle in a day.",
     ((223, 243, 236), (0, 102, 78), _DARK, (32, 26, 24), False)),
    ("Chiara Neri", "Radio Ticino", "Lugano", "+41 79 402 71 19", "choir", "", None),
    ("Dan Berg", "", "Ulm", "+49 731 55 12 08", "friend", "Moved in October. The bell has no name yet.",
     ((251, 233, 226), (168, 72, 0), _LIGHT, (201, 160, 96), False)),
    ("Eva Lind", "Lind & Daughters", "Bergen", "+47 412 88 310", "hiking friend", "",
     ((238, 232, 246), (122, 84, 150), _LIGHT, (150, 80, 40), True)),
    ("Femi Ade", "", "Geneva", "+41 79 655 03 27", "hiking", "", None),
    ("Greta Holm", "School of Music", "Malmö", "+46 70 122 45 90", "choir work", "Has the keys of the hall.",
     ((250, 238, 214), (180, 130, 20), _LIGHT, (222, 190, 130), True)),
    ("Hugo Moreau", "Moreau Wines", "Annecy", "+33 6 12 84 50 77", "friend", "", None),
    ("Ines Duarte", "City Library", "Porto", "+351 912 400 861", "choir friend", "Returns books late herself.",
     ((220, 240, 244), (20, 110, 120), _BROWN, (40, 28, 26), True)),
    ("Jon Fry", "Fry Carpentry", "Innsbruck", "+43 660 218 30 04", "work", "", None),
    ("Karin Vogt", "", "Basel", "+41 79 277 16 52", "hiking", "", None),
    ("Liam Byrne", "Byrne & Sons", "Galway", "+353 85 113 94 20", "work friend", "Prefers letters.",
     ((230, 232, 236), (70, 78, 92), _LIGHT, (120, 62, 30), False)),
]
_GROUPS = {"choir": ("Choir", {"ada-ruiz", "chiara-neri", "greta-holm", "ines-duarte"}), "hut": ("Hut in May", {"ben-okoro", "eva-lind"})}


def add(book: Book) -> None:
    """Adds them in one step, which one undo reverts."""
    photos, people = {}, {}
    for name, company, town, phone, tags, notes, face in _PEOPLE:
        id = name.lower().replace(" ", "-")
        people[id] = Contact(name, company, town, f"{name.split()[0].lower()}@example.org", [Phone("mobile", "mobile", phone)],
                             set(tags.split()), notes)
        if face is not None:
            people[id].photo = f"portrait-{id}"
            photos[f"portrait-{id}"] = Photo(portrait(*face))
    named, said = "examples", "Add some examples"
    book.photos.save(photos, group=named, description=said)
    book.people.save(people, group=named, description=said)
    book.groups.save({id: Group(name, members) for id, (name, members) in _GROUPS.items()}, group=named, description=said)
