"""Errors of models: values that cannot be read, and rules that contradict those of the store."""

from __future__ import annotations

from typing import Any, Optional

from .. import errors
from .._generated import constants as c


class DecodeError(errors.Error, ValueError):
    """A value cannot be read as an object of its model. It stays in the store unchanged, and nothing was saved over it.

    `str(error)` names the value and the member, and says what the user can do. Attributes, in addition to those of `Error`: `value_id`;
    `version_id`, the version that stored the value.
    """

    default_code = c.ERROR_INVALID_JSON

    #: The member that does not fit, as a JSON pointer; "" for the whole value.
    member: str
    #: The stored bytes of the value.
    data: bytes

    def __init__(self, message: str, *, member: str = "", data: bytes = b"", **about: Any) -> None:
        super().__init__(message, **about)
        self.member, self.data = member, data

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.message, self.member, self.data, self.value_id, self.version_id)


def _rebuild(message: str, member: str, data: bytes, value_id: Optional[str], version_id: Optional[str]) -> DecodeError:
    return DecodeError(message, member=member, data=data, value_id=value_id, version_id=version_id)


class SchemaWarning(UserWarning):
    """The rules of a store contradict those of a model; the store's win. `Collection.contradictions` lists them."""


class Mismatch(ValueError):
    """A stored value does not fit the model: why, and at which members, the innermost first."""

    def __init__(self, why: str, *path: str) -> None:
        super().__init__(why)
        self.why = why
        self.path = list(path)

    @property
    def pointer(self) -> str:
        """The member as a JSON pointer."""
        from .rules import escaped

        return "".join("/" + escaped(part) for part in reversed(self.path))
