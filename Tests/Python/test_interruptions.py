"""A signal whose handler raises, at every point of calls that call back: nothing is cut short, and no exception is lost."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import llvs
import pytest
from sampling import sample

#: The beginning of every program below. `at_every_point(action, check)` runs `action(n)` with SIGINT raised once at the n-th step of Python
#: in the package or in the callbacks, for each n, and then `check(n, result or exception)`.
PRELUDE = """
import ctypes, io, os, pathlib, signal, sys, types
import llvs
from llvs._abi import callbacks as _callbacks, signals as _signals

Interrupted = KeyboardInterrupt
raised = 0
def handler(number, frame):
    global raised
    raised += 1
    raise Interrupted(raised)
numbers = (signal.SIGINT, signal.SIGVTALRM, signal.SIGCHLD)
for number in numbers: signal.signal(number, handler)
package = str(pathlib.Path(llvs.__file__).parent)
lost = []
sys.unraisablehook = lambda details: lost.append(details)

def at_every_point(action, check, granularity="line"):
    global raised
    n, runs = START, 0
    while True:
        left = n
        def step(frame, event, argument):
            nonlocal left
            if event == granularity or event == "call":
                if left == 0:
                    left = -1
                    sys.settrace(None)
                    os.kill(os.getpid(), numbers[n % len(numbers)])  # noted at the next step, as if it came from outside
                elif left > 0:
                    left -= 1
            return step if left >= 0 else None
        def trace(frame, event, argument):
            name = frame.f_code.co_filename
            if not (name.startswith(package) or name == __file__) or frame.f_code is step.__code__ or left < 0:
                return None
            frame.f_trace_opcodes = granularity == "opcode"
            return step(frame, "call", argument)
        raised, before = 0, {number: signal.getsignal(number) for number in numbers}
        try:
            sys.settrace(trace)
            try:
                outcome = action(n)
            finally:
                sys.settrace(None)
        except Interrupted as problem:
            outcome = problem
        assert left == -1 or raised == 0
        if left != -1:
            check(n, outcome)
            break
        assert raised == 1, (n, raised, outcome)
        # An exception in a finaliser, or while an abandoned generator is closed, has no caller to which Python could report it.
        swallowed = [details for details in lost if isinstance(details.exc_value, Interrupted)]
        assert all(
            getattr(details.object, "__name__", "") == "__del__" or isinstance(details.object, types.GeneratorType) for details in swallowed
        ), (n, lost)
        assert isinstance(outcome, Interrupted) or swallowed, (n, outcome)
        lost.clear()
        assert {number: signal.getsignal(number) for number in numbers} == before, n
        assert (_signals._held, _signals._noted, _signals._depth) == ({}, [], 0), (n, _signals._held, _signals._noted, _signals._depth)
        check(n, outcome)
        runs += 1
        n += STEP
    print("points", runs)
    assert runs > LEAST, runs
