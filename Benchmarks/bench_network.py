"""Compares exchanges in the packed layout with a WebDAV server on loopback (rclone) with rclone's own transfer of the same bytes.

    python Benchmarks/bench_network.py [--quick] [--n 100000] [--runs 3] <folder>

Versions of one value of 300 bytes. The two sides take turns. Figures are the least times, in milliseconds, and the counts of requests and
bytes between the library and the server. If restic is installed, it backs up the same store to the same server.
"""

import argparse
import http.client
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import llvs

METHODS = (b"PROPFIND", b"GET", b"HEAD", b"PUT", b"DELETE", b"MKCOL", b"MOVE")


class Counter:
    """A proxy that counts bytes and requests. A request begins at the beginning of a piece: libcurl sends them so."""

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.requests = self.down = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client = self._listener.accept()[0]
            server = socket.create_connection(("127.0.0.1", self._target))
            threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source, target, asks):
        try:
            while piece := source.recv(1 << 18):
                if asks:
                    self.requests += piece.startswith(METHODS)
                else:
                    self.down += len(piece)
                target.sendall(piece)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def timed(body):
    begin = time.perf_counter()
    found = body()
    return (time.perf_counter() - begin) * 1000, found


def serve(folder):
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    command = ["rclone", "serve", "webdav", str(folder), "--addr", f"127.0.0.1:{port}", "--dir-cache-time", "0s"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except OSError:
            time.sleep(0.02)
    raise SystemExit("rclone does not serve")


def rclone(port, source, target):
    command = ["rclone", "copy", "--config", "/dev/null", "--webdav-url", f"http://127.0.0.1:{port}", str(source), f":webdav:{target}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


BUDGET = 64

#: Measures the peak of memory (KiB) of a process that exchanges once, and of one that only opens the store and reads a version.
#: getrusage() would report the peak of the process that started it if that is higher.
CHILD = """
import sys, llvs
what, path, url, budget = sys.argv[1:]
with llvs.Store(path, options=llvs.StoreOptions(memory_budget=int(budget) << 20)) as store:
    store.most_recent_head
    if what != "open":
        with llvs.Exchange(store, llvs.Remote(url, layout="packed")) as way:
            way.retrieve()
            way.send()
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def memory(what, path, url):
    """Returns the peak of memory in MiB."""
    command = [sys.executable, "-c", CHILD, what, str(path), url, str(BUDGET)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1024


def answer(port, path):
    """Returns the least time in which the server lists that folder."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = '<propfind xmlns="DAV:"><prop><getcontentlength/><resourcetype/></prop></propfind>'

    def ask():
        connection.request("PROPFIND", path, body, {"Depth": "1", "Content-Type": "application/xml"})
        return connection.getresponse().read()

    return min(timed(ask)[0] for _ in range(5))


def restic(port, store, folder):
    """Returns milliseconds for a first backup; None if restic is not installed."""
    if shutil.which("restic") is None or shutil.which("rclone") is None:
        return None
    environment = dict(
        os.environ, RCLONE_CONFIG="/dev/null", RCLONE_CONFIG_HERE_TYPE="webdav", RCLONE_CONFIG_HERE_URL=f"http://127.0.0.1:{port}",
        RESTIC_PASSWORD="x", RESTIC_REPOSITORY="rclone:HERE:restic", RESTIC_CACHE_DIR=str(folder / "cache"),
    )

    def run(*words):
        subprocess.run(["restic", *words], env=environment, check=True, stdout=subprocess.DEVNULL)

    run("init")
    return timed(lambda: run("backup", str(store)))[0]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--quick", action="store_true", help="whether it runs")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--n", type=int, default=100_000, help="versions")
    options.add_argument("folder", type=Path)
    given = options.parse_args()
    if shutil.which("rclone") is None:
        raise SystemExit("rclone is not installed: install it (Debian's package rclone)")
    count, runs = (1_000, 1) if given.quick else (given.n, given.runs)
    folder, draw = given.folder / "network", random.Random(1)
    shutil.rmtree(folder, ignore_errors=True)
    shared = folder / "shared"
    shared.mkdir(parents=True)
    process, port = serve(shared)
    counter = Counter(port)
    url = f"http+webdav://127.0.0.1:{counter.port}/"
    try:
        with llvs.Store(folder / "store") as store:
            # The first send to a place makes its keys, and waits for ten seconds.
            head = store.make_version(insert={"first": b"1"})
            sealed = llvs.Remote(f"{url}encrypted/", identity=llvs.exchange.make_identity().secret)
            clear = llvs.Remote(f"{url}clear/", layout="packed")
            for place in (sealed, clear):
                with llvs.Exchange(store, place) as way:
                    way.retrieve()
                    way.send()
            values = []
            for number in range(count):
                values.append(draw.randbytes(150).hex().encode())
                head = store.make_version(head, insert={f"v/{number % 1_000:04}": values[-1]})
            ours, theirs = [], []
            loose = folder / "loose"
            for run in range(runs):
                place = llvs.Remote(f"{url}p{run}/", layout="packed")
                with llvs.Exchange(store, place) as way:
                    way.retrieve()
                    taken, sent = timed(way.send)
                    assert len(sent.sent) == count + 1
                    ours.append(taken)
                # The values in one file, compressed like packs, and sent.
                loose.mkdir(exist_ok=True)
                deflating, packed = timed(lambda: zlib.compress(b"".join(values), 6))
                (loose / "one").write_bytes(b"".join(values))
                theirs.append(deflating + timed(lambda: rclone(port, loose, f"r{run}"))[0])
            stored = sum(file.stat().st_size for file in (shared / "p0").rglob("*") if file.is_file())
            print(f"network: {count} versions, {stored / count:.0f} bytes stored for each")
            print(f"  first send, beside rclone's of one file and deflating it  {min(ours):8.0f} ms {min(theirs):8.0f} ms "
                  f"{min(ours) / min(theirs):6.2f} x, at most 2.5")
            few = folder / "few"
            few.mkdir()
            for number, value in enumerate(values[: count // 100]):
                (few / f"{number}.version").write_bytes(value)
                (few / f"{number}.changes").write_bytes(value)
            each = timed(lambda: rclone(port, few, "loose"))[0] / (count // 100)
            print(f"  a version of it, beside two loose files by rclone         {min(ours) / count:8.3f} ms {each:8.3f} ms "
                  f"{min(ours) / count / each:6.3f} x")
            place = llvs.Remote(f"{url}p0/", layout="packed")
            with llvs.Exchange(store, place) as way:
                way.retrieve()
                way.send()
                before = counter.requests
                nothing = min(timed(lambda: (way.retrieve(), way.send()))[0] for _ in range(5))
                asked = (counter.requests - before) / 5
            server = answer(port, "/p0/pack1/log/")
            print(f"  an exchange with nothing new                              {nothing:8.1f} ms {asked:8.1f} requests, at most 1; "
                  f"the server alone {server:.1f} ms, at most 20 more")
            with llvs.Store("", storage="memory") as other, llvs.Exchange(other, place) as way:
                requests, down = counter.requests, counter.down
                taken, found = timed(way.retrieve)
                assert len(found.retrieved) == count + 1
                share = (counter.down - down) / stored
                asked = counter.requests - requests
                print(f"  a new device                                              {taken:8.0f} ms {asked:8} requests, "
                      f"{share:.3f} of the stored bytes, at most 1.1")
            both = []
            for place in (sealed, clear):
                with llvs.Exchange(store, place) as way:
                    way.retrieve()
                    taken, sent = timed(way.send)
                    assert len(sent.sent) == count
                    both.append(taken)
            print(f"  a send to an encrypted place, beside one in clear         {both[0]:8.0f} ms {both[1]:8.0f} ms "
                  f"{both[0] / both[1]:6.3f} x, at most 1.1")
        backup = restic(port, folder / "store", folder)
        if backup is None:
            print("  first send, beside restic's backup of the store           restic is not installed")
        else:
            print(f"  first send, beside restic's backup of the store           {min(ours):8.0f} ms {backup:8.0f} ms "
                  f"{min(ours) / backup:6.2f} x")
        opened = memory("open", folder / "store", "")
        for what, path in (("send", folder / "store"), ("receive", folder / "new")):
            taken = memory(what, path, f"{url}{'memory' if what == 'send' else 'p0'}/") - (opened if what == "send" else 0)
            if what == "receive":
                taken -= memory("open", folder / "empty", "")
            print(f"  memory of a {what:8} beyond opening the store            {taken:8.0f} MiB          at most {BUDGET + 64} "
                  f"(a budget of {BUDGET}, and 64)")
    finally:
        process.terminate()
        process.wait()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
