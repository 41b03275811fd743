"""The endpoints of the inspector, and the files of its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Mapping, Optional

import llvs
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from ..tools.versions import VersionNameError
from . import changing, comparing, merges, searching, shared, values
from .exchanges import attached, verified
from .guard import LARGEST_BODY, Guard
from .inspected import Inspected, NotFound, metadata_of, told
from .security import Guarded

PAGE = Path(__file__).parent / "page"
#: The files of the page, by name.
FILES = {path.name: path for path in (*shared.FILES.values(), *PAGE.iterdir()) if path.suffix in shared.TYPES}
#: Exceptions that endpoints raise for bad requests; each becomes an answer with an error.
EXPECTED = (llvs.Error, changing.Refused, NotFound, VersionNameError, UnicodeEncodeError)


class Asked:
    """The parameters of a request. Raises Refused for invalid ones."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self._query = query

    def text(self, name: str, default: Optional[str] = None) -> str:
        """Returns a text. A missing parameter is an error unless there is a default."""
        found = self._query.get(name, default)
        if found is None:
            raise changing.Refused(f'The request names no "{name}".', 400)
        return found

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """Returns a number within bounds."""
        text = self._query.get(name)
        if text is None:
            return default
        if len(text) > 15 or not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise changing.Refused(f'"{name}" is a number from {least} to {most}.', 400)
        return int(text)


def answer(content: Any, status: int = 200) -> Response:
    """Returns an answer in JSON. It is ASCII, so that lone surrogates in texts of other devices do not fail."""
    return Response(json.dumps(content, separators=(",", ":")), status, media_type="application/json")


def problem(raised: Exception) -> Response:
    """Returns an error as an answer that the page shows."""
    status = 500
    if isinstance(raised, changing.Refused):
        status = raised.status
    elif isinstance(raised, (NotFound, VersionNameError, llvs.errors.UnknownVersionError)):
        status = 404
    elif isinstance(raised, (llvs.errors.InvalidArgumentError, llvs.errors.InvalidIDError, UnicodeEncodeError)):
        status = 400
    elif isinstance(raised, llvs.MovedError):
        status = 409
    confirm = raised.confirm if isinstance(raised, changing.Refused) else None
    return answer({"error": str(raised), **({"confirm": confirm} if confirm else {})}, status)


def clock(version: llvs.Version, times: Mapping[str, float]) -> float:
    """Returns by how many seconds a version is older than its own predecessor, which shows that the clock of its device was wrong."""
    return max((times[id] - version.timestamp for id in version.predecessors if times.get(id, 0) > version.timestamp), default=0)


Asking = Callable[[Asked], Any]


def make_guard(port: int) -> Guard:
    """Returns the guard of an inspector on a port."""
    return Guard(port=port, pages=["/", "/favicon.ico", *(f"/{name}" for name in FILES)])


