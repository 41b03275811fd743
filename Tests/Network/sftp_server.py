"""OpenSSH's server on loopback, with keys of its own, for SFTP alone."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator

from patience import PATIENCE
from servers import free_port, started_in

USER = pwd.getpwuid(os.getuid()).pw_name
PASSPHRASE = "of the key: \"ü"


def _program(name: str) -> str:
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/lib/openssh")
    if not found:
        raise RuntimeError(f"{name} is not installed (scripts/suites/53-network does that)")
    return found


class SFTPServer:
    """A server that admits its own user by a key, into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shared = folder / "shared folder \"ü\\"
        self.shared.mkdir()
        self.port = free_port()
        for name, phrase in (("host", ""), ("other", ""), ("key", ""), ("locked", PASSPHRASE), ("stranger", "")):
            command = [_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", phrase, "-f", str(folder / name)]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        (folder / "authorized").write_text("".join((folder / f"{name}.pub").read_text() for name in ("key", "locked")))
        self.known_hosts = self.write_known_hosts("known", "host")
        configuration, sftp = folder / "sshd_config", _program("sftp-server")
        configuration.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nAuthorizedKeysFile {folder}/authorized\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
            "AllowTcpForwarding no\nMaxStartups 100\nLogLevel VERBOSE\nSubsystem sftp internal-sftp\n"
            # With this key exchange, and a shell that does not read ~/.bashrc, a connection costs a fifth of the processor time.
            "KexAlgorithms curve25519-sha256\nSetEnv SHLVL=2\n"
            f"ForceCommand exec {sftp} -e -l VERBOSE 2>>{folder}/requests\n"
        )
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [_program("sshd"), "-D", "-f", str(configuration), "-E", str(folder / "log")], stdin=subprocess.DEVNULL
        )
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        has_ended = self._process.poll() is not None
        self.close()
        raise OSError(f"sshd does not start: {self.log}") if has_ended else RuntimeError(f"sshd does not answer: {self.log}")

    def __len__(self) -> int:
        """Returns the number of requests that name a file or folder, from the server's own log."""
        asked = ("opendir ", "open ", "rename ", "remove ", "mkdir ", "posix-rename ")
        requests = self.folder / "requests"
        return sum(1 for line in requests.read_text().splitlines() if line.startswith(asked)) if requests.exists() else 0

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text() if path.exists() else "it says nothing"

    def write_known_hosts(self, name: str, key: str) -> Path:
        """Writes a file that names this server with one of the keys."""
        kind, text = (self.folder / f"{key}.pub").read_text().split()[:2]
        path = self.folder / name
        path.write_text(f"[127.0.0.1]:{self.port} {kind} {text}\n")
        return path

    def url(self, name: str) -> str:
        path = str(self.shared).replace("%", "%25").replace(" ", "%20").replace('"', "%22").replace("ü", "%C3%BC").replace("\\", "%5C")
        return f"sftp://127.0.0.1:{self.port}{path}/{name}/"

    @property
    def secrets(self) -> dict[str, Any]:
        return {"user": USER, "key_file": self.folder / "key", "known_hosts": self.known_hosts}

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def started() -> Iterator[SFTPServer]:
    """Starts a server for a fixture. A server that does not start is an error."""
    with tempfile.TemporaryDirectory(prefix="llvs-") as folder:
        server = started_in(Path(folder), SFTPServer)
        try:
            yield server
        finally:
            server.close()