"""


def run(program: str, directory: Path, step: int = 1, start: int = 0) -> str:
    """Runs a program with every `step`-th point, from `start` on; of these the usual run takes every fifth."""
    file = directory / "program.py"
    settings = f"STEP, START, LEAST = {step * sample(5, 1)}, {start}, {sample(8, 40)}\n"
    file.write_text(settings + PRELUDE + textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, str(file)], cwd=directory, capture_output=True, text=True, timeout=300, env=os.environ | {"PYTHONHASHSEED": "0"}
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("kind", ["iterable", "file", "large"])
def test_values_in_pieces(storage: str, kind: str, tmp_path: Path) -> None:
    run(
        f"""
        storage, kind = {storage!r}, {kind!r}
        size = 1_500_000 if kind == "large" else 9_000
        whole = bytes(range(256)) * (size // 256)
        pathlib.Path("value").write_bytes(whole)
        on_disk = {{"path": "store", "durability": "normal"}} if storage == "file" else {{}}
        store = llvs.Store(storage=storage, **on_disk)
        root = store.make_version(insert={{"a": b"0"}})
        def pieces():
            for at in range(0, len(whole), len(whole) // 5 + 1):
                yield whole[at:at + len(whole) // 5 + 1]
        def action(n):
            if kind == "file":
                with open("value", "rb") as file:
                    return store.make_version(root, update={{"big": file}}, id=f"v{{n}}")
            return store.make_version(root, update={{"big": pieces()}}, id=f"v{{n}}")
        def check(n, outcome):
            found = store.version(f"v{{n}}")
            if found is not None:
                assert store.at(found)["big"] == whole, n
            else:
                assert isinstance(outcome, Interrupted)
        at_every_point(action, check)
        assert store.at(store.make_version(root, update={{"big": pieces()}}))["big"] == whole
        store.close()
        """,
        tmp_path,
        step=5 if kind == "large" else 1,
        # Each run tests other points than the runs before.
        start=["iterable", "file", "large"].index(kind) + 2 * (storage == "memory"),
    )


def test_arbiters(tmp_path: Path) -> None:
    run(
        """
        store = llvs.Store(storage="memory")
        root = store.make_version(insert={"a": b"0", "b": b"0"})
        ours, theirs = store.make_version(root, update={"a": b"1"}), store.make_version(root, update={"a": b"2", "b": b"2"})
        def arbiter(merge, store):
            return [llvs.Change.update(id, b"both") for id in merge.forks]
        def action(n):
            return store.merge(ours, theirs, arbiter=arbiter, metadata={"n": n})
        def check(n, outcome):
            head = store.most_recent_head
            if len(head.predecessors) == 2:
                assert dict(store.at(head)) == {"a": b"both", "b": b"both"}, n
        at_every_point(action, check)
        store.close()
        """,
        tmp_path,
    )


def test_storages(tmp_path: Path) -> None:
    run(
        """
        class Counting(llvs.storage.DictStorage):
            syncs = 0
            def sync(self): self.syncs += 1
        storage = Counting()
        store = llvs.Store(storage=storage)
        root = store.make_version(insert={"a": b"0"})
        def action(n):
            return store.make_version(root, insert={str(n): b"x" * 3000}, id=f"v{n}")
        def check(n, outcome):
            found = store.version(f"v{n}")
            if found is not None:
                assert len(store.at(found)) == 2 and store.at(found)[str(n)] == b"x" * 3000
            if not isinstance(outcome, Interrupted):
                assert found is not None
        at_every_point(action, check)
        STEP *= 11
        at_every_point(action, check, "opcode")
        store.reload()
        made = [version.id for version in store.history()]
        store.close()
        with llvs.Store(storage=llvs.storage.DictStorage(storage.records)) as again:
            assert {version.id for version in again.history()} >= set(made)
        """,
        tmp_path,
    )


def test_transports_and_progress(tmp_path: Path) -> None:
    run(
        """
        class Place(llvs.exchange.Transport):
            def __init__(self): self.versions, self.changes = {}, {}
            def list(self): return list(self.versions)
            def fetch_versions(self, names): return [self.versions.get(name) for name in names]
            def fetch_changes(self, names): return [io.BytesIO(self.changes[name]) if name in self.changes else None for name in names]
            def send(self, files):
                for file in files:
                    self.changes[file.name], self.versions[file.name] = file.changes, file.version
            def send_large(self, name, version, changes):
                sink = io.BytesIO()
                changes.write_to(sink)
                self.changes[name], self.versions[name] = sink.getvalue(), version
        source = llvs.Store(storage="memory")
        version = source.make_version(insert={"a": b"0"})
        version = source.make_version(version, insert={"big": os.urandom(900) * 1000})
        def action(n):
            target = llvs.Store(storage="memory")
            place = Place()
            try:
                with llvs.Exchange(source, place) as sending, llvs.Exchange(target, place) as receiving:
                    sent = sending.send(progress=lambda progress: True)
                    got = receiving.retrieve(progress=lambda progress: True)
                    assert not sent.problems and not got.problems and len(got.versions) == 2
                    assert dict(target.at(version)) == dict(source.at(version))
                return place
            finally:
                target.close()
        def check(n, outcome): pass
        at_every_point(action, check)
        source.close()
        """,
        tmp_path,
        step=41,
    )


def test_observers_and_log(tmp_path: Path) -> None:
    """An exception that an unsolicited callback would lose is raised from the call as well."""
    run(
        """
        import gc
        gc.disable()
        heard = []
        notes = llvs.Coordinator(None, storage="memory")
        notes.observe(heard.append)
        messages = []
        listening = llvs.log.observe_log(lambda level, message: messages.append(message), "debug")
        def action(n):
            return notes.save(update={"a": str(n).encode()})
        def check(n, outcome):
            assert notes.value("a") is None or notes.store.at(notes.current_version)["a"].isdigit()
        at_every_point(action, check)
        listening.close()
        notes.close()
        """,
        tmp_path,
    )


def test_a_callback_that_ctypes_ends_makes_no_value(tmp_path: Path) -> None:
    """If a callback ends before it can answer (by an asynchronous exception, for instance), a 0 is neither the end of a value nor a
    location."""
    from llvs import _abi
    from llvs._generated import structs as _structs

    read = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)(
        lambda *_: 0
    )
    with llvs.Store(tmp_path / "store") as store:
        source = _structs.llvs_value_source()
        source.id.data, source.id.size = ctypes.cast(ctypes.c_char_p(b"a"), ctypes.c_void_p).value, 1
        source.read = ctypes.cast(read, ctypes.c_void_p).value
        options = _structs.llvs_version_options(struct_size=ctypes.sizeof(_structs.llvs_version_options))
        options.sources, options.source_count, options.source_size = ctypes.addressof(source), 1, ctypes.sizeof(source)
        with store._call as pointer, pytest.raises(llvs.errors.InvalidArgumentError, match="LLVS_END"):
            _abi.lib.llvs_store_make_version(pointer, b"", None, 0, 56, ctypes.byref(options), None, None)
        assert store.heads() == ()

    class Silent(llvs.storage.DictStorage):
        pass

    storage = Silent()
    with llvs.Store(storage=storage) as store:
        storage.append = lambda records: [(1 << 64) - 1] * len(records)  # type: ignore[method-assign]
        with pytest.raises(ValueError, match="it is a number from 0"):
            store.make_version(insert={"a": b"1"})


def test_mergers_of_values_and_decoders(tmp_path: Path) -> None:
    theirs = Path(__file__).resolve().parents[1] / "Vectors" / "interchange" / "store"
    run(
        f"""
        import shutil
        shutil.copytree({str(theirs)!r}, "theirs")
        packed = sorted(pathlib.Path("theirs", "values", "k1").rglob("*.json"))[:1]
        for file in packed: file.write_bytes(b"LLZF" + file.read_bytes()[::-1])
        whole = llvs.Store(storage="memory")
        decoded = whole.import_store("theirs", decode=lambda data: data[::-1]).retrieved
        store = llvs.Store(storage="memory")
        root = store.make_version(insert={{"a": b"0"}})
        ours, theirs = store.make_version(root, update={{"a": b"1"}}), store.make_version(root, update={{"a": b"2"}})
        merger = llvs.merge.ValueMerger(lambda id, base, newer, older: base + newer + older)
        def action(n):
            store.merge(ours, theirs, arbiter=merger, metadata={{"n": n}})
            target = llvs.Store(storage="memory")
            try:
                result = target.import_store("theirs", decode=lambda data: data[::-1])
                assert result.retrieved == decoded and not result.problems
                for id in whole.heads(): assert dict(target.at(id)) == dict(whole.at(id))
            finally:
                target.close()
        def check(n, outcome):
            head = store.most_recent_head
            assert len(head.predecessors) < 2 or store.at(head)["a"] == b"021", n
        at_every_point(action, check)
        whole.close()
        store.close()
        """,
        tmp_path,
        step=41,
    )


def test_a_decoder_that_ctypes_ends_decodes_nothing(tmp_path: Path) -> None:
    """A 0 without bytes does not say that what is compressed is a value as it is."""
    from llvs import _abi
    from llvs._generated import structs as _structs

    shutil.copytree(Path(__file__).resolve().parents[1] / "Vectors" / "interchange" / "store", tmp_path / "theirs")
    for file in (tmp_path / "theirs" / "values" / "k1").rglob("*.json"):
        file.write_bytes(b"LLZF" + file.read_bytes())
    decode = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: 0)
    options = _structs.llvs_import_options(struct_size=ctypes.sizeof(_structs.llvs_import_options))
    options.decode = ctypes.cast(decode, ctypes.c_void_p).value
    path = str(tmp_path / "theirs").encode()
    with llvs.Store(storage="memory") as store, store._call as pointer, pytest.raises(llvs.Error, match="LLVS_PASS"):
        _abi.lib.llvs_store_import(pointer, path, ctypes.byref(options), None, None)


def test_a_piece_that_is_none_is_no_end() -> None:
    with llvs.Store(storage="memory") as store:
        with pytest.raises(TypeError):
            store.make_version(insert={"a": iter([b"one", None, b"two"])})  # type: ignore[dict-item, list-item]
        assert store.heads() == ()


def test_deep_recursion(tmp_path: Path) -> None:
    """If there is no room for a callback, the call reports it before it begins."""
    run(
        """
        storage = llvs.storage.DictStorage()
        store = llvs.Store(storage=storage)
        root = store.make_version(insert={"a": b"0"})
        made = []
        def deeper(n):
            if n:
                return deeper(n - 1)
            return store.make_version(root, insert={"b": b"1"}, id=f"v{len(made)}")
        for room in range(0, 90):
            made.append(None)
            name = f"v{len(made)}"
            try:
                sys.setrecursionlimit(400)
                deeper(395 - room - 4)
            except RecursionError:
                found = None
            else:
                found = store.version(name)
                assert found is not None, room
            finally:
                sys.setrecursionlimit(1000)
            assert not lost, (room, lost)
        made.append(None)
        assert store.at(store.make_version(root, insert={"c": b"1"}))["c"] == b"1"
        store.close()
        """,
        tmp_path,
    )
