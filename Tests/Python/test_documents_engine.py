"""The engine beside the model of merging inside values: the same bytes, the same records, the same digest."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Optional

import llvs
import pytest
from documents import json_model as j
from documents import merge as m
from documents import rules as r
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_documents import Generator, dumps

VECTORS = json.loads((Path(__file__).parent.parent / "Vectors" / "documents" / "vectors.json").read_text())["vectors"]


def shown(record: m.Record, value_id: str) -> dict[str, bytes]:
    """A record of the model as the engine's: JSON texts by name."""
    return {name: j.canonical(value) for name, value in record.node(value_id).members}


def told(record: llvs.Conflict, value_id: str) -> dict[str, bytes]:
    """A conflict of the engine in the same form."""
    def text(value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    members: dict[str, Optional[bytes]] = {
        "id": text(value_id),
        "path": None,
        "kind": text(record.kind.value),
        "o": record.base,
        "x": record.newer,
        "y": record.older,
        "result": record.result,
        "rule": None if record.rule is None else text(list(record.rule)),
    }
    return {name: value for name, value in members.items() if value is not None}


def compare(rules: Any, o: Optional[bytes], x: Optional[bytes], y: Optional[bytes], saving: bool = False) -> None:
    """Merges by both, and compares all that comes out."""
    schema = ('{"merge":1,"ids":{"p":' + dumps(rules) + "}}").encode()
    try:
        checked = r.parse_schema(schema)
    except r.InvalidSchema as invalid:
        with pytest.raises((llvs.InvalidArgumentError, llvs.UnsupportedError)) as raised:
            llvs.merge_values(o, x, y, schema, id="p")
        assert (raised.value.path or "") == invalid.where, schema
        return
    expected = m.merge_values(o, x, y, checked.rules("p"), app_wins=saving)
    merged = llvs.merge_values(o, x, y, schema, id="p", saving=saving)
    about = f"{schema.decode()} {o!r} {x!r} {y!r}"
    assert merged.data == expected.data, about
    records = [shown(record, "p") for record in expected.records]
    for record in records:
        del record["path"]
    assert [told(record, "p") for record in merged.records] == records, about
    assert merged.digest == (m.conflicts_digest(("p", record) for record in expected.records) if records else ""), about


@pytest.mark.parametrize("seed", range(24))
def test_random_documents(seed: int) -> None:
    for number in range(150):
        merge_random(Generator(random.Random(1000 * seed + number)))


def merge_random(generator: Generator) -> None:
    """Makes a case, and compares."""
    rules, texts = generator.case()
    compare(rules, *texts, saving=generator.rng.randrange(8) == 0)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_random_documents_that_shrink(rng: random.Random) -> None:
    merge_random(Generator(rng))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vectors(vector: dict[str, Any]) -> None:
    texts = [None if vector[name] is None else vector[name].encode() for name in ("base", "newer", "older")]
    merged = llvs.merge_values(*texts, vector["schema"].encode(), id="a")
    assert merged.data == (None if vector["result"] is None else vector["result"].encode())
    empty = m.conflicts_digest(())
    assert (merged.digest or empty) == vector["digest"]
