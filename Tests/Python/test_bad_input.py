"""Bad input. Each gives an error with a code of its own and a message that names the argument, stores nothing, and leaves the store
usable."""

from __future__ import annotations

import ctypes
import os
import stat
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from conftest import STORAGES
from llvs import _abi
from llvs._abi import parameters as _parameters
from llvs._generated import structs as _structs
from sampling import sample

lib = _abi.lib

V = llvs.Version("1", (), 0.0, 0)


# These are refused before the storage is called.
@pytest.mark.parametrize("place", sample(["file"], STORAGES), indirect=True)
@pytest.mark.parametrize(
    ("call", "code", "names"),
    [
        (lambda s, v: s.make_version("no-such", insert={"a": b""}), "UNKNOWN_PREDECESSOR", "no-such"),
        (lambda s, v: s.make_version("not an id"), "INVALID_VERSION_ID", "not an id"),
        (lambda s, v: s.make_version(""), "INVALID_VERSION_ID", ""),
        (lambda s, v: s.make_version("x" * 129), "INVALID_VERSION_ID", "xxx"),
        (lambda s, v: s.make_version(v, id="sp ace"), "INVALID_VERSION_ID", "sp ace"),
        (lambda s, v: s.make_version(v, id=""), "INVALID_VERSION_ID", ""),
        (lambda s, v: s.make_version(v, id="ROOT"), "INVALID_VERSION_ID", "ROOT"),
        (lambda s, v: s.make_version(v, insert={"double": b""}, update={"double": b""}), "DUPLICATE_ID", "double"),
        (lambda s, v: s.make_version(v, insert=[("double", b"1"), ("double", b"1")]), "DUPLICATE_ID", "double"),
        (lambda s, v: s.make_version(v, remove=["a", "a"]), "DUPLICATE_ID", "a"),
        (lambda s, v: s.make_version(v, insert={"": b""}), "INVALID_VALUE_ID", ""),
        (lambda s, v: s.make_version(v, insert={"x" * 4097: b""}), "INVALID_VALUE_ID", "4097"),
        (lambda s, v: s.make_version(v, insert={"é" * 2049: b""}), "INVALID_VALUE_ID", "4098"),
        (lambda s, v: s.make_version(v, insert={"\ud800": b""}), "INVALID_UTF8", ""),
        (
            lambda s, v: s.make_version(v, changes=[llvs.Change.preserve(llvs.store.Reference("a", "nope"))]),
            "INVALID_REFERENCE|UNKNOWN_VERSION",
            "nope",
        ),
        (lambda s, v: s.make_version(v, changes=[llvs.Change.preserve(llvs.store.Reference("b", v.id))]), "INVALID_REFERENCE", "b"),
        (lambda s, v: s.make_version(v, metadata={"": 1}), "INVALID_METADATA", ""),
        (lambda s, v: s.make_version(v, metadata={"k" * 4097: 1}), "INVALID_METADATA", ""),
        (lambda s, v: s.make_version(v, metadata={"\ud800": 1}), "INVALID_METADATA|INVALID_UTF8", ""),
        (lambda s, v: s.make_version(v, metadata={"big": b"x" * (17 << 20)}), "INVALID_METADATA|TOO_LARGE", ""),
        (lambda s, v: s.make_version(v, branch=""), "INVALID_METADATA", ""),
        (lambda s, v: s.make_version(v, branch="\ud800"), "INVALID_UTF8|INVALID_METADATA", ""),
        (lambda s, v: s.value("a", at="no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.value("", at=v), "INVALID_VALUE_ID", ""),
        (lambda s, v: s.value("x" * 5000, at=v), "INVALID_VALUE_ID", ""),
        (lambda s, v: s.value("\ud800", at=v), "INVALID_UTF8", ""),
        (lambda s, v: s.value("a", at="not an id"), "INVALID_VERSION_ID", "not an id"),
        (lambda s, v: s.values(["a", ""], at=v), "INVALID_VALUE_ID", ""),
        (lambda s, v: s.values(["a"], at="no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.reference("a", at="no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.value_by_reference(llvs.store.Reference("a", "no-such")), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.at("no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.changes("no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.diff(v, "no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.history("no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.versions([v, "no-such"]), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.version("not an id"), "INVALID_VERSION_ID", "not an id"),
        (lambda s, v: s.successors("no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.is_ancestor(v, "no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.merge_bases("no-such", v), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.merge(v, "no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.merge_heads("no-such"), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.revert("no-such", at=v), "UNKNOWN_VERSION", "no-such"),
        (lambda s, v: s.revert(v, at="no-such"), "UNKNOWN_VERSION|UNKNOWN_PREDECESSOR", "no-such"),
        (lambda s, v: s.versions_of(""), "INVALID_VALUE_ID", ""),
        (lambda s, v: s.heads(branch="\ud800"), "INVALID_UTF8", ""),
    ],
)
def test_bad_arguments(store: llvs.Store, call: Callable[[llvs.Store, llvs.Version], Any], code: str, names: str) -> None:
    root = store.make_version(insert={"a": b"1"}, id="root")
    with pytest.raises(llvs.Error) as caught:
        call(store, root)
    error = caught.value
    assert isinstance(error.code, llvs.ErrorCode) and error.code.name in code.split("|"), error
    assert str(error) and repr(error)
    about = " ".join(filter(None, [str(error), error.value_id, error.version_id]))
    assert names in about, about
    assert [version.id for version in store.history()] == ["root"]
    assert store.at(store.make_version(root, update={"a": b"2"}))["a"] == b"2"


@pytest.mark.parametrize("argument", [5, None, b"root", 1.5, ["root"]], ids=repr)
def test_arguments_of_a_wrong_type(memory: llvs.Store, argument: Any) -> None:
    root = memory.make_version(insert={"a": b"1"})
    for call in (
        lambda: memory.value("a", at=argument),
        lambda: memory.value(argument, at=root),
        lambda: memory.merge(root, argument),
        lambda: memory.make_version(insert={argument: b""}) if not isinstance(argument, list) else memory.value(argument, at=root),
        lambda: (
            memory.make_version(remove=argument) if argument is not None and not isinstance(argument, list) else memory.version(argument)
        ),
        lambda: memory.make_version(changes=[argument]),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError):
        memory.make_version(remove="abc")
    assert memory.heads() == (root,)


@pytest.mark.parametrize("opens", [llvs.Store, llvs.Coordinator])
def test_options_that_cannot_be(opens: Any, tmp_path: Path) -> None:
    options = llvs.StoreOptions if opens is llvs.Store else llvs.CoordinatorOptions
    for budget in (-1, 1 << 64):
        with pytest.raises(llvs.errors.InvalidArgumentError, match=str(budget)):
            opens(tmp_path / "store", options=options(memory_budget=budget))
    with pytest.raises(TypeError):
        opens(tmp_path / "store", options=options(memory_budget=1.5))
    for storage in (None, 5, b"file"):
        with pytest.raises(TypeError, match=type(storage).__name__):
            opens(tmp_path / "store", storage=storage)
    assert not (tmp_path / "store").exists()


def test_errors_are_natural_builtins(memory: llvs.Store, tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        memory.value("a", at="no-such")
    with pytest.raises(ValueError):
        memory.make_version(insert={"": b""})
    with pytest.raises(FileNotFoundError) as missing:
        llvs.Store(tmp_path / "nothing", create=False)
    assert missing.value.errno and missing.value.filename
    (tmp_path / "file").write_bytes(b"no store at all")
    with pytest.raises(NotADirectoryError):
        llvs.Store(tmp_path / "file")
    with pytest.raises(OSError):
        llvs.Store(tmp_path / "file", storage="sqlite")
    closed = llvs.Store(storage="memory")
    closed.close()
    with pytest.raises(ValueError):
        closed.heads()


def test_errors_survive_pickling() -> None:
    import pickle

    error = llvs.errors.UnknownVersionError("no such", version_id="x")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.code, again.version_id) == (
        llvs.errors.UnknownVersionError,
        "no such",
        llvs.ErrorCode.UNKNOWN_VERSION,
        "x",
    )
    denied = pickle.loads(pickle.dumps(llvs.NotFoundError("gone", path="/x")))
    assert (str(denied), denied.filename) == ("gone", "/x")


@pytest.mark.parametrize(
    ("make", "options", "code"),
    [
        (lambda path: None, {"create": False}, "NOT_FOUND"),
        (lambda path: None, {"read_only": True}, "NOT_FOUND"),
        (lambda path: path.write_bytes(b"x"), {}, "NOT_A_DIRECTORY"),
        (lambda path: (path.mkdir(), (path / "precious.txt").write_bytes(b"x")), {}, "NOT_A_STORE"),
        (lambda path: path.write_bytes(b"not a database, but long enough to be taken for one" * 100), {"storage": "sqlite"}, "NOT_A_STORE"),
        (lambda path: path.mkdir(), {"storage": "sqlite"}, "NOT_A_STORE|IO|NOT_A_DIRECTORY|INVALID_ARGUMENT"),
    ],
)
def test_places_that_are_no_store(tmp_path: Path, make: Callable[[Path], Any], options: dict[str, Any], code: str) -> None:
    path = tmp_path / "place"
    make(path)
    before = sorted(str(found) for found in tmp_path.rglob("*"))
    with pytest.raises(llvs.Error) as caught:
        llvs.Store(path, **options)
    assert isinstance(caught.value.code, llvs.ErrorCode) and caught.value.code.name in code.split("|"), caught.value
    assert str(path) in str(caught.value) or str(path) == caught.value.path
    assert sorted(str(found) for found in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("path", ["", "a\0b", b"\xff\xfe/x"])
def test_paths_that_are_none(path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(llvs.Error):
        llvs.Store(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_directory(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(llvs.errors.PermissionDeniedError):
            llvs.Store(tmp_path / "store")
    finally:
        tmp_path.chmod(stat.S_IRWXU)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_directory_that_cannot_be_made() -> None:
    with pytest.raises(llvs.Error):
        llvs.Store("/proc/no-such-place/store")


@pytest.mark.parametrize(
    "options",
    [
        {"storage": "cloud"},
        {"durability": "some"},
        {"storage": "memory", "options": llvs.StoreOptions(compaction="never")},  # type: ignore[arg-type]
        {"storage": "file"},
        {"storage": "sqlite"},
    ],
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.Store(**options)


# Arguments that the package itself never passes, directly at the C interface.


def status(function: str, *arguments: Any) -> llvs.Error:
    with pytest.raises(llvs.Error) as caught:
        getattr(lib, function)(*arguments)
    assert str(caught.value)
    return caught.value


@pytest.fixture
def pointer(memory: llvs.Store) -> int:
    memory.make_version(insert={"a": b"1"}, id="root")
    return memory._pointer


def test_sizes_that_cannot_be(pointer: int, memory: llvs.Store) -> None:
    text = b"abc"
    out, ids = _structs.llvs_buffer(), _structs.llvs_version_id()

    class Raw(_abi.BytesArgument):
        @classmethod
        def from_param(cls, value: Any) -> Any:
            return value

    raw = lib.raw("llvs_store_value")
    raw.argtypes = [ctypes.c_void_p, Raw, Raw, *raw.argtypes[3:]]
    for data, size, code in (
        (text, ctypes.c_size_t(-1).value, "TOO_LARGE|INVALID_VALUE_ID|INVALID_VERSION_ID"),
        (text, 1 << 62, "TOO_LARGE|INVALID_VALUE_ID|INVALID_VERSION_ID"),
        (None, 5, "INVALID_ARGUMENT"),
        (None, ctypes.c_size_t(-1).value, "INVALID_ARGUMENT|TOO_LARGE"),
    ):
        for first, second in (
            (_abi.BytesArgument(data, size), _abi.BytesArgument(b"root", 4)),
            (_abi.BytesArgument(b"a", 1), _abi.BytesArgument(data, size)),
        ):
            error = ctypes.c_void_p()
            with pytest.raises(llvs.Error) as caught:
                raw(pointer, first, second, ctypes.byref(out), ctypes.byref(ids), ctypes.byref(error))
            assert isinstance(caught.value.code, llvs.ErrorCode) and caught.value.code.name in code.split("|"), caught.value
    change = _structs.llvs_change(kind=1)
    change.id.data, change.id.size = ctypes.cast(text, ctypes.c_void_p), 3
    for size in (ctypes.c_size_t(-1).value, (1 << 30) + 1):
        change.data.data, change.data.size = ctypes.cast(text, ctypes.c_void_p), size
        assert (
            status("llvs_store_make_version", pointer, b"", ctypes.byref(change), 1, 56, None, None, None).code == llvs.ErrorCode.TOO_LARGE
        )
    change.data.size = 3
    for count in (ctypes.c_size_t(-1).value, 1 << 60):
        assert status("llvs_store_make_version", pointer, b"", ctypes.byref(change), count, 56, None, None, None).code in (
            llvs.ErrorCode.TOO_LARGE,
            llvs.ErrorCode.INVALID_ARGUMENT,
        )
    for element in (0, 1, 55, ctypes.c_size_t(-1).value):
        assert status("llvs_store_make_version", pointer, b"", ctypes.byref(change), 1, element, None, None, None).code in (
            llvs.ErrorCode.STRUCT_SIZE,
            llvs.ErrorCode.TOO_LARGE,
        )
    assert len(memory.heads()) == 1


def test_nulls(pointer: int) -> None:
    out = ctypes.c_void_p()
    for function, arguments in (
        ("llvs_store_heads", (None, None, ctypes.byref(out))),
        ("llvs_store_heads", (pointer, None, None)),
        ("llvs_store_value", (pointer, b"a", b"root", None, None)),
        ("llvs_store_make_version", (pointer, b"", None, 1, 56, None, None, None)),
        ("llvs_store_values", (pointer, None, 3, b"root", ctypes.byref(out))),
        ("llvs_store_open", (b"x", None, None)),
        ("llvs_arbiter_create", (None, None, None, None, ctypes.byref(out))),
        ("llvs_exchange_retrieve", (None, None, None)),
        ("llvs_storage_create", (b"", None, None, None, ctypes.byref(out))),
    ):
        assert status(function, *arguments).code == llvs.ErrorCode.INVALID_ARGUMENT, function


def test_struct_sizes(pointer: int) -> None:
    out = ctypes.c_void_p()
    for size in (0, 3, 8, ctypes.sizeof(_structs.llvs_store_options) - 1, 1 << 31):
        options = (ctypes.c_char * 4096)()
        ctypes.c_uint32.from_buffer(options).value = size
        assert status("llvs_store_open", b"x", ctypes.byref(options), ctypes.byref(out)).code in (
            llvs.ErrorCode.STRUCT_SIZE,
            llvs.ErrorCode.TOO_LARGE,
        ), size
    longer = (ctypes.c_char * 4096)()
    made = _structs.llvs_store_options.from_buffer(longer)
    made.struct_size, made.storage = 200, 2
    lib.llvs_store_open(b"", ctypes.byref(longer), ctypes.byref(out))
    lib.llvs_store_free(out.value)
    longer[150] = b"\1"
    assert status("llvs_store_open", b"", ctypes.byref(longer), ctypes.byref(out)).code == llvs.ErrorCode.STRUCT_SIZE
    longer[150] = b"\0"
    made.compaction = 99
    assert status("llvs_store_open", b"", ctypes.byref(longer), ctypes.byref(out)).code == llvs.ErrorCode.INVALID_ARGUMENT
    made.compaction, made.storage = 0, 99
    assert status("llvs_store_open", b"", ctypes.byref(longer), ctypes.byref(out)).code == llvs.ErrorCode.INVALID_ARGUMENT


def test_unknown_constants(pointer: int) -> None:
    out = ctypes.c_void_p()
    assert status("llvs_arbiter_builtin", 77, ctypes.byref(out)).code == llvs.ErrorCode.INVALID_ARGUMENT
    change = _structs.llvs_change(kind=9)
    assert (
        status("llvs_store_make_version", pointer, b"", ctypes.byref(change), 1, 56, None, None, None).code
        == llvs.ErrorCode.INVALID_ARGUMENT
    )


def test_accessors_take_null() -> None:
    for name, (result, parameters) in _abi.PROTOTYPES.items():
        if result is _parameters.STATUS and name != "llvs_error_code" or not parameters or parameters[0].ctype is not ctypes.c_void_p:
            continue
        arguments = [
            None if parameter.ctype is ctypes.c_void_p else b"" if parameter is _parameters.BYTES else 0 for parameter in parameters
        ]
        found = getattr(lib, name)(*arguments)
        if isinstance(found, ctypes.Structure):
            assert found.size == 0
        else:
            assert not found, name
