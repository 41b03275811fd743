"""One module prints all text of other devices, and escapes it: no name, text or message affects a terminal."""

from __future__ import annotations

import ast
import functools
import hashlib
import hmac
import json
import logging
import os
import re
import sys
from pathlib import Path
from typing import Iterator

import click
import pytest

import llvs
from llvs.inspector import serving
from llvs.inspector.__main__ import main
from llvs.tools import escape, output
from packs import encrypted
from packs.names import encode

from .conftest import Run, program

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Vectors" / "age"))

import model as age  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
VECTORS = json.loads((ROOT / "Tests" / "Vectors" / "escaping.json").read_text("utf-8"))["vectors"]
#: A title of the window, a style that the command does not use, directions of writing, a control character of C1, ends of lines.
EVIL = "\x1b]0;own\x07\x1b[5m\u202ebidi\u2066\x9b5m\r\nllvs: all is whole\u2028"
#: The styles of the command.
STYLES = re.compile("\x1b\\[(?:0|1|2|9|3[1-6])m")


def harmful(shown: str) -> list[str]:
    """Returns the characters of the command's output that would affect a terminal."""
    return re.findall(".{0,30}[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069].{0,30}", STYLES.sub("", shown))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["why"]))
def test_what_is_escaped(vector: dict[str, str]) -> None:
    text, shown = vector["text"], vector["shown"]
    assert escape.line(text) == shown
    assert escape.line(shown) == shown, "escaping twice changes nothing"
    assert escape.lines(text).replace("\n", "\\n").replace("\t", "\\t") == shown
    told = output.as_json([text])
    assert json.loads(told) == [text] and not harmful(told)
    assert escape.line(told) == told


def test_styled_text_is_printed_as_it_is_and_all_else_is_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_coloured", lambda: True)
    red = "\x1b[31m\x1b[9m"
    styled = output.style("a\x1b[5m", "removed")
    assert styled == f"{red}a\\x1b[5m\x1b[0m" and output.row("b\n", styled) == f"b\\n{styled}"
    # A mistake: styled text inside plain text. It is visible, and has no effect.
    output.show([styled, f"{styled}!", "c\td", *output.text_rows("e\tf\ng")])
    output.say(f"{EVIL}\nnext")
    shown, said = capsys.readouterr()
    assert shown.split("\n") == [styled, escape.line(f"{styled}!"), "c\\td", "e\tf", "g", ""]
    assert said.count("\n") == 1 and not harmful(said)
    assert list(output.table([["a\n", "b"], ["\u4f60", output.style("c", "id")]], is_cut=False))[0] == "a\\n  b"


#: Functions that print.
_PRINTING = re.compile(r"print|click\.(echo|secho|style|prompt|confirm|echo_via_pager)|sys\.std(out|err)\.write|traceback\.print_\w+")
#: Places that print without `output`: their text is not from others, or is escaped there.
PRINTING_ELSEWHERE = [
    "inspector/__main__.py: print(escape.line(str(problem)), file=sys.stderr)",
    "inspector/serving.py: print(escape.line(line), flush=True)",
    # Used if click is not installed.
    "tools/__main__.py: sys.stderr.write(f'llvs: the command needs the package click, which is not installed: {HOW_TO_INSTALL}\\n')",
    "tools/command.py: click.echo(f'llvs {llvs.__version__}, library {llvs.library_version()}')",
    # A picture, in Base64.
    "tools/value_commands.py: sys.stdout.write(terminal_pictures.drawn(data) or '')",
]


