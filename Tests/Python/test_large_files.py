"""Large files of transports in Python: open files and iterables instead of bytes."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import IO, Any, Iterable, Optional, Sequence

import llvs
import pytest

LARGE = 3_000_000


class Files(llvs.exchange.Transport):
    """Files in a directory, of which large ones are never in memory as a whole."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.largest = self.sent_whole = 0
        self.opened: list[IO[bytes]] = []
        self.kept: Optional[llvs.exchange.OutgoingFile] = None
        for folder in ("versions", "changes"):
            (directory / folder).mkdir(parents=True, exist_ok=True)

    def list(self) -> Iterable[str]:
        return os.listdir(self.directory / "versions")

    def fetch_versions(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        return [(self.directory / "versions" / name).read_bytes() for name in names]

    def fetch_changes(self, names: Sequence[str]) -> Sequence[Any]:
        self.opened = [open(self.directory / "changes" / name, "rb") for name in names]
        return self.opened

    def send(self, files: Sequence[llvs.exchange.VersionFiles]) -> None:
        for file in files:
            self.sent_whole = max(self.sent_whole, len(file.changes))
            (self.directory / "changes" / file.name).write_bytes(file.changes)
            (self.directory / "versions" / file.name).write_bytes(file.version)

    def send_large(self, name: str, version: bytes, changes: llvs.exchange.OutgoingFile) -> None:
        self.kept = changes
        again = io.BytesIO()
        changes.write_to(again)
        with open(self.directory / "changes" / name, "wb") as file:

            class Counting:
                def write(_, data: bytes) -> None:
                    self.largest = max(self.largest, len(data))
                    file.write(data)

            changes.write_to(Counting())
            assert file.tell() == changes.size == len(again.getvalue())
        (self.directory / "versions" / name).write_bytes(version)


def exchange_all(sending: llvs.exchange.Transport, receiving: llvs.exchange.Transport) -> None:
    data = os.urandom(LARGE)
    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        first = one.make_version(insert={"small": b"x"})
        second = one.make_version(first, insert={"large": data})
        with llvs.Exchange(one, sending) as exchange:
            assert len(exchange.send().versions) == 2
        with llvs.Exchange(two, receiving) as exchange:
            result = exchange.retrieve()
            assert len(result.versions) == 2 and not result.problems
        value = two.value("large", at=second)
        assert value is not None and value.data == data


def test_open_files_are_read_and_closed(tmp_path: Path) -> None:
    sending, receiving = Files(tmp_path), Files(tmp_path)
    exchange_all(sending, receiving)
    assert 0 < sending.largest < LARGE / 2 and 0 < sending.sent_whole < 10_000
    assert receiving.opened and all(file.closed for file in receiving.opened)
    assert sending.kept is not None
    with pytest.raises(ValueError):
        sending.kept.write_to(io.BytesIO())


def test_iterables_are_read(tmp_path: Path) -> None:
    class Pieces(Files):
        def fetch_changes(self, names: Sequence[str]) -> Sequence[Any]:
            def pieces(data: bytes) -> Iterable[bytes]:
                yield b""
                for at in range(0, len(data), 12_345):
                    yield data[at : at + 12_345]

            return [pieces((self.directory / "changes" / name).read_bytes()) for name in names]

    exchange_all(Files(tmp_path), Pieces(tmp_path))


def test_a_transport_without_send_large_gets_it_whole(tmp_path: Path) -> None:
    class Whole(Files):
        send_large = llvs.exchange.Transport.send_large

    sending = Whole(tmp_path)
    exchange_all(sending, Files(tmp_path))
    assert sending.sent_whole > LARGE


class Broken(Exception):
    """The exception that a file raises."""


def test_what_writing_raises_comes_out(tmp_path: Path) -> None:
    class Full:
        def write(self, data: bytes) -> None:
            raise Broken("no room")

    class Failing(Files):
        def send_large(self, name: str, version: bytes, changes: llvs.exchange.OutgoingFile) -> None:
            changes.write_to(Full())

    with llvs.Store(storage="memory") as store:
        store.make_version(insert={"large": os.urandom(LARGE)})
        with llvs.Exchange(store, Failing(tmp_path)) as exchange, pytest.raises(Broken, match="no room"):
            exchange.send()
        with llvs.Exchange(store, Files(tmp_path)) as exchange:
            assert len(exchange.send().versions) == 1


def test_what_reading_raises_comes_out(tmp_path: Path) -> None:
    class Torn(io.RawIOBase):
        def readinto(self, buffer: Any) -> int:
            raise Broken("torn")

    class Tearing(Files):
        def fetch_changes(self, names: Sequence[str]) -> Sequence[Any]:
            self.opened = [Torn() for _ in names]  # type: ignore[misc]
            return self.opened

    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        one.make_version(insert={"large": os.urandom(LARGE)})
        with llvs.Exchange(one, Files(tmp_path)) as exchange:
            exchange.send()
        torn = Tearing(tmp_path)
        with llvs.Exchange(two, torn) as exchange, pytest.raises(Broken, match="torn"):
            exchange.retrieve()
        assert all(file.closed for file in torn.opened)
        assert not two.heads()
