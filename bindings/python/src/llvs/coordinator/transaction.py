"""Transactions: read and write several values together, and save them as one version or not at all."""

from __future__ import annotations

from collections.abc import MutableMapping
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, TypeVar

import llvs

from .. import errors
from .._abi import metadata as _metadata
from .._abi.memory import BytesLike, as_bytes
from ..store.versions import SavedVersion

_Result = TypeVar("_Result")
_Model = TypeVar("_Model")


class Transaction(MutableMapping[str, bytes]):
    """The values at the version that was current at the beginning, with the writes of the transaction; see `Coordinator.transaction`."""

    #: The version that was saved at the end; None before, and if nothing was written.
    saved: Optional[SavedVersion]

    def __init__(self, coordinator: llvs.Coordinator) -> None:
        self._coordinator = coordinator
        self._base = coordinator.at()
        #: The writes (None for a removal), the ids that were read, and the prefixes under which all ids were read.
        self._written: dict[str, Optional[bytes]] = {}
        self._read: set[str] = set()
        self._listed: set[str] = set()
        self.saved = None

    @property
    def version(self) -> str:
        """The id of the version that is read."""
        return self._base.version

    def __getitem__(self, id: str) -> bytes:
        if id in self._written:
            found = self._written[id]
        else:
            found = self._base.get(id)
            self._read.add(id)
        if found is None:
            raise KeyError(id)
        return found

    def __setitem__(self, id: str, data: BytesLike) -> None:
        self._written[id] = as_bytes(data, f"the value of {id!r}")

    def __delitem__(self, id: str) -> None:
        self[id]
        self._written[id] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids(""))

    def _ids(self, prefix: str) -> list[str]:
        """Returns all ids with this prefix, in byte order."""
        self._listed.add(prefix)
        kept = {id for id in self._base.prefix(prefix) if self._written.get(id, b"") is not None}
        made = {id for id, data in self._written.items() if data is not None and id.startswith(prefix)}
        return sorted(kept | made, key=str.encode)

    def collection(self, model: type[_Model]) -> llvs.models.ModelsInTransaction[_Model]:
        """The objects of a model as the transaction has them: a mutable mapping as `Coordinator.collection`, saved with all the rest.

            with app.transaction() as values:
                accounts = values.collection(Account)
                with accounts.edit("a") as giver, accounts.edit("b") as taker:
                    giver.sum -= 10
                    taker.sum += 10

        The model's rules are added to the store at once. Raises as `Coordinator.collection`.
        """
        from ..models.in_transaction import ModelsInTransaction

        return ModelsInTransaction(self, self._coordinator.collection(model))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"<Transaction at version {self.version}, {len(self._written)} values written>"

    def _save(self, metadata: Optional[_metadata.Metadata], **about: Any) -> None:
        """Saves the writes on top of the version that is current by then, if nothing that the transaction read has changed."""
        update = {id: data for id, data in self._written.items() if data is not None}
        remove = [id for id, data in self._written.items() if data is None]
        if not update and not remove and metadata is None:
            return
        on = self.version
        while True:
            try:
                self.saved = self._coordinator.save(update=update, remove=remove, metadata=metadata, expected=on, **about)
                return
            except errors.MovedError:
                on = self._coordinator._current_id
                self._check(on)

    def _check(self, version: str) -> None:
        store, seen = self._coordinator.store, self._read | set(self._written)
        for change in store.diff(self.version, version, with_data=False):
            if change.id in seen or any(change.id.startswith(prefix) for prefix in self._listed):
                raise errors.MovedError(
                    f"the transaction was not saved: {change.id!r} has changed since it began. Read what is there now, and do it again; "
                    "Coordinator.transact does that by itself",
                    value_id=change.id,
                    version_id=version,
                )


@contextmanager
def transaction(coordinator: llvs.Coordinator, metadata: Optional[_metadata.Metadata], **about: Any) -> Iterator[Transaction]:
    """As `Coordinator.transaction`."""
    values = Transaction(coordinator)
    yield values
    values._save(metadata, **about)


def transact(
    coordinator: llvs.Coordinator, function: Callable[[Any], _Result], metadata: Optional[_metadata.Metadata], **about: Any
) -> _Result:
    """As `Coordinator.transact`."""
    while True:
        values = Transaction(coordinator)
        result = function(values)
        try:
            values._save(metadata, **about)
        except errors.MovedError:
            continue
        return result
