"""Public collections of input that breaks parsers of addresses and names. public_inputs.py says where to find them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import llvs
import pytest
from public_inputs import FOLDER, naughty, needed

@needed("urls")
def test_a_password_goes_in_clear_to_this_machine_alone(memory: llvs.Store) -> None:
    """`http+webdav:` is for this machine: whatever is accepted is an address that leads a browser to it as well."""
    accepted = 0
    for one in json.loads((FOLDER / "urls" / "urltestdata-http.json").read_text()):
        scheme, colon, rest = one["input"].partition(":")
        try:
            with llvs.Exchange(memory, llvs.Remote(f"http+webdav{colon}{rest}", user="u", password="secret")):
                pass
        except (llvs.errors.InvalidArgumentError, llvs.errors.UnsupportedError):
            continue
        accepted += 1
        host = one["hostname"].strip("[]")
        assert host == "localhost" or host == "::1" or host.startswith("127."), one["input"]
        assert urlsplit(one["input"]).hostname == host
    assert accepted >= 2


@llvs.models.model("named/")
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
    # Some are longer than 255 bytes as names of files.
    options = llvs.CoordinatorOptions(no_other_readers=True)
    one, two = (llvs.Coordinator(tmp_path / name, exchange=place, device=names[3], options=options) for name in ("one", "two"))
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
