"""Models of pydantic: pydantic encodes and validates their content. It is not imported here."""

from __future__ import annotations

from typing import Any

from ._codecs import differs_by_order
from ._containers import Record
from ._json import parse, write
from .errors import Mismatch


class PydanticRecord(Record):
    """A `BaseModel`: an object with a member for each field."""

    @property
    def is_closed(self) -> bool:
        return bool(self.cls.model_config.get("extra") != "allow")

    def encode(self, value: Any) -> Any:
        if not isinstance(value, self.cls):
            raise Mismatch(f"is not of the class {self.cls.__name__}")
        if type(value) is not self.cls:
            self.refuse_more(value, type(value).model_fields)
        try:
            dumped = value.model_dump_json(by_alias=True)
            self.cls.model_validate_json(dumped)
        except ValueError as problem:
            raise self._mismatch(problem) from problem
        return self.arrange(parse(dumped.encode()))

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            raise self.refuse(tree)
        try:
            return self.cls.model_validate_json(write(tree))
        except ValueError as problem:
            raise self._mismatch(problem) from problem

    def settled(self, new: Any, old: Any) -> Any:
        made = super().settled(new, old)
        if not isinstance(made, dict) or not isinstance(old, dict) or not any(
            name in old and one != old[name] and differs_by_order(one, old[name]) for name, one in made.items()
        ):
            return made
        # Sets in types that only pydantic knows are written in an arbitrary order; pydantic decides whether they are equal.
        try:
            objects = [self.cls.model_validate_json(write(tree)) for tree in (made, old)]
        except ValueError:
            return made
        for attribute, (member, _) in self.fields.items():
            name = member.name or attribute
            if name in made and name in old and differs_by_order(made[name], old[name]):
                one, other = (getattr(object, attribute) for object in objects)
                if type(one) is type(other) and one == other:
                    made[name] = old[name]
        return made

    def arrange(self, tree: Any) -> Any:
        if "root" in self.fields and not isinstance(tree, dict):  # a RootModel
            return self.fields["root"][0].codec.arrange(tree)
        made = super().arrange(tree)
        if isinstance(made, dict):  # None is left out, as with dataclasses
            for member, _ in self.fields.values():
                if not member.writes_null and member.name in made and made[member.name] is None:
                    del made[member.name]
        return made

    def _mismatch(self, problem: ValueError) -> Mismatch:
        errors = getattr(problem, "errors", None)
        first = errors()[0] if errors is not None else {"msg": str(problem), "loc": ()}
        return Mismatch(f"is refused by {self.cls.__name__}: {first['msg']}", *map(str, reversed(first["loc"])))
