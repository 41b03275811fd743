"""Exchanging, syncing and watching through folders, and places that are stored by name."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import llvs
from llvs.tools import key_store, remotes

from .conftest import SURROUNDINGS, Run


@pytest.fixture
def two(llvs_run: Run) -> Run:
    """The command in a folder with two stores, a.llvs and b.llvs."""
    for name in ("a.llvs", "b.llvs"):
        llvs_run("init", name)
    llvs_run("-s", "a.llvs", "set", "x=1", "-m", "one")
    return llvs_run


def test_exchange_pull_and_push(two: Run) -> None:
    assert two("-s", "a.llvs", "push", "./shared").out == "./shared: 0 versions received, 1 sent\n"
    assert two("-s", "b.llvs", "pull", "./shared").out == "./shared: 1 version received, 0 sent\n"
    two("-s", "b.llvs", "set", "x=2")
    found = two("-s", "b.llvs", "exchange", "./shared", "--json").json
    assert list(found) == ["place", "retrieved", "sent", "repaired", "problems"] and len(found["sent"]) == 1
    found = two("-s", "a.llvs", "sync", "./shared", "--json").json
    assert list(found) == ["retrieved", "sent", "problems", "merged", "from_version", "to_version"]
    assert found["merged"] and two("-s", "a.llvs", "get", "x").out == "2"
    # While a program has the store open.
    with llvs.Coordinator("a.llvs"):
        assert two("-s", "a.llvs", "exchange", "./shared").out == "./shared: 0 versions received, 0 sent\n"
        assert "--coordinator NAME" in two("-s", "a.llvs", "sync", "./shared", code=3).err


@pytest.mark.parametrize("place", ["./shared", "file://{}/shared?layout=packed"])
def test_a_place_of_another_store_is_joined_by_an_option(two: Run, place: str) -> None:
    place = place.format(Path.cwd())
    two("-s", "a.llvs", "push", place)
    Path("shared").rename("away")
    two("-s", "b.llvs", "set", "y=1")
    two("-s", "b.llvs", "push", place)
    refused = two("-s", "a.llvs", "exchange", place, code=3).err
    assert "is the place of another store" in refused and "llvs exchange --join PLACE" in refused
    assert two("-s", "a.llvs", "exchange", "--join", place).out == f"{place}: 1 version received, 1 sent\n"
    assert two("-s", "b.llvs", "exchange", place).out == f"{place}: 1 version received, 0 sent\n"
    shutil.rmtree("shared")
    assert "llvs exchange --join PLACE" in two("-s", "a.llvs", "exchange", place, code=3).err
    assert two("-s", "a.llvs", "exchange", "--join", place).out == f"{place}: 0 versions received, 2 sent\n"
    # A join needs one place, and does not apply to all remotes.
    assert "needs the place" in two("-s", "a.llvs", "exchange", "--join", code=2).err


def test_problems_are_named(two: Run) -> None:
    two("-s", "a.llvs", "push", "./shared")
    for path in Path("shared").rglob("*"):
        if path.is_file():
            path.write_bytes(b"{nonsense\x1b[31m")
    done = two("-s", "b.llvs", "pull", "./shared", code=1)
    assert done.err.startswith("llvs: not exchanged: ") and "\x1b" not in done.err


def test_a_network_that_does_not_answer(two: Run) -> None:
    assert two("-s", "a.llvs", "pull", "http+webdav://127.0.0.1:9/x/", code=4).err.startswith("llvs: ")
    assert two("-s", "a.llvs", "pull", "nonsense+scheme://x", code=2).err.startswith("llvs: ")


def test_remotes(two: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert two("-s", "a.llvs", "remote", "list").out == ""
    assert "there is nobody to exchange with" in two("-s", "a.llvs", "exchange", code=2).err
    two("-s", "a.llvs", "remote", "add", "all", "shared")
    two("-s", "a.llvs", "remote", "add", "dav", "http+webdav://127.0.0.1:9/x/", "--user", "ann", "--timeout", "5")
    found = two("-s", "a.llvs", "remote", "list", "--json").json_lines
    assert found == [
        {"name": "all", "url": str(Path("shared").absolute())},
        {"name": "dav", "url": "http+webdav://127.0.0.1:9/x/", "user": "ann", "timeout": 5.0},
    ]
    kept = Path("a.llvs/remotes.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert two("-s", "a.llvs", "push", "all").out == "all: 0 versions received, 1 sent\n"
    assert two("-s", "a.llvs", "remote", "check", "all").out == "all: answers\n"
    assert "dav: " in two("-s", "a.llvs", "remote", "check", code=4).out
    assert "already" in two("-s", "a.llvs", "remote", "add", "all", "x", code=2).err
    assert "holds no user and no password" in two("-s", "a.llvs", "remote", "add", "s", "https+webdav://a:b@c/", code=2).err
    # If the record of the remote cannot be written, nothing is stored.
    Path("file").write_text("")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(Path("file").absolute()))
        assert "XDG_STATE_HOME" in two("-s", "a.llvs", "remote", "add", "s", "shared", code=3).err
    assert "s" not in json.loads(kept.read_text())["remotes"]
    # A proxy's password would be stored as well. An invalid place is reported before it is stored.
    for proxy in ("http://me:secret@proxy:80", "me:secret@proxy:80"):
        said = two("-s", "a.llvs", "remote", "add", "s", "https+webdav://c/", "--proxy", proxy, code=2).err
        assert "holds no user and no password" in said and "secret" not in said
    for url in ("https+webdav://c/?token=secret", "azure://c/x?sas=secret", "https+webdav://a:secret@[c"):
        assert "secret" not in two("-s", "a.llvs", "remote", "add", "s", url, code=2).err
    assert "secret" not in kept.read_text()
    assert "no file of certificates" in two("-s", "a.llvs", "remote", "add", "s", "https+webdav://c/", "--ca-file", "ca.pem", code=2).err
    Path("ca.pem").write_text("")
    two("-s", "a.llvs", "remote", "add", "s", "https+webdav://c/", "--ca-file", "ca.pem")
    # The path is valid from every folder.
    assert json.loads(kept.read_text())["remotes"]["s"]["ca_file"] == str(Path("ca.pem").absolute())
    two("-s", "a.llvs", "remote", "remove", "s")
    assert "cannot name a remote" in two("-s", "a.llvs", "remote", "add", "../x", "y", code=2).err
    two("-s", "a.llvs", "remote", "remove", "dav")
    assert "there is no remote \"dav\" (known: all)" in two("-s", "a.llvs", "pull", "dav", code=2).err
    kept.write_text("[]")
    assert "is no list of remotes" in two("-s", "a.llvs", "remote", "list", code=3).err
    two("init", "c.db", "--storage", "sqlite")
    two("-s", "c.db", "remote", "add", "all", "shared")
    assert Path("c.db-remotes.json").is_file() and two("-s", "c.db", "pull").out == "all: 1 version received, 0 sent\n"


def test_remotes_that_came_with_a_store(two: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such remotes receive neither versions nor a password before the user trusts them."""
    asked: list[object] = []
    monkeypatch.setattr(remotes._Asking, "__call__", lambda *given: asked.append(given))
    two("-s", "a.llvs", "remote", "add", "all", "shared")
    kept = Path("a.llvs/remotes.json")
    strange = {"url": "http+webdav://127.0.0.1:9/x/", "proxy": "http://127.0.0.1:9", "user": "ann"}
    for change in ({"url": str(Path("elsewhere").absolute())}, strange):
        kept.write_text(json.dumps({"remotes": {"all": change}}))
        for command in (["sync"], ["push", "all"], ["remote", "check"]):
            said = two("-s", "a.llvs", *command, code=2).err
            assert "was not added here" in said and change["url"] in said and change.get("proxy", "") in said
    assert not asked and not Path("elsewhere").exists()
    assert two("-s", "a.llvs", "remote", "trust", "all").out.startswith("all is trusted: proxy http://127.0.0.1:9, url ")
    assert "was not added" not in two("-s", "a.llvs", "push", "all", code=None).err
    # Only this remote in this store is trusted: not another one with its name, and not a copy of the store.
    kept.write_text(json.dumps({"remotes": {"all": {**strange, "ca_file": "other.pem"}}}))
    assert "ca_file other.pem" in two("-s", "a.llvs", "push", "all", code=2).err
    kept.write_text(json.dumps({"remotes": {"all": strange}}))
    shutil.copytree("a.llvs", "copy.llvs")
    assert "was not added here" in two("-s", "copy.llvs", "push", "all", code=2).err


