"""The life of handles: no use of them in Python code may crash the process."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from interchange import DictTransport
from llvs import _abi
from llvs._abi import callback_errors as _callback_errors, callbacks as _callbacks
from sampling import drawn, sample
from waiting import eventually


def test_closing_twice(memory: llvs.Store, tmp_path: Path) -> None:
    exchange = llvs.Exchange(memory, f"memory:{tmp_path}")
    coordinator = llvs.Coordinator(tmp_path / "store")
    token, observer = llvs.CancelToken(), llvs.log.observe_log(print)
    for handle in (exchange, coordinator, token, observer, memory):
        assert not handle.closed
        handle.close()
        handle.close()
        assert handle.closed and repr(handle)
        with pytest.raises(llvs.ClosedError):
            handle.__enter__()
        handle.__exit__(None, None, None)


STORE_CALLS: list[Callable[[llvs.Store, llvs.Version], Any]] = [
    lambda s, v: s.heads(),
    lambda s, v: s.most_recent_head,
    lambda s, v: s.make_version(),
    lambda s, v: s.value("a", at=v),
    lambda s, v: s.values(["a"], at=v),
    lambda s, v: s.reference("a", at=v),
    lambda s, v: s.at(v),
    lambda s, v: s.history(),
    lambda s, v: s.changes(v),
    lambda s, v: s.diff(v, v),
    lambda s, v: s.merge(v, v),
    lambda s, v: s.merge_heads(v),
    lambda s, v: s.revert(v, at=v),
    lambda s, v: s.cherry_pick(v, onto=v),
    lambda s, v: s.schema(v),
    lambda s, v: s.conflicts(v, v),
    lambda s, v: s.explain(v),
    lambda s, v: s.open_conflicts(v),
    lambda s, v: s.choices(llvs.merge.Conflict((), llvs.merge.ConflictKind.PICK, None, None, None, None, None, "a", v.id), "newer", at=v),
    lambda s, v: s.version_at(0.0),
    lambda s, v: list(s.replay("", v, v)),
    lambda s, v: s.version("x"),
    lambda s, v: s.versions_of("a"),
    lambda s, v: s.reload(),
    lambda s, v: s.statistics(),
    lambda s, v: s.verify(),
    lambda s, v: s.compact(),
    lambda s, v: s.write_snapshot("x"),
    lambda s, v: llvs.Exchange(s, "memory:x"),
]


@pytest.mark.parametrize("call", STORE_CALLS)
def test_use_after_close(memory: llvs.Store, call: Callable[[llvs.Store, llvs.Version], Any]) -> None:
    version = memory.make_version(insert={"a": b"1"})
    memory.close()
    with pytest.raises(llvs.ClosedError) as caught:
        call(memory, version)
    assert isinstance(caught.value, ValueError) and caught.value.code == llvs.ErrorCode.CLOSED and "store" in str(caught.value)


def test_closing_with_live_children(memory: llvs.Store, tmp_path: Path) -> None:
    version = memory.make_version(insert={f"{index:05}": b"1" for index in range(3000)})
    for index in range(1500):
        version = memory.make_version(version, update={"00000": str(index).encode()})
    state, history, changes, items = (
        memory.at(version),
        memory.history(),
        memory.changes(memory.versions_of("00001")[0]),
        iter(memory.at(version).items()),
    )
    exchange = llvs.Exchange(memory, f"memory:{tmp_path}")
    next(history), next(changes), next(items)
    memory.close()
    for use in (
        lambda: state["00000"],
        lambda: len(state),
        lambda: list(state),
        lambda: list(history),
        lambda: list(changes),
        lambda: list(items),
        lambda: exchange.retrieve(),
        lambda: exchange.send(),
    ):
        with pytest.raises(llvs.ClosedError):
            use()
    exchange.close()


def test_any_order_of_release(tmp_path: Path) -> None:
    store = llvs.Store(storage="memory")
    version = store.make_version(insert={str(index): b"1" for index in range(2000)})
    things = [store.history(), store.diff(version, version), llvs.Exchange(store, "memory:order"), iter(store.at(version))]
    store.close()
    del store
    gc.collect()
    things[2].close()  # type: ignore[union-attr]
    del things
    gc.collect()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # handles that are forgotten are closed with one
def test_shuffled_orders_of_release(tmp_path: Path) -> None:
    """Dropped one by one, some in cycles that only the collector finds, and used in between."""
    for seed in drawn(range(8), range(60)):
        order = random.Random(seed)
        store = llvs.Store(storage="memory") if seed % 2 else llvs.Store(tmp_path / f"store-{seed}")
        version = store.make_version(insert={str(index): b"1" for index in range(50)})
        exchange = llvs.Exchange(store, f"memory:shuffled-{seed}")
        things: list[Any] = [
            store, exchange, exchange.send(), store.history(), store.heads(), store.diff(version, version), iter(store.at(version)),
            store.at(version),
            store.open_value("1", at=version), store.verify(), llvs.CancelToken(), llvs.log.observe_log(lambda level, message: None),
        ]  # fmt: skip
        del store, exchange
        order.shuffle(things)
        while things:
            thing = things.pop()
            if order.random() < 0.3:
                cycle: list[Any] = [thing]
                cycle.append(cycle)
                del cycle
            del thing
            if order.random() < 0.3:
                gc.collect()
            for left in things:
                if isinstance(left, llvs.Store):
                    assert left.value("1", at=version) is not None
        gc.collect()


def test_what_is_forgotten_is_closed_with_a_warning(tmp_path: Path) -> None:
    store = llvs.Store(tmp_path / "store")
    store.make_version(insert={"a": b"1"})
    with pytest.warns(ResourceWarning, match="unclosed <Store "):
        del store
        gc.collect()
    with llvs.Store(tmp_path / "store") as again:
        assert len(again.heads()) == 1


def test_a_constructor_that_fails_leaves_nothing(tmp_path: Path) -> None:
    before = len(_callbacks.registry)
    for _ in range(10):
        with pytest.raises(llvs.Error):
            llvs.Store(tmp_path / "nothing", create=False)
        with pytest.raises(llvs.Error):
            llvs.Coordinator(tmp_path / "nothing", create=False)

    class Bad(llvs.storage.DictStorage):
        def scan(self, mark: int, report: Any) -> int:
            raise ZeroDivisionError

    for _ in range(10):
        with pytest.raises(ZeroDivisionError):
            llvs.Store(storage=Bad())
    gc.collect()
    assert len(_callbacks.registry) == before


def test_nothing_is_left_registered(new_store: Callable[[], llvs.Store]) -> None:
    gc.collect()
    before, kept = set(_callbacks.registry), set(_callback_errors.exceptions)
    store = llvs.Store(storage=llvs.storage.DictStorage())
    base = store.make_version(insert={"a": b"0"})
    one, two = store.make_version(base, update={"a": b"1"}), store.make_version(base, update={"a": b"2"})
    store.merge(one, two, lambda merge, store: [llvs.Change.update("a", b"3")])
    with llvs.Exchange(store, DictTransport()) as exchange:
        exchange.observe(print)
        exchange.send(progress=lambda now: None)
    with pytest.raises(ZeroDivisionError):
        store.verify(progress=lambda now: 1 // 0)  # type: ignore[arg-type,return-value]
    store.close()
    observer = llvs.log.observe_log(print)
    observer.close()
    assert set(_callbacks.registry) == before
    assert set(_callback_errors.exceptions) <= kept


def test_closing_while_other_threads_work(tmp_path: Path) -> None:
    for _ in range(sample(5, 15)):
        store = llvs.Store(tmp_path / "store", durability="normal")
        version = store.make_version(insert={str(index): b"x" * 100 for index in range(100)}, root=True)
        outcomes: list[BaseException | None] = []

        def work() -> None:
            try:
                while True:
                    store.value("5", at=version)
                    store.make_version(version, update={"5": b"y"})
                    list(store.at(version).items())
            except BaseException as problem:
                outcomes.append(problem)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.02)
        store.close()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive()
        assert len(outcomes) == 4 and all(isinstance(outcome, llvs.ClosedError) for outcome in outcomes), outcomes


def test_closing_from_within_a_callback(memory: llvs.Store) -> None:
    base = memory.make_version(insert={"a": b"0"})
    one, two = memory.make_version(base, update={"a": b"1"}), memory.make_version(base, update={"a": b"2"})

    def arbiter(merge: llvs.merge.Merge, store: llvs.Store) -> Any:
        store.close()
        with pytest.raises(llvs.ClosedError):
            store.heads()
        return [llvs.Change.update("a", b"3")]

    try:
        memory.merge(one, two, arbiter)
    except llvs.ClosedError:
        pass
    with pytest.raises(llvs.ClosedError):
        memory.heads()


def test_closing_an_exchange_from_its_own_callbacks(memory: llvs.Store) -> None:
    memory.make_version()

    class Closing(DictTransport):
        def list(self) -> Any:
            exchange.close()
            return []

    exchange = llvs.Exchange(memory, Closing())
    try:
        exchange.send()
    except llvs.ClosedError:
        pass
    with pytest.raises(llvs.ClosedError):
        exchange.send()
    observer = llvs.log.observe_log(lambda level, message: observer.close(), "debug")
    memory.make_version(root=True)
    observer.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_unsolicited_callbacks_that_raise(memory: llvs.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    heard = threading.Event()

    def callback() -> None:
        heard.set()
        raise ZeroDivisionError("heard")

    transport = DictTransport()
    with llvs.Exchange(memory, transport) as exchange:
        exchange.observe(callback)
        transport.notify()
        assert heard.wait(300)
        eventually(lambda: unraisable)
    assert isinstance(unraisable[0].exc_value, ZeroDivisionError) and unraisable[0].object is callback


def test_unsolicited_callbacks_that_raise_are_written_by_default() -> None:
    """Python's own hook takes only what Python itself makes."""
    program = """if True:
        import llvs
        with llvs.Coordinator(storage="memory") as coordinator, coordinator.observe(lambda version: 1 / 0):
            coordinator.save(insert={"a": b"1"})
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.startswith("Exception ignored in ")
    assert done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")


def test_a_logger_is_needed() -> None:
    with pytest.raises(TypeError, match="to a logger"):
        llvs.log_to("name")  # type: ignore[arg-type]


def test_many_kept_exceptions_are_bounded(memory: llvs.Store) -> None:
    for _ in range(1000):
        _callbacks.keep_exception(ValueError(), None)
    assert len(_callback_errors.exceptions) <= 256
    _callback_errors.exceptions.clear()


def run(code: str, tmp_path: Path, expect: int = 0) -> str:
    """Runs code in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-X", "faulthandler", "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    assert "Fatal" not in done.stderr and "Segmentation" not in done.stderr, done.stderr
    return done.stdout


