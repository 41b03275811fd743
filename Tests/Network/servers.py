"""Real WebDAV servers on loopback, and the requests to them."""

from __future__ import annotations

import grp
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, TypeVar

from patience import PATIENCE

T = TypeVar("T")

USER, PASSWORD = "ann", "s3cret: ü"


#: Sockets that reserve the ports that were given out, by port, as long as this process lives.
_given: list[socket.socket] = []


def free_port() -> int:
    """Returns a port that no other program takes before the server does: the system assigns no port of this range to connections, and no
    other process of these tests gets it."""
    for port in random.sample(range(20_000, 32_000), 1_000):
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0llvs test port {port}")
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            name.close()
            continue
        _given.append(name)
        return port
    raise RuntimeError("no port is free")


def started_in(folder: Path, start: Callable[[Path], T]) -> T:
    """Returns what `start` makes in a new folder below `folder`. If it raises `OSError`, it is called again, up to five times in all:
    another program may have taken the server's port after `free_port` returned it, and the next call gets another port."""
    for attempt in range(5):
        own = folder / str(attempt)
        own.mkdir()
        # Servers that drop root privileges read in this folder.
        folder.chmod(0o755)
        try:
            return start(own)
        except OSError:
            if attempt == 4:
                raise
    raise AssertionError


class CountingProxy:
    """A proxy that counts the requests to a server: those pieces that begin with a known method.

    (libcurl sends each request's head as one piece.)
    """

    METHODS = ("PROPFIND", "GET", "HEAD", "PUT", "POST", "DELETE", "MKCOL", "MOVE")

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.requests: list[str] = []
        # The target of each request.
        self.targets: list[str] = []
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self._port))
            threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, asks: bool) -> None:
        try:
            while piece := source.recv(1 << 16):
                word = piece.split(b" ", 1)[0].decode("latin-1")
                if asks and word in self.METHODS and b" HTTP/1.1\r\n" in piece[:9000]:
                    self.requests.append(word)
                    self.targets.append(piece.split(b" ", 2)[1].decode("latin-1"))
                target.sendall(piece)
        except OSError:
            pass
        finally:
            for end in (source, target):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            source.close()

    def close(self) -> None:
        self._listener.close()


