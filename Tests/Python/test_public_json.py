"""JSONTestSuite, in every part that reads JSON: merging, indexes, projections, models, rules, metadata, and files of exchanges.

public_inputs.py says where to find it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import llvs
import pytest
from interchange import DictTransport
from llvs.models._json import NotJSON, parse
from public_inputs import FOLDER, needed

#: Valid by RFC 8259, and not mergeable: docs/merging-values.md refuses a name that is twice in one object.
TWICE = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}
#: Cases that the suite leaves to each reader, and docs/merging-values.md accepts: numbers that a float cannot represent.
ACCEPTED = {
    "i_number_double_huge_neg_exp.json", "i_number_neg_int_huge_exp.json", "i_number_pos_double_huge_exp.json",
    "i_number_too_big_neg_int.json", "i_number_too_big_pos_int.json", "i_number_very_big_negative_int.json",
}  # fmt: skip


def suite() -> dict[str, bytes]:
    """The files of JSONTestSuite, and the two that it has in a form which is too large to be kept."""
    found = {path.name: path.read_bytes() for path in sorted((FOLDER / "JSONTestSuite").glob("[yni]_*.json"))}
    assert len(found) > 300
    return {**found, "n_structure_100000_opening_arrays.json": b"[" * 100_000, "n_structure_open_array_object.json": b'[{"":' * 50_000}


def is_accepted(name: str) -> bool:
    """Returns whether the documents promise that it is read as JSON."""
    return name in ACCEPTED if name.startswith("i_") else name.startswith("y_") and name not in TWICE


@needed("JSONTestSuite")
def test_indexes_read_the_json_that_is_json(memory: llvs.Store) -> None:
    files = suite()
    memory.make_version(insert=files)
    index = memory.index(definition={"prefix": "", "on": ["/x"]})
    assert {name for name in files if index.explain(name).why != "not-json"} == {name for name in files if is_accepted(name)}


@needed("JSONTestSuite")
def test_merges_go_inside_the_json_that_is_json() -> None:
    """Each file is embedded in an object in which both sides change other members."""
    for name, data in suite().items():
        base, newer, older = (b'{"keep":' + data + more for more in (b"}", b',"n":1}', b',"m":1}'))
        merged = llvs.merge.merge_values(base, newer, older, "auto")
        if is_accepted(name):
            assert not merged.records and merged.data is not None, name
            found, kept = json.loads(merged.data, parse_float=str), json.loads(data, parse_float=str)
            assert found == {"keep": kept, "m": 1, "n": 1}, name
        else:
            assert [record.kind for record in merged.records] == [llvs.merge.ConflictKind.NOT_JSON] and merged.data == newer, name


@needed("JSONTestSuite")
def test_models_and_rules_refuse_what_is_no_json() -> None:
    for name, data in suite().items():
        if name.startswith("n_"):
            with pytest.raises(NotJSON):
                parse(data)
            with pytest.raises(ValueError):
                llvs.merge.check_schema(data)
        elif is_accepted(name):
            parse(data)


@needed("JSONTestSuite")
def test_metadata_of_any_bytes_is_reported(memory: llvs.Store) -> None:
    """JSON is returned as JSON, and other bytes unchanged."""
    files = suite()
    version = memory.make_version(metadata={name: data for name, data in files.items() if len(data) < 10_000})
    for name, data in version.raw_metadata.items():
        assert data == files[name]
        if name.startswith("n_"):
            assert version.metadata[name] == data, name
        elif name.startswith("y_"):
            assert version.metadata[name] == json.loads(data), name


#: Rules that merge the member by other means. Each refuses text that is not JSON.
RULES: dict[str, Any] = {
    "list": {"/keep": {"as": "list", "key": ["/id"]}},
    "set": {"/keep": {"as": "set"}},
    "tuple": {"/keep": {"as": "tuple"}},
    "register": {"/keep": {"as": "register"}},
    "counter": {"/keep": {"as": "counter"}},
    "text": {"/keep": {"as": "text"}},
}


@needed("JSONTestSuite")
@pytest.mark.parametrize("rule", RULES)
def test_merges_with_rules_go_inside_the_json_that_is_json(rule: str) -> None:
    """In most files the member is not of the type of the rule's kind. It was not changed, so it stays, whatever its rule is."""
    for name, data in suite().items():
        base, newer, older = (b'{"keep":' + data + more for more in (b"}", b',"n":1}', b',"m":1}'))
        merged = llvs.merge.merge_values(base, newer, older, RULES[rule])
        if is_accepted(name):
            assert merged.data is not None and not merged.records, name
            assert json.loads(merged.data, parse_float=str) == {"keep": json.loads(data, parse_float=str), "m": 1, "n": 1}, name
        else:
            assert [record.kind for record in merged.records] == [llvs.merge.ConflictKind.NOT_JSON] and merged.data == newer, name


