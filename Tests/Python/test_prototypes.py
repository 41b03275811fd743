"""The Python prototypes, structs and constants are those of include/llvs.h and llvs_testing.h, ownership tags included."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
from header import Function, read_header
from llvs import _abi
from llvs._abi import parameters as _parameters
from llvs._generated import constants as _constants, structs as _structs
from llvs.store import _change_array, _pages

HEADER = read_header()

SCALARS = {
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
}
ABI = {
    "llvs_bytes": _parameters.BYTES,
    "llvs_status": _parameters.STATUS,
    "size_t": _parameters.SIZE,
    "uint32_t": _parameters.U32,
    "uint64_t": _parameters.U64,
    "int32_t": _parameters.I32,
    "int64_t": _parameters.I64,
    "double": _parameters.DOUBLE,
    "llvs_bool": _parameters.BOOL,
}


def test_the_header_was_read() -> None:
    assert len(HEADER.functions) > 100 and len(HEADER.structs) > 20 and len(HEADER.constants) > 90 and len(HEADER.callbacks) > 20


def test_all_functions_are_there() -> None:
    assert list(_abi.PROTOTYPES) == list(HEADER.functions)


def test_all_that_can_be_cancelled_is_cancelled_by_the_c_tests() -> None:
    text = "".join((Path(__file__).parents[1] / "C" / name).read_text() for name in ("test_cancellation.c", "test_syncer.c"))
    cancellable = [
        name for name, function in HEADER.functions.items() if any(parameter.type == "llvs_control*" for parameter in function.parameters)
    ]
    assert len(cancellable) > 10 and [name for name in cancellable if f"{name}(" not in text] == []


def test_all_functions_are_called_with_nothing_by_the_c_tests() -> None:
    text = (Path(__file__).parents[1] / "C" / "nothing_given.h").read_text()
    assert [name for name in HEADER.functions if f"{name}(" not in text] == []


def test_all_functions_are_in_the_library() -> None:
    for name in _abi.PROTOTYPES:
        _abi.lib.raw(name)


@pytest.mark.parametrize("function", HEADER.functions.values(), ids=lambda function: function.name)
def test_prototype(function: Function) -> None:
    result, parameters = _abi.PROTOTYPES[function.name]
    if function.result == "void":
        assert result is None
    elif function.result == "char*":
        assert result is _parameters.TEXT
    elif function.result.endswith("*"):
        assert result is _parameters.POINTER
    else:
        assert result is ABI[function.result]
    assert len(parameters) == len(function.parameters)
    for mine, theirs in zip(parameters, function.parameters):
        assert mine.ownership == theirs.ownership, theirs
        if theirs.ownership:
            assert theirs.type.endswith("*"), f"only pointers carry a tag: {theirs}"
            assert (mine.c_type, mine.ctype) == (theirs.type, ctypes.c_void_p), theirs
        elif theirs.type in HEADER.callbacks:
            assert mine is _parameters.FUNCTION
        else:
            assert "*" not in theirs.type, f"every pointer carries a tag: {theirs}"
            assert mine is ABI[theirs.type if theirs.type in ABI else HEADER.aliases[theirs.type]], theirs


def test_pointers_of_callbacks_carry_tags() -> None:
    for callback in HEADER.callbacks.values():
        for parameter in callback.parameters:
            assert bool(parameter.ownership) == parameter.type.endswith("*"), (callback.name, parameter)


def test_errors_are_the_last_parameter() -> None:
    for function in HEADER.functions.values():
        errors = [parameter for parameter in function.parameters if parameter.type == "llvs_error**"]
        assert errors == [
            parameter for parameter in function.parameters[-1:] if parameter.name == "error" and parameter.type == "llvs_error**"
        ]


def test_constants() -> None:
    mine = {f"LLVS_{name}": value for name, value in vars(_constants).items() if name.isupper() and name != "TYPE_CHECKING"}
    assert mine == HEADER.constants


@pytest.mark.parametrize("name", HEADER.structs)
def test_struct(name: str) -> None:
    struct = getattr(_structs, name)
    assert [field[0] for field in struct._fields_] == [field for field, _ in HEADER.structs[name]]
    offset = 0
    for (field, ctype), (_, c_type) in zip(struct._fields_, HEADER.structs[name]):
        # No hidden padding: each field begins where the one before ends.
        assert getattr(struct, field).offset == offset, field
        offset += ctypes.sizeof(ctype)
        c_type = HEADER.aliases.get(c_type, c_type)
        if c_type in SCALARS:
            assert ctype is SCALARS[c_type], field
        elif c_type.endswith("*") or c_type == "function" or c_type in HEADER.callbacks:
            assert ctype is ctypes.c_void_p, field
        elif c_type in ("llvs_bytes", "llvs_buffer", "llvs_version_id"):
            assert ctype is getattr(_structs, c_type), field
        else:
            assert c_type in ("char[132]", "llvs_bytes[2]"), c_type
    assert ctypes.sizeof(struct) == offset == HEADER.sizes[name]


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        (_pages.VERSION_INFO, "llvs_version_info"),
        (_pages.VALUE_INFO, "llvs_value_info"),
        (_pages.CHANGE_INFO, "llvs_change_info"),
        (_pages.METADATA_ENTRY, "llvs_metadata_entry"),
        (_pages.FORK, "llvs_fork"),
        (_pages.CONFLICT, "llvs_conflict"),
        (_pages.PROBLEM, "llvs_problem"),
        (_pages.EXCHANGE_FILES, "llvs_exchange_files"),
        (_pages.BYTES, "llvs_bytes"),
    ],
)
def test_unpacked_layout(layout: object, name: str) -> None:
    assert layout.size == HEADER.sizes[name]  # type: ignore[attr-defined]
    format = "="
    for _, c_type in HEADER.structs[name]:
        c_type = HEADER.aliases.get(c_type, c_type)
        known = {
            "int32_t": "i",
            "uint32_t": "I",
            "uint64_t": "Q",
            "size_t": "Q",
            "double": "d",
            "llvs_bytes": "QQ",
            "llvs_bytes[2]": "QQQQ",
        }
        format += "Q" if c_type.endswith("*") else known[c_type]
    assert layout.format == format  # type: ignore[attr-defined]


def test_sizes_of_packed_structs() -> None:
    assert _change_array.CHANGE_SIZE == HEADER.sizes["llvs_change"]


@pytest.mark.parametrize("name", [name for name, fields in HEADER.structs.items() if fields[0] == ("struct_size", "uint32_t")])
def test_struct_init_makes_what_python_makes(name: str) -> None:
    struct = getattr(_structs, name)
    size = ctypes.sizeof(struct)
    made = struct.from_buffer_copy(b"\xff" * size)
    assert _abi.lib.llvs_struct_init(ctypes.byref(made), size) == 0
    assert bytes(made) == bytes(struct(struct_size=size))
    assert _abi.lib.llvs_struct_init(ctypes.byref(made), 2) == _constants.ERROR_STRUCT_SIZE


def test_every_status_is_to_be_looked_at() -> None:
    # A status reports failure; llvs_error_code only repeats it.
    unchecked = [function.name for function in HEADER.functions.values() if function.checked != (function.result == "llvs_status")]
    assert unchecked == ["llvs_error_code"]


def test_constants_have_an_enum_that_is_named_as_their_type() -> None:
    assert all(name.removesuffix("_value") in HEADER.aliases for name in HEADER.enums)
    in_no_enum = HEADER.constants.keys() - {name for names in HEADER.enums.values() for name in names}
    assert all(re.match(r"LLVS_(VERSION|VALUE|VERSION_ID|VALUE_ID|SIZE|PAIRING|DEVICE_KEY|PEER)_", name) for name in in_no_enum), in_no_enum


def test_flags_are_of_one_type() -> None:
    types = {parameter.type for function in HEADER.functions.values() for parameter in function.parameters}
    types |= {kind for fields in HEADER.structs.values() for _, kind in fields} | {
        function.result for function in HEADER.functions.values()
    }
    assert "llvs_bool" in types and "llvs_bool*" in types and not {"bool", "bool*", "int", "int*"} & types
    # Functions with a name for yes or no have that type.
    for name, fields in HEADER.structs.items():
        for field, kind in fields:
            if re.match(r"(is|has|with|without|must)_|read_only$|present$|conflicting$", field):
                assert kind == "llvs_bool", (name, field)