class Server:
    """One real server, with a folder that it serves at `/dav/`."""

    #: How nginx listens, and what it logs.
    listening, logging = "", "access_log off;"

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.shared = folder / "shared"
        self.shared.mkdir(parents=True)
        # apache drops root privileges.
        folder.chmod(0o755)
        self.shared.chmod(0o777)
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._stop: Any = None
        self._inner_port = free_port()
        getattr(self, "_start_" + name.replace("-", "_"))()
        self._wait()
        self.proxy = CountingProxy(self._inner_port)

    @property
    def url(self) -> str:
        return f"http+webdav://127.0.0.1:{self.proxy.port}/dav/notes/"

    def count(self) -> int:
        return len(self.proxy.requests)

    def close(self) -> None:
        self.proxy.close()
        if self._stop is not None:
            self._stop()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self._process is not None and self._process.poll() is not None:
                raise OSError(f"{self.name} does not start: {self._log()}")
            try:
                socket.create_connection(("127.0.0.1", self._inner_port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"{self.name} does not answer: {self._log()}")

    def _log(self) -> str:
        log = self.folder / "log"
        return log.read_text() if log.exists() else "it says nothing"

    def _run(self, *command: str) -> None:
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _program(self, *names: str) -> str:
        for name in names:
            found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
            if found:
                return found
        raise RuntimeError(f"{names[0]} is not installed (scripts/suites/53-network does that)")

    def _write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o644)
        return str(path)

    def _start_wsgidav(self, digest: bool = False) -> None:
        from cheroot import wsgi
        from wsgidav.wsgidav_app import WsgiDAVApp

        app = WsgiDAVApp(
            {
                "provider_mapping": {"/dav": str(self.shared)},
                "http_authenticator": {"accept_basic": not digest, "accept_digest": digest, "default_to_digest": digest},
                "simple_dc": {"user_mapping": {"*": {USER: {"password": PASSWORD}}}},
                "verbose": 0,
                "logging": {"enable": False},
            }
        )
        # The system gives the port: if it were taken, the server would leave its sockets open.
        server = wsgi.Server(("127.0.0.1", 0), app, numthreads=6)
        server.prepare()
        self._inner_port = server.socket.getsockname()[1]
        threading.Thread(target=server.serve, daemon=True).start()
        self._stop = server.stop

    def _start_wsgidav_digest(self) -> None:
        self._start_wsgidav(digest=True)

    def _start_rclone(self) -> None:
        base = ["serve", "webdav", str(self.folder / "root"), "--addr", f"127.0.0.1:{self._inner_port}"]
        (self.folder / "root").mkdir()
        (self.folder / "root" / "dav").symlink_to(self.shared)
        self._run(self._program("rclone"), *base, "--copy-links", "--dir-cache-time", "0s", "--user", USER, "--pass", PASSWORD)

    def _password_file(self, realm: str = "") -> str:
        """Writes a password file for apache and nginx."""
        crypted = subprocess.run(["openssl", "passwd", "-apr1", PASSWORD], check=True, capture_output=True, text=True).stdout.strip()
        return self._write("users", f"{USER}:{crypted}\n")

    def _start_apache(self) -> None:
        modules = "mpm_event authn_core authn_file authz_core authz_user auth_basic dav dav_fs alias"
        users = self._password_file()
        load = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in modules.split())
        root = self.folder / "root"
        (root / "dav").mkdir(parents=True)
        lock = self.folder / "lock"
        lock.mkdir()
        lock.chmod(0o777)
        owner = f"User {_unprivileged_user()}\nGroup {_group()}" if os.getuid() == 0 else ""
        configuration = f"""
ServerName 127.0.0.1
ServerRoot {self.folder}
Listen 127.0.0.1:{self._inner_port}
PidFile {self.folder}/pid
ErrorLog {self.folder}/errors
{load}
{owner}
DocumentRoot {root}
DavLockDB {lock}/db
KeepAlive On
MaxKeepAliveRequests 0
Alias /dav {self.shared}
<Directory {self.shared}>
    Dav On
    AuthType Basic
    AuthName llvs
    AuthUserFile {users}
    Require valid-user
</Directory>
"""
        self._run(self._program("apache2", "httpd"), "-f", self._write("apache.conf", configuration), "-D", "FOREGROUND")

    def _start_nginx(self) -> None:
        users = self._password_file()
        root = self.folder / "root"
        root.mkdir()
        (root / "dav").symlink_to(self.shared)
        uploads = self.folder / "uploads"
        uploads.mkdir()
        uploads.chmod(0o777)
        owner = "user root;" if os.getuid() == 0 else ""
        module = next((str(path) for path in map(Path, ("/usr/lib/nginx/modules/ngx_http_dav_ext_module.so",)) if path.exists()), "")
        configuration = f"""
{f"load_module {module};" if module else ""}
{owner}
daemon off;
worker_processes 1;
pid {self.folder}/pid;
error_log {self.folder}/errors;
events {{ worker_connections 64; }}
http {{
    {self.logging}
    client_body_temp_path {uploads};
    proxy_temp_path {uploads}/proxy; fastcgi_temp_path {uploads}/fastcgi; uwsgi_temp_path {uploads}/uwsgi; scgi_temp_path {uploads}/scgi;
    server {{
        listen 127.0.0.1:{self._inner_port}{self.listening};
        client_max_body_size 0;
        location /dav/ {{
            root {root};
            dav_methods PUT DELETE MKCOL COPY MOVE;
            dav_ext_methods PROPFIND OPTIONS;
            auth_basic llvs;
            auth_basic_user_file {users};
        }}
    }}
}}
"""
        self._run(self._program("nginx"), "-c", self._write("nginx.conf", configuration), "-e", f"{self.folder}/errors")

    def _start_lighttpd(self) -> None:
        users = self._write("plain", f"{USER}:{PASSWORD}\n")
        root = self.folder / "root"
        root.mkdir()
        (root / "dav").symlink_to(self.shared)
        uploads = self.folder / "uploads"
        uploads.mkdir()
        uploads.chmod(0o777)
        configuration = f"""
server.modules = ("mod_auth", "mod_authn_file", "mod_webdav")
server.document-root = "{root}"
server.port = {self._inner_port}
server.bind = "127.0.0.1"
server.errorlog = "{self.folder}/errors"
server.upload-dirs = ("{uploads}")
auth.backend = "plain"
auth.backend.plain.userfile = "{users}"
auth.require = ("/dav" => ("method" => "basic", "realm" => "llvs", "require" => "valid-user"))
$HTTP["url"] =~ "^/dav($|/)" {{ webdav.activate = "enable" }}
"""
        self._run(self._program("lighttpd"), "-D", "-f", self._write("lighttpd.conf", configuration))


class TLSProxy:
    """A real nginx that terminates TLS in front of a server on loopback, to which it speaks HTTP."""

    def __init__(self, inner: int, folder: Path, certificate: tuple[Path, Path], host: str = "$http_host") -> None:
        self.port = free_port()
        uploads = folder / "uploads"
        uploads.mkdir()
        uploads.chmod(0o777)
        places = " ".join(f"{name}_temp_path {uploads}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        configuration = folder / "nginx.conf"
        configuration.write_text(
            f"""
{"user root;" if os.getuid() == 0 else ""}
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/errors;
events {{ worker_connections 64; }}
http {{
    access_log off;
    {places}
    client_max_body_size 0;
    server {{
        listen 127.0.0.1:{self.port} ssl;
        ssl_certificate {certificate[0]};
        ssl_certificate_key {certificate[1]};
        location / {{
            proxy_pass http://127.0.0.1:{inner};
            proxy_http_version 1.1;
            proxy_set_header Host {host};
        }}
    }}
}}
"""
        )
        program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if program is None:
            raise RuntimeError("nginx is not installed (scripts/suites/53-network does that)")
        self._process = subprocess.Popen(
            [program, "-c", str(configuration), "-e", f"{folder}/errors"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise OSError(f"nginx does not start: {(folder / 'errors').read_text()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("nginx does not answer")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)


def _unprivileged_user() -> str:
    """Returns the user as which servers that root started continue."""
    for name in ("www-data", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            pass
    return "root"


def _group() -> str:
    return grp.getgrgid(pwd.getpwnam(_unprivileged_user()).pw_gid).gr_name


NAMES = ("wsgidav", "wsgidav-digest", "rclone", "apache", "nginx", "lighttpd")


def started(name: str) -> Iterator[Server]:
    """Starts a server for a fixture. A server that does not start is an error."""
    # Only the owner can read pytest's own temporary folders.
    with tempfile.TemporaryDirectory(prefix="llvs-") as folder:
        server = started_in(Path(folder), lambda own: Server(name, own))
        try:
            yield server
        finally:
            server.close()
