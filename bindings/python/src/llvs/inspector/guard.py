"""Who may talk to a page that a program serves on 127.0.0.1: the page that it served itself, to whoever had the address with the token.

Any page in the browser, and any program of the computer, can send requests to 127.0.0.1. So each needs the token, which the address has at
first and a cookie (HttpOnly, SameSite=Strict) afterwards; names the host as it is served, against names that are rebound to 127.0.0.1; and
comes from no other origin. What is answered may load nothing from elsewhere, and is never taken for another type than it says.

It knows of no web server: give it what a request says, and answer what it answers. Needs nothing but Python.
"""

from __future__ import annotations

import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Iterable, NamedTuple, Optional
from urllib.parse import parse_qsl, urlencode

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: What goes with every answer, also with those of the program.
HEADERS = (
    ("content-security-policy", CONTENT_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)
#: Bytes of a request's body that are taken.
LARGEST_BODY = 16 * 1024 * 1024


class Answer(NamedTuple):
    """What a request gets instead of what it asked for."""

    #: The status of HTTP.
    status: int
    #: A sentence, as text/plain.
    text: str
    #: Headers beside `HEADERS`.
    headers: tuple[tuple[str, str], ...] = ()


class Guard:
    """Lets through what comes from the page, and refuses the rest before anything of the store is looked at."""

    def __init__(self, *, token: str, port: int, what: str = "the inspector of a store") -> None:
        """token: what the address has. port: on which the page is served. what: what is served, in sentences."""
        self._token, self._what = token, what
        self._cookie = f"llvs-{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    def judge(self, method: str, path: str, query: str, headers: Iterable[tuple[str, str]]) -> Optional[Answer]:
        """The answer to a request that is refused, or sent on without the token in its address; None for one that is let through.

        path, query: of the address, before and behind its "?". headers: all of them, with names in small letters.
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
        if method not in ("GET", "HEAD") and not origins:
            return Answer(403, "A change needs the header Origin, which browsers send.")

        given = parse_qsl(query, keep_blank_values=True)
        tokens = [value for key, value in given if key == "token"]
        if path == "/" and tokens:
            if len(tokens) != 1 or not self._is_token(tokens[0]):
                return Answer(401, "The token in the address is not the one that is needed here; use the address that was printed.")
            rest = urlencode([(key, value) for key, value in given if key != "token"])
            cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            return Answer(303, "", (("set-cookie", cookie), ("location", "/" + (f"?{rest}" if rest else ""))))
        if any(site not in ("same-origin", "none") for site in sites):
            return elsewhere
        if not self._is_token(self._cookie_of(header("cookie"))):
            return Answer(401, f"This needs the address with the token that {self._what} printed when it was started.")
        length = header("content-length")
        if length and (not _is_number(length[0]) or int(length[0]) > LARGEST_BODY):
            return Answer(413, "That is more than is taken in one change.")
        return None

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def _cookie_of(self, lines: list[str]) -> str:
        for line in lines:
            try:
                found = SimpleCookie(line).get(self._cookie)
            except CookieError:
                found = None
            if found is not None:
                return found.value
        return ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12
