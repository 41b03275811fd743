"""Models of pydantic: what they hold is encoded and validated by pydantic, which is not imported here."""

from __future__ import annotations

from typing import Any

from ._containers import Record
from ._json import parse, write
from .errors import Mismatch


class PydanticRecord(Record):
    """A `BaseModel`: an object with a member for each field."""

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
