"""The rules of models, and how they come into "__llvs_schema": what is missing there is added, what contradicts it is told."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional

from .. import documents, errors
from ._json import NotJSON, canonical, parse, plain, write
from .definition import Definition, definition_of
from .rules import full_rule, short_rule

#: The id of the rules of a store.
SCHEMA_ID = "__llvs_schema"


class Contradiction(NamedTuple):
    """A rule of a model that the store has another for."""

    #: The prefix of the model's ids.
    prefix: str
    #: The pattern.
    pattern: str
    #: The model's rule.
    model: Any
    #: The store's, which stands.
    store: Any

    def __str__(self) -> str:
        at = f"{self.prefix!r} at {self.pattern!r}" if self.pattern else f"{self.prefix!r}"
        return f"the rule for {at} is {self.store!r} in the store and {self.model!r} in the model"


class Rules(NamedTuple):
    """The rules of a store with those of a model."""

    #: The rules that are followed, as JSON text.
    data: bytes
    #: Whether they are more than the store has.
    is_more: bool
    #: What the store has otherwise.
    contradictions: tuple[Contradiction, ...]
    #: Why the store's rules cannot be read and are left alone; "" when they can.
    unusable: str = ""


def schema_of(*models: type) -> dict[str, Any]:
    """The rules of models as they stand under "__llvs_schema": `{"merge": 1, "ids": {"contact/": {...}}}`.

    For who writes the rules without a collection: `llvs.Rules(llvs.schema_of(Contact))`. Raises TypeError for what is no model.
    """
    definitions: list[Definition[Any]] = [definition_of(one) for one in models]
    return {"merge": 1, "ids": {made.prefix: dict(made.rules) for made in definitions}}


def with_rules(stored: Optional[bytes], definition: Definition[Any]) -> Rules:
    """The rules of a store, with what a model adds."""
    own = write({"merge": 1, "ids": {definition.prefix: definition.rules}})
    if stored is None:
        return Rules(own, True, ())
    try:
        documents.check_schema(stored)
        schema = parse(stored)
    except (errors.Error, NotJSON) as problem:
        return Rules(own, False, (), f"the rules of the store cannot be followed, and were left as they are: {problem}")
    ids = schema.setdefault("ids", {})
    present = ids.get(definition.prefix)
    if present is None:
        ids[definition.prefix] = dict(definition.rules)
        return Rules(write(schema), True, ())
    known: dict[str, Any] = dict(present) if _is_map(present) else {"": present}
    found, is_more = [], False
    for pattern, rule in definition.rules.items():
        if pattern not in known:
            # Without a rule of its own the whole is "auto" already.
            if pattern != "" or full_rule(rule) != full_rule("auto"):
                known[pattern], is_more = rule, True
        elif _compared(known[pattern]) != _compared(rule):
            found.append(Contradiction(definition.prefix, pattern, _told(rule), _told(known[pattern])))
    if is_more:
        ids[definition.prefix] = known
    return Rules(write(schema) if is_more else stored, is_more, tuple(found))


def _is_map(rule: Any) -> bool:
    """Whether it is patterns with rules: these begin with a slash, or are empty."""
    return isinstance(rule, dict) and all(name == "" or name.startswith("/") for name in rule)


def _told(rule: Any) -> Any:
    """A rule with Python's numbers."""
    told = plain(rule)
    return short_rule(told) if isinstance(told, Mapping) else told


def _compared(rule: Any) -> str:
    return canonical(parse(write(full_rule(rule))))
