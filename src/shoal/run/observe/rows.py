"""Take rows by POST and give out published ones by GET, beside the live page."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

from shoal.io.http.releases import GoneError, Releases
from shoal.io.http.source import (
    MOST_BODY,
    BadBodyError,
    FullError,
    HttpSource,
    KeyReusedError,
    NotStoredError,
)
from shoal.run.observe.listener import Reply, Request, Route

__all__ = ["routes_of"]

NDJSON = "application/x-ndjson"
#: A web page of another site can't send these without asking first, which is refused.
_TAKEN = (NDJSON, "application/jsonl", "application/json-lines")
#: The seconds after which a client should try again.
RETRY = {"Retry-After": "1"}
MOST_KEY = 200
#: The number of published rows in an answer, unless asked for otherwise, and the most.
ROWS, MOST_ROWS = 1000, 10_000


def routes_of(
    source: HttpSource, releases: Releases | None, token: str | None = None
) -> dict[str, Route]:
    """Return what answers ``POST /rows`` and ``GET /releases``.

    Parameters
    ----------
    source
        Takes the rows.
    releases
        What was published; None if the output can't be read by row.
    token
        Another token, for ``/releases`` only: whoever may post rows can learn about other people
        from what is published beside them.
    """
    return {
        "/rows": Route("POST", lambda request: _take(source, request)),
        "/releases": Route("GET", lambda request: _give(source, releases, request), token),
    }


def _take(source: HttpSource, request: Request) -> Reply:
    """Answer a request that brings rows, when they are on the disk."""
    headers = request.headers
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind not in _TAKEN:
        return _error(415, f"the Content-Type must be {NDJSON}: one JSON object a line")
    if headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        return _error(415, "the body must not be compressed")
    # A proxy in front may take another of them than this server: a body would end elsewhere.
    for name in ("Content-Length", "Idempotency-Key"):
        if len(headers.get_all(name, [])) > 1:
            return _error(400, f"the {name} must be given once")
    if "Transfer-Encoding" in headers:
        return _error(411, "the body must have a Content-Length and no Transfer-Encoding")
    length = headers.get("Content-Length", "")
    if not (length.isascii() and length.isdigit() and len(length) < 20):
        return _error(411, "the Content-Length is missing: chunked bodies aren't read")
    if int(length) > MOST_BODY:
        return _error(413, f"{int(length):,} bytes, more than the maximum of {MOST_BODY:,}")
    key = headers.get("Idempotency-Key")
    if key is not None and not (key.isascii() and key.isprintable() and 0 < len(key) <= MOST_KEY):
        return _error(400, f"the Idempotency-Key must be 1 to {MOST_KEY} printable characters")
    try:
        with source.reserve(int(length)):
            receipt = source.put(source.read_rows(request.body(int(length))), key)
    except BadBodyError as error:
        return _error(400, str(error))
    except KeyReusedError as error:
        return _error(422, str(error))
    except FullError as error:
        return _error(429, str(error), retry=True)
    except NotStoredError as error:
        return _error(503, str(error), retry=True)
    return _json(200, {"rows": receipt.n_rows, "repeated": receipt.is_repeated})


def _give(source: HttpSource, releases: Releases | None, request: Request) -> Reply:
    """Answer with published rows."""
    if releases is None:
        return _error(404, "the output of this job isn't a file or folder of JSON lines")
    try:
        asked = parse_qs(request.query, keep_blank_values=True, strict_parsing=bool(request.query))
        first = _whole(asked.pop("from", ["0"]), "from", 0, 10**15)
        limit = _whole(asked.pop("limit", [str(ROWS)]), "limit", 1, MOST_ROWS)
        if asked:
            return _error(400, "the only parameters are from and limit")
    except ValueError as error:
        return _error(400, str(error))
    if not source.has_begun:
        # What a crash left behind is checked first.
        return _error(503, "the run is starting; try again later", retry=True)
    try:
        page = releases.read(first, limit)
    except GoneError as error:
        return _error(410, str(error))
    return Reply(200, NDJSON, page.lines, {"Shoal-Next": str(page.next)})


def _whole(given: list[str], name: str, least: int, most: int) -> int:
    text = given[0]
    if len(given) == 1 and text.isascii() and text.isdigit() and len(text) < 20:
        number = int(text)
        if least <= number <= most:
            return number
    raise ValueError(f"{name} must be a whole number from {least} to {most}")


def _error(status: int, what: str, *, retry: bool = False) -> Reply:
    return _json(status, {"error": what}, RETRY if retry else {})


def _json(status: int, body: object, headers: dict[str, str] | None = None) -> Reply:
    return Reply(status, "application/json", json.dumps(body).encode() + b"\n", headers or {})