def make_app(inspected: Inspected, guard: Guard) -> ASGIApp:
    """Returns the inspector of a store as an application, behind its guard."""
    store = inspected.store

    def id_of(asked: Asked, name: str) -> str:
        return inspected.find(asked.text(name)).id

    def history(asked: Asked) -> Any:
        index = inspected.index
        rows = index.rows(asked.number("first", 0, 0, 2**40), asked.number("count", 100, 1, 500))
        index.read_on()
        heads = {head.id for head in store.heads()} if rows else set()
        current, work = inspected.current_version(), inspected.work_version()
        before = {id for row in rows for id in row["version"].predecessors}
        times = {version.id: version.timestamp for version in store.versions(before)}
        return {
            "generation": index.generation, "total": max(index.total, len(rows)), "lanes": index.width, "known": index.known,
            "rows": [
                {**told(store, row["version"]), "row": row["row"], **row["place"]._asdict(), "head": row["version"].id in heads,
                 "current": row["version"].id == current, "work": inspected.write and row["version"].id == work,
                 "clock": clock(row["version"], times)}
                for row in rows
            ],
        }

    def row(asked: Asked) -> Any:
        version = inspected.find(asked.text("version"))
        return {"id": version.id, "row": inspected.index.row(version.id), "generation": inspected.index.generation}

    def version(asked: Asked) -> Any:
        found = inspected.find(asked.text("version"))
        before, followed = store.versions(found.predecessors), store.successors(found)
        return {
            **told(store, found), "metadata": metadata_of(found),
            "head": not followed, "current": found.id == inspected.current_version(),
            "work": inspected.write and found.id == inspected.work_version(),
            "successors": [told(store, one) for one in followed[:50]],
            "before": [told(store, one) for one in before],
            "clock": clock(found, {one.id: one.timestamp for one in before}),
            "values": len(store.at(found)),
            **comparing.made_in(store, found.id, asked.text("after", ""), asked.number("count", 100, 1, 1000)),
        }

    def state(asked: Asked) -> Any:
        at, count = id_of(asked, "at"), asked.number("count", 200, 1, 1000)
        wanted, after = asked.text("filter", ""), asked.text("after", "")
        if wanted:
            found = values.matching(store, at, wanted, after, count)
        else:
            found = values.tree(store, at, asked.text("prefix", ""), after, count)
        return {"at": at, **found}

    def value(asked: Asked) -> Any:
        return values.describe(store, asked.text("id"), id_of(asked, "at"))

    def steps(asked: Asked) -> Any:
        found = values.steps(store, asked.text("id"), id_of(asked, "at"), asked.number("count", 1000, 1, 10_000))
        return {"cut": found["cut"], "steps": [{**told(store, one), "kind": str(kind)} for one, kind in found["steps"]]}

    def compare(asked: Asked) -> Any:
        a, b = inspected.find(asked.text("a")), inspected.find(asked.text("b"))
        found = comparing.changes(
            store, a.id, b.id, asked.text("prefix", ""), asked.text("after", ""), asked.number("count", 200, 1, 1000)
        )
        return {"a": told(store, a), "b": told(store, b), **found}

    def compare_value(asked: Asked) -> Any:
        return comparing.value(store, asked.text("id"), id_of(asked, "a"), id_of(asked, "b"))

    def merge(asked: Asked) -> Any:
        at = inspected.find("@") if inspected.write else None
        return merges.explain(store, inspected.find(asked.text("version")), at)

    def foreseen(asked: Asked) -> Any:
        return merges.foreseen(store, inspected.find(asked.text("a")), inspected.find(asked.text("b")))

    def conflicts(asked: Asked) -> Any:
        return merges.unanswered(store, inspected.find(asked.text("at", "@")), inspected.reopened())

    def heads(asked: Asked) -> Any:
        count = asked.number("count", 100, 1, 2000)
        # The newest first, by the time that the page shows: a wrong clock does not change that.
        found = sorted(store.heads(), key=lambda head: -head.made_at)
        return {"heads": [told(store, head) for head in found[:count]], "count": len(found)}

    def size(asked: Asked) -> Any:
        report = store.size(asked.text("prefix", ""), depth=None if asked.text("each", "") == "id" else 1, limit=200)

        def rows(of: tuple[llvs.store.SizeRow, ...]) -> list[dict[str, Any]]:
            return [
                {"name": row.name, "values": row.values, "bytes": row.bytes, "current": row.current_bytes, "past": row.past_bytes,
                 "combined": row.combined}
                for row in of
            ]

        return {
            "bytes": report.bytes, "current": report.current_bytes, "past": report.past_bytes, "unread": report.unread,
            "kinds": rows(report.by_kind), "prefixes": rows(report.by_prefix), "months": rows(report.by_month),
            "versions": rows(report.by_version[:20]),
        }

    def search(asked: Asked) -> Any:
        return searching.search(inspected, asked.text("q"), asked.number("count", 50, 1, 500))

    def read(asking: Asking) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            try:
                return answer(await run_in_threadpool(asking, Asked(request.query_params)))
            except EXPECTED as raised:
                return problem(raised)

        return endpoint

    async def data(request: Request) -> Response:
        """Returns a part of a value as bytes, with headers that keep browsers from opening it as a document."""
        def taken(asked: Asked) -> bytes:
            offset, length = asked.number("offset", 0, 0, 2**40), asked.number("length", values.PIECE, 1, values.PIECE)
            found = store.read_range(asked.text("id"), offset, length, at=id_of(asked, "at"))
            if found is None:
                raise NotFound("There is no such value at this version.")
            return found

        try:
            found = await run_in_threadpool(taken, Asked(request.query_params))
        except EXPECTED as raised:
            return problem(raised)
        return Response(found, media_type="application/octet-stream", headers={"content-disposition": "attachment"})

    async def change(request: Request) -> Response:
        if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return answer({"error": "A change is sent as application/json."}, 415)
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST_BODY:
                return answer({"error": "That is more than the inspector takes in one change."}, 413)
        try:
            given = json.loads(bytes(body))
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            return answer({"error": "A change is a JSON object."}, 400)
        try:
            return answer(await run_in_threadpool(changing.change, inspected, request.path_params["what"], given))
        except EXPECTED as raised:
            return problem(raised)

    async def news(request: Request) -> Response:
        return StreamingResponse(inspected.news.stream(), media_type="text/event-stream")

    async def nothing(request: Request) -> Response:
        """The page has no icon, but browsers request one."""
        return Response(status_code=204)

    async def page(request: Request) -> Response:
        path = FILES.get(request.path_params.get("name", "index.html"))
        if path is None:
            return answer({"error": "There is no such page."}, 404)
        return Response(path.read_bytes(), media_type=shared.TYPES[path.suffix])

    reading = {
        "summary": lambda asked: inspected.summary(), "history": history, "row": row, "version": version, "state": state, "value": value,
        "steps": steps, "compare": compare, "compare/value": compare_value, "merge": merge, "merge/foreseen": foreseen,
        "conflicts": conflicts, "heads": heads, "search": search, "size": size, "exchanges": lambda asked: attached(inspected),
        "verify": lambda asked: verified(store),
    }
    routes = [Route(f"/api/{name}", read(asking)) for name, asking in reading.items()]
    routes += [
        Route("/api/data", data), Route("/api/news", news), Route("/api/change/{what}", change, methods=["POST"]),
        Route("/favicon.ico", nothing), Route("/", page), Route("/{name}", page),
    ]
    return Guarded(Starlette(routes=routes), guard)