@needed("JSONTestSuite")
def test_projections_have_columns_of_the_json_that_is_json(memory: llvs.Store, tmp_path: Path) -> None:
    """A value that is no JSON has a row with its id alone."""
    files = {name: b'{"keep":' + data + b',"told":true}' for name, data in suite().items()}
    memory.make_version(insert=files)
    columns = [{"name": "told", "pointer": "/told", "type": "boolean"}, {"name": "keep", "pointer": "/keep", "type": "json"}]
    with llvs.sqlite.Projection(memory, tmp_path / "view.sqlite", {"tables": {"files": {"prefix": "", "columns": columns}}}) as view:
        view.update(memory.most_recent_head)
    with closing(sqlite3.connect(tmp_path / "view.sqlite")) as database:
        rows = {id: (told, keep) for id, told, keep in database.execute("SELECT id, told, keep FROM files")}
    assert rows.keys() == files.keys()
    for name, (told, keep) in rows.items():
        assert told == (1 if is_accepted(name) else None), name
        if name.startswith("y_") and is_accepted(name):
            expected = json.loads(files[name])["keep"]
            assert (None if keep is None else json.loads(keep)) == expected, name
        elif not is_accepted(name):
            assert keep is None, name


#: Files of exchanges may have a name twice, deeper nesting than values, and numbers of any size in members that are not read.
IN_FILES = TWICE | ACCEPTED | {
    "i_number_huge_exp.json", "i_number_real_neg_overflow.json", "i_number_real_pos_overflow.json", "i_number_real_underflow.json",
    "i_structure_500_nested_arrays.json",
}  # fmt: skip
#: The words of docs/interchange.md for an invalid file.
REFUSED = {llvs.ErrorCode.INVALID_JSON, llvs.ErrorCode.INVALID_UTF8, llvs.ErrorCode.CUT_SHORT}


def files_of(id: str, *, version: bytes = b"1", change: bytes = b"1") -> tuple[bytes, bytes]:
    """The two files of a version, each with an unknown member."""
    return (
        b'{"version":{"identifier":"%s","odd":%s,"timestamp":1,"metadata":[]}}' % (id.encode(), version),
        b'[{"insert":{"id":"a","odd":%s,"data":"MQ=="}}]' % change,
    )


@needed("JSONTestSuite")
@pytest.mark.parametrize("where", ["version", "change"])
@pytest.mark.parametrize("place", ["folder", "transport"])
def test_interchange_files_are_the_json_that_is_json(memory: llvs.Store, tmp_path: Path, where: str, place: str) -> None:
    """Unknown members are skipped if they are JSON; otherwise that version alone is a problem."""
    names = {f"V{number}": name for number, name in enumerate(suite())}
    data, transport = suite(), DictTransport()
    for id, name in names.items():
        transport.versions[id], transport.changes[id] = files_of(id, **{where: data[name]})
    result = retrieved(memory, tmp_path, transport, place)
    taken = {names[id] for id in result.retrieved}
    assert taken == {name for name in data if name.startswith("y_") or name in IN_FILES}
    assert {names[problem.name] for problem in result.problems} == data.keys() - taken
    for problem in result.problems:
        assert problem.code in REFUSED, (names[problem.name], problem)
    for id in result.retrieved:
        assert memory.at(id)["a"] == b"1"


@needed("JSONTestSuite")
@pytest.mark.parametrize("where", ["version", "change"])
@pytest.mark.parametrize("place", ["folder", "transport"])
def test_no_file_of_the_suite_is_a_version(memory: llvs.Store, tmp_path: Path, where: str, place: str) -> None:
    """Each in the place of a whole file, beside one version that is right."""
    names = {f"V{number}": name for number, name in enumerate(suite())}
    data, transport = suite(), DictTransport()
    for id, name in names.items():
        good = files_of(id)
        transport.versions[id] = data[name] if where == "version" else good[0]
        transport.changes[id] = data[name] if where == "change" else good[1]
    transport.versions["right"], transport.changes["right"] = files_of("right")
    result = retrieved(memory, tmp_path, transport, place)
    # An array without changes is a changes file.
    empty = {id for id, name in names.items() if where == "change" and name.startswith("y_") and json.loads(data[name]) == []}
    assert set(result.retrieved) == {"right"} | empty and len(empty) in (0, 2)
    assert {problem.name for problem in result.problems} == names.keys() - set(result.retrieved)


def retrieved(store: llvs.Store, folder: Path, transport: DictTransport, place: str) -> llvs.exchange.ExchangeResult:
    """Retrieves from the transport, or from a folder that has the same files."""
    if place == "folder":
        for kind, files in (("versions", transport.versions), ("changes", transport.changes)):
            (folder / "odd" / kind).mkdir(parents=True)
            for name, data in files.items():
                (folder / "odd" / kind / name).write_bytes(data)
    with llvs.Exchange(store, folder / "odd" if place == "folder" else transport) as exchange:
        return exchange.retrieve()
