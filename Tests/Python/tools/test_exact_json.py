"""JSON is shown, compared and written without losing a digit, and other bytes are text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import llvs
from llvs.tools import values
from llvs.tools.exact_json import Number, parsed, written

from .conftest import Run

EXACT = '{"a": 1e400, "b": [1.00, -0, 12345678901234567890.10], "c": {}, "d": [], "e": {"x": [{}]}}'


@pytest.mark.parametrize("text", [EXACT, "[]", "1.50", '"1"', "null", "[true, false]", '{"b": 1, "a": {"d": 2, "c": 3}}'])
def test_it_is_written_as_it_was_read(text: str) -> None:
    assert written(parsed(text)) == text
    loose = json.loads(text, parse_float=str)
    assert written(loose, indent=2) == json.dumps(loose, indent=2, ensure_ascii=False)
    assert written(loose, sort_keys=True) == json.dumps(loose, sort_keys=True, ensure_ascii=False)


@pytest.mark.parametrize("text", ['{"a": NaN}', "[-Infinity]", '{"a": 1, "a": 2}', '[{"b": {"a": 1, "a": 1}}]'])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(ValueError):
        parsed(text)
    assert values.shape(text.encode()) == {"kind": "text", "size": len(text), "text": text}


@pytest.mark.parametrize("text", ['"dark"', "1.00", "1e400", "-0", "true", "false", "null", ' "a"\n', "[1]"])
def test_a_scalar_is_a_document(text: str) -> None:
    """As JSON. The output for people has the stored spelling."""
    made = values.shape(text.encode())
    assert (made["kind"], written(made["json"])) == ("json", text.strip())
    assert list(values.rows(text.encode()))[0].lstrip() in (text.strip(), "[")


@pytest.mark.parametrize(
    "text", ["dark", "tea", "no", "12 eggs", "-", "01", "+1", "nan", "Infinity", '"a', "'a'", "1_000", "\u0661", "null and void"]
)
def test_a_text_that_begins_as_a_scalar_is_text(text: str) -> None:
    assert values.shape(text.encode())["kind"] == "text"


def test_a_number_is_no_text() -> None:
    assert Number(b"1") == Number(b"1") != Number(b"1.0")
    assert Number(b"1") != "1" and Number(b"1") != ["1"]


def test_numbers_in_what_the_command_prints(llvs_run: Run, tmp_path: Path) -> None:
    deep = "[" * 900 + "1.0" + "]" * 900
    with llvs.Coordinator(tmp_path / "numbers.llvs", device="tests") as store:
        store.save(insert={"doc": EXACT.encode(), "deep": deep.encode()})
        store.save(update={"doc": EXACT.replace("1.00", "1.0").encode()})
    assert EXACT in llvs_run("export", "--at", "@~").out
    assert deep in llvs_run("export").out and deep in llvs_run("blame", "deep").out
    assert "    1.00,\n" in "".join(f"{row}\n" for row in values.rows(EXACT.encode()))
    assert '"a": 1e400,\n' in llvs_run("get", "doc", "--json").out
    # If only the spelling of a number differs, that is reported.
    assert llvs_run("diff").out.split("\n")[1:] in (["  /b/0: 1.00 → 1.0", ""], ["  /b/0: 1.00 -> 1.0", ""])
    assert '"old": 1.00, "new": 1.0}' in llvs_run("diff", "--json").out
    assert "12345678901234567890.10]\n" in llvs_run("blame", "doc").out