def _printing(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        # Styled text is not escaped, so only `output` may make it: `Styled(text)` or `map(Styled, texts)`.
        is_styling = called == "Styled" or any(isinstance(given, ast.Name) and given.id == "Styled" for given in node.args)
        if _PRINTING.fullmatch(called) or is_styling and called != "isinstance":
            yield ast.unparse(node)


def test_one_module_prints() -> None:
    package = Path(llvs.__file__).parent
    paths = [path for folder in ("tools", "inspector") for path in sorted((package / folder).glob("*.py")) if path.name != "output.py"]
    found = [f"{path.parent.name}/{path.name}: {call}" for path in paths for call in _printing(path)]
    assert sorted(found) == PRINTING_ELSEWHERE


@pytest.fixture
def coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command styles what it prints, as on a terminal."""
    monkeypatch.setattr(output, "is_coloured", functools.lru_cache(lambda: True))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of which others wrote every name and text, with a conflict, a branch and remotes."""
    path, document, text = tmp_path / "theirs.llvs", "d" + EVIL, "t" + EVIL

    def content(number: int, said: str) -> bytes:
        return json.dumps({EVIL: number, "t": said + EVIL}).encode()

    with llvs.Store(path, durability="normal") as theirs:
        rules = {
            "merge": 1, "ids": {"d": {"/t": "text"}, "zz" + EVIL: "counter"},
            "indexes": {EVIL: {"prefix": document, "on": ["/" + EVIL]}},
        }
        root = theirs.make_version(
            insert={document: content(1, "a"), text: f"line {EVIL}\nb".encode(), "p": b"1", "__llvs_schema": json.dumps(rules).encode()},
            metadata={"author": EVIL, "message": EVIL, "device": EVIL, EVIL: EVIL},
        )
        one = theirs.make_version(
            root, update={document: content(2, "b")}, metadata={"__llvs_device": EVIL, "__llvs_description": EVIL}, branch="b" + EVIL[:20]
        )
        two = theirs.make_version(
            root, update={document: content(3, "c"), text: f"line2 {EVIL}".encode()}, metadata={"user": EVIL, "title": EVIL}
        )
        theirs.make_version(theirs.merge(one, two), update={"p": b"2"}, branch="x\x1b[5m\u202e")
    place = {"url": "https+webdav://127.0.0.1:1/" + EVIL, "user": EVIL, EVIL: EVIL, "token_file": EVIL}
    (path / "remotes.json").write_text(json.dumps({"remotes": {"o" + EVIL: place, "-rf": {"url": "x"}}}))
    return path


@pytest.mark.usefixtures("coloured")
def test_nothing_that_others_wrote_reaches_a_terminal_raw(store: Path, llvs_run: Run, tmp_path: Path) -> None:
    with llvs.Store(store, create=False) as theirs:
        ids = [id for id in theirs.at(theirs.most_recent_head or "") if id.startswith(("d", "t"))]
        history = list(theirs.history())
        root, merge = history[-1].id, next(version.id for version in history if len(version.predecessors) == 2)
    folder = tmp_path / "place"
    (folder / "versions").mkdir(parents=True)
    (folder / "versions" / "evil\x1b[5mname\u202e").write_text("x")
    (folder / "versions" / ("A" * 8 + "-evil")).write_text("{")
    evil = "o" + EVIL
    between = f"{root} {merge}"
    commands = [
        "log", "log --graph", "log --stat", "log --oneline", "log --json --stat", "show", f"show {root}", f"show --json {merge}", "ls",
        "ls -l", "ls --json", f"diff {between}", f"diff --stat {between}", f"diff --names {between}", f"diff --json {between}", "branch",
        "branch --json", "conflicts", "conflicts --json", f"explain {merge}", f"explain --json {merge}", "status", "status --json",
        "verify", f"push {folder}", f"pull {folder}", "export", "undo", "redo", f"revert {merge}", "remote list", "remote list --json",
        "pull", "remote check", "get",
    ]
    runs = [command.split(" ") for command in commands]
    for id in ids:
        runs += [[*command.split(), id] for command in ("get --hex", "get --json", "history", "history --json", "blame", "log --value")]
        runs += [["blame", "--json", id], ["get", id + EVIL]]
    # Input is repeated in messages, and may have been copied from anywhere.
    runs += [[*command.split(), EVIL] for command in ("show", "set", "rm", "log --since", "", "completion", "remote trust", "-s")]
    runs += [["show", f"b{EVIL[:20]}"], ["set", f"{EVIL}={EVIL}", "-m", EVIL], ["inspect", f"/nope/{EVIL}"], ["init", str(store)]]
    runs += [[*command.split(), evil] for command in ("push", "remote members", "remote trust", "remote check", "remote remove")]
    runs += [["remote", "add", EVIL, "x"], ["remote", "members", "-rf"], ["export", "-o", f"/nope/{EVIL}.jsonl"]]
    count = 0
    for arguments in runs:
        done = llvs_run("-s", str(store), *arguments, code=None)
        assert harmful(done.out) == [] and harmful(done.err) == [], arguments
        # A name does not add a line to the output either.
        assert not re.search("^llvs: all is whole", done.out + done.err, re.MULTILINE), arguments
        count += bool(done.out)
    assert count > 35, "most of them show something"


def test_a_traceback_is_escaped(store: Path, llvs_run: Run) -> None:
    done = program("-s", str(store), "--debug", "get", f"nope{EVIL}", capture_output=True)
    assert b"Traceback" in done.stderr and not harmful(done.stderr.decode())


@pytest.mark.usefixtures("coloured")
def test_members_that_others_wrote(tmp_path: Path, llvs_run: Run) -> None:
    """A member of an encrypted place may write anything into the list of members."""
    folder, (mallory, ann) = tmp_path / "place", (llvs.exchange.make_identity(), llvs.exchange.make_identity())
    (tmp_path / "ann.key").write_text(ann.secret + "\n")
    with llvs.Store("ann.llvs") as store:
        store.make_version(insert={"a": b"1"})
        with llvs.Exchange(store, llvs.Remote(folder.as_uri(), identity=ann.secret, recipients=[mallory.recipient])) as way:
            way.send()
    ring = next((folder / "pack1" / "keys").glob("ring-*"))
    said = json.loads(encrypted.open_age(ring.read_bytes(), [encrypted.secret_of(mallory.secret)]).split(b"\n")[0])
    for member in said["members"]:
        member["added"] = member["name"] = EVIL
    newest = encrypted.secret_of(said["epochs"][-1]["identity"])
    line = json.dumps(said, separators=(",", ":")).encode()
    tag = hmac.digest(age.hkdf(newest, b"", b"llvs mac 1"), line, "sha256").hex()
    key = os.urandom(16)
    stanzas = b"".join(
        age.x25519_stanza(key, os.urandom(32), age.x25519(encrypted.secret_of(one.secret))) for one in (ann, mallory)
    )
    plain = line + b"\n" + f"{encrypted.recipient_of(newest)} {tag}\n".encode()
    data = age.header(key, stanzas) + age.payload(key, os.urandom(16), age.cut(plain))
    ring.with_name("-".join(ring.name.split("-")[:2]) + "-" + encode(hashlib.sha256(data).digest()[:16])).write_bytes(data)
    ring.unlink()
    llvs_run("-s", "ann.llvs", "remote", "add", "p", folder.as_uri(), "--identity-file", str(tmp_path / "ann.key"))
    for options in ([], ["--json"]):
        done = llvs_run("-s", "ann.llvs", "remote", "members", "p", *options)
        assert mallory.recipient in done.out and "own" in done.out and harmful(done.out) == [], done.out
        assert len(done.out.splitlines()) == 2


def test_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of a place may have come with a store."""
    asked: list[str] = []
    monkeypatch.setattr(click, "prompt", lambda question, **_: asked.append(question) or "secret")
    assert output.ask(f"Password at {EVIL}") == output.ask(f"User at {EVIL}", is_hidden=False, default="") == "secret"
    assert [harmful(question) for question in asked] == [[], []] and all("own" in question for question in asked)


def test_what_the_inspector_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    serving._print(EVIL)
    # The server logs exceptions that nothing expected.
    try:
        raise ValueError(EVIL)
    except ValueError:
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "%s", (EVIL,), sys.exc_info())
    told = serving._Harmless().format(record)
    assert "ValueError" in told and told.count("own") == 2
    assert harmful(capsys.readouterr().out) == harmful(told) == []
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main([str(tmp_path / f"nope{EVIL}"), "--no-open"]))
    said = capsys.readouterr().err
    assert ended.value.code == 3 and "nope" in said and not harmful(said)
