"""Who may ask the server: whoever knows its token, from a page of its own, by one of its own names.

The token comes in the link that is printed, once; from then on in a cookie that scripts cannot read. A request that
changes something, and a feed, must come from a page of the server itself: the browser says so in `Origin`. A name that
is not the server's own is refused, because a foreign page may have its name resolved to this host.
"""

import re
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class Guard:
    """The token of one server and the names under which it may be asked, such as "127.0.0.1:8000"."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self.names: frozenset[str] = frozenset()
        self._cookie = f"murmur-{secrets.token_hex(4)}"  # cookies of one host are shared by its ports

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what may not be asked, and say of every answer what a browser may do with it."""
        response = self._refusal(request)
        if response is None:
            response = await self._answer(request, handler)
        if not response.prepared:
            response.headers.setdefault("Content-Security-Policy", POLICY)
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["Cache-Control"] = "no-store"
        return response

    def _refusal(self, request: web.Request) -> web.StreamResponse | None:
        if request.host not in self.names:
            return _refuse(f"This server is not {request.host}.")
        if "token" in request.query and request.path == "/":
            return None
        if not self._known(request.cookies.get(self._cookie, "")):
            return _refuse("This page needs the link that murmur printed: it has the token of this server in it.")
        foreign = request.headers.get("Origin") != f"http://{request.host}"
        if foreign and (request.method != "GET" or "Upgrade" in request.headers):
            return _refuse("Only a page of this server may ask for that.")
        return None

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if "token" not in request.query or request.path != "/":
            try:
                return await handler(request)
            except web.HTTPException as error:
                return web.Response(status=error.status, text=error.text or error.reason)
        if not self._known(request.query["token"]):
            return _refuse("The token in this link is not that of this server. It prints its link when it starts.")
        # On to the same page without the token, so that it is in no history and no referrer.
        answer = web.Response(status=303, headers={"Location": _own_place(request.query.get("to", "/"))})
        answer.set_cookie(self._cookie, self.token, httponly=True, samesite="Strict")
        return answer

    def _known(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.token.encode())


def _own_place(path: str) -> str:
    """The path, if it is one of this server's pages of runs."""
    return path if re.fullmatch(r"/run/[\w.-]+/", path) else "/"


def _refuse(why: str) -> web.Response:
    return web.Response(status=403, text=f"{why}\n")
