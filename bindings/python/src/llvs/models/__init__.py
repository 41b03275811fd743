"""Models: classes whose objects are values of a store, and are merged member by member.

    from llvs.models import Counter, model

    @model("contact/")
    @dataclass
    class Contact:
        name: str = ""
        tags: set[str] = field(default_factory=set)
        visits: Annotated[int, Counter()] = 0

    people = coordinator.collection(Contact)
    people["1"] = Contact("Ann")
    with people.edit("1") as ann:
        ann.tags.add("friend")

Dataclasses need nothing else; models of pydantic are taken where pydantic is installed. docs/merging.md is the guide.

    AnyRule      a rule in a model: `Counter()`, the name of a kind, or a rule as the store has it
    Upgrade      a function that brings a model's JSON object from one form to the next
"""

from __future__ import annotations

from .at import ModelsAt
from .collection import Collection, PastObject
from .conflict import ObjectConflict
from .definition import AnyRule, Definition, Upgrade, definition_of, model
from .errors import DecodeError, SchemaWarning
from .in_transaction import ModelsInTransaction
from .rules import Absent, Convert, Counter, DeleteWins, Identity, Key, MergeRule, Named, Pick, Register, Text, Tuple
from .selection import Selection
from .schema import Contradiction, schema_of

__all__ = [
    "Absent",
    "AnyRule",
    "Collection",
    "Contradiction",
    "Convert",
    "Counter",
    "DecodeError",
    "Definition",
    "DeleteWins",
    "Identity",
    "Key",
    "MergeRule",
    "ModelsAt",
    "ModelsInTransaction",
    "Named",
    "ObjectConflict",
    "PastObject",
    "Pick",
    "Register",
    "SchemaWarning",
    "Selection",
    "Text",
    "Tuple",
    "Upgrade",
    "definition_of",
    "model",
    "schema_of",
]