def test_an_interruption_while_an_argument_is_converted_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(value: bytes) -> _abi.BytesArgument:
        raise KeyboardInterrupt

    monkeypatch.setattr(_abi.BytesArgument, "from_param", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _abi.Library().llvs_store_open(b"never", None, None)
    with pytest.raises(ctypes.ArgumentError):
        _abi.Library().llvs_store_close(object())


def test_exit_with_everything_open(tmp_path: Path) -> None:
    out = run(
        """
        import llvs, threading, time
        store = llvs.Store("store")
        version = store.make_version(insert={str(i): b"1" for i in range(3000)})
        history, items = store.history(), iter(store.at(version).items())
        next(history), next(items)
        exchange = llvs.Exchange(store, "memory:x")
        exchange.observe(print)
        exchange.send()
        log = llvs.log.observe_log(lambda level, message: None, "debug")
        coordinator = llvs.Coordinator("other", exchange="memory:x")
        coordinator.observe(print)
        coordinator.save(insert={"a": b"1"})
        host = llvs.Store(storage=llvs.storage.DictStorage())
        host.make_version()
        def forever():
            while True:
                try:
                    store.value("5", at=version); store.verify()
                except llvs.Error:
                    time.sleep(0.001)
        for _ in range(3):
            threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.05)
        cycle = [store, history, items, exchange, log, coordinator, host]
        cycle.append(cycle)
        print("end")
        """,
        tmp_path,
    )
    assert out.splitlines()[-1] == "end"
    with llvs.Store(tmp_path / "store") as store:
        assert len(store.at(store.heads()[0])) == 3000


def test_exit_from_within_a_callback(tmp_path: Path) -> None:
    run(
        """
        import llvs, sys
        store = llvs.Store("store")
        base = store.make_version(insert={"a": b"0"})
        one, two = store.make_version(base, update={"a": b"1"}), store.make_version(base, update={"a": b"2"})
        def arbiter(merge, store):
            sys.exit(7)
        store.merge(one, two, arbiter)
        """,
        tmp_path,
        expect=7,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork(tmp_path: Path) -> None:
    out = run(
        """
        import llvs, os, sys, gc
        from pathlib import Path
        stores = [llvs.Store("store"), llvs.Store("store.db", storage="sqlite"), llvs.Store(storage="memory"),
        llvs.Store(storage=llvs.storage.DictStorage())]
        versions = [store.make_version(insert={"a": b"1"}) for store in stores]
        exchange = llvs.Exchange(stores[0], Path("folder").absolute().as_uri())
        exchange.send()
        exchange.observe(print)
        history = stores[0].history()
        log = llvs.log.observe_log(lambda level, message: None, "debug")
        coordinator = llvs.Coordinator("other")
        coordinator.save(insert={"a": b"1"})
        child = os.fork()
        if child == 0:
            try:
                for store, version in zip(stores, versions):
                    for call in (lambda: store.value("a", at=version), lambda: store.make_version(), lambda: store.heads(), lambda:
                    store.verify()):
                        try:
                            call()
                        except llvs.errors.ForkedError as error:
                            assert error.code == llvs.ErrorCode.FORKED and isinstance(error, RuntimeError)
                        else:
                            os._exit(11)
                for call in (exchange.send, lambda: coordinator.save(insert={"b": b"2"}), lambda: next(history)):
                    try:
                        call()
                    except llvs.errors.ForkedError:
                        pass
                    else:
                        os._exit(12)
                exchange.close(); history.close()
                for store in stores[:2]:
                    store.close()
                del store, stores, exchange, history, coordinator
                gc.collect()
                with llvs.Store("store") as again:
                    again.make_version(versions[0], update={"a": b"child"})
                sys.exit(0)
            except Exception as problem:
                print(repr(problem), flush=True)
                os._exit(13)
        _, status = os.waitpid(child, 0)
        print("child", os.waitstatus_to_exitcode(status))
        for store, version in zip(stores, versions):
            assert store.at(version)["a"] == b"1"
            store.make_version(version, update={"a": b"parent"})
        coordinator.save(insert={"c": b"3"})
        assert stores[0].reload() >= 0 and len(stores[0].heads()) == 2
        exchange.send()
        for handle in (exchange, coordinator, *stores):
            handle.close()
        """,
        tmp_path,
    )
    assert "child 0" in out, out


def test_interrupting_a_long_call(tmp_path: Path) -> None:
    run(
        """
        import llvs, os, signal, threading
        signal.signal(signal.SIGINT, signal.default_int_handler)
        store = llvs.Store(storage="memory")
        version = store.make_version()
        for index in range(3000):
            version = store.make_version(version, insert={str(index): b"x" * 2000})
        threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                store.verify()
        except KeyboardInterrupt:
            print("interrupted")
        assert len(list(store.history())) == 3001
        store.close()
        """,
        tmp_path,
    )


def test_interrupting_where_python_is_called_back(tmp_path: Path) -> None:
    """A signal that arrives while the library runs is handled inside the next callback. Its exception must not be lost there."""
    run(
        """
        import llvs, os, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        store = llvs.Store(storage=llvs.storage.DictStorage())
        root = store.make_version(insert={"a": b"0"})
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for index in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.00001 + index * 0.0000005)
                store.make_version(root, insert={str(index): b"x"}, id=f"v{index}")
                while True:
                    pass
            except KeyboardInterrupt:
                pass
            found = store.version(f"v{index}")
            if found is not None:
                assert store.at(found)[str(index)] == b"x"
        assert len(store.at(store.make_version(root, insert={"b": b"1"}))) == 2
        store.close()
        """,
        tmp_path,
    )
