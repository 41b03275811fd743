"""The rules of models as they stand in "__llvs_schema", and how rules of a store differ from them."""

from __future__ import annotations

import json
from typing import Any, Mapping, NamedTuple, Optional

from ..merge import documents
from .definition import Definition, definition_of
from .rules import short_rule

#: The id of the rules of a store.
SCHEMA_ID = "__llvs_schema"


class Contradiction(NamedTuple):
    """A rule of a model that differs from the store's rule for the same pattern."""

    #: The prefix of the model's ids.
    prefix: str
    #: The pattern.
    pattern: str
    #: The model's rule.
    model: Any
    #: The store's rule, which prevails.
    store: Any

    def __str__(self) -> str:
        at = f"{self.prefix!r} at {self.pattern!r}" if self.pattern else f"{self.prefix!r}"
        return f"the rule for {at} is {self.store!r} in the store and {self.model!r} in the model"


def schema_of(*models: type) -> dict[str, Any]:
    """The rules of models as they stand under "__llvs_schema": `{"merge": 1, "ids": {"contact/": {...}}}`.

    For who writes the rules without a collection: `llvs.Rules(llvs.models.schema_of(Contact))`. Raises TypeError for what is no model.
    """
    definitions: list[Definition[Any]] = [definition_of(one) for one in models]
    return {"merge": 1, "ids": {made.prefix: dict(made.rules) for made in definitions}}


def contradictions_of(found: documents.Schema) -> tuple[Contradiction, ...]:
    """Returns the rules of a model that contradict those of the store, as registering them found."""
    made = []
    for one in found.contradictions:
        names = [str(name) for name in one.path if isinstance(name, str)]  # ids, the prefix, and a pattern
        prefix, pattern = names[1] if len(names) > 1 else "", names[2] if len(names) > 2 else ""
        model, store = _told(one.older), _told(one.newer)
        if model != store:
            made.append(Contradiction(prefix, pattern, model, store))
    return tuple(made)


def taken_back(definition: Definition[Any], data: Optional[bytes]) -> tuple[Contradiction, ...]:
    """Returns the members for which the store has a kind and the model has none, because an earlier model had it.

    data: the rules that count, with the model's, as JSON text.
    """
    rules = json.loads(data).get("ids", {}).get(definition.prefix) if data else None
    if not isinstance(rules, Mapping):
        return ()
    kinds = ((pattern, rules[pattern]) for pattern in sorted(definition.plain & rules.keys()))
    return tuple(
        Contradiction(definition.prefix, pattern, "auto", short_rule(rule) if isinstance(rule, Mapping) else rule)
        for pattern, rule in kinds
        if (rule.get("as", "auto") if isinstance(rule, Mapping) else rule) != "auto"
    )


def _told(rule: Optional[bytes]) -> Any:
    """A rule as short as it can be written."""
    told = None if rule is None else json.loads(rule)
    return short_rule(told) if isinstance(told, Mapping) else told
