"""Decides which requests to a page on 127.0.0.1 are answered: only those of windows that were opened with an address of the program.

Any page in the browser, and any program on the computer, can send requests to 127.0.0.1. So each request for data needs the token of the
run, in a header. An address contains no token: it has a key in its fragment, which is valid once. The page sends the key to `/enter`,
receives the token, and keeps it in `sessionStorage`. There is no cookie, because a browser sends cookies of 127.0.0.1 to every port. The
files of the page contain no data, so they need no token.

Each request must also name the right host, which stops DNS rebinding, and must not come from another origin. Answers may not load
anything from elsewhere, and browsers must not guess their type.

The guard does not depend on a web server: the caller passes the parts of a request, and sends the answer that the guard returns. It needs
only Python.
"""

from __future__ import annotations

import secrets
import threading
from typing import Callable, Collection, Iterable, NamedTuple, Optional

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: Headers of every answer, also of the answers of the program.
HEADERS = (
    ("content-security-policy", CONTENT_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)


def framing(frames: Iterable[str] = (), framed_by: Optional[str] = None) -> tuple[tuple[str, str], ...]:
    """Returns `HEADERS` for a page that shows pages of the same program in frames, or that is shown in one.

    frames: the origins that the page may show in frames. framed_by: the origin that may show the page in a frame.
    """
    policy = CONTENT_POLICY
    if framed_by is not None:
        policy = policy.replace("frame-ancestors 'none'", f"frame-ancestors {framed_by}")
    if frames:
        policy += "; frame-src " + " ".join(frames)
    return tuple(
        (name, policy if name == "content-security-policy" else value) for name, value in HEADERS
        if framed_by is None or name != "x-frame-options"
    )


#: The largest body of a request, in bytes.
LARGEST_BODY = 16 * 1024 * 1024
#: The headers of the token of a run, and of the key of an address. `token.js` sends both.
TOKEN_HEADER, KEY_HEADER = "x-llvs-token", "x-llvs-key"
#: The path at which a key is exchanged for the token.
ENTRY = "/enter"


class Answer(NamedTuple):
    """An answer of the guard itself."""

    #: The HTTP status.
    status: int
    #: A sentence, or the token, as text/plain.
    text: str


class Guard:
    """Admits requests of the page, and refuses all others before anything is read from the store. Safe from all threads."""

    def __init__(self, *, port: int, pages: Collection[str], what: str = "the inspector of a store") -> None:
        """port: on which the page is served. pages: the paths of the page's own files, among them "/"; they contain no data.
        what: the name of the page in sentences."""
        self._token, self._pages, self._what = secrets.token_urlsafe(24), frozenset(pages), what
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._address = f"http://127.0.0.1:{port}/"
        self._lock = threading.Lock()
        self._keys: dict[str, Callable[[], object]] = {}

    def new_address(self, used: Callable[[], object] = lambda: None) -> str:
        """Makes an address that admits one window, once. used: is called after it was used, on the thread of that request."""
        key = secrets.token_urlsafe(24)
        with self._lock:
            self._keys[key] = used
        return f"{self._address}#key={key}"

    def judge(self, method: str, path: str, headers: Iterable[tuple[str, str]]) -> Optional[Answer]:
        """Returns the answer to a request that is refused, or that is for `/enter`; None for a request that is admitted.

        path: of the address, without its query. headers: all of them, with names in lower case.
        """
        all_headers = list(headers)

        def header(name: str) -> list[str]:
            return [value for key, value in all_headers if key == name]

        host = header("host")
        if len(host) != 1 or host[0].lower() not in self._hosts:
            return Answer(421, f"This is {self._what}; use the address that it printed.")
        origins, sites = header("origin"), header("sec-fetch-site")
        elsewhere = Answer(403, "Another page asked for this; only the page that is served here is answered.")
        if any(origin != f"http://{host[0].lower()}" for origin in origins):
            return elsewhere
        is_reading = method in ("GET", "HEAD")
        if not is_reading and not origins:
            return Answer(403, "A change needs the header Origin, which browsers send.")
        # The file that redirects a browser here, and links in other programs, open the top page from another origin.
        if path != "/" and any(site not in ("same-origin", "none") for site in sites):
            return elsewhere
        if path == ENTRY and method == "POST":
            return self._enter(header(KEY_HEADER))
        if is_reading and path in self._pages:
            return None
        token = header(TOKEN_HEADER)
        if len(token) != 1 or not _is_equal(token[0], self._token):
            return Answer(401, f"This window did not enter, or {self._what} was started anew: use the newest address that it printed.")
        length = header("content-length")
        if length and (not _is_number(length[0]) or int(length[0]) > LARGEST_BODY):
            return Answer(413, "That is more than is taken in one change.")
        return None

    def _enter(self, given: list[str]) -> Answer:
        with self._lock:
            key = next((key for key in self._keys if len(given) == 1 and _is_equal(given[0], key)), None)
            used = None if key is None else self._keys.pop(key)
        if used is None:
            return Answer(401, f"This address was used already, or {self._what} was started anew: use the newest address that it printed.")
        used()
        return Answer(200, self._token)


def _is_equal(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12
