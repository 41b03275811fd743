"""A storage of your own: stores records in a `shelve`, so that the store is a part of a file that the application has anyway."""

from __future__ import annotations

import shelve
from typing import Callable, Sequence

import llvs


class ShelfStorage(llvs.storage.Storage):
    """Stores record number n under the key "n"."""

    name = "shelf"

    def __init__(self, path: str) -> None:
        self.shelf = shelve.open(path)

    def append(self, records: Sequence[bytes]) -> Sequence[int]:
        first = len(self.shelf)
        for place, record in enumerate(records, first):
            self.shelf[str(place)] = record
        return range(first, first + len(records))

    def scan(self, mark: int, report: Callable[..., None]) -> int:
        end = len(self.shelf)
        for place in range(mark, end):
            report(place, self.shelf[str(place)])
        return end

    def read(self, place: int, offset: int, size: int) -> bytes:
        record: bytes = self.shelf[str(place)]
        return record[offset : offset + size]

    def sync(self) -> None:
        self.shelf.sync()


storage = ShelfStorage("records")
with llvs.Store(storage=storage) as store:
    version = store.make_version(store.most_recent_head, update={"greeting": b"hello"})
with llvs.Store(storage=storage) as store:
    print(len(storage.shelf), "records;", store.at(version)["greeting"].decode())
storage.shelf.close()
