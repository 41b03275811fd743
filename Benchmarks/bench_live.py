"""Measures direct connections between stores (docs/live-protocol.md): the time until the other side has a save, the cost of a new peer and
of finding the difference, and the memory of an idle peer.

    python Benchmarks/bench_live.py [--quick] <folder>

Times are compared with those of the same bytes through a plain TCP socket between the same two processes.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import socket
import statistics
import threading
import time
from pathlib import Path

import llvs

PAIRING = bytes(range(48))


def connected(address):
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def take(connection, size):
    data = b""
    while len(data) < size:
        came = connection.recv(min(1 << 18, size - len(data)))
        if not came:
            raise EOFError
        data += came
    return data


def take_much(connection, size):
    """Receives into memory that is allocated before, so that only copying is measured."""
    data, at = memoryview(bytearray(size)), 0
    while at < size:
        came = connection.recv_into(data[at : at + (1 << 20)])
        if not came:
            raise EOFError
        at += came


class Child:
    """Another process, controlled over TCP, so that the measured data crosses from one process to the other."""

    def __init__(self, body, *arguments):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.process = multiprocessing.get_context("spawn").Process(target=body, args=(server.getsockname(), *arguments), daemon=True)
            self.process.start()
            self.wire, _ = server.accept()
        self.wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self.wire

    def __exit__(self, *_):
        self.wire.close()
        self.process.join(60)


def sees(wire_address, address, path, count):
    """First echoes `count` bytes, one at a time; then sends a byte for each version that arrives."""
    wire = connected(wire_address)
    for _ in range(count):
        wire.sendall(take(wire, 1))
    with llvs.Store(path) as store:
        more = threading.Semaphore(0)
        with store.observe(more.release), llvs.live.connect(store, address, PAIRING, identity=bytes([1]) * 32) as link:
            link.wait()
            seen = store.statistics().versions
            wire.sendall(b"r")
            for _ in range(count):
                while store.statistics().versions == seen:
                    more.acquire(timeout=1)
                seen += 1
                wire.sendall(b"s")
            take(wire, 1)


def latency(folder, count):
    with llvs.Store(folder / "here") as store, llvs.live.listen({PAIRING: store}, ("127.0.0.1", 0), identity=bytes([2]) * 32) as listener:
        head = store.make_version(insert={"a": b"0"})
        with Child(sees, listener.address, folder / "there", count) as wire:
            bare, live = [], []
            for _ in range(count):
                begun = time.perf_counter()
                wire.sendall(b"x")
                take(wire, 1)
                bare.append(time.perf_counter() - begun)
            take(wire, 1)
            for number in range(count):
                begun = time.perf_counter()
                head = store.make_version(head, update={"a": b"%d" % number})
                take(wire, 1)
                live.append(time.perf_counter() - begun)
                time.sleep(0.06)
            wire.sendall(b"e")
    bare, live = statistics.median(bare), statistics.median(live)
    print(f"one save seen by the other process: median {live * 1000:.1f} ms; a bare round trip over TCP {bare * 1000:.3f} ms "
          f"({live / bare:,.0f} times)")


def fill(store, count, base=None):
    """Makes versions of one value of 100 bytes each, one after another."""
    for number in range(count):
        base = store.make_version(base, insert={f"{number:08}-{os.urandom(4).hex()}": os.urandom(50) + bytes(50)})


def receives(wire_address, address, path, size):
    wire = connected(wire_address)
    with llvs.Store(path) as store:
        begun, spent = time.perf_counter(), time.process_time()
        with llvs.live.connect(store, address, PAIRING) as link:
            link.wait()
            seconds, spent = time.perf_counter() - begun, time.process_time() - spent
            received = link.state.received
        wire.sendall(f"{seconds} {received} {spent}\n".encode())
        begun = time.perf_counter()
        take_much(wire, size)
        wire.sendall(f"{time.perf_counter() - begun}\n".encode())
        take(wire, 1)


def carry(one, two):
    """Carries data between two ends until both are silent. Returns the bytes of each end, and how often the direction changed."""
    bytes_, turns, ends = [0, 0], 0, (one, two)
    quiet, side = 0, 0
    while quiet < 2:
        said = 0
        while data := ends[side].send(1 << 16):
            said += len(data)
            ends[1 - side].receive(data)
        bytes_[side] += said
        turns += bool(said)
        quiet = 0 if said else quiet + 1
        side = 1 - side
    return bytes_, turns


def new_peer(folder, count):
    with llvs.Store(folder / "much", durability="normal") as store:
        fill(store, count)
        with llvs.Store(folder / "by_pack") as other:
            begun = time.perf_counter()
            other.unpack(store.pack())
            packing = time.perf_counter() - begun
        place = f"file://{folder}/place?layout=packed"
        with llvs.Store(folder / "by_folder") as other, llvs.Exchange(store, place) as there, llvs.Exchange(other, place) as here:
            begun, spent = time.perf_counter(), time.process_time()
            there.send()
            written, writing = time.perf_counter() - begun, time.process_time() - spent
            assert len(here.retrieve().versions) >= count
            exchanged, reading = time.perf_counter() - begun, time.process_time() - spent - writing
        with llvs.Store(storage="memory") as other, llvs.live.Peer(store, PAIRING, initiator=True) as one, llvs.live.Peer(
                other, PAIRING, initiator=False) as two:
            bytes_, _ = carry(one, two)
        with llvs.live.listen({PAIRING: store}, ("127.0.0.1", 0)) as listener:
            with Child(receives, listener.address, folder / "new", bytes_[0]) as wire:
                told, spent = wire.makefile("r"), time.process_time()
                seconds, received, receiving = told.readline().split()
                sending = time.process_time() - spent
                assert int(received) == count
                wire.sendall(bytes(bytes_[0]))
                copying = float(told.readline())
                wire.sendall(b"e")
    seconds = float(seconds)
    print(f"{count:,} versions to a new peer: {seconds:.2f} s, {bytes_[0] / (1 << 20):.1f} MiB; the same bytes through a bare socket "
          f"{copying:.3f} s ({seconds / copying:,.1f} times); as one pack, made and read, {packing:.2f} s ({seconds / packing:.2f} "
          f"times); through a folder of packs {exchanged:.2f} s ({seconds / exchanged:.2f} times), {written:.2f} s of them writing. "
          f"Of the processor it takes {sending:.2f} s to send and "
          f"{float(receiving):.2f} s to receive; through the folder {writing:.2f} s and {reading:.2f} s")


def negotiation(folder, count, differing):
    with llvs.Store(storage="memory") as a, llvs.Store(storage="memory") as b:
        fill(a, count - differing // 2)
        with llvs.live.Peer(a, PAIRING, initiator=True) as one, llvs.live.Peer(b, PAIRING, initiator=False) as two:
            carry(one, two)
        fill(a, differing // 2, base=a.most_recent_head)
        fill(b, differing // 2, base=b.most_recent_head)
        with llvs.live.Peer(a, PAIRING, initiator=True) as one, llvs.live.Peer(b, PAIRING, initiator=False) as two:
            bytes_, turns = carry(one, two)
            assert one.state.received == two.state.received == differing // 2
        versions = {version.id for version in a.history()} == {version.id for version in b.history()}
        assert versions
    print(f"two stores of {count:,} versions that differ by {differing}, who do not know each other: {sum(bytes_) / 1024:.1f} KiB in all, "
          f"with the versions; the direction changed {turns} times, 3 of them for the handshake")


def ranges(folder, count, heads, differing):
    """With this number of branches, HAVE covers little of the history: the difference is found by ranges."""
    with llvs.Store(storage="memory") as a, llvs.Store(storage="memory") as b:
        last = [a.make_version(insert={f"{number:05}": b"1"}, root=True) for number in range(heads)]
        for number in range(count - heads):
            last[number % heads] = a.make_version(last[number % heads], insert={f"{number:08}": b"1"})
        b.unpack(a.pack())
        for number in range(differing // 2):
            a.make_version(last[number * 7 % heads], insert={f"a{number}": os.urandom(50) + bytes(50)})
            b.make_version(last[number * 11 % heads], insert={f"b{number}": os.urandom(50) + bytes(50)})
        with llvs.live.Peer(a, PAIRING, initiator=True) as one, llvs.live.Peer(b, PAIRING, initiator=False) as two:
            begun = time.perf_counter()
            bytes_, turns = carry(one, two)
            seconds = time.perf_counter() - begun
            received = one.state.received + two.state.received, one.state.sent + two.state.sent
        assert received[0] == differing // 2 * 2
    print(f"two stores of {count:,} versions with {heads:,} heads that differ by {differing}: {sum(bytes_) / 1024:.1f} KiB in all, "
          f"{received[1]:,} versions sent, {seconds:.2f} s; the direction changed {turns} times, 3 of them for the handshake")


def memory():
    """Returns the memory of the process in KiB, counted page by page: "VmRSS" may lack the newest pages of each thread."""
    return int(next(line for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if line.startswith("Rss")).split()[1])


def connects_often(wire_address, address, count):
    """Connects from many addresses of this machine, because from one address at most a hundred unknown devices are admitted at once."""
    many_descriptors()
    wire = connected(wire_address)
    with llvs.Store(storage="memory") as store:
        links = []
        for number in range(count):
            connection = socket.create_connection(address, source_address=(f"127.0.1.{number // 50 + 1}", 0))
            links.append(llvs.live.Link(llvs.live.Peer(store, PAIRING, initiator=True), connection))
            assert links[-1].wait(60)
        wire.sendall(b"r")
        take(wire, 1)
        os._exit(0)


def alone(body, *arguments):
    """Runs in a process of its own, so that no memory that was freed before is reused."""
    process = multiprocessing.get_context("spawn").Process(target=body, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


def idle(count):
    if not Path("/proc/self/smaps_rollup").exists():
        return print("idle peers: not measured, since this system does not tell what a process takes of memory")
    for body in (idle_ends, idle_links):
        alone(body, count)


def many_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def idle_ends(count):
    with llvs.Store(storage="memory") as a, llvs.Store(storage="memory") as b:
        a.make_version(insert={"a": b"1"})
        before, ends = memory(), []
        for _ in range(count):
            one, two = llvs.live.Peer(a, PAIRING, initiator=True), llvs.live.Peer(b, PAIRING, initiator=False)
            carry(one, two)
            ends += [one, two]
        print(f"an end of a connection that is idle: {(memory() - before) / len(ends):.1f} KiB, in {len(ends):,}")
        for end in ends:
            end.close()


def idle_links(count):
    """The same with `llvs.live.listen`; the goal is 64 KiB for each. The other ends are in another process."""
    many_descriptors()
    with llvs.Store(storage="memory") as store, llvs.live.listen({PAIRING: store}, ("127.0.0.1", 0)) as listener:
        store.make_version(insert={"a": b"1"})
        before = memory()
        with Child(connects_often, listener.address, count) as wire:
            take(wire, 1)
            links = listener.links
            assert len(links) == count and all(link.wait(60) for link in links)
            print(f"an idle connection of llvs.live.listen, with its thread: {(memory() - before) / count:.1f} KiB, of {count:,}")
            # Threads that have worked keep some of the memory that they freed.
            store.make_version(store.most_recent_head, insert={"b": bytes(100)})
            assert all(link.wait(60) for link in links)
            print(f"the same after a save that went to all of them: {(memory() - before) / count:.1f} KiB")
            wire.sendall(b"e")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small, to see whether it runs")
    parser.add_argument("--idle", action="store_true", help="only what idle peers take of memory")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.idle:
        return idle(20 if options.quick else 1_000)
    folder = options.folder / "live"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    idle(20 if options.quick else 1_000)
    latency(folder, 10 if options.quick else 200)
    new_peer(folder, 1_000 if options.quick else 100_000)
    negotiation(folder, 1_000 if options.quick else 100_000, 100)
    ranges(folder, 2_000 if options.quick else 100_000, 500 if options.quick else 6_000, 100)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
