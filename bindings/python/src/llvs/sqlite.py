"""SQL over stores: projections, which are SQLite databases that mirror one version, and the path of the extension that reads stores."""

from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Union

import llvs

from . import _abi, errors
from ._abi.handle import Handle
from ._abi.library import EXTENSION_NAME, library_path
from ._abi.memory import decode, encode, path_bytes, version_bytes
from ._generated import structs as _structs
from .control import CancelToken, Control, ProgressCallback
from .store import _pages
from .store.versions import AnyVersion

__all__ = ["Projection", "ProjectionProblem", "extension_path"]

lib = _abi.lib
byref = ctypes.byref


class ProjectionProblem(NamedTuple):
    """A part of a value that did not fit its column, which is NULL there."""

    #: The table.
    table: str
    #: The id of the value.
    id: str
    #: The JSON pointer of the column; empty if the whole value is not JSON.
    pointer: str
    #: "type", "range" (a number that SQLite cannot represent), "size" (a row of more than 450 MB) or "not-json".
    reason: str


class Projection(Handle):
    """A SQLite database that mirrors one version of a store in tables, for joins, aggregates, full text and other tools.

        people = {"prefix": "contact/", "columns": [{"name": "last", "pointer": "/lastName", "type": "text"}]}
        with llvs.sqlite.Projection(notes, "view.sqlite", {"tables": {"people": people}}) as view:
            view.update()
            sqlite3.connect("view.sqlite").execute("SELECT count(*) FROM people WHERE last = 'Smith'")

    Programs open the database with any driver and read it; only the library writes it. An update writes what differs, in one transaction
    that also records the version. With a coordinator, a thread of the library keeps the database at the current version. Everything in it
    is derived from the store: if it is deleted, it is rebuilt. docs/finding.md describes definitions.
    """

    _release = "llvs_projection_free"
    _warns = False
    _exit_order = 8

    def __init__(
        self,
        of: Union[llvs.Store, llvs.Coordinator],
        path: Union[str, os.PathLike[str]],
        definition: Union[Mapping[str, Any], str, bytes],
        *,
        follows: bool = True,
        busy_timeout: float = 5.0,
        file_mode: int = 0o600,
    ) -> None:
        """Opens the database, or creates it if it does not exist.

        of: a coordinator, whose current version the database follows, unless `follows` is False; or a store: then only `update` updates it.
        definition: an object, or JSON text. busy_timeout: seconds to wait while others write to the database. file_mode: the permissions of
        a new database.

        Raises InvalidArgumentError for an invalid definition (its `path` is the JSON pointer to the mistake), StorageError if the file is
        not a projection, BusyError, UnsupportedError without SQLite.
        """
        coordinator = of if isinstance(of, llvs.Coordinator) else None
        store = of.store if isinstance(of, llvs.Coordinator) else of
        options = _structs.llvs_projection_options(
            struct_size=ctypes.sizeof(_structs.llvs_projection_options), file_mode=file_mode, busy_timeout=busy_timeout
        )
        text = definition if isinstance(definition, (str, bytes)) else json.dumps(definition, ensure_ascii=False)
        json_bytes = encode(text) if isinstance(text, str) else text
        pointer = ctypes.c_void_p()
        with store._call as handle:
            if coordinator is None or not follows:
                lib.llvs_projection_open(handle, path_bytes(path), json_bytes, byref(options), byref(pointer))
            else:
                with coordinator._call as options.coordinator:
                    lib.llvs_projection_open(handle, path_bytes(path), json_bytes, byref(options), byref(pointer))
        super().__init__(pointer.value or 0)
        self._calls_back = store._calls_back
        self._of, self._coordinator = of, coordinator
        #: Where the database is.
        self.path = os.fspath(path)

    def _what(self) -> str:
        return f"the projection {self.path!r}"

    def _detail(self) -> str:
        return repr(self.path)

    def update(
        self,
        to: Optional[AnyVersion] = None,
        *,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> int:
        """Moves the database to a version, and returns how many rows were inserted, changed or deleted.

        to: None: the coordinator's current version, or the newest head of a store. Cost: what differs from the present version of the
        database. If the definition has changed, or the store does not have that version any more, all tables are rebuilt. A cancelled or
        failed update leaves the database unchanged.

        Raises UnknownVersionError, StorageError with the `value_id` of a value that cannot be read, BusyError when others keep the database
        locked, InvalidArgumentError when it has a table of such a name that the projection did not make, UnsupportedError for an SQLite
        without FTS5, CancelledError.
        """
        if to is None and self._coordinator is not None:
            to = self._coordinator._current_id
        changed = ctypes.c_uint64()
        with self._call as pointer, Control(progress, cancel) as controls:
            lib.llvs_projection_update(pointer, b"" if to is None else version_bytes(to), controls, byref(changed))
        return changed.value

    def _status(self) -> Any:
        buffer = _structs.llvs_buffer()
        with self._call as pointer:
            lib.llvs_projection_status(pointer, byref(buffer))
        return json.loads(decode(_pages.take_buffer(buffer) or b"{}"))

    @property
    def version(self) -> Optional[str]:
        """The id of the version at which the database is; None before the first update. Waits for a running update."""
        found = self._status()["version"]
        return None if found is None else str(found)

    @property
    def failure(self) -> Optional[errors.Error]:
        """Why the last automatic update failed, which is retried; None if it did not."""
        found = self._status()["failure"]
        return None if found is None else errors.make(found["code"], found["message"])

    def problems(self) -> Iterator[ProjectionProblem]:
        """Returns the values that did not fit their columns, in the order in which they were found."""
        after = 0
        while True:
            buffer = _structs.llvs_buffer()
            with self._call as pointer:
                lib.llvs_projection_problems(pointer, after, byref(buffer))
            found = json.loads(decode(_pages.take_buffer(buffer) or b"[]"))
            if not found:
                return
            for problem in found:
                after = problem["number"]
                yield ProjectionProblem(problem["table"], problem["id"], problem["pointer"], problem["reason"])


def extension_path() -> str:
    """Returns the path of `libllvs_sqlite.so`, which SQLite loads as an extension:

        database = sqlite3.connect(":memory:")
        database.enable_load_extension(True)
        database.load_extension(llvs.sqlite.extension_path())
        database.execute("SELECT id, data FROM llvs_values('notes.llvs')")

    It lies beside the library, in wheels as well. Raises NotFoundError when it does not: a debug build has none.
    """
    path = os.path.join(os.path.dirname(os.path.realpath(library_path())), EXTENSION_NAME)
    if not os.path.isfile(path):
        raise errors.NotFoundError(f"there is no SQLite extension at {path}: CMake builds it beside the library (docs/sqlite.md)")
    return path