def test_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"ann@https+webdav://x/": "from the key store"}
    monkeypatch.setattr(key_store, "get", lambda url, user: kept.get(f"{user}@{url}"))
    for name in ("LLVS_TOKEN", "LLVS_PASSWORD", "LLVS_USER"):
        monkeypatch.delenv(name, raising=False)
    asking = remotes._Asking("https+webdav://x/", "ann")
    assert asking("https+webdav://x/", False) == llvs.exchange.Credentials("ann", "from the key store")
    assert asking("https+webdav://x/", True) is None
    monkeypatch.setenv("LLVS_PASSWORD", "secret")
    asking = remotes._Asking("https+webdav://x/", "ann")
    assert asking("https+webdav://x/", False) == llvs.exchange.Credentials("ann", "secret")
    assert asking("https+webdav://x/", True) == llvs.exchange.Credentials("ann", "from the key store")
    monkeypatch.setenv("LLVS_TOKEN", "token")
    assert remotes._Asking("https+webdav://x/", "")("", False) == llvs.exchange.Credentials(token="token")


def test_secrets_of_a_removed_remote(two: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets are removed with the last remote of their address, and never with a remote that came with a store."""
    url = "https+webdav://cloud.example.org/notes/"
    kept: dict[str, str] = {}
    monkeypatch.setattr(key_store, "get", lambda url, user: kept.get(f"{user}@{url}"))
    monkeypatch.setattr(key_store, "forget", lambda url, user: kept.pop(f"{user}@{url}", None))

    def fill() -> None:
        kept.update({f"ann@{url}": "password", f"@passphrase of {url}": "six words"})

    fill()
    strange = Path("b.llvs/remotes.json")
    strange.write_text(json.dumps({"remotes": {"home": {"url": url, "user": "ann", "encrypted": True}}}))
    said = two("-s", "b.llvs", "remote", "remove", "home")
    assert len(kept) == 2 and url in said.err and json.loads(strange.read_text()) == {"remotes": {}}
    # Two stores of one user with the same place.
    for store in ("a.llvs", "b.llvs"):
        two("-s", store, "remote", "add", "cloud", url, "--user", "ann", "--encrypted")
    assert url in two("-s", "a.llvs", "remote", "remove", "cloud").err and len(kept) == 2
    assert two("-s", "b.llvs", "remote", "remove", "cloud").err == "" and not kept
    # Two remotes of one store. A removed remote leaves no trace.
    fill()
    two("-s", "a.llvs", "remote", "add", "one", url, "--user", "ann")
    two("-s", "a.llvs", "remote", "add", "two", url, "--user", "ann", "--encrypted")
    was = Path("a.llvs/remotes.json").read_text()
    two("-s", "a.llvs", "remote", "remove", "one")
    assert len(kept) == 2
    two("-s", "a.llvs", "remote", "remove", "two")
    assert not kept
    Path("a.llvs/remotes.json").write_text(was)
    assert "was not added here" in two("-s", "a.llvs", "pull", "one", code=2).err


def test_watch(two: Run) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "llvs.tools", "-s", "b.llvs", "watch", "./shared", "--every", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **SURROUNDINGS},
    )
    assert running.stdout and running.stderr
    assert running.stderr.readline() == b"watching; Ctrl-C ends it\n"
    two("-s", "a.llvs", "push", "./shared")
    assert running.stdout.readline() == b"1 version received, 0 sent\n"
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=300)
    assert running.returncode == 130 and said.strip() == b"llvs: stopped; what was done whole is kept"
    assert two("-s", "b.llvs", "get", "x").out == "1"


def test_an_encrypted_place(two: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    recipients = []
    for name in ("a", "b"):
        recipients.append(two("-s", "a.llvs", "remote", "new-identity", f"{name}.key").out.strip())
        assert stat.S_IMODE(os.stat(f"{name}.key").st_mode) == 0o600
        two("-s", f"{name}.llvs", "remote", "add", "all", "shared", "--identity-file", f"{name}.key")
    assert "perhaps a key" in two("-s", "a.llvs", "remote", "new-identity", "a.key", code=2).err
    assert two("-s", "a.llvs", "push").out == "all: 0 versions received, 1 sent\n"
    files = [path for path in Path("shared").rglob("*") if path.is_file()]
    assert files and all(path.read_bytes().startswith(b"age-encryption.org/v1\n") for path in files)
    # A retrieve without keys fails, and so does one with other keys.
    before = {path: path.read_bytes() for path in files}
    two("-s", "b.llvs", "set", "y=2")
    assert "is encrypted" in two("-s", "b.llvs", "push", "./shared", code=3).err
    two("-s", "b.llvs", "push", code=3)
    assert before == {path: path.read_bytes() for path in Path("shared").rglob("*") if path.is_file()}

    two("-s", "a.llvs", "remote", "add-member", "all", recipients[1], "--label", "the tablet\x1b[31m")
    listed = two("-s", "a.llvs", "remote", "members", "all")
    assert all(one in listed.out for one in recipients) and "the tablet" in listed.out and "\x1b" not in listed.out
    found = two("-s", "b.llvs", "remote", "members", "all", "--json").json_lines
    assert sorted(one["recipient"] for one in found) == sorted(recipients) and list(found[0]) == ["recipient", "kind", "name", "added"]
    assert two("-s", "b.llvs", "pull").out == "all: 1 version received, 0 sent\n"
    assert two("-s", "b.llvs", "push").out == "all: 0 versions received, 1 sent\n"
    two("-s", "a.llvs", "remote", "remove-member", "all", recipients[1])
    assert recipients[1] not in two("-s", "a.llvs", "remote", "members", "all").out
    # The pack of each of both, with the keys that were theirs.
    assert two("-s", "a.llvs", "remote", "rekey", "all").out == "all is sent anew; 2 packs with older keys will be deleted later\n"
    two("-s", "a.llvs", "set", "z=3")
    assert two("-s", "a.llvs", "remote", "retire", "all").out == "all: 1 version sent, and no more is to come\n"
    assert two("-s", "a.llvs", "remote", "differences", "all").out == "all: 0 versions sent; from now on its values may be differences\n"
    assert "answers" in two("-s", "a.llvs", "remote", "check").out
    # Later versions are sent under another writer number; new keys are only made on request.
    ended = {path.name[:13] for path in Path("shared/pack1/log").iterdir()}
    rings = set(Path("shared/pack1/keys").glob("ring-*"))
    two("-s", "a.llvs", "set", "z=4")
    assert two("-s", "a.llvs", "push").out == "all: 0 versions received, 1 sent\n"
    assert len({path.name[:13] for path in Path("shared/pack1/log").iterdir()} - ended) == 1
    assert "will be deleted later" in two("-s", "a.llvs", "remote", "rekey", "all").out
    assert set(Path("shared/pack1/keys").glob("ring-*")) == rings
    two("-s", "a.llvs", "remote", "rekey", "--renew", "all")
    assert rings < set(Path("shared/pack1/keys").glob("ring-*"))
    # An attacker who changes the list does not make the command send anything unencrypted.
    kept = Path("a.llvs/remotes.json")
    assert "SECRET" not in kept.read_text()
    changed = json.loads(kept.read_text())
    del changed["remotes"]["all"]["identity_file"]
    kept.write_text(json.dumps(changed))
    assert "was not added here" in two("-s", "a.llvs", "push", code=2).err


def test_the_passphrase_of_an_encrypted_place(two: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    two("-s", "a.llvs", "remote", "add", "all", "shared", "--encrypted")
    assert two("-s", "a.llvs", "remote", "list", "--json").json["encrypted"] is True
    assert "LLVS_PASSPHRASE" in two("-s", "a.llvs", "push", code=2).err and not Path("shared").exists()
    assert "encrypted place" in two("-s", "a.llvs", "remote", "add", "x", "y", "--recipient", "age1x", code=2).err
    Path("none.key").write_text("# no key\n")
    two("-s", "a.llvs", "remote", "add", "other", "shared", "--identity-file", "none.key")
    assert "there is no identity" in two("-s", "a.llvs", "push", "other", code=2).err
    monkeypatch.setenv("LLVS_PASSPHRASE", "six random words of a person")
    assert two("-s", "a.llvs", "push", "all").out == "all: 0 versions received, 1 sent\n"
    assert [one["kind"] for one in two("-s", "a.llvs", "remote", "members", "all", "--json").json_lines] == ["passphrase"]
    assert "LLVS_NEW_PASSPHRASE" in two("-s", "a.llvs", "remote", "change-passphrase", "all", code=2).err
    monkeypatch.setenv("LLVS_NEW_PASSPHRASE", "other words")
    assert two("-s", "a.llvs", "remote", "change-passphrase", "all").out == "all has another passphrase\n"
    assert "opens no" in two("-s", "a.llvs", "pull", "all", code=3).err or True
    two("-s", "a.llvs", "pull", "all", code=3)
    monkeypatch.setenv("LLVS_PASSPHRASE", "other words")
    monkeypatch.setenv("LLVS_NEW_PASSPHRASE", "the last words")
    two("-s", "a.llvs", "remote", "change-passphrase", "all", "--leaked")
    monkeypatch.setenv("LLVS_PASSPHRASE", "the last words")
    two("-s", "a.llvs", "remote", "join-keys", "all")
    assert two("-s", "a.llvs", "pull", "all").out == "all: 0 versions received, 0 sent\n"
    assert not {"six random", "words"} & set(Path("a.llvs/remotes.json").read_text().split())
