"""Ceph's object gateway, a real S3 service, with the small cluster that it needs: a monitor, a manager, and a store in memory."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Optional
from urllib.parse import quote

from patience import PATIENCE
from servers import CountingProxy, free_port

KEY, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "default"
BUCKET = "notes-bucket"
DAEMONS = ("ceph-mon", "ceph-mgr", "ceph-osd", "radosgw")


class RadosGateway:
    """Listens on loopback until it is closed. `port` is that of a proxy that counts requests."""

    def __init__(self) -> None:
        for program in (*DAEMONS, "ceph", "ceph-authtool", "monmaptool", "radosgw-admin"):
            if self._path(program) is None:
                raise RuntimeError(f"{program} is not installed (scripts/suites/53-network does that)")
        # Paths of sockets must be short, so the folder is not one of pytest's.
        self._folder = Path(tempfile.mkdtemp(prefix="llvs-ceph-"))
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._client: Any = None
        self._inner_port = free_port()
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        self._proxy = CountingProxy(self._inner_port)

    @property
    def port(self) -> int:
        return self._proxy.port

    @property
    def requests(self) -> list[tuple[str, str]]:
        """Returns method and target of all requests so far."""
        return list(zip(self._proxy.requests, self._proxy.targets))

    @property
    def methods(self) -> list[str]:
        """Returns the methods of all requests so far; the list grows."""
        return self._proxy.requests

    def forget_requests(self) -> None:
        self._proxy.requests.clear()
        self._proxy.targets.clear()

    def get(self, key: str) -> Optional[bytes]:
        """Reads an object with Amazon's own library, which `put` uses as well."""
        try:
            return bytes(self._client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
        except self._client.exceptions.NoSuchKey:
            return None

    def put(self, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=BUCKET, Key=key, Body=data)

    def url(self, prefix: str = "here", bucket: str = BUCKET) -> str:
        return f"s3://{bucket}/{quote(prefix)}?endpoint=http%3A%2F%2F127.0.0.1%3A{self.port}&region={REGION}"

    def close(self) -> None:
        self._proxy.close()
        self._stop()

    @staticmethod
    def _path(program: str) -> Optional[str]:
        return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")

    def _start(self) -> None:
        folder, cluster, monitor = self._folder, str(uuid.uuid4()), free_port()
        (folder / "ceph.conf").write_text(f"""
[global]
fsid = {cluster}
mon host = [v2:127.0.0.1:{monitor}/0]
ms bind ipv6 = false
run dir = {folder}
admin socket = {folder}/$name.sock
pid file =
log file = {folder}/$name.log
mon cluster log file = {folder}/cluster.log
crash dir = {folder}/crash
mon data = {folder}/mon
mgr data = {folder}/mgr
osd data = {folder}/osd
rgw data = {folder}/rgw
keyring = {folder}/keyring
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd crush update on start = false
osd objectstore = memstore
memstore device bytes = 1073741824
osd memory target = 939524096
mgr initial modules =
rgw frontends = beast endpoint=127.0.0.1:{self._inner_port}
rgw enable usage log = false
""")
        keyring = str(folder / "keyring")
        keys: list[tuple[str, tuple[str, ...]]] = [
            ("mon.", ("mon", "allow *")),
            ("client.admin", ("mon", "allow *", "osd", "allow *", "mgr", "allow *")),
            ("mgr.x", ("mon", "allow profile mgr", "osd", "allow *")),
            ("osd.0", ("mon", "allow profile osd", "osd", "allow *", "mgr", "allow profile osd")),
            ("client.rgw", ("mon", "allow rw", "osd", "allow rwx", "mgr", "allow rw")),
        ]
        self._run("ceph-authtool", "--create-keyring", keyring)
        for name, allowed in keys:
            caps = [part for kind, what in zip(allowed[::2], allowed[1::2]) for part in ("--cap", kind, what)]
            self._run("ceph-authtool", keyring, "--gen-key", "-n", name, *caps)
        for name in ("mgr", "osd", "rgw", "mon"):
            (folder / name).mkdir()
        map = str(folder / "monmap")
        self._run("monmaptool", "--create", "--fsid", cluster, "--addv", "a", f"[v2:127.0.0.1:{monitor}/0]", map)
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", map, "--keyring", keyring)
        self._daemon("ceph-mon", "-i", "a")
        device = str(uuid.uuid4())
        # The store of the cluster gets the first free number, 0.
        self._run("ceph", "--connect-timeout", "60", "osd", "new", device, "0")
        self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", device)
        self._run("ceph", "osd", "crush", "add", "osd.0", "1", "root=default")
        self._daemon("ceph-mgr", "-i", "x")
        self._daemon("ceph-osd", "-i", "0")
        self._daemon("radosgw", "-n", "client.rgw")
        self._wait()
        self._run("radosgw-admin", "user", "create", "--uid", "ann", "--display-name", "Ann", "--access-key", KEY, "--secret-key", SECRET)
        self._make_bucket()

    def _run(self, program: str, *arguments: str) -> str:
        command = [str(self._path(program)), *arguments, "--conf", str(self._folder / "ceph.conf")]
        if program in ("ceph-authtool", "monmaptool"):
            command = command[:-2]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RuntimeError(f"{program} {arguments[:3]} failed: {done.stderr[-2000:]}")
        return done.stdout

    def _daemon(self, program: str, *arguments: str) -> None:
        command = [str(self._path(program)), "-f", *arguments, "--conf", str(self._folder / "ceph.conf")]
        with open(self._folder / f"{program}.out", "wb") as out:
            self._daemons.append(subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL))

    def _wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for daemon, name in zip(self._daemons, DAEMONS):
                if daemon.poll() is not None:
                    raise RuntimeError(f"{daemon.args!r} ended: {self._said()}")
            try:
                socket.create_connection(("127.0.0.1", self._inner_port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"The gateway does not answer: {self._said()}")

    def _said(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-1500:] for path in sorted(self._folder.glob("*.out")))

    def _make_bucket(self) -> None:
        import boto3

        self._client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self._inner_port}",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name=REGION,
        )
        self._client.create_bucket(Bucket=BUCKET)

    def _stop(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.kill()
            daemon.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
