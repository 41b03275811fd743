"""What the public has collected to break readers of JSON, of addresses, and of names. See public_inputs.py for where it is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import llvs
import pytest
from llvs.models._json import NotJSON, parse
from public_inputs import FOLDER, needed

#: Valid by RFC 8259, and not mergeable: docs/merging-values.md refuses a name that is twice in one object.
TWICE = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}
#: What the suite leaves to each reader, and docs/merging-values.md accepts: numbers that a float does not hold.
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
    """Whether the documents promise that it is read as JSON."""
    return name in ACCEPTED if name.startswith("i_") else name.startswith("y_") and name not in TWICE


@needed("JSONTestSuite")
def test_indexes_read_the_json_that_is_json(memory: llvs.Store) -> None:
    files = suite()
    memory.make_version(insert=files)
    index = memory.index(definition={"prefix": "", "on": ["/x"]})
    assert {name for name in files if index.explain(name).why != "not-json"} == {name for name in files if is_accepted(name)}


@needed("JSONTestSuite")
def test_merges_go_inside_the_json_that_is_json() -> None:
    """Each file stands within an object, which both sides change beside it."""
    for name, data in suite().items():
        base, newer, older = (b'{"keep":' + data + more for more in (b"}", b',"n":1}', b',"m":1}'))
        merged = llvs.merge_values(base, newer, older, "auto")
        if is_accepted(name):
            assert not merged.records and merged.data is not None, name
            found, kept = json.loads(merged.data, parse_float=str), json.loads(data, parse_float=str)
            assert found == {"keep": kept, "m": 1, "n": 1}, name
        else:
            assert [record.kind for record in merged.records] == [llvs.ConflictKind.NOT_JSON] and merged.data == newer, name


@needed("JSONTestSuite")
def test_models_and_rules_refuse_what_is_no_json() -> None:
    for name, data in suite().items():
        if name.startswith("n_"):
            with pytest.raises(NotJSON):
                parse(data)
            with pytest.raises(ValueError):
                llvs.check_schema(data)
        elif is_accepted(name):
            parse(data)


@needed("JSONTestSuite")
def test_metadata_of_any_bytes_is_told(memory: llvs.Store) -> None:
    """What is JSON comes as that, and what is none as the bytes that it is."""
    files = suite()
    version = memory.make_version(metadata={name: data for name, data in files.items() if len(data) < 10_000})
    for name, data in version.raw_metadata.items():
        assert data == files[name]
        if name.startswith("n_"):
            assert version.metadata[name] == data, name
        elif name.startswith("y_"):
            assert version.metadata[name] == json.loads(data), name


@needed("urls")
def test_a_password_goes_in_clear_to_this_machine_alone(memory: llvs.Store) -> None:
    """`http+webdav:` is for this machine: whatever is accepted is an address that leads a browser to it as well."""
    accepted = 0
    for one in json.loads((FOLDER / "urls" / "urltestdata-http.json").read_text()):
        scheme, colon, rest = one["input"].partition(":")
        try:
            with llvs.Exchange(memory, llvs.Remote(f"http+webdav{colon}{rest}", user="u", password="secret")):
                pass
        except (llvs.InvalidArgumentError, llvs.UnsupportedError):
            continue
        accepted += 1
        host = one["hostname"].strip("[]")
        assert host == "localhost" or host == "::1" or host.startswith("127."), one["input"]
        assert urlsplit(one["input"]).hostname == host
    assert accepted >= 2


def naughty() -> list[str]:
    found: list[str] = json.loads((FOLDER / "naughty-strings" / "blns.json").read_text())
    assert len(found) > 400
    return [text for text in dict.fromkeys(found) if text]


@llvs.model("named/")
@dataclass
class Named:
    texts: dict[str, str] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)


@needed("naughty-strings")
@pytest.mark.parametrize("layout", ["interchange", "packed"])
def test_naughty_strings_are_names_of_every_kind(layout: Any, tmp_path: Path) -> None:
    names = naughty()
    place = llvs.Remote((tmp_path / "place").as_uri(), layout=layout, device_name=names[7][:30])
    rules = {"merge": 1, "indexes": {"text": {"prefix": "text/", "on": ["/text"]}}}
    one, two = (llvs.Coordinator(tmp_path / name, exchange=place, device=names[3]) for name in ("one", "two"))
    with one, two:
        one.register_schema(rules)
        one.collection(Named)["1"] = Named({name: name for name in names}, set(names))
        one.save(update={name: name.encode() for name in names})
        one.save(update={f"text/{name}": json.dumps({"text": name}).encode() for name in names})
        one.save(update={"last": b"1"}, metadata={name: [name] for name in names}, description=names[5], group=names[6])
        for name in names[:40]:
            one.save(update={"branched": name.encode()}, branch=name)
        assert not one.sync().problems and not two.sync().problems
        assert {head.branch for head in two.store.heads()} == set(names[:40])
        state = two.at()
        assert {name: state[name] for name in names} == {name: name.encode() for name in names}
        assert two.collection(Named)["1"] == Named({name: name for name in names}, set(names))
        index = two.index("text")
        for name in names:
            assert [entry.key for entry in index.find(name).entries()] == [(name,)], ascii(name)
        last = next(version for version, _ in two.store.value_history("last"))
        assert {name: last.metadata[name] for name in names} == {name: [name] for name in names}
        assert (last.description, last.device) == (names[5], names[3])
        for name in names[:40]:
            assert two.store.at(two.store.heads(branch=name)[0])["branched"] == name.encode()
        assert not two.store.verify().damages
