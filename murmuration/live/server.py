"""The server of the live page: a list of runs, a page for each, and its feed."""

import asyncio
import errno
import html
from pathlib import Path

from aiohttp import web

from murmur_page.page_files import picture, read_file, script
from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.plain_data import to_plain
from murmuration.live.feed import RunFeed
from murmuration.live.findings import way_of
from murmuration.live.guard import Guard
from murmuration.live.requests import carry_out
from murmuration.live.run_list import ListedRun, runs_in
from murmuration.live.running_verdict import RunningVerdictProgram
from murmuration.runs.hands import SAVED, Hands
from murmuration.runs.kept_inputs import node_at

LOOPBACK = "127.0.0.1"
_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/live.css">
</head>
<body>
{body}
</body>
</html>
"""


class PageServer:
    """Serves the runs in a folder, or the one run that it is."""

    def __init__(self, place: Path) -> None:
        self.guard = Guard()
        self._place = place
        self._feeds: dict[Path, RunFeed] = {}
        self._hands: dict[Path, Hands] = {}
        self._running: dict[Path, RunningVerdictProgram] = {}
        self._runner: web.AppRunner | None = None
        self._address = ""
        self.application = web.Application(middlewares=[self.guard.check], client_max_size=65_536)
        self.application.add_routes(
            [
                web.get("/", self._index),
                web.get("/live.css", self._style),
                web.get("/live.js", self._script),
                web.get("/run/{name}/", self._page),
                web.get("/run/{name}/feed", self._feed),
                web.get("/run/{name}/report", self._report),
                web.get(f"/run/{{name}}/{SAVED}", self._saved),
                web.get(r"/run/{name}/way/{event:\d{1,9}:\d{1,9}}", self._way),
                web.get(r"/run/{name}/state/{node}/{time_us:\d{1,18}}", self._state),
                web.post("/run/{name}/do", self._do),
                web.post("/run/{name}/judge", self._judge),
            ]
        )

    async def start(self, host: str = LOOPBACK, port: int = 0) -> None:
        """Listen; a port of 0 is any free one. Raises `InputError` for an address that cannot be had."""
        self._runner = web.AppRunner(self.application, handle_signals=False, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self._runner.cleanup()
            if error.errno == errno.EADDRINUSE:
                raise InputError(f"--port {port}", "a port that is in use", "a free one, or 0 for any") from None
            raise InputError(f"--host {host}", str(error.strerror or error), "an address of this host") from None
        bound = self._runner.addresses[0][1]
        self._address = f"{host}:{bound}"
        self.guard.names = frozenset((self._address, f"localhost:{bound}") if host == LOOPBACK else (self._address,))

    def let_steer(self, run: Path, hands: Hands) -> None:
        """Let pages of that run, which is about to start, lay hands on it."""
        self._hands[run.resolve()] = hands

    def link(self, run: Path | None = None) -> str:
        """The link to open: it has the token in it."""
        to = "" if run is None else f"&to=/run/{run.name}/"
        return f"http://{self._address}/?token={self.guard.token}{to}"

    async def stop(self) -> None:
        """Leave every viewer, and listen no more."""
        for feed in self._feeds.values():
            await feed.close()
        if self._runner is not None:
            await self._runner.cleanup()
        for program in self._running.values():  # after whoever was still having one begun was answered, or left
            await program.close()

    async def _index(self, _: web.Request) -> web.Response:
        runs = await asyncio.to_thread(runs_in, self._place)
        rows = "\n".join(map(_row, runs))
        heads = "".join(
            f"<th scope=col>{each}</th>" for each in ("run", "scenario", "runtime", "nodes", "state", "when")
        )
        table = f"<div class=live-table><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        nothing = f"<p>There is no run in {html.escape(str(self._place))} yet; look again when there is.</p>"
        body = f'<main class="live-list live" data-alone><h1>Runs</h1>{table if runs else nothing}</main>'
        return _html("murmur: runs", body)

    async def _page(self, request: web.Request) -> web.Response:
        run = await self._run_of(request)
        body = f'{picture(alone=True)}<script src="/live.js" type="module"></script>'
        return _html(f"murmur: {run.name}", body)

    async def _feed(self, request: web.Request) -> web.StreamResponse:
        run = await self._run_of(request)
        hands = self._hands.get(run.folder.resolve())
        feed = self._feeds.get(run.folder)
        if feed is None:
            judge = self._judge_of(run.folder)
            told = (lambda: judge.told) if hands is None else (lambda: hands.told() | judge.told)
            feed = self._feeds[run.folder] = RunFeed(run.folder, told)
        return await feed.show(request)

    async def _do(self, request: web.Request) -> web.Response:
        """Carry out what a page asks, and answer in a sentence."""
        run = await self._run_of(request)
        hands = self._hands.get(run.folder.resolve())
        if hands is None:
            raise web.HTTPConflict(text="Nobody can lay hands on this run from here: murmur run --watch starts one.")
        try:
            return web.Response(text=await carry_out(hands, await request.json()))
        except ValueError:
            raise web.HTTPBadRequest(text="That is no order.") from None
        except InputError as error:
            raise web.HTTPConflict(text=f"Not done: {error}") from None

    def _judge_of(self, run: Path) -> RunningVerdictProgram:
        return self._running.setdefault(run, RunningVerdictProgram(run))

    async def _judge(self, request: web.Request) -> web.Response:
        """Have the run judged while it goes on."""
        run = await self._run_of(request)
        if run.state != "running":
            raise web.HTTPConflict(text=f"The run is over: murmur analyze {run.folder} judges it.")
        try:
            await self._judge_of(run.folder).start()
        except InputError as error:
            raise web.HTTPConflict(text=f"The running verdict needs Java, which Spark runs on: {error}") from None
        return web.Response()

    async def _way(self, request: web.Request) -> web.Response:
        """The way of one event so far."""
        run = await self._run_of(request)
        source, sequence = map(int, request.match_info["event"].split(":"))
        try:
            return web.json_response(await asyncio.to_thread(way_of, run.folder, source, sequence))
        except InputError as error:
            raise web.HTTPNotFound(text=str(error)) from None

    async def _state(self, request: web.Request) -> web.Response:
        """What a node was at a moment."""
        run = await self._run_of(request)
        node, time_us = request.match_info["node"], int(request.match_info["time_us"])
        try:
            return web.json_response(to_plain(await asyncio.to_thread(node_at, run.folder, node, time_us)))
        except (InputError, RunError) as error:
            raise web.HTTPNotFound(text=str(error)) from None

    async def _saved(self, request: web.Request) -> web.StreamResponse:
        run = await self._run_of(request)
        path = run.folder / SAVED
        if not path.exists():
            raise web.HTTPNotFound(text="Nothing was done by hand.")
        return web.FileResponse(path, headers={"Content-Type": "application/yaml"})

    async def _report(self, request: web.Request) -> web.StreamResponse:
        run = await self._run_of(request)
        path = run.folder / "report.html"
        if not path.exists():
            raise web.HTTPNotFound(text=f"The run was not judged yet: murmur analyze {run.folder}")
        # A report may come from anywhere: it runs as a page of no origin, and can ask this server for nothing.
        return web.FileResponse(path, headers={"Content-Security-Policy": "sandbox allow-scripts"})

    async def _run_of(self, request: web.Request) -> ListedRun:
        name = request.match_info["name"]
        for run in await asyncio.to_thread(runs_in, self._place):
            if run.name == name:
                return run
        raise web.HTTPNotFound(text=f"There is no run {name} in {self._place}.")

    async def _style(self, _: web.Request) -> web.Response:
        return web.Response(text=read_file("live.css"), content_type="text/css")

    async def _script(self, _: web.Request) -> web.Response:
        return web.Response(text=script("watching"), content_type="text/javascript")


def _row(run: ListedRun) -> str:
    name = html.escape(run.name)
    link = f'<a href="/run/{name}/">{name}</a>' if run.opens else name
    if (run.folder / "report.html").exists():
        link += f' (<a href="/run/{name}/report">report</a>)'
    seed = "" if run.seed is None else f", seed {run.seed}"
    cells = [html.escape(each) for each in (run.scenario, f"{run.runtime}{seed}", run.nodes, run.state, run.when)]
    return f"<tr><th scope=row>{link}</th>{''.join(f'<td>{each}</td>' for each in cells)}</tr>"


def _html(title: str, body: str) -> web.Response:
    return web.Response(text=_FRAME.format(title=html.escape(title), body=body), content_type="text/html")
