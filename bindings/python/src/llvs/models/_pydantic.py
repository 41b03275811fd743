"""Models of pydantic: what they hold is encoded and validated by pydantic; the rules are read from their annotations."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ._codecs import SCALARS, Member
from ._containers import Record
from ._json import parse, write
from ._types import Compiler
from .errors import Mismatch


class PydanticRecord(Record):
    """A `BaseModel`: an object with a member for each field."""

    @classmethod
    def compiled(cls, compiler: Compiler, model: Any, keys: frozenset[str] | set[str]) -> PydanticRecord:
        """The codec of a model."""
        known = compiler.records.get(model)
        if isinstance(known, PydanticRecord):
            return known
        made = cls(model)
        compiler.records[model] = made
        if model.model_config.get("extra") == "forbid":
            raise TypeError(
                f"{model.__name__} forbids members that it does not know, and could not read what a newer version of the app saves; "
                "remove extra='forbid' from its configuration"
            )
        hints = compiler.hints(model)
        for name, info in model.model_fields.items():
            place = f"{model.__name__}.{name}"
            member = compiler.member(hints[name], place, foreign=True)
            alias = info.serialization_alias or info.alias or name
            if info.is_required() and alias not in keys:
                raise TypeError(
                    f"{place} needs a default: a merge can leave a member out that one side removed, and a version of the app that does not "
                    f"know it writes none. Write {name}: ... = a default"
                )
            if member.rule.get("as") == "counter" and member.codec is SCALARS[Decimal]:
                raise TypeError(f"{place}: pydantic writes a Decimal as a string, which cannot be a counter; make it an int")
            if member.rule.get("as") == "counter" and "from" not in member.rule and isinstance(info.default, (int, float)) and info.default:
                member.rule["from"] = info.default
            made.fields[name] = (Member(member.codec, member.rule, member.optional, alias), False)
        return made

    def encode(self, value: Any) -> Any:
        if not isinstance(value, self.cls):
            raise Mismatch(f"is not of the class {self.cls.__name__}")
        try:
            # What is None is left out, as with dataclasses.
            dumped = value.model_dump_json(by_alias=True, exclude_none=True)
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

    def _mismatch(self, problem: ValueError) -> Mismatch:
        errors = getattr(problem, "errors", None)
        first = errors()[0] if errors is not None else {"msg": str(problem), "loc": ()}
        return Mismatch(f"is refused by {self.cls.__name__}: {first['msg']}", *map(str, reversed(first["loc"])))
