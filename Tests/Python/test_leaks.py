"""No use of the Python package leaks memory."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import textwrap

import pytest

# Runs in a process whose Python allocates all memory with malloc, which can report how much is in use. Released memory that malloc caches
# for a thread and size counts as in use; here it caches none. The smallest allocation takes 32 bytes, so what leaks in each repetition is
# above the noise.
PROGRAM = textwrap.dedent("""
    import ctypes, gc, sys
    import llvs

    REPETITIONS, NOISE = 200, 200 * 24

    class Mallinfo2(ctypes.Structure):
        names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
        _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo2

    def allocated():
        gc.collect()
        info = mallinfo2()
        return info.uordblks + info.hblkhd

    def arbiter(merge, store):
        return [llvs.Change.update(id, b"resolved") for id in merge.forks.conflicting]

    def in_memory():
        with llvs.Store(storage="memory") as store:
            root = store.make_version(insert={"a": b"1", "b": b"2" * 2000, "c": b""})
            ours, theirs = store.make_version(root, update={"a": b"3"}), store.make_version(root, update={"a": b"4"}, remove=["c"])
            assert store.value("b", at=ours) and store.values(["a", "x"], at=ours)
            state = store.at(ours)
            assert dict(state.items()) and len(state) == 3
            assert list(store.history()) and list(store.diff(ours, theirs)) and store.heads()
            assert store.merge(ours, theirs, arbiter)
            assert store.revert(ours, at=ours).undone == ("a",)
            assert store.verify().damages == ()

    def by_rules():
        rules = b'{"merge":1,"ids":{"":{"/n":"counter","/p":{"pick":"arbiter"}}}}'
        with llvs.Coordinator(storage="memory", schema=rules, device="a") as notes:
            base = notes.save(insert={"a": b'{"n":1,"f":0,"p":0}', "b": b"1"}, description="first")
            notes.save(update={"a": b'{"n":2,"f":1,"p":1}'}, group="g")
            other = notes.store.make_version(base, update={"a": b'{"n":3,"f":2,"p":2}', "b": b"2"})
            assert len(notes.store.conflicts(notes.current_version, other)["a"]) == 2
            merger = llvs.merge.ValueMerger(lambda *values: values[2], part=lambda *values: b"3")
            merged = notes.store.merge(notes.current_version, other, merger)
            notes.merge()
            assert len(notes.store.explain(merged).records) == 2
            notes.choose(notes.open_conflicts()["a"][0], "older")
            assert notes.undo() and notes.redo() and notes.undo_description is None and notes.register_schema(rules).data
            assert notes.store.cherry_pick(base, onto=other).versions and list(notes.store.replay("", base, other))

    def errors():
        with llvs.Store(storage="memory") as store:
            for wrong in (lambda: store.make_version("unknown"), lambda: store.make_version(insert={"": b""}), lambda:
            store.at("unknown")["a"]):
                try:
                    wrong()
                except (llvs.Error, ValueError, KeyError):
                    pass
                else:
                    raise AssertionError("it was accepted")

    def left_open():
        store = llvs.Store(storage="memory")
        exchange = llvs.Exchange(store, "memory:leaks")
        store.make_version(insert={"a": b"1"})
        exchange.send()

    def exchanging():
        with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as other:
            one.make_version(insert={"a": b"1"})
            with llvs.Exchange(one, "memory:both") as sender, llvs.Exchange(other, "memory:both") as receiver:
                sender.send()
                assert len(receiver.retrieve().retrieved) == 1

    def coordinating():
        with llvs.Coordinator(storage="memory", exchange="memory:rounds") as one, llvs.Coordinator(storage="memory",
        exchange="memory:rounds") as other:
            one.save(insert={"a": b"1"})
            one.sync()
            assert other.sync().moved

    def growth(once):
        def repeat(count):
            for _ in range(count):
                once()
        least = None
        for _ in range(3):
            # Repeat until all permanent caches are filled.
            repeat(REPETITIONS)
            before = allocated()
            repeat(REPETITIONS)
            grown = allocated() - before
            least = grown if least is None else min(least, grown)
            if least <= NOISE:
                break
        return least

    kept = []
    for once in (in_memory, by_rules, errors, left_open, exchanging, coordinating):
        grown = growth(once)
        print(f"{once.__name__}: {grown} bytes more after {REPETITIONS} repetitions")
        assert grown <= NOISE, f"{once.__name__} leaves {grown} bytes behind"
    assert growth(lambda: kept.append(llvs.Store(storage="memory"))) > NOISE, "a leak would not be noticed"
    """)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc is asked as glibc has it")
def test_nothing_grows_with_use() -> None:
    with_malloc = dict(os.environ, PYTHONMALLOC="malloc", GLIBC_TUNABLES="glibc.malloc.tcache_count=0")
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=with_malloc, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
