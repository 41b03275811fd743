"""Who may talk to the inspector: the page that it served itself, to whoever had the address with the token.

Any page in the browser, and any program of the computer, can send requests to 127.0.0.1. So each needs the token, which the address has at
first and a cookie (HttpOnly, SameSite=Strict) afterwards; names the host as it is served, against names that are rebound to 127.0.0.1; and
comes from no other origin. What is answered may load nothing from elsewhere, and is never taken for another type than it says.
"""

from __future__ import annotations

import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
LARGEST_BODY = 16 * 1024 * 1024


class Guard:
    """Lets through what comes from the page, and refuses the rest before anything of the store is looked at."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._cookie = f"llvs-{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        headers = scope["headers"]

        def header(name: bytes) -> list[str]:
            return [value.decode("latin-1") for key, value in headers if key == name]

        async def answer(status: int, text: str, more: list[tuple[bytes, bytes]]) -> None:
            kind = (b"content-type", b"text/plain; charset=utf-8")
            await send({"type": "http.response.start", "status": status, "headers": [kind, *HEADERS, *more]})
            await send({"type": "http.response.body", "body": text.encode()})

        host = header(b"host")
        if len(host) != 1 or host[0].lower() not in self._hosts:
            return await answer(421, "This is the inspector of a store; use the address that it printed.", [])
        origins, sites = header(b"origin"), header(b"sec-fetch-site")
        if any(origin != f"http://{host[0].lower()}" for origin in origins):
            return await answer(403, "Another page asked for this; the inspector answers its own page only.", [])
        if scope["method"] not in ("GET", "HEAD") and not origins:
            return await answer(403, "A change needs the header Origin, which browsers send.", [])

        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for key, value in query if key == "token"]
        if scope["path"] == "/" and given:
            if len(given) != 1 or not self._is_token(given[0]):
                return await answer(401, "The token in the address is not that of this inspector; use the address that it printed.", [])
            rest = urlencode([(key, value) for key, value in query if key != "token"])
            cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            where = b"/" + (b"?" + rest.encode() if rest else b"")
            return await answer(303, "", [(b"set-cookie", cookie.encode()), (b"location", where)])
        if any(site not in ("same-origin", "none") for site in sites):
            return await answer(403, "Another page asked for this; the inspector answers its own page only.", [])
        if not self._is_token(self._cookie_of(header(b"cookie"))):
            return await answer(401, "This needs the address with the token that the inspector printed when it was started.", [])
        length = header(b"content-length")
        if length and (not length[0].isdigit() or len(length[0]) > 12 or int(length[0]) > LARGEST_BODY):
            return await answer(413, "That is more than the inspector takes in one change; use the package for large values.", [])

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        await self._app(scope, receive, guarded)

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
