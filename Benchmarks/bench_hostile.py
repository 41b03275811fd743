"""What somebody who may write to an exchange folder can make a device spend: seconds, which go with what he sends, and not with its square.

    python Benchmarks/bench_hostile.py [--quick] <folder>

Each case is measured at half its size and at its size. (`HostileCostTests` compares counts of steps, on every run of the tests.)
"""

import argparse
import base64
import json
import shutil
import time
from pathlib import Path

import llvs


def write(folder, versions):
    """Files of versions (id, predecessors, changes) as the interchange layout has them; the timestamps follow the order."""
    for name in ("versions", "changes"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number, (id, predecessors, changes) in enumerate(versions):
        content = {"identifier": id, "predecessors": dict(zip(("idOfFirst", "idOfSecond"), predecessors)), "timestamp": number, "metadata": []}
        (folder / "changes" / id).write_text(json.dumps(changes))
        (folder / "versions" / id).write_text(json.dumps({"version": content}))


def update(id, text):
    return {"update": {"id": id, "data": base64.b64encode(text.encode()).decode()}}


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def retrieved(folder, versions):
    """A store that has retrieved them; the seconds that took."""
    write(folder, versions)
    store = llvs.Store(storage="memory")
    exchange = llvs.Exchange(store, folder)
    seconds, result = timed(exchange.retrieve)
    assert not result.problems, result.problems[:3]
    return seconds, store, exchange


def preserves_against_a_ladder(folder, size):
    """Two lines merged across each other, then a version that preserves as many values of the root."""
    ids = [f"id {i}" for i in range(size)]
    ladder = [("root", (), [update(id, "1") for id in ids]), ("a0", ("root",), []), ("b0", ("root",), [])]
    for i in range(1, size + 1):
        ladder += [(f"{own}{i}", (f"{own}{i - 1}", f"{other}{i - 1}"), []) for own, other in ("ab", "ba")]
    _, store, exchange = retrieved(folder, ladder)
    top = ("top", (f"a{size}", f"b{size}"), [{"preserve": {"valueId": id, "storedVersionId": "root"}} for id in ids])
    write(folder, [top])
    seconds, result = timed(exchange.retrieve)
    assert list(result.retrieved) == ["top"]
    return seconds


def common_bases(folder, size):
    """Two versions with so many best common ancestors, merged."""
    versions = [("root", (), [update("x", "0")])]
    versions += [(f"base{i}", ("root",), [update("x" if i == size - 1 else f"id {i}", str(i))]) for i in range(size)]
    for side, order in (("a", range(size)), ("b", range(size - 1, -1, -1))):
        for i in range(1, size):
            below = f"base{order[0]}" if i == 1 else f"{side}{i - 1}"
            versions.append((f"{side}{i}", (below, f"base{order[i]}"), [update("x", side)] if i == size - 1 else []))
    _, store, _ = retrieved(folder, versions)
    return timed(lambda: store.merge(f"a{size - 1}", f"b{size - 1}"))[0]


def heads_on_a_line(folder, size):
    """Heads that each merge a version of a line and its root, all merged."""
    versions = [("line0", (), [update("x", "0")])]
    versions += [(f"line{i}", (f"line{i - 1}",), [update("x", str(i))]) for i in range(1, size + 1)]
    versions += [(f"head{i}", (f"line{i}", "line0"), [update(f"head {i}", "1")]) for i in range(2, size)]
    _, store, _ = retrieved(folder, versions)
    return timed(lambda: store.merge_heads(f"line{size}"))[0]


def heads_that_look_alike(folder, size):
    """Heads of as many states, whose last changes do not tell them apart, all merged."""
    versions = [(f"head{i}", (), [update("a", "same"), update("b", str(i))]) for i in range(size)]
    _, store, _ = retrieved(folder, versions)
    return timed(lambda: store.merge_heads("head0"))[0]


def foreign_names(folder, size):
    """Names in the folder that are no versions, listed again."""
    _, _, exchange = retrieved(folder, [("root", (), [update("x", "0")])])
    for i in range(size):
        (folder / "versions" / f"no version {i}").touch()
    timed(exchange.retrieve)
    return timed(exchange.retrieve)[0]


CASES = {
    preserves_against_a_ladder: 16_000,
    common_bases: 8_000,
    heads_on_a_line: 4_000,
    heads_that_look_alike: 4_000,
    foreign_names: 1_000_000,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    print(f"{'':30}{'half the size':>16}{'the size':>16}")
    for case, size in CASES.items():
        size = size // 100 if arguments.quick else size
        seconds = []
        for part in (size // 2, size):
            folder = arguments.folder / f"{case.__name__}-{part}"
            seconds.append(case(folder, part))
            shutil.rmtree(folder)
        print(f"{case.__name__.replace('_', ' '):30}{seconds[0]:14.3f} s{seconds[1]:14.3f} s   of {size:,}", flush=True)


if __name__ == "__main__":
    main()
