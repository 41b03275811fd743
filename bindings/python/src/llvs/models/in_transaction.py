"""The objects of a model within a transaction."""

from __future__ import annotations

from collections.abc import MutableMapping
from contextlib import contextmanager
from typing import Any, Generic, Iterator, Optional, TypeVar

import llvs

from ._renames import Renames
from .definition import Reading

_Model = TypeVar("_Model")


class ModelsInTransaction(MutableMapping[str, _Model], Generic[_Model]):
    """The objects of a model as a transaction has them, by id without the prefix; made by `Transaction.collection`.

    An object that was read is yours: to change one in the store use `edit`, or assign it. What the model does not know is kept as it is
    written. Of one thread, as the transaction.
    """

    def __init__(self, values: llvs.Transaction, collection: llvs.models.Collection[_Model]) -> None:
        """As `Transaction.collection`."""
        self._values, self._collection, self._definition = values, collection, collection._definition

    @property
    def model(self) -> type[_Model]:
        """The class of its objects."""
        return self._definition.model

    @property
    def prefix(self) -> str:
        """What the ids of its values begin with in the store."""
        return self._definition.prefix

    def __getitem__(self, id: str) -> _Model:
        return self._definition.read(self._data(id), self.prefix + id, None, self._renames)

    @property
    def _renames(self) -> Optional[Renames]:
        return self._collection._renames(self._values.version)

    def _data(self, id: str) -> bytes:
        value_id = self._collection._value_id(id)
        if value_id not in self._values:
            raise KeyError(id)
        return self._values[value_id]

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.prefix + id in self._values

    def __setitem__(self, id: str, object: _Model) -> None:
        there = self._values.get(self._collection._value_id(id))
        reading = Reading(None, None)
        if there is not None:
            reading = self._definition.reading(there, self.prefix + id, None, self._renames)[1]
        self._write(id, object, reading)

    def __delitem__(self, id: str) -> None:
        self._data(id)
        del self._values[self.prefix + id]

    def __iter__(self) -> Iterator[str]:
        size = len(self.prefix)
        return iter([id[size:] for id in self._values._ids(self.prefix)])

    def __len__(self) -> int:
        return len(self._values._ids(self.prefix))

    def __bool__(self) -> bool:
        return True

    @contextmanager
    def edit(self, id: str, default: Optional[_Model] = None) -> Iterator[_Model]:
        """Gives an object to be changed, and writes at the end of the block what the block changed; nothing when it raises.

        default: the object to begin with where there is none; the block is given a copy.
        Raises KeyError if there is none and no default, DecodeError for a value that cannot be read, TypeError as `Collection.save`.
        """
        if id in self:
            object, reading = self._definition.reading(self._data(id), self.prefix + id, None, self._renames)
        elif default is not None:
            object, reading = self._definition.beginning(default, self._collection._value_id(id))
        else:
            raise KeyError(id)
        yield object
        self._write(id, object, reading)

    def _write(self, id: str, object: _Model, reading: Reading) -> None:
        value_id, there = self.prefix + id, self._values.get(self.prefix + id)
        rules = self._collection._rules(self._values.version)
        made = self._definition.splice(reading, object, there, value_id, rules.data or self._collection._schema, self._renames)
        if made is not None and made != there:
            self._values[value_id] = made

    def __repr__(self) -> str:
        return f"<Objects of {self.model.__name__} under {self.prefix!r} in {self._values!r}>"
