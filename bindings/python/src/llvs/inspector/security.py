"""Puts the guard before the inspector's application."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .guard import HEADERS, Guard


def encoded(headers: tuple[tuple[str, str], ...]) -> list[tuple[bytes, bytes]]:
    """Returns headers in the form of ASGI."""
    return [(name.encode(), value.encode("latin-1")) for name, value in headers]


class Guarded:
    """An application behind a guard."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        refused = self._guard.judge(scope["method"], scope["path"], headers)
        always = encoded(HEADERS)
        if refused is not None:
            kind = (b"content-type", b"text/plain; charset=utf-8")
            await send({"type": "http.response.start", "status": refused.status, "headers": [kind, *always]})
            await send({"type": "http.response.body", "body": refused.text.encode()})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *always]
            await send(message)

        await self._app(scope, receive, guarded)
