"""Texts of the demo store."""

from __future__ import annotations

#: The rules for merging that the club's program has.
SCHEMA = {
    "merge": 1,
    "ids": {
        "contact/": {"/tags": "set", "/visits": "counter"},
        "trip/": {"/guests": "set"},
        "note/": {"": {"as": "text", "unit": "word"}},
        "picture/": "bytes",
    },
}

NAMES = ["Ada Ruiz", "Ben Okoro", "Chiara Conti", "Dan Berg", "Eva Lind", "Femi Ade", "Greta Holm", "Hugo Martin", "Ines Silva", "Jon Park"]
TOWNS = ["Chur", "Bolzano", "Annecy", "Innsbruck", "Aosta", "Bern"]
STREETS = ["Mill Lane 3", "Station Road 18", "Lake Street 7", "Church Square 1", "Garden Way 22"]
TAGS = ["family", "climbing", "snow", "driver", "first aid", "photos"]
PLACES = ["Blue Lake", "Falcon Ridge", "Old Pass", "Pine Hut", "Stone Arch", "Two Waters"]
LINES = [
    "Meet at the station at half past seven.",
    "Bring a warm layer, the hut is at 2,100 m.",
    "Two ropes are enough.",
    "The bridge is closed until Friday.",
    "Ben drives, there are three seats left.",
    "Tea and bread for eight.",
    "Rain after four o'clock.",
    "The key is with the neighbour.",
    "Ask Greta for the long map.",
    "Bus 12 goes every hour.",
]
BETTER = {
    "Meet at the station at half past seven.": "Meet at the station at seven, the early train is fine.",
    "Two ropes are enough.": "Two ropes and one for the snow.",
    "Ben drives, there are three seats left.": "Ben drives, there is one seat left.",
    "Tea and bread for eight.": "Tea, bread and soup for ten.",
    "Rain after four o'clock.": "No rain before the evening.",
}
PAPERS = ["packing", "huts", "shopping", "plan", "costs"]
